package shell

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns the plan for people: the command as it was written, line by
// line, and under it, when that says more, a line for each segment. Nothing is
// cut; what cannot be seen is escaped.
func (p Plan) Text() string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(p.Command, "\n"), "\n") {
		b.WriteString(Escape(line) + "\n")
	}
	if len(p.Segments) < 2 && (len(p.Segments) == 0 || p.Segments[0].text() == strings.TrimSpace(p.Command)) {
		return b.String()
	}
	b.WriteString("which is\n")
	for _, s := range p.Segments {
		b.WriteString(strings.Repeat("  ", s.Depth+1) + s.line() + "\n")
	}
	return b.String()
}

// text is the segment as a command.
func (s Segment) text() string {
	parts := make([]string, 0, len(s.Argv)+len(s.Redirects))
	for _, x := range s.Argv {
		parts = append(parts, x.quoted())
	}
	return strings.Join(append(parts, s.Redirects...), " ")
}

// line is the segment as one line of a plan.
func (s Segment) line() string {
	line := Escape(s.text())
	if s.Join != "" {
		line = s.Join + " " + line
	}
	if s.Reason != "" {
		if line != "" {
			line += "   "
		}
		line += "# " + Escape(s.Reason)
	}
	return line
}

// Escape writes a text as one line in which every character can be seen:
// control, bidi and other characters without a picture are escaped.
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
