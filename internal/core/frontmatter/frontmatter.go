// Package frontmatter reads Markdown files that begin with YAML between two lines
// "---", such as SKILL.md, HOOK.md and the files of agent types.
package frontmatter

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/chela-ai/chela/internal/core/charset"
)

// MaxHead is the maximum size of the YAML in bytes.
const MaxHead = 64 << 10

// ErrNone is returned for a text that does not begin with front matter.
var ErrNone = errors.New("it does not begin with front matter between two lines ---")

// Decode decodes the front matter of a file, and returns the rest of it without
// surrounding white space. What editors and people do to such files is accepted: another
// encoding (see package charset), a byte order mark, empty lines at the beginning, CRLF, blanks after ---, no line end
// at the end, tabs as indentation, and texts with a colon or another special character
// that are not quoted. Errors name the line of the file.
func Decode(text []byte, into any) (body string, err error) {
	plain, _, ok := charset.Text(text)
	if !ok {
		return "", errors.New("it is not text, or in an unknown encoding; save it as UTF-8")
	}
	lines := strings.SplitAfter(strings.ReplaceAll(plain, "\r\n", "\n"), "\n")
	from := 0
	for from < len(lines) && strings.TrimSpace(lines[from]) == "" {
		from++
	}
	if from == len(lines) || !isFence(lines[from]) {
		return "", ErrNone
	}
	from++
	to := from
	for to < len(lines) && !isFence(lines[to]) {
		to++
	}
	if to == len(lines) {
		return "", fmt.Errorf("front matter: it begins in line %d, and no line --- ends it", from)
	}
	head := lines[from:to]
	if n := len(strings.Join(head, "")); n > MaxHead {
		return "", fmt.Errorf("front matter: it has %d bytes, at most %d", n, MaxHead)
	}
	if err := decode(from, head, into); err != nil {
		return "", err
	}
	return strings.TrimSpace(strings.Join(lines[to+1:], "")), nil
}

// endings are those that editors and systems give a file that is meant to be NAME.md.
var endings = [...]string{"md.txt", "txt", "markdown", "mdown", "md.md"}

// Misnamed reports whether a file is probably meant to have another name, such as SKILL.md,
// and has the wrong ending.
func Misnamed(file, name string) bool {
	base, _, _ := strings.Cut(name, ".")
	has, rest, _ := strings.Cut(file, ".")
	return strings.EqualFold(has, base) && slices.Contains(endings[:], strings.ToLower(rest))
}

// List is a list of names, which may also be a text with commas.
type List []string

// UnmarshalYAML implements yaml.Unmarshaler.
func (l *List) UnmarshalYAML(v *yaml.Node) error {
	var list []string
	if v.Kind == yaml.ScalarNode {
		list = strings.Split(v.Value, ",")
	} else if err := v.Decode(&list); err != nil {
		return err
	}
	*l = nil
	for _, s := range list {
		if s = strings.TrimSpace(s); s != "" {
			*l = append(*l, s)
		}
	}
	return nil
}

func isFence(line string) bool { return strings.TrimRight(line, " \t\n") == "---" }

// decode decodes lines of YAML, of which the first is preceded by others in its file.
func decode(before int, head []string, into any) error {
	parse := func(head []string) error {
		// so that errors have the file's lines
		return yaml.Unmarshal([]byte(strings.Repeat("\n", before)+strings.Join(head, "")), into)
	}
	err := parse(head)
	if _, decoded := errors.AsType[*yaml.TypeError](err); err == nil || !decoded && parse(repaired(head)) == nil {
		return nil
	}
	return fmt.Errorf("front matter: %s",
		strings.Join(strings.Fields(strings.NewReplacer("yaml: unmarshal errors:", "", "yaml: ", "").Replace(err.Error())),
			" "))
}

// repaired returns lines of YAML in which a value that is no valid YAML is a text, and
// tabs at the beginning of lines are blanks. Values of several lines become one, followed
// by empty lines.
func repaired(head []string) []string {
	var out []string
	for len(head) > 0 {
		n := 1 // lines of the value
		for n < len(head) && (strings.TrimSpace(head[n]) == "" || strings.HasPrefix(head[n], " ") ||
			strings.HasPrefix(head[n], "\t")) {
			n++
		}
		out, head = append(out, repairedValue(head[:n])...), head[n:]
	}
	return out
}

func repairedValue(lines []string) []string {
	valid := func(lines []string) bool {
		return yaml.Unmarshal([]byte(strings.Join(lines, "")), new(any)) == nil
	}
	if valid(lines) {
		return lines
	}
	plain := make([]string, len(lines))
	for i, l := range lines {
		text := strings.TrimLeft(l, " \t")
		plain[i] = strings.ReplaceAll(l[:len(l)-len(text)], "\t", "  ") + text
	}
	if valid(plain) {
		return plain
	}
	name, value, ok := strings.Cut(strings.Join(lines, ""), ":")
	value = strings.Join(strings.Fields(value), " ")
	if !ok || value == "" || strings.ContainsAny(name, " \t{}[]\"'") || strings.ContainsRune("{[|>", rune(value[0])) {
		return lines
	}
	quoted, err := json.Marshal(value) // a string of JSON is one of YAML
	if err != nil {
		return lines
	}
	return []string{name + ": " + string(quoted) + strings.Repeat("\n", len(lines))}
}
