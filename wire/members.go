package wire

import (
	"bytes"
	"encoding/json"
	"iter"

	"github.com/go-json-experiment/json/jsontext"
)

// Members yields the members of a valid JSON object. The values alias object, so
// that a large frame is in memory once. A value that is not an object has no
// members.
func Members(object []byte) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		d := jsontext.NewDecoder(bytes.NewBuffer(object), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
			return
		}
		for d.PeekKind() == '"' {
			name, err := d.ReadToken()
			if err != nil {
				return
			}
			key := name.String() // valid until the next read
			value, err := d.ReadValue()
			if err != nil {
				return
			}
			end := int(d.InputOffset())
			if !yield(key, object[end-len(value):end:end]) {
				return
			}
		}
	}
}
