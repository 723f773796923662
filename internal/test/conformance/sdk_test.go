//go:build conformance

package conformance

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
)

// answered is an answer as a provider's library parsed it.
type answered struct {
	Text     string        `json:"text"`
	Thinking string        `json:"thinking"`
	Calls    []libraryCall `json:"calls"`
	Stop     string        `json:"stop"`
	Input    int64         `json:"input"`
	Output   int64         `json:"output"`

	Status int    `json:"status"`
	Error  string `json:"error"`
}

type libraryCall struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"arguments"`
}

// TestLibraries checks that the providers' own libraries understand the servers
// of our tests, and that these accept the requests of the libraries. This shows
// that the dialects are tested against the real protocol.
func TestLibraries(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, path string
		wire       llmtest.Wire
		request    string
		tools      string // stop reason
	}{
		{
			"openai", "/v1", llmtest.OpenAI,
			`{"model": "m", "stream_options": {"include_usage": true}, "max_tokens": 100, "messages": [
				{"role": "system", "content": "s"}, {"role": "user", "content": "hi"},
				{"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
				{"role": "tool", "tool_call_id": "c1", "content": "x"}],
			  "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]}`,
			"tool_calls",
		},
		{
			"anthropic", "", llmtest.Anthropic,
			`{"model": "m", "max_tokens": 2000, "system": [{"type": "text", "text": "s"}], "messages": [
				{"role": "user", "content": [{"type": "text", "text": "hi"}]},
				{"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {}}]},
				{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "x"}]}]}],
			  "tools": [{"name": "look", "input_schema": {"type": "object", "properties": {}}}]}`,
			"tool_use",
		},
		{
			"responses", "/v1", llmtest.Responses,
			`{"model": "m", "instructions": "s", "max_output_tokens": 100, "input": [
				{"role": "user", "content": "hi"},
				{"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
				{"type": "function_call_output", "call_id": "c1", "output": "x"}],
			  "tools": [{"type": "function", "name": "look", "strict": false, "parameters": {"type": "object", "properties": {}}}]}`,
			"completed",
		},
		{
			"gemini", "", llmtest.Gemini,
			`{"model": "m", "config": {"systemInstruction": {"parts": [{"text": "s"}]}, "maxOutputTokens": 100, "thinkingConfig": {"includeThoughts": true},
				"tools": [{"functionDeclarations": [{"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "integer"}}}}]}]},
			  "contents": [
				{"role": "user", "parts": [{"text": "hi"}]},
				{"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "look", "args": {}}}]},
				{"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "look", "response": {"output": "x"}}}]}]}`,
			"STOP",
		},
		{
			"ollama", "", llmtest.Ollama,
			`{"model": "m", "think": true, "options": {"num_ctx": 8192}, "messages": [
				{"role": "system", "content": "s"}, {"role": "user", "content": "hi"},
				{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "look", "arguments": {}}}]},
				{"role": "tool", "tool_name": "look", "content": "x"}],
			  "tools": [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]}`,
			"stop",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			step := llmtest.Think("Hm, \"so\".", "c2ln",
				llmtest.Calls(llmtest.ToolCall("a", "look", `{"at":[1,"世界"]}`), llmtest.ToolCall("b", "look", `{}`)))
			step.Parts = append(step.Parts[:1:1], append([]llm.Part{llm.Text("Looking – \n\"here\".")}, step.Parts[1:]...)...)
			step.Usage, step.Chunk = &llm.Usage{Input: 70, Output: 9}, 3
			late := llmtest.Say("Some")
			late.Fault.Error = true
			srv := llmtest.NewServer(t, tt.wire, step, llmtest.Status(429, "slow down"), late)
			url, _ := srv.Listen()
			ask := func() answered { return library(t, tt.name, url+tt.path, tt.request) }

			want := answered{
				Text: step.Parts[1].Text, Thinking: "Hm, \"so\".", Stop: tt.tools, Input: 70, Output: 9,
				Calls: []libraryCall{{"a", "look", json.RawMessage(`{"at":[1,"世界"]}`)}, {"b", "look", json.RawMessage(`{}`)}},
			}
			got := ask()
			if tt.name == "openai" { // the library drops unknown fields when it adds up
				want.Thinking, got.Thinking = "", ""
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("an answer (-want +got):\n%s", d)
			}
			if got := ask(); got.Status != 429 || !strings.Contains(got.Error, "slow down") {
				t.Errorf("a refusal: %+v", got)
			}
			if got := ask(); got.Error == "" {
				t.Errorf("an error in the stream: %+v", got)
			}
		})
	}
}

// library makes a request with a provider's library.
func library(t *testing.T, kind, url, request string) answered {
	t.Helper()
	from := current()
	if kind == "gemini" || kind == "ollama" {
		from = libraries()
	}
	cmd := exec.CommandContext(t.Context(), node(t), "testdata/sdk.mjs", packages(t, from), kind, url)
	cmd.Stdin = strings.NewReader(request)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", kind, err, out)
	}
	var a answered
	if err := json.Unmarshal(out, &a); err != nil {
		t.Fatalf("%s: %v: %s", kind, err, out)
	}
	return a
}
