package shell

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Text returns the plan as approval text: the command as written and, one per
// line, the commands that it runs and that are not a part of it. Nothing is
// cut, and invisible characters are escaped.
func (p Plan) Text() string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(p.Command, "\n"), "\n") {
		b.WriteString(Escape(line) + "\n")
	}
	bare := strings.NewReplacer(" ", "", "\t", "", "\n", "", "'", "", `"`, "", `\`, "", "${HOME}", "~",
		"$HOME", "~", p.home, "~")
	written, heading := bare.Replace(p.Command), "which runs\n"
	for _, s := range p.Segments {
		if strings.Contains(written, bare.Replace(s.text(func(x Word) string { return x.Text }))) {
			continue
		}
		b.WriteString(heading + strings.Repeat("  ", s.Depth+1) + Escape(strings.TrimSpace(s.Join+" "+s.text(Word.quoted))) +
			"\n")
		heading = ""
	}
	return b.String()
}

// text returns the segment as a command, with words as they are written.
func (s Segment) text(written func(Word) string) string {
	parts := slices.Clone(s.Vars)
	for _, x := range s.Argv {
		parts = append(parts, written(x))
	}
	for _, r := range s.Redirects {
		parts = append(parts, r.Text)
	}
	return strings.Join(parts, " ")
}

// quoted returns the word so that a shell parses the same word.
func (x Word) quoted() string {
	if !x.Literal || x.Glob {
		return x.Text
	}
	q, err := syntax.Quote(x.Text, syntax.LangBash)
	if err != nil {
		return x.Text
	}
	return q
}

// Escape returns the string as one line in which every character is visible:
// control characters, bidirectional controls and other non-printing
// characters are escaped.
func Escape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			q := strconv.QuoteToASCII(s[i : i+n])
			b.WriteString(q[1 : len(q)-1])
		} else {
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

// maxName is the number of bytes of a name in a list of [Names]; a longer one is shortened.
const maxName = 200

// Names lists names for people, the first max of them, each with what would not print or
// could end the list escaped.
func Names(names []string, max int) string {
	var out []string
	for _, name := range names[:min(len(names), max)] {
		if len(name) > maxName {
			name = strings.ToValidUTF8(name[:maxName*2/3], "") + "…" + strings.ToValidUTF8(name[len(name)-maxName/3:], "")
		}
		if plain := Escape(name); plain != name || strings.ContainsAny(name, `[]",;`) || strings.TrimSpace(name) != name {
			name = strconv.QuoteToGraphic(name)
		}
		out = append(out, name)
	}
	text := strings.Join(out, ", ")
	if n := len(names) - max; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}
