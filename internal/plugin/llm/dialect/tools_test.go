package dialect

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/schema"
)

func TestToolAdapter(t *testing.T) { // not in parallel: it counts allocations
	var logged bytes.Buffer
	rules := map[string]ToolRules{
		"gemini": {Schema: schema.Rules{Profile: schema.Gemini}},
		"strict": {Schema: schema.Rules{Profile: schema.OpenAI}, Strict: true},
		"none":   {None: true},
	}
	calls := 0
	o := &ToolAdapter{
		Rules: func(model string) ToolRules { calls++; return rules[model] },
		Log:   slog.New(slog.NewTextHandler(&logged, nil)),
	}
	specs := []llm.ToolSpec{
		{Name: "bad", Schema: json.RawMessage(`{"type":"string"}`)},
		{Name: "flat", Schema: json.RawMessage(`{"a":{"type":"string","format":"uri"}}`)},
		{Name: "no.name", Schema: json.RawMessage(`{}`)},
		{Name: "tight", Schema: json.RawMessage(`{"type":"object","properties":{},"required":[],"additionalProperties":false}`)},
	}
	fit := func(model string) []llm.ToolSpec { return o.Adapt(&llm.Request{Model: model, Tools: specs}).Tools }

	t.Run("PROV-06 a tool that cannot be converted is left out with one warning", func(t *testing.T) {
		for range 3 {
			got := fit("gemini")
			if len(got) != 2 || string(got[0].Schema) != `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}` || got[0].Strict != nil {
				t.Fatalf("tools = %+v", got)
			}
		}
		if n := strings.Count(logged.String(), "level=WARN"); n != 2 || !strings.Contains(logged.String(), "tool=bad") || !strings.Contains(logged.String(), "tool=no.name") {
			t.Errorf("%d warnings: %s", n, &logged)
		}
	})
	t.Run("PROV-06 the conversion for a set and a model's rules is cached", func(t *testing.T) {
		a, b, other := fit("gemini"), fit("gemini"), fit("strict")
		if &a[0] != &b[0] || &a[0] == &other[0] {
			t.Error("the same set was converted again, or another model's was used")
		}
		changed := slices.Clone(specs[1].Schema)
		changed[2] = 'b'
		specs[1].Schema = changed
		if got := fit("gemini"); !bytes.Contains(got[0].Schema, []byte(`"b"`)) {
			t.Errorf("a change was ignored: %s", got[0].Schema)
		}
		if n := testing.AllocsPerRun(100, func() { fit("gemini") }); n > 3 {
			t.Errorf("%v allocations a request", n)
		}
		if len(o.recent) > maxAdapted {
			t.Errorf("%d sets are cached", len(o.recent))
		}
	})
	t.Run("compat.supportsStrictMode sets strict for each tool", func(t *testing.T) {
		got := fit("strict")
		if len(got) != 2 || got[0].Strict == nil || *got[0].Strict || got[1].Strict == nil || !*got[1].Strict {
			t.Errorf("tools = %+v", got)
		}
	})
	t.Run("compat.supportsTools false removes all tools", func(t *testing.T) {
		if got := fit("none"); got != nil {
			t.Errorf("tools = %+v", got)
		}
	})
	r := &llm.Request{Model: "gemini"}
	if was := calls; o.Adapt(r) != r || calls != was {
		t.Error("a request without tools was changed")
	}
}

func TestUnescaped(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"a":"x &amp;&amp; y","b":["&lt;p&gt;",1.50],"&amp;":{"c":"&amp;lt;"}}`: `{"&amp;":{"c":"&lt;"},"a":"x && y","b":["<p>",1.50]}`,
		`{"a":"\u0026quot;"}`: `{"a":"\""}`,
		`{ "a" : "plain" }`:   `{ "a" : "plain" }`,
		`{"a":"&amp;"`:        `{"a":"&amp;"`,
	} {
		if got := string(unescapeArgs(json.RawMessage(in))); got != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
}
