package json5

import (
	"strings"
	"unicode/utf8"
)

// ToJSON returns the plain JSON form of a source.
func ToJSON(src []byte) ([]byte, error) {
	d, err := Parse(src)
	if err != nil {
		return nil, err
	}
	return d.JSON()
}

// JSON returns the document as plain JSON, without blanks. The error, an
// *[Error], names the first number that has no JSON form.
func (d *Document) JSON() ([]byte, error) { return d.NodeJSON(d.Root) }

// NodeJSON returns a value of the document like [Document.JSON].
func (d *Document) NodeJSON(n *Node) ([]byte, error) {
	b, bad := appendJSON(make([]byte, 0, n.End-n.Pos), n)
	if bad != nil {
		return nil, errorAt(d.src, bad.Pos, "%s has no JSON form", bad.Text)
	}
	return b, nil
}

// appendJSON appends n. It returns the first number that has no JSON form.
func appendJSON(b []byte, n *Node) (out []byte, bad *Node) {
	switch n.Kind {
	case Null:
		return append(b, "null"...), nil
	case Bool:
		return append(b, n.Text...), nil
	case Number:
		if strings.HasSuffix(n.Text, "y") || n.Text == "NaN" {
			return b, n
		}
		return append(b, n.Text...), nil
	case String:
		return appendString(b, n.Text, '"'), nil
	}
	brackets := "{}"
	if n.Kind == Array {
		brackets = "[]"
	}
	b = append(b, brackets[0])
	for i, s := range n.Slots {
		if i > 0 {
			b = append(b, ',')
		}
		if n.Kind == Object {
			b = append(appendString(b, s.Key, '"'), ':')
		}
		if b, bad = appendJSON(b, s.Value); bad != nil {
			return b, bad
		}
	}
	return append(b, brackets[1]), nil
}

// appendString appends s in quotes, with the escapes that JSON and JSON5
// share.
func appendString(b []byte, s string, quote byte) []byte {
	const hexDigits = "0123456789abcdef"
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
			b = append(b, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, quote)
}
