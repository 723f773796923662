package anthropic_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/llm/wiretest"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/plugin/llm/anthropic"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func open(url string, hc *http.Client) llm.Provider {
	return anthropic.New(anthropic.Options{Name: "golden", BaseURL: url, HTTP: hc})
}

func TestSuite(t *testing.T) { llmtest.Suite(t, llmtest.Anthropic, open) }

func TestGolden(t *testing.T) {
	t.Run("PROV-01 requests are valid and unchanged", func(t *testing.T) {
		llmtest.Golden(t, llmtest.Anthropic, open, "testdata/requests.txtar", *update)
	})
}

// sent returns the first request that a provider of o sends for r.
func sent(t *testing.T, o anthropic.Options, r *llm.Request) llmtest.ReceivedRequest {
	t.Helper()
	srv := llmtest.NewServer(t, llmtest.Anthropic, llmtest.Say("ok"))
	url, hc := srv.Pipe()
	o.HTTP = hc
	if o.BaseURL == "" {
		o.BaseURL = url
	}
	if c, err := llmtest.Collect(t.Context(), anthropic.New(o), r); err != nil || c.Err != nil {
		t.Fatalf("ask: %v, %v", err, c.Err)
	}
	return srv.Requests()[0]
}

// field returns a field of a request's body as JSON.
func field(t *testing.T, body []byte, name string) string {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		t.Fatal(err)
	}
	return string(fields[name])
}

func TestThinking(t *testing.T) {
	t.Parallel()
	budget := llm.Model{ID: "m", MaxOutput: 64_000, Levels: []llm.Level{llm.Low, llm.High}}
	adaptive := llm.Model{ID: "m", MaxOutput: 128_000, Levels: []llm.Level{llm.Low, llm.High, llm.Adaptive, llm.Max}}
	for _, tt := range []struct {
		name      string
		model     llm.Model
		level     llm.Level
		max       int
		thinking  string
		output    string
		maxTokens string
	}{
		{"off", budget, llm.Off, 0, "", "", "32000"},
		{"not said", budget, "", 500, "", "", "500"},
		{"minimal", budget, llm.Minimal, 0, `{"budget_tokens":1024,"type":"enabled"}`, "", "33024"},
		{"low", budget, llm.Low, 0, `{"budget_tokens":4096,"type":"enabled"}`, "", "36096"},
		{"THINK-01 high", budget, llm.High, 1000, `{"budget_tokens":15976,"type":"enabled"}`, "", "17000"},
		{"max is bounded", budget, llm.Max, 60_000, `{"budget_tokens":32000,"type":"enabled"}`, "", "64000"},
		{"adaptive as a budget", budget, llm.Adaptive, 0, `{"budget_tokens":10000,"type":"enabled"}`, "", "42000"},
		{"more than it puts out", budget, llm.Off, 100_000, "", "", "64000"},
		{"adaptive", adaptive, llm.Adaptive, 0, `{"type":"adaptive"}`, "", "32000"},
		{"adaptive low", adaptive, llm.Minimal, 0, `{"type":"adaptive"}`, `{"effort":"low"}`, "32000"},
		{"adaptive medium", adaptive, llm.Medium, 0, `{"type":"adaptive"}`, `{"effort":"medium"}`, "32000"},
		{"adaptive max", adaptive, llm.Max, 0, `{"type":"adaptive"}`, `{"effort":"max"}`, "32000"},
		{"adaptive without xhigh", adaptive, llm.XHigh, 0, `{"type":"adaptive"}`, `{"effort":"high"}`, "32000"},
		{"does not think", llm.Model{ID: "m"}, llm.High, 0, "", "", "8192"},
		{"unknown", llm.Model{}, llm.Medium, 0, `{"budget_tokens":10000,"type":"enabled"}`, "", "18192"},
		{"no room", llm.Model{ID: "m", MaxOutput: 1500, Levels: budget.Levels}, llm.High, 0, "", "", "1500"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := llmtest.Ask("Hi")
			r.Thinking, r.MaxTokens, r.Temperature, r.HasTemperature = tt.level, tt.max, 0.7, true
			body := sent(t, anthropic.Options{Model: func(string) llm.Model { return tt.model }}, r).Body
			got := []string{field(t, body, "thinking"), field(t, body, "output_config"), field(t, body, "max_tokens"),
				field(t, body, "temperature")}
			want := []string{tt.thinking, tt.output, tt.maxTokens, "0.7"}
			if tt.thinking != "" {
				want[3] = ""
			}
			if strings.Join(got, "|") != strings.Join(want, "|") {
				t.Errorf("thinking, output_config, max_tokens, temperature = %q, want %q", got, want)
			}
		})
	}
}

// TestThinkingGoesOn checks that only the last assistant turn decides whether a
// model may think with a budget.
func TestThinkingGoesOn(t *testing.T) {
	t.Parallel()
	turn := func(provider, id string, thought bool) []*llm.Message {
		call := llmtest.ToolCall(id, "look", `{}`)
		m := &llm.Message{Role: llm.RoleAssistant, Provider: provider}
		if thought {
			m.Parts = append(m.Parts, llm.Part{Kind: llm.PartThinking, Text: "Hm.", Signature: "c2ln"})
		}
		m.Parts = append(m.Parts, llm.Part{Kind: llm.PartCall, Call: &call})
		return []*llm.Message{m, llmtest.Result(id, "x")}
	}
	said := []*llm.Message{{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text("Done.")}}, llm.User("Next")}
	user := []*llm.Message{llm.User("Hi")}
	for _, tt := range []struct {
		name string
		msgs []*llm.Message
		want bool
	}{
		{"its own", slices.Concat(user, turn("anthropic", "a", true)), true},
		{"its own, and the user", slices.Concat(user, turn("anthropic", "a", true), user), true},
		{"its own without a thought", slices.Concat(user, turn("anthropic", "a", false)), false},
		{"another's", slices.Concat(user, turn("openai", "a", true)), false},
		{"another's, and the user", slices.Concat(user, turn("openai", "a", true), user), false},
		{"another's before", slices.Concat(user, turn("openai", "a", true), said), true},
		{"its own after another's", slices.Concat(user, turn("openai", "a", true), turn("anthropic", "b", true)), true},
		{"another's after its own", slices.Concat(user, turn("anthropic", "a", true), turn("openai", "b", true)), false},
	} {
		r := llmtest.Ask("")
		r.Messages, r.Thinking = tt.msgs, llm.High
		if got := field(t, sent(t, anthropic.Options{}, r).Body, "thinking") != ""; got != tt.want {
			t.Errorf("%s: thinks %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestUnfinishedAnswer sends back answers that ended while the model was thinking.
func TestUnfinishedAnswer(t *testing.T) {
	t.Parallel()
	thought := llm.Part{Kind: llm.PartThinking, Text: "Hm.", Signature: "c2ln"}
	for _, parts := range [][]llm.Part{{llm.Text("Well,"), thought},
		{llm.Text("Well,"), thought, llm.Text(" \n"), thought}} {
		r := llmtest.Ask("Hi")
		r.Messages = append(r.Messages, &llm.Message{Role: llm.RoleAssistant, Provider: "anthropic", Parts: parts},
			llm.User("Go on."))
		got := sent(t, anthropic.Options{}, r)
		if msgs := field(t, got.Body, "messages"); got.Err != nil || !strings.Contains(msgs, "Well,") ||
			strings.Contains(msgs, "Hm.") {
			t.Errorf("sent %s (%v)", msgs, got.Err)
		}
	}
}

// TestFast checks where the faster tier is asked for.
func TestFast(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, base, model string
		factor            float64
		want              string
	}{
		{"at home", "", "claude-opus-5-5", 2, `"fast"`},
		{"a model without it", "", "claude-sonnet-5", 0, ""},
		{"PROV-10 a proxy", "https://proxy.example.org", "claude-opus-5-5", 2, ""},
		{"PROV-10 a name similar to Anthropic's", "https://api.anthropic.com.example.org", "claude-opus-5-5", 2, ""},
	} {
		srv := llmtest.NewServer(t, llmtest.Anthropic, llmtest.Say("ok"))
		url, hc := srv.Pipe()
		p := anthropic.New(anthropic.Options{
			BaseURL: tt.base, HTTP: llmtest.RerouteClient(url, hc),
			Model: func(id string) llm.Model { return llm.Model{ID: id, Fast: tt.factor} },
		})
		r := llmtest.Ask("Hi")
		r.Model, r.Fast = tt.model, true
		c, err := llmtest.Collect(t.Context(), p, r)
		if err != nil || c.Err != nil {
			t.Fatalf("%s: %v, %v", tt.name, err, c.Err)
		}
		if got := field(t, srv.Requests()[0].Body, "speed"); got != tt.want || c.Usage.Fast != (tt.want != "") {
			t.Errorf("%s: speed = %s, usage %+v; want %s", tt.name, got, c.Usage, tt.want)
		}
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, base, key string
		path            string
		header          map[string]string
	}{
		{"key", "http://h", "sk-ant-api-1", "/v1/messages",
			map[string]string{"X-Api-Key": "sk-ant-api-1", "Authorization": "", "Anthropic-Beta": ""}},
		{"with version", "http://h/v1/", "", "/v1/messages",
			map[string]string{"X-Api-Key": "", "Anthropic-Version": "2023-06-01"}},
		{"below a path", "http://h/anthropic", "k", "/anthropic/v1/messages", map[string]string{"X-Api-Key": "k"}},
		{"token elsewhere", "http://h", "sk-ant-oat-1", "/v1/messages",
			map[string]string{"Authorization": "Bearer sk-ant-oat-1", "X-Api-Key": "", "Anthropic-Beta": ""}},
		{"token at home", "https://api.anthropic.com", "sk-ant-oat-1", "/v1/messages",
			map[string]string{"Authorization": "Bearer sk-ant-oat-1", "Anthropic-Beta": "oauth-2025-04-20"}},
		{"own header", "http://h", "k", "/v1/messages", map[string]string{"X-Team": "crabs"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := sent(t, anthropic.Options{
				BaseURL: tt.base, Key: secret.New(tt.key), Header: http.Header{"x-team": {"crabs"}},
			}, llmtest.Ask("Hi"))
			if got.Path != tt.path {
				t.Errorf("path = %s, want %s", got.Path, tt.path)
			}
			for k, want := range tt.header {
				if v := got.Header.Get(k); v != want {
					t.Errorf("%s = %q, want %q", k, v, want)
				}
			}
		})
	}
}

func TestCacheMarkers(t *testing.T) {
	t.Parallel()
	r := llmtest.Ask("Hi")
	r.Tools = []llm.ToolSpec{llmtest.Tool("a"), llmtest.Tool("b")}
	for range 5 {
		r.System = append(r.System, llm.Block{Text: "Some text.", Cache: true}, llm.Block{Text: " \n", Cache: true})
	}
	first := slices.Clone(r.Messages)
	for _, tt := range []struct {
		retention, marker string
		first, later      int
	}{
		{"", `"cache_control":{"type":"ephemeral"}`, 3, 4},
		{"short", `"cache_control":{"type":"ephemeral"}`, 3, 4},
		{"long", `"cache_control":{"ttl":"1h","type":"ephemeral"}`, 3, 4},
		{"none", `cache_control`, 0, 0},
	} {
		name := "retention " + tt.retention
		if tt.retention == "none" {
			name = "CACHE-02 none sends no marker"
		}
		t.Run(name, func(t *testing.T) {
			r.Cache, r.Messages, r.Note = tt.retention, first, ""
			body := sent(t, anthropic.Options{}, r).Body
			if n := bytes.Count(body, []byte(tt.marker)); n != tt.first {
				t.Errorf("%d markers, want %d: %s", n, tt.first, body)
			}
			r.Messages = append(slices.Clip(first), &llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text("Hello.")}},
				llm.User("And?"))
			r.Note = "A note."
			body = sent(t, anthropic.Options{}, r).Body
			if n := bytes.Count(body, []byte(tt.marker)); n != tt.later {
				t.Errorf("%d markers in a longer conversation, want %d: %s", n, tt.later, body)
			}
			if end := `{"text":"A note.","type":"text"}],"role":"user"}]}`; !bytes.HasSuffix(body, []byte(end)) {
				t.Errorf("the note is not the last block, without a marker: %s", body)
			}
		})
	}
}

// A conversation with rounds of many calls, the note of which changes with every
// request, reads from the cache what was sent before.
func TestPromptCache(t *testing.T) {
	t.Parallel()
	var cache wiretest.PromptCache
	srv := llmtest.ServerFunc(t, llmtest.Anthropic,
		func(int, llmtest.ReceivedRequest) llmtest.Step { return llmtest.Say("ok") })
	srv.Cache = &cache
	u, hc := srv.Pipe()
	p := anthropic.New(anthropic.Options{BaseURL: u, HTTP: hc})
	r := llmtest.Ask("Hi")
	r.Tools = []llm.ToolSpec{llmtest.Tool("look")}
	r.System = []llm.Block{{Text: strings.Repeat("Some rule. ", 600), Cache: true}, {Text: "It is Monday."}}
	var before int64
	for round := range 12 {
		r.Note = fmt.Sprint("Round ", round)
		c, err := llmtest.Collect(t.Context(), p, r)
		if err != nil || c.Err != nil {
			t.Fatal(err, c.Err)
		}
		if got := c.Usage.CacheRead; got < before {
			t.Errorf("round %d: %d tokens were read from the cache, and %d were in the request before", round, got, before)
		}
		before = c.Usage.CacheRead + c.Usage.CacheWrite
		var calls []llm.ToolCall
		var results []*llm.Message
		for i := range 15 {
			id := fmt.Sprint("c", round, "x", i)
			calls = append(calls, llmtest.ToolCall(id, "look", fmt.Sprintf(`{"at":%d}`, i)))
			results = append(results, llmtest.Result(id, strings.Repeat("line ", 50)))
		}
		r.Messages = append(append(r.Messages, &llm.Message{Role: llm.RoleAssistant, Parts: llmtest.Calls(calls...).Parts}),
			results...)
	}
}

func TestNoImages(t *testing.T) {
	t.Parallel()
	r := llmtest.Ask("")
	r.Messages = []*llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{llm.Image("image/png", []byte("data"))}}}
	o := anthropic.Options{Model: func(string) llm.Model { return llm.Model{ID: "m"} }}
	if body := sent(t, o, r).Body; !bytes.Contains(body, []byte("does not support images")) {
		t.Errorf("body = %s, want a note", body)
	}
	if body := sent(t, anthropic.Options{}, r).Body; !bytes.Contains(body, []byte("base64")) {
		t.Errorf("a stored note was sent to a model that supports images: %s", body)
	}
}

func TestNothingToSend(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		base string
		r    *llm.Request
	}{
		"no message":    {"http://h", llmtest.Ask(" ")},
		"bad params":    {"http://h", &llm.Request{Messages: llmtest.Ask("x").Messages, Params: json.RawMessage(`[1]`)}},
		"bad base URL":  {"http//user:s3cr3tpass@h", llmtest.Ask("x")},
		"base URL path": {"/v1", llmtest.Ask("x")},
	} {
		c, err := llmtest.Collect(t.Context(), anthropic.New(anthropic.Options{BaseURL: tt.base, HTTP: http.DefaultClient}),
			tt.r)
		if err != nil || llm.ClassOf(c.Err) != llm.ClassFormat || strings.Contains(c.Err.Error(), "s3cr3tpass") {
			t.Errorf("%s: %v (%v), want class %s", name, c.Err, err, llm.ClassFormat)
		}
	}
}

func TestNoSecretInErrors(t *testing.T) {
	t.Parallel()
	const key, pass, query = "sk-ant-api03-crab", "shellpass", "querykey"
	step := llmtest.Status(401, "invalid key "+key+" of "+pass)
	srv := llmtest.NewServer(t, llmtest.Anthropic, step, llmtest.Step{Fault: llmtest.Fault{Cut: true, Abort: true}})
	url, hc := srv.Pipe()
	base := strings.Replace(url, "http://", "http://crab:"+pass+"@", 1) + "?token=" + query
	p := anthropic.New(anthropic.Options{BaseURL: base, Key: secret.New(key), HTTP: hc})
	for i := range 3 {
		if i == 2 {
			srv.Close() // calls fail from here on
		}
		c, _ := llmtest.Collect(t.Context(), p, llmtest.Ask("Hi"))
		e, ok := errors.AsType[*llm.Error](c.Err)
		if !ok {
			t.Fatalf("error %d = %v", i, c.Err)
		}
		text := fmt.Sprintf("%v %+v %v %+v", e, *e, e.Err, p)
		for _, s := range []string{key, pass, query} {
			if strings.Contains(text, s) {
				t.Errorf("error %d contains %q: %s", i, s, text)
			}
		}
	}
	if got := srv.Requests()[0].Header.Get("X-Api-Key"); got != key {
		t.Errorf("the key that was sent = %q, want %q", got, key)
	}
}

func TestNoTemperature(t *testing.T) {
	t.Parallel()
	r := llmtest.Ask("Hi")
	r.Temperature, r.HasTemperature = 0.5, true
	for _, warm := range []bool{true, false} {
		o := anthropic.Options{Model: func(string) llm.Model {
			return llm.Model{ID: "m", Compat: llm.Compat{SupportsTemperature: &warm}}
		}}
		if got := field(t, sent(t, o, r).Body, "temperature") != ""; got != warm {
			t.Errorf("temperature supported %v: sent %v", warm, got)
		}
	}
}
