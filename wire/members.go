package wire

import (
	"bytes"
	"encoding/json"
	"iter"
	"unicode/utf8"
)

// Members yields the members of a valid JSON object. The values alias b, so
// that a large frame is in memory once. A value that is not an object has no
// members.
func Members(object []byte) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		rest := bytes.TrimLeft(object, whitespace)
		if len(rest) == 0 || rest[0] != '{' {
			return
		}
		for {
			rest = bytes.TrimLeft(rest[1:], whitespace) // after a brace or comma
			n := valueLen(rest)
			name, err := unquote(rest[:n])
			if err != nil {
				return
			}
			rest = bytes.TrimLeft(rest[n:], whitespace)
			if len(rest) == 0 {
				return
			}
			rest = bytes.TrimLeft(rest[1:], whitespace) // after the colon
			n = valueLen(rest)
			if !yield(name, json.RawMessage(rest[:n:n])) {
				return
			}
			rest = bytes.TrimLeft(rest[n:], whitespace)
			if len(rest) == 0 || rest[0] != ',' {
				return
			}
		}
	}
}

// unquote returns the value of a JSON string, without decoding if it has no
// escapes.
func unquote(value []byte) (s string, err error) {
	if n := len(value) - 1; n > 0 && value[0] == '"' && value[n] == '"' && plain(value[1:n]) {
		return string(value[1:n]), nil
	}
	err = json.Unmarshal(value, &s)
	return s, err
}

// plain reports whether a JSON string has no escapes.
func plain(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

const whitespace = " \t\r\n"

// valueLen returns the length of the value at the start of b; 0 if there is
// none.
func valueLen(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i += textLen(b[i:]) - 1
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth--; depth < 0 {
				return i
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
	return len(b)
}

// textLen returns the length of the string at the start of b, including its
// quotes.
func textLen(b []byte) int {
	for i := 1; ; {
		end := bytes.IndexByte(b[i:], '"')
		if end < 0 {
			return len(b)
		}
		end += i
		slashes := 0
		for b[end-1-slashes] == '\\' {
			slashes++
		}
		if i = end + 1; slashes%2 == 0 {
			return i
		}
	}
}
