package fs

import (
	"fmt"
	"slices"
	"strings"
)

// textLine is a line of a file, with its end as it is.
type textLine struct{ text, end string }

// split returns the lines of a text. The last has no end when the text does
// not end with one.
func split(data string) []textLine {
	var out []textLine
	for line := range strings.Lines(data) {
		text := strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		out = append(out, textLine{text, line[len(text):]})
	}
	return out
}

func joinLines(lines []textLine) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l.text)
		b.WriteString(l.end)
	}
	return b.String()
}

// apply makes the changes in a text. Lines that stay are left as they are in
// it, also when the patch has them a little differently.
func apply(data string, hunks []hunk) (string, error) {
	lines := split(data)
	open := len(lines) > 0 && lines[len(lines)-1].end == "" // the last line has no end, and keeps none
	eol := "\n"
	if len(lines) > 0 && lines[0].end == "\r\n" {
		eol = "\r\n"
	}
	if open {
		lines[len(lines)-1].end = eol
	}
	at := 0
	for i, h := range hunks {
		var err error
		if lines, at, err = h.apply(lines, at, eol); err != nil {
			return "", fmt.Errorf("change %d (line %d of the patch): %w", i+1, h.line, err)
		}
	}
	if open && len(lines) > 0 {
		lines[len(lines)-1].end = ""
	}
	return joinLines(lines), nil
}

// apply makes one change at or after a line, and returns where it ends.
func (h *hunk) apply(lines []textLine, at int, eol string) ([]textLine, int, error) {
	if h.anchor {
		i := seek(lines, []string{h.context}, at, false)
		if i < 0 {
			return nil, 0, fmt.Errorf("the line %q is not found", clipped(h.context))
		}
		at = i + 1
	}
	changes := h.lines
	old := before(changes)
	if len(old) == 0 { // it only adds
		if !h.anchor || h.end {
			at = len(lines)
		}
		return replace(lines, at, changes, eol)
	}
	i := seek(lines, old, at, h.end)
	if n := len(changes); i < 0 && changes[n-1] == (change{' ', ""}) { // an empty line that the patch has too much
		changes = changes[:n-1]
		if old = before(changes); len(old) > 0 {
			i = seek(lines, old, at, h.end)
		}
	}
	if i < 0 {
		return nil, 0, fmt.Errorf("these lines are not found:\n%s", clipped(strings.Join(old, "\n")))
	}
	return replace(lines, i, changes, eol)
}

// before returns the lines that a change wants to see.
func before(changes []change) []string {
	var old []string
	for _, c := range changes {
		if c.kind != '+' {
			old = append(old, c.text)
		}
	}
	return old
}

// replace makes the change at a line where it fits.
func replace(lines []textLine, at int, changes []change, eol string) ([]textLine, int, error) {
	out := slices.Clone(lines[:at])
	for _, c := range changes {
		switch c.kind {
		case ' ':
			out = append(out, lines[at])
			at++
		case '-':
			at++
		default:
			out = append(out, textLine{c.text, eol})
		}
	}
	end := len(out)
	return append(out, lines[at:]...), end, nil
}

// seek returns where the lines are, at or after one: exactly so, or with other
// blanks at their ends, or with other blanks around them, or with other
// quotation marks and dashes. With end it looks at the end of the file first.
func seek(lines []textLine, want []string, at int, end bool) int {
	last := len(lines) - len(want)
	for _, same := range [...]func(a, b string) bool{
		func(a, b string) bool { return a == b },
		func(a, b string) bool { return strings.TrimRight(a, " \t") == strings.TrimRight(b, " \t") },
		func(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) },
		func(a, b string) bool { return simple(a) == simple(b) },
	} {
		if end && last >= at && fits(lines[last:], want, same) {
			return last
		}
		for i := at; i <= last; i++ {
			if fits(lines[i:], want, same) {
				return i
			}
		}
	}
	return -1
}

func fits(lines []textLine, want []string, same func(a, b string) bool) bool {
	for i, w := range want {
		if !same(lines[i].text, w) {
			return false
		}
	}
	return true
}

// simple returns a line with the characters that models write in place of
// others.
func simple(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch r {
		case '‐', '‑', '‒', '–', '—', '―', '−':
			return '-'
		case '‘', '’', '‚', '‛':
			return '\''
		case '“', '”', '„', '‟':
			return '"'
		case '\u00a0', '\u2002', '\u2003', '\u2009', '\u202f', '\u3000':
			return ' '
		}
		return r
	}, s))
}
