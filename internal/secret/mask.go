package secret

import (
	"fmt"
	"regexp"
)

// Masker hides in text what looks like a secret. It is for logs: what it
// changes cannot be read back.
type Masker struct{ patterns []*regexp.Regexp }

// NewMasker returns a Masker that also knows further patterns, regular
// expressions of which the first group, or all, is the secret.
func NewMasker(more ...string) (*Masker, error) {
	m := &Masker{}
	for _, l := range looks {
		m.patterns = append(m.patterns, regexp.MustCompile(l.sure))
	}
	for _, s := range named {
		m.patterns = append(m.patterns, regexp.MustCompile(s))
	}
	for _, s := range more {
		p, err := regexp.Compile(s)
		if err != nil {
			return nil, fmt.Errorf("pattern of secrets: %w", err)
		}
		m.patterns = append(m.patterns, p)
	}
	return m, nil
}

// Mask returns the line with secrets hidden.
func (m *Masker) Mask(line []byte) []byte {
	for _, p := range m.patterns {
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
