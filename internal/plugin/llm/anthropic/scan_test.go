package anthropic

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// events are events in the form that the service sends.
var events = [...]string{
	`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,` +
		`"usage":{"input_tokens":12,"cache_creation":{"ephemeral_5m_input_tokens":0},"cache_read_input_tokens":7,"output_tokens":1,"service_tier":"standard"}}}`,
	`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
	`{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
	`{"type":"content_block_start","index":2,"content_block":{"type":"redacted_thinking","data":"x"}}`,
	`{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"read","input": {"a": [1, null]} }}`,
	`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a\n"}}`,
	`{"delta":{"partial_json":"{\"a\"","type":"input_json_delta"},"index":0,"type":"content_block_delta"}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"x"}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{}}}`,
	`{"type":"content_block_stop","index":0}`,
	`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":15}}`,
	`{"type":"message_stop"}`,
	`{"type":"ping"}`,
}

func TestQuick(t *testing.T) {
	t.Parallel()
	for _, data := range events {
		if _, ok := scanEvent([]byte(data)); !ok {
			t.Errorf("%s was not scanned", data)
		}
	}
}

// FuzzScanEvent checks that scanEvent decodes the same as encoding/json.
func FuzzScanEvent(f *testing.F) {
	for _, data := range events {
		f.Add([]byte(data))
	}
	for _, data := range []string{
		`{"type":"error","error":{"message":"x"}}`, `{"type":"message_delta","usage":null,"delta":{"stop_reason":null}}`,
		`{"type":"x","content_block":{"input":null,"input":7,"Type":"y"}}`, `{"usage":{"input_tokens":1},"usage":{"output_tokens":2}}`,
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		quickly, ok := scanEvent(data)
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
