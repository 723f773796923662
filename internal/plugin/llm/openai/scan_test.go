package openai

import (
	"encoding/json"
	"testing"
)

// FuzzScanDelta checks that scanDelta decodes the same as encoding/json.
func FuzzScanDelta(f *testing.F) {
	for _, s := range []string{
		`{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"a\n"},"logprobs":null,"finish_reason":null}],"usage":null}`,
		`{"choices":[{"index":0,"delta":{"reasoning_content":"hm","content":null,"tool_calls":null}}]}`,
		`{"choices":[{"delta":{"reasoning":"hm","refusal":"no"}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":2,"type":"function","function":{"arguments":"{\"a\""}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"content":"a","content":"b"}}],"choices":[]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"name":"n"}}]}}]}`,
		`{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}`, `{"choices":[{"delta":{},"finish_reason":"stop","finish_reason":null}],"usage":null}`,
		`{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9,"prompt_tokens_details":{"cached_tokens":3,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}`,
		`{"choices":[{"delta":{}}],"usage":{"prompt_tokens":1,"cached_tokens":1},"usage":{"prompt_cache_hit_tokens":2,"prompt_tokens_details":null}}`, `{"error":{"message":"m"}}`, `{"object":"error","choices":[{}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, ok := scanDelta(data)
		if !ok {
			return
		}
		var c chunk
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		if c.err() != nil || c.Usage != nil || c.Timings != nil || c.Groq.Usage != nil || c.Model != p.model {
			t.Fatalf("%q: %+v, scanned %+v", data, c, p)
		}
		o := c.Choices[0]
		d := o.Delta
		calls := d.Calls
		d.Calls = nil
		same := d.Content == p.delta.Content && d.Reasoning == p.delta.Reasoning && d.ReasoningContent == p.delta.ReasoningContent &&
			d.Refusal == p.delta.Refusal && d.Details == nil
		if !same || o.Index != 0 || o.Finish != nil || o.Usage != nil || o.Error != nil || (len(calls) == 1) != p.call {
			t.Fatalf("%q: %+v, scanned %+v", data, o, p)
		}
		if p.call && (*calls[0].Index != p.index || calls[0].ID != "" || calls[0].Function.Name != "" || string(calls[0].Function.Arguments) != p.arguments) {
			t.Fatalf("%q: %+v, scanned %+v", data, calls, p)
		}
	})
}
