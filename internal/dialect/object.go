package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// Object writes the head of a request: fields in the order they are added,
// except where params say something else.
type Object struct {
	body   Body   // what came before buf
	buf    []byte // not in body yet
	begun  bool   // there is a field
	params map[string]json.RawMessage
}

// NewObject begins an object. What params (an object, or nothing) hold is
// written in the place of a field of the same name, or at the end; null leaves
// the field out. The fields that are owned cannot be replaced.
func NewObject(params json.RawMessage, owned ...string) (*Object, error) {
	o := &Object{buf: append(make([]byte, 0, 512), '{')}
	if len(params) > 0 {
		if err := json.Unmarshal(params, &o.params); err != nil {
			return nil, fmt.Errorf("params: %w", err)
		}
		for _, name := range owned {
			delete(o.params, name)
		}
	}
	return o, nil
}

// Field adds a field; value appends its JSON.
func (o *Object) Field(name string, value func([]byte) []byte) {
	if !o.replaced(name) {
		o.buf = value(o.name(name))
	}
}

// Piece adds a field whose JSON is there already, as a piece of the body: see
// [Body.Add].
func (o *Object) Piece(name string, value []byte) {
	if !o.replaced(name) {
		o.buf = o.name(name)
		o.flush()
		o.body.Add(value)
	}
}

// replaced writes what the params hold in the place of a field, if they do.
func (o *Object) replaced(name string) bool {
	v, ok := o.params[name]
	if ok {
		delete(o.params, name)
		o.raw(name, v)
	}
	return ok
}

// raw writes a value of the params.
func (o *Object) raw(name string, v json.RawMessage) {
	if string(v) == "null" {
		return
	}
	b := bytes.NewBuffer(o.name(name))
	if json.Compact(b, v) == nil { // v was unmarshalled: it is valid
		o.buf = b.Bytes()
	}
}

func (o *Object) name(name string) []byte {
	if o.begun {
		o.buf = append(o.buf, ',')
	}
	o.begun = true
	return append(AppendString(o.buf, name), ':')
}

// flush moves buf into the body.
func (o *Object) flush() {
	o.body.Add(o.buf)
	o.buf = nil // a long one is the body's now
}

// String adds a text field, unless s is empty.
func (o *Object) String(name, s string) {
	if s != "" {
		o.Field(name, func(b []byte) []byte { return AppendString(b, s) })
	}
}

// Int adds a number.
func (o *Object) Int(name string, n int) {
	o.Field(name, func(b []byte) []byte { return strconv.AppendInt(b, int64(n), 10) })
}

// Float adds a number.
func (o *Object) Float(name string, f float64) {
	o.Field(name, func(b []byte) []byte { return strconv.AppendFloat(b, f, 'g', -1, 64) })
}

// Raw adds a JSON value, unless it is empty.
func (o *Object) Raw(name, value string) {
	if value != "" {
		o.Field(name, func(b []byte) []byte { return append(b, value...) })
	}
}

// Body writes what is left of the params and begins the last field. Its value
// and the closing brace are the caller's, who adds them to what this returns.
func (o *Object) Body(name string) *Body {
	rest := make([]string, 0, len(o.params))
	for k := range o.params {
		rest = append(rest, k)
	}
	slices.Sort(rest)
	for _, k := range rest {
		o.raw(k, o.params[k])
	}
	o.buf = o.name(name)
	o.flush()
	return &o.body
}
