package wire

import (
	"bytes"
	"encoding/json"
	"iter"
	"unicode/utf8"
)

// Members yields the members of a JSON object, which is valid: their values are
// parts of it and no copies, so that a large frame is in memory once. What is no
// object has none.
func Members(object []byte) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		rest := bytes.TrimLeft(object, blanks)
		if len(rest) == 0 || rest[0] != '{' {
			return
		}
		for {
			rest = bytes.TrimLeft(rest[1:], blanks) // behind a brace or a comma
			n := valueLen(rest)
			name, err := unquote(rest[:n])
			if err != nil {
				return
			}
			rest = bytes.TrimLeft(rest[n:], blanks)
			if len(rest) == 0 {
				return
			}
			rest = bytes.TrimLeft(rest[1:], blanks) // behind the colon
			n = valueLen(rest)
			if !yield(name, json.RawMessage(rest[:n:n])) {
				return
			}
			rest = bytes.TrimLeft(rest[n:], blanks)
			if len(rest) == 0 || rest[0] != ',' {
				return
			}
		}
	}
}

// unquote returns the string that a value is. Mostly it stands there as it is.
func unquote(value []byte) (s string, err error) {
	if n := len(value) - 1; n > 0 && value[0] == '"' && value[n] == '"' && plain(value[1:n]) {
		return string(value[1:n]), nil
	}
	err = json.Unmarshal(value, &s)
	return s, err
}

// plain reports whether the inside of a string stands for itself.
func plain(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

const blanks = " \t\r\n"

// valueLen returns the length of the value at the beginning of b; 0 when there
// is none.
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

// textLen returns the length of the string at the beginning of b, with its
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
