package shell

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns the plan as approval text: the command as written and, if it
// adds information, one line per segment. Nothing is cut, and invisible
// characters are escaped.
func (p Plan) Text() string {
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(p.Command, "\n"), "\n") {
		b.WriteString(Escape(line) + "\n")
	}
	if len(p.Segments) < 2 && (len(p.Segments) == 0 || p.Segments[0].text() == strings.TrimSpace(p.Command)) {
		return b.String()
	}
	b.WriteString("which runs\n")
	for _, s := range p.Segments {
		b.WriteString(strings.Repeat("  ", s.Depth+1) + s.line() + "\n")
	}
	return b.String()
}

// text returns the segment as a command.
func (s Segment) text() string {
	parts := make([]string, 0, len(s.Argv)+len(s.Redirects))
	for _, x := range s.Argv {
		parts = append(parts, x.quoted())
	}
	return strings.Join(append(parts, s.Redirects...), " ")
}

// line returns the segment as one line of the approval text.
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
