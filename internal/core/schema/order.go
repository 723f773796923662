package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
)

// order maps names to their first position in a text. A model writes arguments
// in the order of the schema, so the author's order is kept.
type order map[string]int

// orderOf returns the order of the names in a JSON text.
func orderOf(raw json.RawMessage) order {
	o := order{}
	o.value(json.NewDecoder(bytes.NewReader(raw)))
	return o
}

func (o order) value(d *json.Decoder) {
	t, err := d.Token()
	if err != nil {
		return // end of input
	}
	open, ok := t.(json.Delim)
	if !ok {
		return
	}
	for d.More() {
		if open == '{' {
			t, err := d.Token()
			name, ok := t.(string)
			if err != nil || !ok {
				return
			}
			if _, known := o[name]; !known {
				o[name] = len(o)
			}
		}
		o.value(d)
	}
	_, _ = d.Token() // the closing brace
}

// rank returns the position of a name. Names that are not in the text come
// last.
func (o order) rank(name string) int {
	if n, ok := o[name]; ok {
		return n
	}
	return math.MaxInt
}

// encode encodes m with its names in this order.
func (o order) encode(m node) (json.RawMessage, error) {
	var b bytes.Buffer
	if err := o.write(&b, m); err != nil {
		return nil, err
	}
	if b.Len() > maxSize {
		return nil, errSize
	}
	return b.Bytes(), nil
}

func (o order) write(b *bytes.Buffer, v any) error {
	switch v := v.(type) {
	case node:
		return o.object(b, v)
	case []any:
		b.WriteByte('[')
		for i, w := range v {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := o.write(b, w); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	}
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the newline
	return nil
}

func (o order) object(b *bytes.Buffer, m node) error {
	names := slices.SortedFunc(maps.Keys(m), func(x, y string) int {
		return cmp.Or(cmp.Compare(o.rank(x), o.rank(y)), cmp.Compare(x, y))
	})
	b.WriteByte('{')
	for i, name := range names {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := o.write(b, name); err != nil {
			return err
		}
		b.WriteByte(':')
		if err := o.write(b, m[name]); err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}
