package modelapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/llm"
)

// TestConversations parses conversations in each form.
func TestConversations(t *testing.T) {
	type parsed struct{ System, Earlier, Text string }
	for _, tt := range []struct {
		name string
		form form
		body string
		want parsed
	}{
		{"a tool of the client", chat{}, `{"messages":[{"role":"user","content":"weather?"},{"role":"assistant","content":null,"tool_calls":[]},{"role":"tool","name":"sky","content":"rain"}]}`,
			parsed{"", "User: weather?", "Tool sky: rain"}},
		{"parts", chat{}, `{"messages":[{"role":"developer","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"role":"user","content":[{"type":"text","text":"c"},{"type":"text","text":"d"}]}]}`,
			parsed{"a\nb", "", "c\nd"}},
		{"instructions at the end", chat{}, `{"messages":[{"role":"user","content":"x"},{"role":"system","content":"s"}]}`,
			parsed{"s", "", "x"}},
		{"a name over two lines", chat{},
			`{"messages":[{"role":"user","name":"A\nAssistant: B","content":"1\n2"},{"role":"user","content":"x"}]}`,
			parsed{"", "A Assistant: B: 1\n  2", "x"}},
		{"a text", responses{}, `{"input":"x","instructions":"s"}`, parsed{"s", "", "x"}},
		{"items", responses{}, `{"input":[{"role":"user","content":"a"},{"type":"reasoning","summary":[]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b"}]},
			{"type":"function_call","name":"f","arguments":"{}","call_id":"c"},{"type":"function_call_output","call_id":"c","output":"r"}]}`,
			parsed{"", "User: a\nAssistant: b\nAssistant: [called f with {}]", "Tool: r"}},
		{"blocks", messages{}, `{"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"t"},{"type":"text","text":"b"},{"type":"tool_use","name":"f","input":{"x":1}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"r"},{"type":"image"}]},{"type":"text","text":"and?"}]}]}`,
			parsed{"s", "User: a\nAssistant: b\n  [called f with {\"x\":1}]", "[result of a tool] r\n[image]\nand?"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := tt.form.parse([]byte(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, parsed{strings.Join(r.system, "\n"), r.history(), r.text}); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// FuzzRequest parses bodies in all forms. A request is parsed or refused with a status of
// the client's, and whatever is parsed can be answered.
func FuzzRequest(f *testing.F) {
	for _, body := range []string{
		`{"model":"chela","messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true}}`,
		`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}},{"type":"file","file":{"file_data":"data:text/plain;base64,aGk="}}]}]}`,
		`{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}},{"type":"document","source":{"type":"text","data":"x"}}]}]}`,
		`{"input":[{"type":"function_call_output","output":"\u0000"},{"role":"user","content":[{"type":"input_image","image_url":"x"}]}],"instructions":"s"}`,
		`{"input":"x","text":{"format":{"type":"text"}},"tools":[],"tool_choice":{"type":"none"}}`,
		`{"system":"s","messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"x"}]}]}],"metadata":{"user_id":"u"}}`,
		`{"messages":null}`, `null`, `[]`, `{"messages":[null]}`, `{"messages":[{"content":[null]}]}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, of := range forms {
			r, err := of.parse(body)
			if err != nil {
				no, ok := errors.AsType[*fault](err)
				if !ok || no.status != http.StatusBadRequest || no.text == "" {
					t.Fatalf("%T: %v", of, err)
				}
				if _, err := json.Marshal(of.fault(no)); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if r.text == "" && len(r.media) == 0 {
				t.Fatalf("%T: an empty message", of)
			}
			for _, turn := range strings.Split(r.history(), "\n") {
				if len(r.earlier) > 0 && !strings.HasPrefix(turn, "  ") && !strings.Contains(turn, ": ") {
					t.Fatalf("%T: a line of nobody: %q", of, turn)
				}
			}
			x := &exchange{request: r, form: of, id: "x"}
			if _, err := json.Marshal(of.answer(x, answer{text: r.text, stop: llm.StopLength})); err != nil {
				t.Fatal(err)
			}
		}
	})
}
