package secret

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"sync"
)

// Masker hides secrets in log lines. Masked text cannot be restored.
type Masker struct{ patterns []pattern }

// pattern is a regular expression with its markers. A line without any of the
// markers cannot match. Nearly every line is one, and searching for a marker is
// much faster than matching.
type pattern struct {
	*regexp.Regexp
	markers [][]byte // if empty, every line is matched
}

// NewMasker returns a Masker with further patterns. Each is a regular
// expression whose first group, or whole match, is the secret.
func NewMasker(more ...string) (*Masker, error) {
	m := &Masker{}
	for _, l := range slices.Concat(formats[:], named[:]) {
		m.patterns = append(m.patterns, pattern{regexp.MustCompile(l.strict), bytes.Fields([]byte(l.markers))})
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

var standard = sync.OnceValue(func() *Masker {
	m, _ := NewMasker() // its patterns are constant
	return m
})

// Mask returns a text with the secrets hidden that can be recognized by their forms.
func Mask(text string) string { return string(standard().Mask([]byte(text))) }

// mayMatch reports whether a line, in lower case, has to be matched.
func (p pattern) mayMatch(lower []byte) bool {
	return len(p.markers) == 0 ||
		slices.ContainsFunc(p.markers, func(mark []byte) bool { return containsMarker(lower, mark) })
}

// containsMarker reports whether the line contains the marker. A marker that
// begins with # consists of digits up to its last byte.
func containsMarker(line, mark []byte) bool {
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

// lowerCase returns the line in lower case. It returns false for lines with one
// of the two non-ASCII letters that regular expressions fold to ASCII.
func lowerCase(line []byte) ([]byte, bool) {
	if bytes.ContainsAny(line, "\u017f\u212a") { // they fold to s and k
		return nil, false
	}
	return bytes.ToLower(line), true
}

// Mask returns the line with its secrets hidden.
func (m *Masker) Mask(line []byte) []byte {
	lower, plain := lowerCase(line) // masking adds no markers
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
			out = append(out, abbreviate(line[from:to])...)
			end = to
		}
		line = append(out, line[end:]...)
	}
	return redactAddresses(line)
}

// abbreviate returns the replacement of a secret. It keeps the ends of a long
// one, so that its owner can recognize it.
func abbreviate(s []byte) string {
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
