package dialect

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/llm"
)

// AppendString appends s as a JSON string with minimal escapes. Invalid UTF-8
// becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[start:i]...), "\ufffd"...)
				start = i + n
			}
			i += n
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// Args returns the arguments of a call as a compact object. Other values are
// wrapped in an object, because every service requires one.
func Args(c *llm.ToolCall) []byte {
	raw := bytes.TrimSpace(c.Args)
	if !json.Valid(raw) {
		return []byte("{}")
	}
	if hasSurrogate(raw) || !utf8.Valid(raw) {
		raw = reencode(raw)
	}
	var b bytes.Buffer
	if raw[0] == '{' {
		_ = json.Compact(&b, raw) // raw is valid
		return b.Bytes()
	}
	b.WriteString(`{"value":`)
	_ = json.Compact(&b, raw)
	b.WriteByte('}')
	return b.Bytes()
}

// hasSurrogate reports whether raw may contain an unpaired surrogate escape,
// which some services reject.
func hasSurrogate(raw []byte) bool {
	for rest := raw; ; {
		i := bytes.Index(rest, []byte(`\u`))
		if i < 0 || len(rest) < i+3 {
			return false
		}
		if rest[i+2] == 'd' || rest[i+2] == 'D' {
			return true
		}
		rest = rest[i+2:]
	}
}

// reencode encodes valid JSON again, with U+FFFD for unpaired surrogates and
// invalid UTF-8.
func reencode(raw []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return []byte("{}")
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return []byte("{}")
	}
	return bytes.TrimSpace(b.Bytes())
}
