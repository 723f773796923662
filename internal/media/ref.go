package media

import "strings"

const refBytes = 16

// Scheme stands before a reference where people and models read it.
const Scheme = "media:"

// isRef reports whether s has the form of a reference.
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

// ParseRef returns the reference that a model or a person wrote as media:<ref>,
// also with slashes behind the colon.
func ParseRef(s string) (ref string, ok bool) {
	s, ok = strings.CutPrefix(strings.TrimSpace(s), Scheme)
	s = strings.ToLower(strings.TrimLeft(s, "/"))
	return s, ok && isRef(s)
}

// IsFile reports whether what a model or a person wrote names a file, and neither
// a reference nor an address.
func IsFile(s string) bool {
	_, ref := ParseRef(s)
	return !ref && !strings.Contains(s, "://")
}

// inJSON is how rows hold a reference: a field of JSON. In the text of a message
// its quotes are escaped.
const inJSON = `"ref":"`

// Refs appends the references that the JSON of a row holds.
func Refs(list []string, row string) []string {
	for {
		i := strings.Index(row, inJSON)
		if i < 0 {
			return list
		}
		row = row[i+len(inJSON):]
		if n := 2 * refBytes; len(row) > n && isRef(row[:n]) && row[n] == '"' {
			list = append(list, row[:n])
		}
	}
}
