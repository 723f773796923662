package prompt

import (
	"fmt"
	"strings"
	"unicode"
)

// maxName is the maximum length of a name in a prompt, in characters.
const maxName = 256

// Name returns a name from an untrusted source (of a file, a directory, a host) in
// a form that is safe in a prompt: on one line, with invisible and direction
// control characters escaped, and truncated to 256 characters.
func Name(s string) string {
	var b strings.Builder
	n := 0
	for _, r := range strings.ToValidUTF8(s, "\ufffd") {
		if n++; n > maxName {
			b.WriteString("…")
			break
		}
		if r != ' ' && !unicode.IsGraphic(r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) ||
			unicode.Is(unicode.Cf, r) {
			fmt.Fprintf(&b, "\\u{%x}", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
