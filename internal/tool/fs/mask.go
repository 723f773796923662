package fs

import (
	"regexp"
	"strings"
	"sync"
)

// masker hides the values of a .env file, line by line. A value in quotes may
// go over several lines.
type masker struct {
	quote string // of the value that is open
}

const mask = "***"

// line returns the line without values, and how many were hidden.
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
		return mask, 1 // no setting: whatever it is, it is in a file of secrets
	}
	value = strings.TrimSpace(value)
	if plain(value) {
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

// plain reports whether a value is too small to be a secret.
func plain(value string) bool {
	switch strings.ToLower(value) {
	case "", `""`, "''", "true", "false", "yes", "no", "on", "off":
		return true
	}
	return smallNumber().MatchString(value)
}
