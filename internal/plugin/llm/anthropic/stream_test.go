package anthropic_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
)

// answer returns the answer decoded from events with the data.
func answer(t *testing.T, data ...string) *llmtest.Collected {
	t.Helper()
	var body bytes.Buffer
	for _, d := range data {
		fmt.Fprintf(&body, "data: %s\n\n", d)
	}
	p := open("http://h", llmtest.AnswerClient(llmtest.Anthropic, body.Bytes(), func([]byte) error { return nil }))
	c, err := llmtest.Collect(t.Context(), p, llmtest.Ask("Hi"))
	if err != nil {
		t.Errorf("contract violation: %v", err)
	}
	return c
}

// TestServers tests deviations of other services.
func TestServers(t *testing.T) {
	t.Parallel()
	const (
		text  = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"He"}}`
		llo   = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"llo"}}`
		look  = `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"look","input":{"at": 1}}}`
		args  = `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"at\":2}"}}`
		close = `{"type":"content_block_stop","index":1}`
		stop  = `{"type":"message_stop"}`
	)
	call := func(args string) []llm.ToolCall { return []llm.ToolCall{llmtest.ToolCall("a", "look", args)} }
	for _, tt := range []struct {
		name  string
		data  []string
		text  string
		calls []llm.ToolCall
		err   llm.Class
	}{
		{"text at the start", []string{text, llo, stop}, "Hello", nil, ""},
		{"a duplicate start", []string{text, text, llo, stop}, "Hello", nil, ""},
		{"no start", []string{llo, stop}, "llo", nil, ""},
		{"arguments at the start", []string{look, close, close, stop}, "", call(`{"at": 1}`), ""},
		{"arguments at both", []string{look, args, close, stop}, "", call(`{"at":2}`), ""},
		{"arguments of a call that never began", []string{args, close, stop}, "", nil, ""},
		{"blocks of another kind",
			[]string{`{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"s","input":{}}}`,
				args, close, text, llo, stop}, "Hello", nil, ""},
		{"a delta of another kind",
			[]string{text, `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"x"}}`, stop},
			"", nil, llm.ClassNetwork},
		{"deltas of a kind to come",
			[]string{text, `{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta"}}`, llo, stop},
			"Hello", nil, ""},
		{"no last event", []string{text, llo, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`},
			"Hello", nil, ""},
		{"no last event and no stop reason", []string{text, llo, `{"type":"content_block_stop","index":0}`}, "",
			nil, llm.ClassNetwork},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := answer(t, tt.data...)
			if llm.ClassOf(c.Err) != tt.err {
				t.Fatalf("error = %v, want class %q", c.Err, tt.err)
			}
			if tt.err != "" {
				return
			}
			if got := c.Message.PlainText(); got != tt.text {
				t.Errorf("text = %q, want %q", got, tt.text)
			}
			if d := cmp.Diff(tt.calls, c.Message.Calls()); d != "" {
				t.Errorf("calls (-want +got):\n%s", d)
			}
		})
	}
}

func TestStopReasons(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]llm.StopReason{
		"end_turn": llm.StopEnd, "stop_sequence": llm.StopEnd, "pause_turn": llm.StopEnd, "to_come": llm.StopEnd,
		"max_tokens": llm.StopLength, "model_context_window_exceeded": llm.StopLength, "refusal": llm.StopRefusal,
		"tool_use": llm.StopEnd, // without a call
	} {
		c := answer(t, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}`,
			fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q}}`, in), `{"type":"message_stop"}`)
		if c.Message == nil || c.Message.Stop != want {
			t.Errorf("%s: %+v, %v; want %s", in, c.Message, c.Err, want)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	want := llm.Usage{Input: 10, Output: 20, CacheRead: 30, CacheWrite: 40}
	const all = `"usage":{"input_tokens":10,"output_tokens":20,"cache_read_input_tokens":30,"cache_creation_input_tokens":40}`
	for name, data := range map[string][]string{
		"at both": {
			`{"type":"message_start","message":{"usage":{"input_tokens":10,"output_tokens":1,"cache_read_input_tokens":30,"cache_creation_input_tokens":40}}}`,
			`{"type":"message_delta","delta":{},"usage":{"output_tokens":20}}`,
		},
		"all at the end": {
			`{"type":"message_start","message":{"usage":{"input_tokens":0,"output_tokens":0}}}`,
			`{"type":"message_delta",` + all + `}`,
		},
		"all at both": {`{"type":"message_start","message":{` + all + `}}`, `{"type":"message_delta",` + all + `}`},
		"nulls at end": {`{"type":"message_start","message":{` + all + `}}`,
			`{"type":"message_delta","usage":{"output_tokens":20,"input_tokens":null}}`},
	} {
		if c := answer(t, append(data, `{"type":"message_stop"}`)...); c.Usage != want {
			t.Errorf("%s: usage = %+v, want %+v (%v)", name, c.Usage, want, c.Err)
		}
	}
}

// TestRepairs checks that a field which a service refuses is left out from then on.
func TestRepairs(t *testing.T) {
	t.Parallel()
	for message, field := range map[string]string{
		"messages.0.content.0.cache_control: Extra inputs are not permitted": "cache_control",
		"thinking: Extra inputs are not permitted":                           "thinking",
		"temperature may not be set with this model":                         "temperature",
	} {
		srv := llmtest.ServerFunc(t, llmtest.Anthropic, func(n int, _ llmtest.ReceivedRequest) llmtest.Step {
			if n == 0 {
				return llmtest.Status(400, message)
			}
			return llmtest.Say("fine")
		})
		p := open(srv.Listen())
		r := llmtest.Ask("Hi")
		if field == "temperature" {
			r.Temperature, r.HasTemperature = 0.5, true
		} else {
			r.Thinking = llm.High
		}
		for range 2 {
			if c, err := llmtest.Collect(t.Context(), p, r); err != nil || c.Err != nil {
				t.Fatalf("%v, %v", err, c.Err)
			}
		}
		all := srv.Requests()
		if len(all) != 3 {
			t.Fatalf("%d requests for two answers, want 3", len(all))
		}
		for i, r := range all {
			if has := bytes.Contains(r.Body, []byte(`"`+field+`"`)); has != (i == 0) {
				t.Errorf("%s in request %d: %t", field, i, has)
			}
		}
	}
}
