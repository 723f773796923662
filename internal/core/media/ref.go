package media

import "strings"

// refBytes is the number of bytes of the hash in a reference.
const refBytes = 16

// Scheme is the prefix of references in texts for people and models.
const Scheme = "media:"

// isRef reports whether s is a well-formed reference.
func isRef(s string) bool {
	if len(s) != 2*refBytes {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// ParseRef parses a reference that a model or a person wrote as media:<ref>. Slashes
// after the colon are ignored.
func ParseRef(s string) (ref string, ok bool) {
	s, ok = strings.CutPrefix(strings.TrimSpace(s), Scheme)
	s = strings.ToLower(strings.TrimLeft(s, "/"))
	return s, ok && isRef(s)
}

// IsFile reports whether s is the path of a file, and neither a reference nor a URL.
func IsFile(s string) bool {
	_, ref := ParseRef(s)
	return !ref && !strings.Contains(s, "://")
}

// refField is the beginning of the JSON field with a reference in a row. The text of a
// message cannot contain it, because its quotes are escaped.
const refField = `"ref":"`

// Refs appends the references in the JSON of a row to list.
func Refs(list []string, row string) []string {
	for {
		i := strings.Index(row, refField)
		if i < 0 {
			return list
		}
		row = row[i+len(refField):]
		if n := 2 * refBytes; len(row) > n && isRef(row[:n]) && row[n] == '"' {
			list = append(list, row[:n])
		}
	}
}
