package anthropic

import (
	"encoding/json"
	"testing"
)

// FuzzQuick: a piece of a block says what encoding/json reads in it.
func FuzzQuick(f *testing.F) {
	for _, s := range []string{
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a\n"}}`,
		`{"delta":{"partial_json":"{\"a\"","type":"input_json_delta"},"index":0,"type":"content_block_delta"}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"x"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{}}}`, `{"type":"ping"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		quickly, ok := quick(data)
		if !ok {
			return
		}
		var e event
		if err := json.Unmarshal(data, &e); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		if e.Type != "content_block_delta" || e.Index != quickly.Index || e.Delta != quickly.Delta {
			t.Fatalf("%q: %+v, quickly %+v", data, e, quickly)
		}
	})
}
