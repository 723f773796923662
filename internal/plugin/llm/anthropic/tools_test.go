package anthropic_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/plugin/llm/anthropic"
)

func TestSchemas(t *testing.T) {
	t.Parallel()
	no := false
	const given = `{"type":"object","properties":{"a":{"anyOf":[{"type":"string","pattern":"x"},{"type":"null"}]}},"required":["a"],"additionalProperties":false}`
	for _, tt := range []struct {
		name   string
		compat llm.Compat
		schema string
		want   string // of the body; "": no tools field
	}{
		{"SN-05 the schema is as it was", llm.Compat{}, given, `"input_schema":` + given + `,"name":"t"`},
		{"SN-04 PROV-06 a union at the top is merged", llm.Compat{}, `{"oneOf":[{"properties":{"a":{"type":"string"}}},{}]}`,
			`"input_schema":{"properties":{"a":{"type":"string"}},"type":"object"}`},
		{"another service of the format has rules of its own", llm.Compat{ToolSchemaProfile: "gemini"}, given,
			`"input_schema":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`},
		{"PROV-21 supportsTools false", llm.Compat{SupportsTools: &no}, given, ""},
		{"PROV-21 a tool that is left out", llm.Compat{}, `{"type":"array"}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := llmtest.NewServer(t, llmtest.Anthropic, llmtest.Say("ok"))
			url, hc := srv.Pipe()
			r := llmtest.Ask("Hi")
			r.Tools = []llm.ToolSpec{{Name: "t", Schema: json.RawMessage(tt.schema)}}
			p := anthropic.New(anthropic.Options{BaseURL: url, HTTP: hc, Model: func(id string) llm.Model {
				return llm.Model{ID: id, Compat: tt.compat}
			}})
			if c, err := llmtest.Collect(t.Context(), p, r); err != nil || c.Err != nil {
				t.Fatalf("ask: %v, %v", err, c.Err)
			}
			body := srv.Requests()[0].Body
			if tt.want == "" && bytes.Contains(body, []byte(`"tools"`)) || !bytes.Contains(body, []byte(tt.want)) {
				t.Errorf("body %s\nwant %q", body, tt.want)
			}
		})
	}
}
