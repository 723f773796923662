package config

import (
	"fmt"
	"strconv"
	"strings"
)

// ParsePath parses the path of a key: names separated by dots, with the index of an
// element or a name that contains dots in brackets, as in agents.list[0].id and
// models.providers["my.host"].baseUrl. The empty path is the whole tree.
func ParsePath(s string) ([]string, error) {
	var path []string
	rest := s
	for rest != "" {
		var step string
		switch {
		case rest[0] == '[':
			end := closing(rest)
			if end < 0 {
				return nil, fmt.Errorf("path %q: a bracket is not closed", s)
			}
			step = rest[1:end]
			if q, err := strconv.Unquote(step); err == nil {
				step = q
			} else if n := len(step); n >= 2 && step[0] == '\'' && step[n-1] == '\'' {
				step = step[1 : n-1]
			}
			rest = rest[end+1:]
		default:
			n := strings.IndexAny(rest, ".[")
			if n < 0 {
				n = len(rest)
			}
			step, rest = rest[:n], rest[n:]
		}
		if step == "" {
			return nil, fmt.Errorf("path %q: a name is empty", s)
		}
		path = append(path, step)
		if strings.HasPrefix(rest, ".") {
			if rest = rest[1:]; rest == "" {
				return nil, fmt.Errorf("path %q: a name is empty", s)
			}
		}
	}
	return path, nil
}

// closing returns the index of the bracket that closes the first step of s.
func closing(s string) int {
	if len(s) > 1 && (s[1] == '"' || s[1] == '\'') {
		for i := 2; i+1 < len(s); i++ {
			switch {
			case s[i] == '\\' && s[1] == '"':
				i++
			case s[i] == s[1] && s[i+1] == ']':
				return i + 1
			}
		}
		return -1
	}
	return strings.IndexByte(s, ']')
}

// FormatPath is the inverse of [ParsePath].
func FormatPath(path []string) string {
	var b strings.Builder
	for _, step := range path {
		_, err := strconv.ParseUint(step, 10, 32)
		switch {
		case err == nil:
			b.WriteString("[" + step + "]")
		case step == "" || strings.ContainsAny(step, ".[]\"'\\ "):
			b.WriteString("[" + strconv.Quote(step) + "]")
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(step)
		}
	}
	return b.String()
}
