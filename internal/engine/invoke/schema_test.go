package invoke_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	schemas "github.com/chela-ai/chela/internal/core/schema"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/invoke"
)

// taking returns a tool with the definition as its schema.
func taking(definition string) *fake {
	return &fake{spec: tool.Spec{Name: "t", Schema: json.RawMessage(definition)}}
}

func TestDefinitions(t *testing.T) {
	t.Parallel()
	x := invoke.New(invoke.Options{})
	t.Run("TOOL-12 SN-08 a flat definition is read as an object schema, for the model and for calls", func(t *testing.T) {
		f := taking(`{"a":{"type":"string","description":"A"},"b":{"type":"integer","description":"B","required":false}}`)
		v := x.For(scope(f))
		want := `{"type":"object","required":["a"],"properties":{"a":{"type":"string","description":"A"},"b":{"type":"integer","description":"B"}}}`
		if got := v.Specs(false); len(got) != 1 || string(got[0].Schema) != want {
			t.Errorf("specs = %+v", got)
		}
		failed(t, do(t, v, call("t", `{"b":"5"}`)), `"a" is missing (string)`)
		do(t, v, call("t", `{"a":"x","b":"5"}`))
		if len(f.args) != 1 || f.args[0] != `{"a":"x","b":5}` {
			t.Errorf("args = %q", f.args)
		}
	})
	for name, definition := range map[string]string{
		"another draft":                           `{"$schema":"http://json-schema.org/draft-04/schema","type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`,
		"the draft of 2019":                       `{"$schema":"https://json-schema.org/draft/2019-09/schema","type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`,
		"an unsupported pattern":                  `{"type":"object","properties":{"a":{"type":"string","pattern":"^(?=x)x"}},"required":["a"],"patternProperties":{"(?!y)":false},"additionalProperties":false}`,
		"an unsupported pattern in not and oneOf": `{"type":"object","required":["a"],"not":{"properties":{"a":{"pattern":"(?=q)"}}},"oneOf":[{"properties":{"a":{"pattern":"(?=y)"}}},{}]}`,
		"null keywords":                           `{"type":"object","properties":{"a":{"type":"string","enum":null}},"required":["a"],"items":null}`,
		"required in a property":                  `{"type":"object","properties":{"a":{"type":"string","required":true}}}`,
	} {
		t.Run("TOOL-07 schemas with unsupported parts are accepted: "+name, func(t *testing.T) {
			f := taking(definition)
			v := invoke.New(invoke.Options{}).For(scope(f))
			if len(v.Specs(false)) != 1 {
				t.Fatal("not listed")
			}
			do(t, v, call("t", `{"a":"x"}`))
			failed(t, do(t, v, call("t", `{}`)), `"a" is missing`)
			if len(f.args) != 1 {
				t.Errorf("args = %q", f.args)
			}
		})
	}
	t.Run("a tool whose schema cannot be used is not listed, with one warning", func(t *testing.T) {
		var log bytes.Buffer
		d := invoke.New(invoke.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		bad := taking(`{"type":"object","properties":{"a":{"$ref":"https://x.example/schema"}}}`)
		for range 3 {
			v := d.For(scope(bad, read()))
			if got := v.Specs(false); len(got) != 1 || got[0].Name != "read" {
				t.Errorf("specs = %v", got)
			}
			failed(t, do(t, v, call("t", `{}`)), "cannot be used")
		}
		if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), "tool=t") {
			t.Errorf("%d warnings: %s", n, &log)
		}
	})
	t.Run("an endless recursion in a schema is limited", func(t *testing.T) {
		for _, definition := range []string{`{"$ref":"#"}`,
			`{"anyOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`} {
			v := x.For(scope(taking(definition)))
			failed(t, do(t, v, call("t", strings.Repeat(`{"a":`, 40)+"{}"+strings.Repeat("}", 40))), "nested too deeply")
		}
	})
}

func TestWords(t *testing.T) {
	t.Parallel()
	definition := `{"type":"object","properties":{
		"edits":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"object","properties":{"oldText":{"type":"string","minLength":1},"n":{"type":"integer","minimum":1,"exclusiveMaximum":10}},"required":["oldText"],"additionalProperties":false}},
		"who":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]},
		"kind":{"const":"x"},"mode":{"enum":["a","b"]},"name":{"type":"string","minLength":2,"maxLength":3},"when":{"$ref":"#/$defs/when"}},
		"$defs":{"when":{"type":"object","properties":{"at":{"type":"string"}},"required":["at"]}}}`
	for _, tt := range []struct{ args, want string }{
		{`{"edits":[{"oldText":"a"},{"n":5}]}`, `"edits[1].oldText" is missing (string)`},
		{`{"edits":[{"oldText":""}]}`, `"edits[0].oldText" is empty`},
		{`{"edits":[{"oldText":"a","n":0}]}`, `"edits[0].n" is 0, want at least 1`},
		{`{"edits":[{"oldText":"a","n":10}]}`, `"edits[0].n" is 10, want less than 10`},
		{`{"edits":[{"oldText":"a","new":1}]}`, `"edits[0].new" is not a field`},
		{`{"edits":[]}`, `"edits" has 0 elements, want at least 1`},
		{`{"edits":{"oldText":"a"}}`, `"edits" is object, want array of object`},
		{`{"kind":"y"}`, `"kind" is "y", want "x"`},
		{`{"mode":"c"}`, `"mode" is c, want one of ["a","b"]`},
		{`{"name":"äöüß"}`, `"name" has 4 characters, want at most 3`},
		{`{"name":"ä"}`, `"name" has 1 characters, want at least 2`},
		{`{"when":{"in":1}}`, `"when": required: missing properties: ["at"]`},
		{`{"who":{}}`, `who (string or array of string)`},
		{`[]`, `the arguments are array, want an object`},
	} {
		t.Run("TOOL-07 the error names the field and the expected value: "+tt.args, func(t *testing.T) {
			f := taking(definition)
			failed(t, do(t, invoke.New(invoke.Options{}).For(scope(f)), call("t", tt.args)), tt.want)
			if len(f.args) != 0 {
				t.Error("the tool was run")
			}
		})
	}
}

func TestSpellings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ properties, args, want string }{
		{`"path":{"type":"string"}`, `{"file_path":"x"}`, `{"path":"x"}`},
		{`"path":{"type":"string"}`, `{"File-Path":"x"}`, `{"path":"x"}`},
		{`"path":{"type":"string"},"oldText":{},"newText":{}`, `{"path":"x","old_text":"a","new_text":"b"}`,
			`{"newText":"b","oldText":"a","path":"x"}`},
		{`"oldText":{},"newText":{}`, `{"old_string":"a","new_string":"b"}`, `{"newText":"b","oldText":"a"}`},
		{`"to":{"type":"string"},"message":{}`, `{"chat_id":5,"text":"hi"}`, `{"message":"hi","to":"5"}`},
		{`"target":{"type":"string"}`, `{"chat_id":"c"}`, `{"target":"c"}`},
		{`"command":{}`, `{"cmd":"ls"}`, `{"command":"ls"}`},
		{`"path":{},"file":{}`, `{"file":"x"}`, `{"file":"x"}`},
		{`"path":{}`, `{"path":"x","file_path":"y"}`, ``},
		{`"content":{},"message":{}`, `{"text":"x","body":"y"}`, ``},
		{`"other":{}`, `{"file_path":"y"}`, ``},
	} {
		t.Run("TOOL-13 other spellings of arguments: "+tt.args, func(t *testing.T) {
			f := taking(`{"type":"object","properties":{` + tt.properties + `},"additionalProperties":false}`)
			res := do(t, invoke.New(invoke.Options{}).For(scope(f)), call("t", tt.args))
			if tt.want == "" {
				failed(t, res, "is not a field")
			} else if len(f.args) != 1 || f.args[0] != tt.want {
				t.Errorf("args = %q, want %s; %s", f.args, tt.want, text(res))
			}
		})
	}
}

func TestArgumentNames(t *testing.T) {
	t.Parallel()
	f := taking(`{"type":"object","properties":{"filter[bundleId]":{"type":"string"},"$select":{"type":"string"}},"required":["filter[bundleId]"],"additionalProperties":false}`)
	v := invoke.New(invoke.Options{}).For(scope(f))
	changed, err := schemas.Rules{}.Apply(v.Specs(false)[0].Schema)
	if err != nil || !strings.Contains(string(changed), `"filter_bundleId_"`) {
		t.Fatalf("schema %s, %v", changed, err)
	}
	do(t, v, call("t", `{"filter_bundleId_":"x","_select":"y"}`))
	if len(f.args) != 1 || f.args[0] != `{"$select":"y","filter[bundleId]":"x"}` {
		t.Errorf("a name that a service would not take comes back as %q", f.args)
	}
}
