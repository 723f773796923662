package wire

import "encoding/json"

// Optional is a property that is absent, null or a value. The zero value is
// absent and, with the tag omitzero, is not encoded.
type Optional[T any] struct {
	Set   bool // the property is present
	Value T    // zero for null
}

// Some returns a property with a value.
func Some[T any](v T) Optional[T] { return Optional[T]{true, v} }

// IsZero reports whether the property is absent.
func (o Optional[T]) IsZero() bool { return !o.Set }

// MarshalJSON writes the value.
func (o Optional[T]) MarshalJSON() ([]byte, error) { return json.Marshal(o.Value) }

// UnmarshalJSON is called only for a property that is present.
func (o *Optional[T]) UnmarshalJSON(b []byte) error {
	o.Set = true
	return json.Unmarshal(b, &o.Value)
}
