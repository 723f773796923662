package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// Decode reads the arguments of a call into an A, which is a struct with JSON
// tags. The arguments must be exactly one JSON object without unknown fields.
// The error is written for the model: it names the field and the wanted type.
func Decode[A any](args json.RawMessage) (A, error) {
	var a, zero A
	if trimmed := bytes.TrimSpace(args); len(trimmed) == 0 || trimmed[0] != '{' {
		return zero, errors.New("arguments: want one JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(args))
	d.DisallowUnknownFields()
	err := d.Decode(&a)
	if err == nil {
		if _, err := d.Token(); err != io.EOF {
			return zero, errors.New("arguments: unexpected data after the JSON object")
		}
		return a, nil
	}
	wrong, isType := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case isType && wrong.Field != "":
		return zero, fmt.Errorf("arguments: %q is %s, want %s", wrong.Field, wrong.Value, typeName(wrong.Type))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return zero, errors.New("arguments: the JSON object is incomplete")
	}
	return zero, fmt.Errorf("arguments: %s", strings.TrimPrefix(err.Error(), "json: "))
}

// typeName returns the JSON type that t is read from.
func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "string"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.Map, reflect.Struct:
		return "object"
	case reflect.Pointer:
		return typeName(t.Elem())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "integer"
	}
	return t.String()
}
