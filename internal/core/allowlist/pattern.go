package allowlist

import (
	"path/filepath"
	"regexp"
	"strings"

	"github.com/chela-ai/chela/internal/core/shell"
)

// pattern is a compiled entry.
type pattern struct {
	Entry
	agent string // key in the document
	file  *regexp.Regexp
	bare  bool           // it matches names looked up in PATH
	args  *regexp.Regexp // nil: any
}

// compile compiles an entry.
func compile(agent string, e Entry, home string) (pattern, error) {
	p := pattern{Entry: e, agent: agent}
	text := expandHome(e.Pattern, home)
	p.bare = !strings.ContainsAny(text, `/\`)
	var err error
	if p.file, err = regexp.Compile(glob(text)); err != nil {
		return p, err
	}
	if e.Args != "" {
		if _, err := regexp.Compile(e.Args); err != nil {
			return p, err
		}
		p.args, err = regexp.Compile(`^(?:` + e.Args + `)$`)
	}
	return p, err
}

// expandHome returns a pattern with the home folder in place of ~.
func expandHome(text, home string) string {
	if rest, ok := strings.CutPrefix(text, "~/"); ok && home != "" {
		return filepath.ToSlash(home) + "/" + rest
	}
	return text
}

// glob translates a pattern into a regular expression. * and ? match within a
// path element, ** matches across elements.
func glob(text string) string {
	var b strings.Builder
	b.WriteByte('^')
	for text != "" {
		n := 1
		switch {
		case strings.HasPrefix(text, "**/"):
			b.WriteString(`(?:.*/)?`)
			n = 3
		case strings.HasPrefix(text, "**"):
			b.WriteString(`.*`)
			n = 2
		case text[0] == '*':
			b.WriteString(`[^/]*`)
		case text[0] == '?':
			b.WriteString(`[^/]`)
		default:
			if n = strings.IndexAny(text, "*?"); n < 0 {
				n = len(text)
			}
			b.WriteString(regexp.QuoteMeta(text[:n]))
		}
		text = text[n:]
	}
	return b.String() + "$"
}

// matches reports whether the entry allows a program with these arguments.
func (p pattern) matches(prog program, argv []shell.Word) bool {
	if !p.named(prog) {
		return false
	}
	if p.args == nil {
		return true
	}
	text, ok := arguments(argv[1:])
	return ok && p.args.MatchString(text)
}

// named reports whether the entry's pattern matches a program.
func (p pattern) named(prog program) bool {
	if p.bare {
		return prog.bare && p.file.MatchString(prog.name)
	}
	// A link is matched by its target and by its own path: it is in a folder
	// where only the system or the person creates files.
	return p.file.MatchString(filepath.ToSlash(prog.target)) || p.file.MatchString(filepath.ToSlash(prog.path))
}

// arguments joins arguments for an argPattern. Blanks are escaped, so that
// different lists of arguments yield different strings. It returns false if
// an argument is not known.
func arguments(args []shell.Word) (string, bool) {
	texts := make([]string, len(args))
	for i, a := range args {
		switch {
		case !a.Literal || a.Glob:
			return "", false
		case a.Text == "":
			texts[i] = "''"
		case strings.ContainsAny(a.Text, "\\ \t\n"):
			texts[i] = strings.NewReplacer(`\`, `\\`, " ", `\ `, "\t", `\t`, "\n", `\n`).Replace(a.Text)
		default:
			texts[i] = a.Text
		}
	}
	return strings.Join(texts, " "), true
}
