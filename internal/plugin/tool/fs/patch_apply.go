package fs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/kit/humanize"
)

// textLine is a line of a file and its line break.
type textLine struct{ text, end string }

// split returns the lines of a text. The last line has no line break if the
// text does not end with one.
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

// apply applies changes to a text. Context lines keep their content in the
// file even if the patch writes them slightly differently.
func apply(data string, hunks []hunk) (string, error) {
	lines := split(data)
	open := len(lines) > 0 && lines[len(lines)-1].end == "" // the last line has no line break and keeps none
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

// apply applies one change at or after a line, and returns the line where it
// ends.
func (h *hunk) apply(lines []textLine, at int, eol string) ([]textLine, int, error) {
	if h.anchor {
		i := seek(lines, []string{h.context}, at, false)
		if i < 0 {
			return nil, 0, fmt.Errorf("the line %q was not found", humanize.Truncate(h.context, maxQuoted))
		}
		at = i + 1
	}
	changes := h.lines
	old := oldLines(changes)
	if len(old) == 0 { // the change only adds lines
		if !h.anchor || h.end {
			at = len(lines)
		}
		return replace(lines, at, changes, eol)
	}
	i := seek(lines, old, at, h.end)
	if n := len(changes); i < 0 && changes[n-1] == (change{' ', ""}) { // an extra empty line in the patch
		changes = changes[:n-1]
		if old = oldLines(changes); len(old) > 0 {
			i = seek(lines, old, at, h.end)
		}
	}
	if i < 0 {
		return nil, 0, fmt.Errorf("these lines were not found:\n%s", humanize.Truncate(strings.Join(old, "\n"), maxQuoted))
	}
	return replace(lines, i, changes, eol)
}

// oldLines returns the lines that a change expects in the file.
func oldLines(changes []change) []string {
	var old []string
	for _, c := range changes {
		if c.kind != '+' {
			old = append(old, c.text)
		}
	}
	return old
}

// replace applies the change at a line where it fits.
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

// seek returns the index of the lines, starting at a line. It compares
// exactly first, then ignoring trailing blanks, then ignoring surrounding
// blanks, then ignoring variants of quotation marks and dashes. With end it
// tries the end of the file first.
func seek(lines []textLine, want []string, at int, end bool) int {
	last := len(lines) - len(want)
	for _, same := range [...]func(a, b string) bool{
		func(a, b string) bool { return a == b },
		func(a, b string) bool { return strings.TrimRight(a, " \t") == strings.TrimRight(b, " \t") },
		func(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) },
		func(a, b string) bool { return normalize(a) == normalize(b) },
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

// normalize returns a line with characters that models substitute replaced by
// their ASCII equivalents.
func normalize(s string) string {
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
