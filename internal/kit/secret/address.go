package secret

import (
	"bytes"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Credentials in addresses: what stands before the host, and parameters whose name
// suggests a secret, such as key, access_token and X-Amz-Signature, and paths by which anybody
// may post to a chat. The address may be a part of a text or of JSON, where & is also \u0026.
var (
	user = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`://([^/?#\s"'<>` + "`" + `]*)@`)
	})
	hookPath = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)://(?:hooks\.slack\.com/\w+|(?:[\w-]+\.)?discord(?:app)?\.com/api/webhooks|[\w.-]+\.webhook\.office\.com/\w+)/([^?#\s"'<>\\` + "`" + `]+)`)
	})
	parameter = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)(?:[?&#;]|\\u0026)(?:[\w.%\[\]-]*[_.%\[-])?(?:access|api|app|auth|bearer|client|id|private|refresh|secret|security|shared|subscription|user|web)?` +
			`(?:appid|auth|authorization|code|credentials?|hmac|jwt|key|pass|passwd|password|passphrase|pwd|secret|j?sessionid|sid|sig|signature|tok|token)\]?=` +
			`([^&#;\s"'<>\\` + "`" + `]+)`)
	})
)

// inAddresses returns the places of credentials in the addresses of a text, in order.
func inAddresses(text []byte) (at [][2]int) {
	if bytes.Contains(text, []byte("://")) {
		for _, i := range user().FindAllSubmatchIndex(text, -1) {
			if i[2] < i[3] {
				at = append(at, [2]int{i[2], i[3]})
			}
		}
	}
	add := func(all [][]int) {
		for _, i := range all {
			if !slices.ContainsFunc(at, func(a [2]int) bool { return i[2] < a[1] && a[0] < i[3] }) {
				at = append(at, [2]int{i[2], i[3]})
			}
		}
	}
	if bytes.Contains(text, []byte("://")) {
		add(hookPath().FindAllSubmatchIndex(text, -1))
	}
	if bytes.IndexByte(text, '=') >= 0 && bytes.ContainsAny(text, "?&#;") {
		add(parameter().FindAllSubmatchIndex(text, -1))
	}
	slices.SortFunc(at, func(a, b [2]int) int { return a[0] - b[0] })
	return at
}

// InAddresses returns the credentials in the addresses of a text, as they are and without
// the escapes of URLs: passwords, and users without one.
func InAddresses(text string) (found []string) {
	for _, i := range inAddresses([]byte(text)) {
		s := text[i[0]:i[1]]
		if i[1] < len(text) && text[i[1]] == '@' {
			if _, password, _ := strings.Cut(s, ":"); password != "" {
				s = password
			}
		}
		found = append(found, s)
		if plain, err := url.QueryUnescape(s); err == nil && plain != s {
			found = append(found, plain)
		}
		if plain, err := url.PathUnescape(s); err == nil && plain != s {
			found = append(found, plain)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// RedactAddresses replaces the credentials in the addresses of a text by [Redacted].
func RedactAddresses(text string) string {
	return string(redactAddresses([]byte(text)))
}

func redactAddresses(text []byte) []byte {
	at := inAddresses(text)
	if len(at) == 0 {
		return text
	}
	var out []byte
	end := 0
	for _, i := range at {
		out = append(append(out, text[end:i[0]]...), Redacted...)
		end = i[1]
	}
	return append(out, text[end:]...)
}
