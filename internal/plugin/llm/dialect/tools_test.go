package dialect

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
		{Name: "tight",
			Schema: json.RawMessage(`{"type":"object","properties":{},"required":[],"additionalProperties":false}`)},
	}
	fit := func(model string) []llm.ToolSpec { return o.Adapt(&llm.Request{Model: model, Tools: specs}).Tools }

	t.Run("PROV-06 a tool that cannot be converted is left out with one warning", func(t *testing.T) {
		for range 3 {
			got := fit("gemini")
			if len(got) != 2 || string(got[0].Schema) !=
				`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}` || got[0].Strict != nil {
				t.Fatalf("tools = %+v", got)
			}
		}
		if n := strings.Count(logged.String(), "level=WARN"); n != 2 || !strings.Contains(logged.String(), "tool=bad") ||
			!strings.Contains(logged.String(), "tool=no.name") {
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
		for i := range 2 * maxAdapted {
			specs[1].Description = strings.Repeat("x", 1+i)
			if got := fit("gemini"); got[0].Description != specs[1].Description {
				t.Errorf("a changed description was ignored: %q", got[0].Description)
			}
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

func TestSameTools(t *testing.T) {
	t.Parallel()
	yes, also, no := true, true, false
	one := llm.ToolSpec{Name: "a", Description: "d", Schema: json.RawMessage(`{}`), Strict: &yes}
	for name, c := range map[string]struct {
		change func(*llm.ToolSpec)
		same   bool
	}{
		"nothing":       {func(*llm.ToolSpec) {}, true},
		"equal strict":  {func(s *llm.ToolSpec) { s.Strict = &also }, true},
		"name":          {func(s *llm.ToolSpec) { s.Name = "b" }, false},
		"description":   {func(s *llm.ToolSpec) { s.Description = "e" }, false},
		"schema":        {func(s *llm.ToolSpec) { s.Schema = json.RawMessage(`{"type":"object"}`) }, false},
		"other strict":  {func(s *llm.ToolSpec) { s.Strict = &no }, false},
		"strict is nil": {func(s *llm.ToolSpec) { s.Strict = nil }, false},
	} {
		two := one
		c.change(&two)
		for _, got := range []bool{SameTools([]llm.ToolSpec{one}, []llm.ToolSpec{two}),
			SameTools([]llm.ToolSpec{two}, []llm.ToolSpec{one})} {
			if got != c.same {
				t.Errorf("%s: same %v", name, got)
			}
		}
	}
	if SameTools([]llm.ToolSpec{one}, nil) {
		t.Error("a list is the same as an empty one")
	}
}

func TestClientHeaders(t *testing.T) {
	t.Parallel()
	own := http.Header{"X-Version": {"1"}, "X-Key": {"own"}}
	for name, o := range map[string]Options{
		"chela":  {Header: http.Header{"x-key": {"mine"}}},
		"custom": {Header: http.Header{"X-Key": {"mine"}, "user-agent": {"custom"}, "Accept": {"text/html"}}},
	} {
		got := NewClient(o, &url.URL{Scheme: "https", Host: "host"}, nil, own, nil, nil).template.Header
		want := http.Header{
			"X-Version":    {"1"},
			"X-Key":        {"mine"},
			"User-Agent":   {name},
			"Content-Type": {"application/json"},
			"Accept":       {"text/event-stream"},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	if len(own) != 2 || own.Get("X-Key") != "own" {
		t.Errorf("the given headers were changed: %v", own)
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
