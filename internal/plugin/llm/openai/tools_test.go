package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/plugin/llm/openai"
)

// toolJSON returns the JSON of a tool with the schema in a request, or "".
func toolJSON(t *testing.T, o openai.Options, model, schema string) string {
	t.Helper()
	r := llmtest.Ask("Hi")
	r.Model, r.Tools = model, []llm.ToolSpec{{Name: "t", Schema: json.RawMessage(schema)}}
	var body struct {
		Tools []struct{ Function json.RawMessage }
	}
	raw := sent(t, o, r).Body
	if err := json.Unmarshal(raw, &body); err != nil {
		t.Fatal(err)
	}
	if len(body.Tools) == 0 {
		if strings.Contains(string(raw), `"tools"`) {
			t.Errorf("PROV-21: an empty tools field: %s", raw)
		}
		return ""
	}
	return string(body.Tools[0].Function)
}

func TestSchemas(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	const given = `{"type":"object","properties":{"a":{"anyOf":[{"type":"string","pattern":"x","maxLength":9},{"type":"null"}]}}}`
	plain := `{"name":"t","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}`
	for _, tt := range []struct {
		name, id, base, model string
		compat                llm.Compat
		want                  string
	}{
		{"PROV-06 OpenAI", "", "", "gpt-x", llm.Compat{}, `{"name":"t","parameters":` + given + `}`},
		{"PROV-06 an unknown server", "mine", "http://box:8080", "m", llm.Compat{},
			`{"name":"t","parameters":` + given + `}`},
		{"PROV-06 Gemini's own endpoint", "google", "https://generativelanguage.googleapis.com/v1beta/openai",
			"models/x", llm.Compat{}, plain},
		{"PROV-06 a model of Gemini through a router", "openrouter", "https://openrouter.ai/api/v1",
			"google/gemini-2.5-flash", llm.Compat{}, plain},
		{"SN-02 by toolSchemaProfile", "mine", "http://box:8080", "m", llm.Compat{ToolSchemaProfile: "gemini"}, plain},
		{
			"DeepSeek", "deepseek", "https://api.deepseek.com", "m",
			llm.Compat{}, `{"name":"t","parameters":{"type":"object","properties":{"a":{"type":["string","null"],"pattern":"x","maxLength":9}}}}`,
		},
		{
			"llama.cpp", "llamacpp", "http://127.0.0.1:8080/v1", "m",
			llm.Compat{}, `{"name":"t","parameters":{"type":"object","properties":{"a":{"anyOf":[{"type":"string","maxLength":9},{"type":"null"}]}}}}`,
		},
		{
			"SN-07", "mine", "http://box:8080", "m", llm.Compat{UnsupportedToolSchemaKeywords: []string{"maxLength"}},
			`{"name":"t","parameters":{"type":"object","properties":{"a":{"anyOf":[{"type":"string","pattern":"x"},{"type":"null"}]}}}}`,
		},
		{"PROV-21 supportsTools false", "mine", "http://box:8080", "m", llm.Compat{SupportsTools: &no}, ""},
		{"supportsStrictMode", "mine", "http://box:8080", "m", llm.Compat{SupportsStrictMode: &yes},
			`{"name":"t","parameters":` + given + `,"strict":false}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := openai.Options{Name: tt.id, BaseURL: tt.base, Model: func(id string) llm.Model {
				m := llm.Model{ID: id, Compat: tt.compat}
				if tt.id == "deepseek" { // it requires the thinking switch
					m.Levels = []llm.Level{llm.High}
				}
				return m
			}}
			if got := toolJSON(t, o, tt.model, given); got != tt.want {
				t.Errorf("sent %s\nwant %s", got, tt.want)
			}
		})
	}
	t.Run("PROV-21 there is no tools field if all tools are left out", func(t *testing.T) {
		if got := toolJSON(t, openai.Options{}, "m", `{"type":"string"}`); got != "" {
			t.Errorf("sent %s", got)
		}
	})
}

func TestEntities(t *testing.T) {
	t.Parallel()
	ask := func(compat llm.Compat) string {
		srv := llmtest.NewServer(t, llmtest.OpenAI, llmtest.Calls(llmtest.ToolCall("c", "t", `{"a":"x &amp;&amp; y"}`)))
		url, hc := srv.Pipe()
		c, err := llmtest.Collect(t.Context(), openai.New(openai.Options{
			BaseURL: url, HTTP: hc, Model: func(id string) llm.Model { return llm.Model{ID: id, Compat: compat} },
		}), llmtest.Ask("Hi"))
		if err != nil || c.Message == nil {
			t.Fatalf("ask: %v", err)
		}
		return string(c.Message.Calls()[0].Args)
	}
	for encoding, want := range map[string]string{"": `{"a":"x &amp;&amp; y"}`, "html-entities": `{"a":"x && y"}`} {
		if d := cmp.Diff(want, ask(llm.Compat{ToolCallArgumentsEncoding: encoding})); d != "" {
			t.Errorf("toolCallArgumentsEncoding %q (-want +got):\n%s", encoding, d)
		}
	}
}
