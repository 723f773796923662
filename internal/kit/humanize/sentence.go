package humanize

import "strings"

// Sentence returns the first sentence of s as one line, truncated to n characters.
func Sentence(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if i := strings.Index(s, ". "); i > 0 {
		s = s[:i+1]
	}
	return Truncate(s, n)
}
