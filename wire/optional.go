package wire

import "encoding/json"

// Optional is a property that may be absent, null, or a value. The zero
// Optional is absent; with the tag omitzero it is not written.
type Optional[T any] struct {
	Set   bool // the property was there
	Value T    // zero when it was null
}

// Some returns a property with the value.
func Some[T any](v T) Optional[T] { return Optional[T]{true, v} }

// IsZero reports whether the property is absent.
func (o Optional[T]) IsZero() bool { return !o.Set }

// MarshalJSON writes the value.
func (o Optional[T]) MarshalJSON() ([]byte, error) { return json.Marshal(o.Value) }

// UnmarshalJSON is called only when the property is there.
func (o *Optional[T]) UnmarshalJSON(b []byte) error {
	o.Set = true
	return json.Unmarshal(b, &o.Value)
}
