package humanize

import "unicode/utf8"

// Truncate returns the first n characters of s, followed by "…" when there are
// more.
func Truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n--; n < 0 {
			return s[:i] + "…"
		}
	}
	return s
}

// TruncateBytes returns the first n bytes of s, without a character that does
// not fit, followed by "…" when there are more.
func TruncateBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// TrimPartial returns b without an incomplete UTF-8 character at its end, as
// left by cutting a text at a number of bytes.
func TrimPartial(b []byte) []byte {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i]
			}
			break
		}
	}
	return b
}
