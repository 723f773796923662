package fs

import (
	"regexp"
	"strings"
	"sync"

	"github.com/chela-ai/chela/internal/core/pathpolicy"
)

// masker masks the values in a .env file, line by line. A quoted value may
// span several lines.
type masker struct {
	quote string // quote of an unfinished value
}

const mask = pathpolicy.Mask

// line returns the line with its values masked, and the number of masked
// values.
func (m *masker) line(s string) (string, int) {
	if m.quote != "" {
		if strings.Contains(s, m.quote) {
			m.quote = ""
		}
		return mask, 1
	}
	t := strings.TrimSpace(s)
	if t == "" || t[0] == '#' && !strings.Contains(t, "=") {
		return s, 0
	}
	key, value, ok := strings.Cut(s, "=")
	if !ok {
		return mask, 1 // not a setting, but it may be a secret
	}
	value = strings.TrimSpace(value)
	if harmlessValue(value) {
		return s, 0
	}
	if q := value[:1]; q == `"` || q == "'" || q == "`" {
		if !strings.Contains(value[1:], q) {
			m.quote = q
		}
	}
	return key + "=" + mask, 1
}

var smallNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]{1,5}$`) })

// harmlessValue reports whether a value is too short to be a secret.
func harmlessValue(value string) bool {
	switch strings.ToLower(value) {
	case "", `""`, "''", "true", "false", "yes", "no", "on", "off":
		return true
	}
	return smallNumber().MatchString(value)
}
