package prompt

import (
	"fmt"
	"strings"
	"unicode"
)

// maxName bounds a name in a prompt, in characters.
const maxName = 256

// Name makes a name that others chose (of a file, a folder, a host) safe to
// stand in a prompt: one line, with invisible and direction-changing
// characters shown as escapes, and not longer than 256 characters.
func Name(s string) string {
	var b strings.Builder
	n := 0
	for _, r := range strings.ToValidUTF8(s, "\ufffd") {
		if n++; n > maxName {
			b.WriteString("…")
			break
		}
		if r != ' ' && !unicode.IsGraphic(r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) || unicode.Is(unicode.Cf, r) {
			fmt.Fprintf(&b, "\\u{%x}", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
