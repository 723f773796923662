package secret

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
)

// Masker hides in text what looks like a secret. It is for logs: what it
// changes cannot be read back.
type Masker struct{ patterns []pattern }

// pattern is what is searched for. A line without any of its marks, which
// nearly every line is, holds nothing that matches and need not be searched,
// which takes far longer.
type pattern struct {
	*regexp.Regexp
	marks [][]byte // none: every line is searched
}

// NewMasker returns a Masker that also knows further patterns, regular
// expressions of which the first group, or all, is the secret.
func NewMasker(more ...string) (*Masker, error) {
	m := &Masker{}
	for _, l := range slices.Concat(looks[:], named[:]) {
		m.patterns = append(m.patterns, pattern{regexp.MustCompile(l.sure), bytes.Fields([]byte(l.marks))})
	}
	for _, s := range more {
		p, err := regexp.Compile(s)
		if err != nil {
			return nil, fmt.Errorf("pattern of secrets: %w", err)
		}
		m.patterns = append(m.patterns, pattern{Regexp: p})
	}
	return m, nil
}

// mayMatch reports whether a line, given in lower case, is to be searched.
func (p pattern) mayMatch(lower []byte) bool {
	return len(p.marks) == 0 || slices.ContainsFunc(p.marks, func(mark []byte) bool { return holds(lower, mark) })
}

// holds reports whether the line holds the mark. One that begins with # is
// digits up to its last byte.
func holds(line, mark []byte) bool {
	if mark[0] != '#' {
		return bytes.Contains(line, mark)
	}
	n := len(mark) - 1
	for i, c := range line {
		if c == mark[n] && i >= n && !slices.ContainsFunc(line[i-n:i], func(c byte) bool { return c < '0' || c > '9' }) {
			return true
		}
	}
	return false
}

// lowerCase returns the line in lower case. Two letters beyond ASCII are the
// other case of one within, for an expression: a line with one of them gives
// false.
func lowerCase(line []byte) ([]byte, bool) {
	if bytes.ContainsAny(line, "\u017f\u212a") { // as s and k
		return nil, false
	}
	return bytes.ToLower(line), true
}

// Mask returns the line with secrets hidden.
func (m *Masker) Mask(line []byte) []byte {
	lower, plain := lowerCase(line) // what is hidden below brings no mark with it
	for _, p := range m.patterns {
		if plain && !p.mayMatch(lower) {
			continue
		}
		at := p.FindAllSubmatchIndex(line, -1)
		if at == nil {
			continue
		}
		out := make([]byte, 0, len(line))
		end := 0
		for _, i := range at {
			from, to := i[0], i[1]
			if len(i) > 3 && i[2] >= 0 {
				from, to = i[2], i[3]
			}
			out = append(out, line[end:from]...)
			out = append(out, hidden(line[from:to])...)
			end = to
		}
		line = append(out, line[end:]...)
	}
	return line
}

// hidden is what is shown of a secret: of a long one its ends, by which its
// owner knows which it is.
func hidden(s []byte) string {
	if len(s) < 18 {
		return "***"
	}
	for _, c := range s {
		if c <= ' ' || c == '\\' || c >= 0x7f { // not a single word
			return "***"
		}
	}
	return string(s[:6]) + "…" + string(s[len(s)-4:])
}
