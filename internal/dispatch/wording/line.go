// Package wording says what happened: to the model, of what arrived for its
// session; to the person, of what a model did not do.
package wording

import "strings"

// Line makes a name from outside safe to stand in a line of the prompt.
func Line(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return -1
		}
		return r
	}, s)
	if rs := []rune(s); len(rs) > most {
		s = string(rs[:most]) + "…"
	}
	return s
}
