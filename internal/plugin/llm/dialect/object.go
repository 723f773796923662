package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

// Object encodes the beginning of a request: fields in the order they are
// added, overridden by params.
type Object struct {
	body    Body   // encoded before buf
	buf     []byte // not yet in body
	started bool   // there is a field
	params  map[string]json.RawMessage
}

// NewObject begins an object. params is an object or empty. Its members replace
// the fields of the same name, or are added at the end; null removes a field.
// The owned fields cannot be replaced.
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

// Field adds a field. value appends its JSON. The order of the fields is that of the calls, so
// that two requests of a conversation begin with the same bytes, which services cache.
func (o *Object) Field(name string, value func([]byte) []byte) {
	if !o.replaced(name) {
		o.buf = value(o.name(name))
	}
}

// Piece adds a field with encoded JSON, as a piece of the body: see [Body.Add].
func (o *Object) Piece(name string, value []byte) {
	if !o.replaced(name) {
		o.buf = o.name(name)
		o.flush()
		o.body.Add(value)
	}
}

// replaced adds the value from params for a field, if there is one.
func (o *Object) replaced(name string) bool {
	v, ok := o.params[name]
	if ok {
		delete(o.params, name)
		o.raw(name, v)
	}
	return ok
}

// raw adds a value from params.
func (o *Object) raw(name string, v json.RawMessage) {
	if string(v) == "null" {
		return
	}
	b := bytes.NewBuffer(o.name(name))
	if json.Compact(b, v) == nil { // v is valid
		o.buf = b.Bytes()
	}
}

func (o *Object) name(name string) []byte {
	if o.started {
		o.buf = append(o.buf, ',')
	}
	o.started = true
	return append(AppendString(o.buf, name), ':')
}

// flush moves buf into the body.
func (o *Object) flush() {
	o.body.Add(o.buf)
	o.buf = nil // body may hold it
}

// String adds a string field unless s is empty.
func (o *Object) String(name, s string) {
	if s != "" {
		o.Field(name, func(b []byte) []byte { return AppendString(b, s) })
	}
}

// Int adds an integer field.
func (o *Object) Int(name string, n int) {
	o.Field(name, func(b []byte) []byte { return strconv.AppendInt(b, int64(n), 10) })
}

// Float adds a number field, unless JSON does not have the number.
func (o *Object) Float(name string, f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return
	}
	o.Field(name, func(b []byte) []byte { return strconv.AppendFloat(b, f, 'g', -1, 64) })
}

// Raw adds a JSON field unless value is empty.
func (o *Object) Raw(name, value string) {
	if value != "" {
		o.Field(name, func(b []byte) []byte { return append(b, value...) })
	}
}

// Body adds the remaining params and begins the last field. The caller appends
// its value and the closing brace to the result.
func (o *Object) Body(name string) *Body {
	o.rest()
	o.buf = o.name(name)
	o.flush()
	return &o.body
}

// Nested adds a field with an object, unless it is empty. Its members are those that add
// adds, overridden by those of the object that params has at that name.
func (o *Object) Nested(name string, add func(*Object)) {
	var params json.RawMessage
	if own := o.params[name]; len(own) > 0 && own[0] == '{' {
		params = own
		delete(o.params, name)
	}
	n, err := NewObject(params)
	if err != nil { // params was decoded before, so its members are JSON
		return
	}
	add(n)
	n.rest()
	if n.started {
		n.body.Add(n.buf)
		o.Field(name, func(b []byte) []byte { return append(append(b, n.body.Bytes()...), '}') })
	}
}

// rest adds the remaining params.
func (o *Object) rest() {
	for _, k := range slices.Sorted(maps.Keys(o.params)) {
		o.raw(k, o.params[k])
	}
}
