package json5

import (
	"fmt"
	"unicode/utf8"
)

// ToJSON returns a source as plain JSON, without blanks. The error is an
// *[Error], also where a number has no JSON form.
func ToJSON(src []byte) ([]byte, error) {
	d, err := Parse(src)
	if err != nil {
		return nil, err
	}
	if d.odd != nil {
		return nil, errorAt(src, d.odd.Pos, "%s has no JSON form", d.odd.Text)
	}
	plain := style{colon: ":", keyQ: '"', textQ: '"'}
	return plain.append(make([]byte, 0, len(src)), d.Root, ""), nil
}

// style is how values are written.
type style struct {
	newline string
	unit    string // indentation of one level
	colon   string // after keys
	bare    bool   // keys without quotes
	keyQ    byte   // quote of keys
	textQ   byte   // quote of strings
}

// append appends n, which stands in a line with the given indentation.
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

// appendString appends s in quotes, with the escapes that JSON and JSON5
// share.
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
