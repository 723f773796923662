// Package secret holds secret values and keeps them out of output.
//
// A [Value] prints, marshals and logs as [redacted]; only [Value.Reveal]
// returns its text. A [Ref] is a reference to a secret. A [Redactor] removes
// known secrets from text of other origin, such as the output of a command. A
// [Masker] hides what looks like a secret in logs.
package secret

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// Redacted replaces secrets in output.
const Redacted = "[redacted]"

// Value is a secret text. The zero Value is empty. The text is behind a
// pointer, so that printing a struct with a Value in an unexported field, where
// no method is called, prints an address.
type Value struct{ text *string }

// New returns a Value with the text.
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

// IsZero reports whether the value is empty.
func (v Value) IsZero() bool { return v.text == nil }

// Equal reports whether both values hold the same text, in constant time. An
// empty value equals nothing.
func (v Value) Equal(w Value) bool {
	if v.IsZero() || w.IsZero() {
		return false
	}
	a, b := sha256.Sum256([]byte(*v.text)), sha256.Sum256([]byte(*w.text))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// String returns [redacted], or "" if the value is empty.
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

// UnmarshalText stores the text.
func (v *Value) UnmarshalText(b []byte) error {
	*v = New(string(b))
	return nil
}

// UnmarshalJSON stores a string.
func (v *Value) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("secret: want a string") // the cause might quote the text
	}
	*v = New(s)
	return nil
}
