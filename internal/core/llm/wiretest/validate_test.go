package wiretest

import (
	"strings"
	"testing"
)

// Valid bodies. Each case of the tables below changes one thing in them.
const (
	validAnthropic = `{"model":"m","max_tokens":2048,"stream":true,"thinking":{"type":"enabled","budget_tokens":1024},` +
		`"tools":[{"name":"look","input_schema":{"type":"object"}}],"system":[{"type":"text","text":"s"}],"messages":[` +
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eA=="}}]},` +
		`{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"c1","name":"look","input":{}},{"type":"tool_use","id":"c2","name":"look","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"r"}]},{"type":"tool_result","tool_use_id":"c2","cache_control":{"type":"ephemeral"}}]}]}`
	validOwn = `{"model":"m","stream":true,"stream_options":{"include_usage":true},` +
		`"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}],"messages":[` +
		`{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,eA=="}}]},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"look","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"c2","content":"r"},{"role":"tool","tool_call_id":"c1","content":"r"},{"role":"user","content":"b"}]}`
)

type change struct{ name, from, to, err string }

func refuses(t *testing.T, valid string, validate func([]byte) error, changes []change) {
	t.Helper()
	if err := validate([]byte(valid)); err != nil {
		t.Fatalf("the valid body was rejected: %v", err)
	}
	for _, c := range changes {
		if !strings.Contains(valid, c.from) {
			t.Fatalf("%s: nothing to change", c.name)
		}
		err := validate([]byte(strings.Replace(valid, c.from, c.to, 1)))
		if err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.err)
		}
	}
}

func TestAnthropic(t *testing.T) {
	t.Parallel()
	refuses(t, validAnthropic, Anthropic, []change{
		{"no JSON", `{"model"`, `"model"`, "cannot unmarshal"},
		{"more than JSON", `]}]}`, `]}]}{}`, "after the JSON"},
		{"unknown field", `"stream":true`, `"stream":true,"store":false`, "unknown field"},
		{"no model", `"model":"m",`, ``, "model"},
		{"no max_tokens", `"max_tokens":2048,`, ``, "max_tokens"},
		{"no stream", `"stream":true,`, ``, "stream"},
		{"hot", `"stream":true`, `"stream":true,"temperature":1.5`, "temperature"},
		{"temperature and thinking", `"stream":true`, `"stream":true,"temperature":1`, "not with thinking"},
		{"small budget", `:1024`, `:1023`, "budget_tokens"},
		{"large budget", `:1024`, `:2048`, "budget_tokens"},
		{"kind of thinking", `"enabled"`, `"on"`, "thinking"},
		{"empty tools", `[{"name":"look","input_schema":{"type":"object"}}]`, `[]`, "leave the field out"},
		{"no tools", `"tools":[{"name":"look","input_schema":{"type":"object"}}],`, ``, "must be defined"},
		{"tool name", `"name":"look","input_schema"`, `"name":"lo.ok","input_schema"`, "letters, digits"},
		{"tool twice", `"tools":[`, `"tools":[{"name":"look","input_schema":{"type":"object"}},`, "duplicate"},
		{"schema", `{"type":"object"}`, `{"type":"string"}`, "want object"},
		{"union", `{"type":"object"}`, `{"type":"object","oneOf":[]}`, "at the top"},
		{"empty system", `"system":[{"type":"text","text":"s"}]`, `"system":[]`, "system"},
		{"blank system", `"text":"s"`, `"text":" "`, "white space"},
		{"no messages", `"messages":[`, `"messages":[],"metadata":[`, "messages: empty"},
		{"assistant first", `{"role":"user"`, `{"role":"assistant"`, "want user"},
		{"role", `{"role":"assistant"`, `{"role":"system"`, "want assistant"},
		{"blank text", `"text":"a"`, `"text":"\n"`, "white space"},
		{"text as content", `"content":[{"type":"text","text":"r"}]`, `"content":"r"`, "cannot unmarshal"},
		{"no content",
			`[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eA=="}}]`,
			`[]`, "no content"},
		{"media type", `image/png`, `image/tiff`, "media type"},
		{"no image", `"eA=="`, `""`, "0 bytes"},
		{"large image", `"eA=="`, `"` + strings.Repeat("eA==", 5<<18+1) + `"`, "bytes in base 64"},
		{"image no base 64", `"eA=="`, `"e"`, "illegal base64"},
		{"no signature", `"signature":"s"`, `"signature":""`, "signature"},
		{"thinking last",
			`{"type":"tool_use","id":"c1","name":"look","input":{}},{"type":"tool_use","id":"c2","name":"look","input":{}}`,
			`{"type":"redacted_thinking","data":"x"}`, "must not end"},
		{"no thinking", `{"type":"thinking","thinking":"t","signature":"s"},`, ``, "expected thinking"},
		{"id", `"id":"c1"`, `"id":"c:1"`, "tool_use id"},
		{"id twice", `"id":"c1"`, `"id":"c2"`, "duplicate"},
		{"input", `"input":{}`, `"input":[]`, "want an object"},
		{"unpaired call", `"tool_use_id":"c1"`, `"tool_use_id":"c2"`, "no open call"},
		{"missing result", `,{"type":"tool_result","tool_use_id":"c2","cache_control":{"type":"ephemeral"}}`,
			``, "without result: c2"},
		{"result behind text", `[{"type":"tool_result","tool_use_id":"c1"`,
			`[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"c1"`, "behind other content"},
		{"block in a result", `[{"type":"text","text":"r"}]`, `[{"type":"thinking"}]`, "in a tool_result"},
		{"image in an error", `"tool_use_id":"c1","content":[{"type":"text","text":"r"}]`, `"tool_use_id":"c1","is_error":true,"content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eA=="}}]`, "must be text"},
		{"block of a user", `{"type":"text","text":"a"}`, `{"type":"tool_use"}`, "in a user message"},
		{"block of the assistant", `{"type":"thinking","thinking":"t","signature":"s"}`, `{"type":"image"}`,
			"in an assistant message"},
		{"assistant last", `]}]}`, `]},{"role":"assistant","content":[{"type":"text","text":"x"}]}]}`, "the last one"},
		{"marker", `"ephemeral"`, `"forever"`, "cache_control"},
		{"marker on thinking", `"signature":"s"`, `"signature":"s","cache_control":{"type":"ephemeral"}`, "of type thinking"},
		{"many markers", `"system":[`, `"system":[` +
			strings.Repeat(`{"type":"text","text":"s","cache_control":{"type":"ephemeral"}},`, 4), "at most 4"},
	})
}

func TestOpenAI(t *testing.T) {
	t.Parallel()
	changes := []change{
		{"no JSON", `{"model"`, `"model"`, "cannot unmarshal"},
		{"unknown field", `"stream":true`, `"stream":true,"system":[]`, "unknown field"},
		{"no model", `"model":"m",`, ``, "model"},
		{"no stream", `"stream":true,`, ``, "stream"},
		{"hot", `"stream":true`, `"stream":true,"temperature":3`, "temperature"},
		{"max_tokens", `"stream":true`, `"stream":true,"max_tokens":0`, "max_tokens"},
		{"empty tools", `[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}]`, `[]`,
			"leave the field out"},
		{"tool name", `"name":"look","parameters"`, `"name":"a b","parameters"`, "letters, digits"},
		{"tool type", `"tools":[{"type":"function"`, `"tools":[{"type":"tool"`, "duplicate or invalid"},
		{"schema", `{"type":"object"}`, `{}`, "want object"},
		{"no user", `{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,eA=="}}]},`, ``, "want user"},
		{"system later", `{"role":"user","content":"b"}`, `{"role":"system","content":"b"}`, "want it first"},
		{"empty content", `"content":"b"`, `"content":""`, "empty"},
		{"empty parts", `[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,eA=="}}]`,
			`[]`, "empty"},
		{"empty part", `"text":"a"`, `"text":""`, "or empty"},
		{"image by URL", `data:image/png;base64,eA==`, `https://h/x.png`, "data URI"},
		{"image type", `data:image/png`, `data:image/tiff`, "media type"},
		{"null without calls", `{"role":"user","content":"b"}`,
			`{"role":"assistant","content":null},{"role":"user","content":"b"}`, "content: empty"},
		{"calls of a user", `{"role":"user","content":"b"}`, `{"role":"user","content":"b","tool_calls":[]}`,
			"tool_call_id or tool_calls"},
		{"empty calls", `"content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"look","arguments":"{}"}}]`, `"content":"x","tool_calls":[]`, "leave the field out"},
		{"long id", `"id":"c1"`, `"id":"` + strings.Repeat("c", 41) + `"`, "40 characters"},
		{"id twice", `"id":"c1"`, `"id":"c2"`, "duplicate"},
		{"arguments", `"arguments":"{}"`, `"arguments":"null"`, "want an object"},
		{"unpaired result", `"tool_call_id":"c2"`, `"tool_call_id":"c3"`, "no open call"},
		{"missing result", `{"role":"tool","tool_call_id":"c2","content":"r"},`, ``, "without result: c2"},
		{"parts of a result", `"tool_call_id":"c2","content":"r"`,
			`"tool_call_id":"c2","content":[{"type":"text","text":"r"}]`, "cannot unmarshal"},
		{"assistant last", `{"role":"user","content":"b"}`, `{"role":"assistant","content":"b"}`, "the last one"},
		{"calls last", `{"role":"user","content":"b"}`, `{"role":"user","content":"b"},{"role":"assistant","tool_calls":[{"id":"c4","type":"function","function":{"name":"look","arguments":"{}"}}]}`, "at the end: c4"},
		{"role", `{"role":"user","content":"b"}`, `{"role":"human","content":"b"}`, "role"},
	}
	refuses(t, validOwn, OpenAI, changes)
	refuses(t, validOwn, Compatible, append(changes,
		change{"PROV-10 store", `"stream":true`, `"stream":true,"store":false`, "only OpenAI's own host knows: store"},
		change{"PROV-10 tier", `"stream":true`, `"stream":true,"service_tier":"auto"`, "only OpenAI"},
		change{"PROV-10 key", `"stream":true`, `"stream":true,"prompt_cache_key":"x"`, "only OpenAI"},
		change{"PROV-10 role", `"system"`, `"developer"`, "developer"},
		change{"marker", `"text":"a"`, `"text":"a","cache_control":{"type":"ephemeral"}`, "cache_control"},
		change{"reasoning", `"content":null`, `"content":null,"reasoning_content":"x"`, "reasoning_content"},
	))
}
