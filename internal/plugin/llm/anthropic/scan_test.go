package anthropic

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// deltas are events in the form that the service sends.
var deltas = [...]string{
	`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a\n"}}`,
	`{"delta":{"partial_json":"{\"a\"","type":"input_json_delta"},"index":0,"type":"content_block_delta"}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"x"}}`,
}

func TestScanDelta(t *testing.T) {
	t.Parallel()
	for _, data := range deltas {
		if _, ok := scanDelta([]byte(data)); !ok {
			t.Errorf("%s was not scanned", data)
		}
	}
}

// FuzzScanDelta checks that scanDelta decodes the same as encoding/json.
func FuzzScanDelta(f *testing.F) {
	for _, data := range deltas {
		f.Add([]byte(data))
	}
	for _, data := range []string{
		`{"type":"error","error":{"message":"x"}}`, `{"type":"message_delta","usage":null,"delta":{"stop_reason":null}}`,
		`{"type":"x","delta":{"text":"a"},"delta":{"text":"b","Type":"y"}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":15}}`,
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		quickly, ok := scanDelta(data)
		if !ok {
			return
		}
		var want event
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		if diff := cmp.Diff(want, quickly); diff != "" {
			t.Fatalf("%q (-want +scanned):\n%s", data, diff)
		}
	})
}
