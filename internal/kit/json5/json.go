package json5

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// ToJSON returns the source as compact JSON. The error is an *[Error],
// including for numbers that JSON cannot represent.
func ToJSON(src []byte) ([]byte, error) {
	d, err := Parse(src)
	if err != nil {
		return nil, err
	}
	if d.nonJSON != nil {
		return nil, errorAt(src, d.nonJSON.Pos, "%s has no JSON form", d.nonJSON.Text)
	}
	plain := style{colon: ":", keyQ: '"', textQ: '"'}
	return plain.append(make([]byte, 0, len(src)), d.Root, ""), nil
}

// style is the formatting of values.
type style struct {
	newline string
	unit    string // indentation of one level
	colon   string // after keys
	bare    bool   // keys are not quoted
	keyQ    byte   // quote of keys
	textQ   byte   // quote of strings
}

// append appends n, which is on a line with the given indentation.
func (st style) append(b []byte, n *Node, indent string) []byte {
	brackets := "{}"
	switch n.Kind {
	case Object:
	case Array:
		brackets = "[]"
	case String:
		return appendString(b, n.Text, st.textQ)
	default:
		return append(b, n.Text...)
	}
	b = append(b, brackets[0])
	inner := indent + st.unit
	for i, s := range n.Slots {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, st.newline...), inner...)
		if n.Kind == Object {
			b = st.appendKey(b, s.Key)
		}
		b = st.append(b, s.Value, inner)
	}
	if len(n.Slots) > 0 {
		b = append(append(b, st.newline...), indent...)
	}
	return append(b, brackets[1])
}

// appendKey appends a key and its colon.
func (st style) appendKey(b []byte, k string) []byte {
	if st.bare && isIdent(k) {
		b = append(b, k...)
	} else {
		b = appendString(b, k, st.keyQ)
	}
	return append(b, st.colon...)
}

// appendString appends s in quotes, using only escapes that are valid in both
// JSON and JSON5.
func appendString(b []byte, s string, quote byte) []byte {
	b = append(b, quote)
	for _, r := range s {
		switch {
		case r == rune(quote) || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, '\\', 'n')
		case r == '\r':
			b = append(b, '\\', 'r')
		case r == '\t':
			b = append(b, '\\', 't')
		case r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 || r == 0xfeff:
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, quote)
}

// Literal parses a value as a person types it: as JSON5 if it is valid,
// otherwise as text. Text that begins like an object or an array is an error.
func Literal(text string) (json.RawMessage, error) {
	v, err := ToJSON([]byte(text))
	if err == nil {
		return v, nil
	}
	if s := strings.TrimSpace(text); strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[") {
		return nil, fmt.Errorf("value: %w", err)
	}
	return json.Marshal(text)
}
