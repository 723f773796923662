// Package secret keeps secrets out of sight.
//
// A [Value] prints, marshals and logs as [redacted]; only [Value.Reveal] opens
// it. A [Ref] says where a secret is kept. A [Redactor] takes known secrets out
// of text that others wrote, such as the output of a command.
package secret

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// Redacted is what a secret looks like from outside.
const Redacted = "[redacted]"

// Value is a secret text. The zero Value is empty. It is behind a pointer, so
// that printing a struct that holds one in an unexported field, where no
// method is called, shows an address.
type Value struct{ text *string }

// New returns a secret of the text.
func New(text string) Value {
	if text == "" {
		return Value{}
	}
	return Value{&text}
}

// Reveal returns the text.
func (v Value) Reveal() string {
	if v.text == nil {
		return ""
	}
	return *v.text
}

// IsZero reports whether there is no secret.
func (v Value) IsZero() bool { return v.text == nil }

// Equal reports whether both hold the same text, in a time that says nothing
// of either. An empty secret equals nothing.
func (v Value) Equal(w Value) bool {
	if v.IsZero() || w.IsZero() {
		return false
	}
	a, b := sha256.Sum256([]byte(*v.text)), sha256.Sum256([]byte(*w.text))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// String returns [redacted], or nothing for no secret.
func (v Value) String() string {
	if v.IsZero() {
		return ""
	}
	return Redacted
}

// GoString returns [redacted].
func (v Value) GoString() string { return v.String() }

// Format writes [redacted] for every verb.
func (v Value) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, v.String()) }

// LogValue returns [redacted].
func (v Value) LogValue() slog.Value { return slog.StringValue(v.String()) }

// MarshalText returns [redacted].
func (v Value) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// MarshalJSON returns "[redacted]".
func (v Value) MarshalJSON() ([]byte, error) { return json.Marshal(v.String()) }

// UnmarshalText takes the text as it is.
func (v *Value) UnmarshalText(b []byte) error {
	*v = New(string(b))
	return nil
}

// UnmarshalJSON takes a string as it is.
func (v *Value) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("secret: want a string") // not the cause: it may quote the text
	}
	*v = New(s)
	return nil
}
