package openai_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/plugin/llm/openai"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func open(url string, hc *http.Client) llm.Provider {
	return openai.New(openai.Options{Name: "golden", BaseURL: url, HTTP: hc})
}

// openHome returns a provider configured for OpenAI's own host.
func openHome(url string, hc *http.Client) llm.Provider {
	return openai.New(openai.Options{Name: "golden", HTTP: llmtest.RerouteClient(url, hc), Model: thinks})
}

func thinks(id string) llm.Model {
	return llm.Model{ID: id, Images: true, Fast: 2, Levels: []llm.Level{llm.Minimal, llm.Low, llm.Medium, llm.High}}
}

func TestSuite(t *testing.T) { llmtest.Suite(t, llmtest.OpenAI, open) }

func TestGolden(t *testing.T) {
	t.Run("PROV-02 requests are valid and unchanged", func(t *testing.T) {
		llmtest.Golden(t, llmtest.OpenAI, open, "testdata/compatible.txtar", *update)
		llmtest.Golden(t, llmtest.OpenAI, openHome, "testdata/openai.txtar", *update)
	})
}

// sent returns the first request that a provider of o sends for r.
func sent(t *testing.T, o openai.Options, r *llm.Request) llmtest.ReceivedRequest {
	t.Helper()
	srv := llmtest.NewServer(t, llmtest.OpenAI, llmtest.Say("ok"))
	url, hc := srv.Pipe()
	o.HTTP = llmtest.RerouteClient(url, hc)
	if c, err := llmtest.Collect(t.Context(), openai.New(o), r); err != nil || c.Err != nil {
		t.Fatalf("ask: %v, %v", err, c.Err)
	}
	return srv.Requests()[0]
}

// full is a request with every field that some host handles differently.
func full() *llm.Request {
	call := llmtest.ToolCall("call_1", "look", `{}`)
	return &llm.Request{
		Model: "m", System: []llm.Block{{Text: "You are Chela."}}, MaxTokens: 100, Thinking: llm.High,
		Temperature: 0.5, HasTemperature: true, Session: "s1", Fast: true, Tools: []llm.ToolSpec{llmtest.Tool("look")},
		Messages: []*llm.Message{
			llm.User("Hi"),
			{Role: llm.RoleAssistant, Provider: "p", Parts: []llm.Part{
				{Kind: llm.PartThinking, Text: "Thought."}, {Kind: llm.PartCall, Call: &call},
			}},
			llmtest.Result("call_1", "x"),
		},
	}
}

func TestHosts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, base, path string
		has, hasNot      []string
	}{
		{
			"home", "", "/v1/chat/completions",
			[]string{`"max_completion_tokens":100`, `"role":"developer"`, `"reasoning_effort":"high"`, `"prompt_cache_key":"s1"`,
				`"service_tier":"priority"`, `"tool_call_id":"call_1"`},
			[]string{`"max_tokens"`, "Thought.", `"temperature"`, `"store"`},
		},
		{
			"PROV-10 other servers get no OpenAI-only fields", "http://box:8080", "/v1/chat/completions",
			[]string{`"max_tokens":100`, `"role":"system"`, `"temperature":0.5`, `"stream_options":{"include_usage":true}`},
			[]string{"reasoning", "prompt_cache_key", "max_completion_tokens", "developer", "store", "service_tier", "Thought."},
		},
		{"with /v1", "http://box:8080/v1/", "/v1/chat/completions", nil, nil},
		{"with a path", "https://box/api/v3", "/api/v3/chat/completions", nil, nil},
		{"with the whole path", "https://box/x/chat/completions", "/x/chat/completions", nil, nil},
		{
			"a name similar to OpenAI's", "https://api.openai.com.example.org", "/v1/chat/completions",
			[]string{`"role":"system"`}, []string{"reasoning_effort", "service_tier"},
		},
		{
			"deepseek requires reasoning sent back", "https://api.deepseek.com", "/v1/chat/completions",
			[]string{`"reasoning_content":"Thought."`, `"thinking":{"type":"enabled"},"reasoning_effort":"high"`},
			[]string{"max_completion_tokens", "service_tier"},
		},
		{
			"openrouter requires reasoning as an object", "https://openrouter.ai/api/v1", "/api/v1/chat/completions",
			[]string{`"reasoning":{"effort":"high"}`, `"max_tokens":100`},
			[]string{"reasoning_effort", "Thought.", "service_tier"},
		},
		{
			"mistral requires ids of nine characters", "https://api.mistral.ai", "/v1/chat/completions",
			[]string{`"id":"74196fe72"`, `"tool_call_id":"74196fe72"`}, []string{"call_1", "stream_options"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := sent(t, openai.Options{Name: "p", BaseURL: tt.base, Model: thinks}, full())
			if got.Path != tt.path {
				t.Errorf("path = %s, want %s", got.Path, tt.path)
			}
			for _, s := range tt.has {
				if !bytes.Contains(got.Body, []byte(s)) {
					t.Errorf("no %s in %s", s, got.Body)
				}
			}
			for _, s := range tt.hasNot {
				if bytes.Contains(got.Body, []byte(s)) {
					t.Errorf("%s in %s", s, got.Body)
				}
			}
		})
	}
}

func TestThinkingLevels(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		model llm.Model
		level llm.Level
		want  string
	}{
		{"THINK-01 high", thinks("m"), llm.High, `"high"`},
		{"off", thinks("m"), llm.Off, ""},
		{"more than there is", thinks("m"), llm.Max, `"high"`},
		{"the lower of two", llm.Model{ID: "m", Levels: []llm.Level{llm.Low, llm.High}}, llm.Medium, `"low"`},
		{"more than high", llm.Model{ID: "m", Levels: []llm.Level{llm.Low, llm.XHigh}}, llm.XHigh, `"xhigh"`},
		{"does not think", llm.Model{ID: "m"}, llm.High, ""},
		{"unknown", llm.Model{}, llm.Minimal, `"minimal"`},
	} {
		r := llmtest.Ask("Hi")
		r.Thinking = tt.level
		var got map[string]json.RawMessage
		body := sent(t, openai.Options{Model: func(string) llm.Model { return tt.model }}, r).Body
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatal(err)
		}
		if effort := string(got["reasoning_effort"]); effort != tt.want {
			t.Errorf("%s: reasoning_effort = %s, want %s", tt.name, effort, tt.want)
		}
	}
}

func TestRouterMarkers(t *testing.T) {
	t.Parallel()
	r := full()
	r.System = []llm.Block{{Text: "Stays."}, {Text: "This too.", Cache: true}, {Text: "Changes."}}
	o := openai.Options{BaseURL: "https://openrouter.ai/api/v1"}
	for _, tt := range []struct{ model, cache, system, user string }{
		{
			"anthropic/claude-x", "", `[{"text":"Stays.\n\nThis too.","type":"text","cache_control":{"type":"ephemeral"}},{"text":"Changes.","type":"text"}]`,
			`[{"text":"Hi","type":"text","cache_control":{"type":"ephemeral"}}]`,
		},
		{"anthropic/claude-x", "none", `"Stays.\n\nThis too.\n\nChanges."`, `"Hi"`},
		{"openai/gpt-x", "", `"Stays.\n\nThis too.\n\nChanges."`, `"Hi"`},
	} {
		r.Model, r.Cache = tt.model, tt.cache
		var got struct {
			Messages []struct{ Content json.RawMessage }
		}
		if err := json.Unmarshal(sent(t, o, r).Body, &got); err != nil {
			t.Fatal(err)
		}
		if s, u := string(got.Messages[0].Content), string(got.Messages[1].Content); s != tt.system || u != tt.user {
			t.Errorf("%s, cache %q: system %s, user %s; want %s, %s", tt.model, tt.cache, s, u, tt.system, tt.user)
		}
	}
}

func TestKey(t *testing.T) {
	t.Parallel()
	if got := sent(t, openai.Options{}, llmtest.Ask("Hi")).Header["Authorization"]; got != nil {
		t.Errorf("without a key: Authorization = %q", got)
	}
	o := openai.Options{Key: secret.New("sk-1"), Header: http.Header{"api-key": {"x"}}}
	got := sent(t, o, llmtest.Ask("Hi")).Header
	if got.Get("Authorization") != "Bearer sk-1" || got.Get("Api-Key") != "x" {
		t.Errorf("headers = %v", got)
	}
}

// events returns a body with the events.
func events(data ...string) func([]byte) []byte {
	return func([]byte) []byte {
		var b bytes.Buffer
		for _, d := range data {
			fmt.Fprintf(&b, "data: %s\n\n", d)
		}
		return b.Bytes()
	}
}

func choice(delta, finish string) string {
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`, delta, finish)
}

// TestServers tests deviations of other servers.
func TestServers(t *testing.T) {
	t.Parallel()
	stop, tools := choice(`{}`, `"stop"`), choice(`{}`, `"tool_calls"`)
	one := []llm.ToolCall{llmtest.ToolCall("a", "look", `{"at":1}`)}
	two := append(one, llmtest.ToolCall("b", "nap", `{}`)) //nolint:gocritic // one is full
	for _, tt := range []struct {
		name  string
		body  func([]byte) []byte
		text  string
		think string
		calls []llm.ToolCall
		stop  llm.StopReason
	}{
		{"no [DONE]", events(choice(`{"content":"x"}`, `null`), stop), "x", "", nil, llm.StopEnd},
		{"events without data", events("", choice(`{"content":"x"}`, `null`), "", " ", stop, ""), "x", "", nil, llm.StopEnd},
		{"only [DONE]", events(choice(`{"content":"x"}`, `null`), "[DONE]"), "x", "", nil, llm.StopEnd},
		{"content null", events(choice(`{"content":null,"tool_calls":null}`, `null`), choice(`{"content":"x"}`, `""`), stop),
			"x", "", nil, llm.StopEnd},
		{"content as parts", events(choice(`{"content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]}`, `"stop"`)),
			"xy", "", nil, llm.StopEnd},
		{"reasoning", events(choice(`{"reasoning":"hm"}`, `null`), choice(`{"content":"x"}`, `"eos"`)), "x",
			"hm", nil, llm.StopEnd},
		{"both reasonings", events(choice(`{"reasoning":"hm","reasoning_content":"hm"}`, `"length"`)), "",
			"hm", nil, llm.StopLength},
		{"a refusal", events(choice(`{"refusal":"No."}`, `"content_filter"`)), "No.", "", nil, llm.StopRefusal},
		{"a second choice",
			events(`{"choices":[{"index":1,"delta":{"content":"y"}},{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}`), "x", "", nil, llm.StopEnd},
		{"whole calls, no index", events(choice(`{"tool_calls":[{"id":"a","function":{"name":"look","arguments":"{\"at\":1}"}},{"id":"b","function":{"name":"nap","arguments":"{}"}}]}`, `null`), tools), "", "", two, llm.StopTools},
		{"pieces, no index", events(
			choice(`{"tool_calls":[{"id":"a","function":{"name":"look","arguments":"{\"at\""}}]}`, `null`),
			choice(`{"tool_calls":[{"function":{"arguments":":1}"}}]}`, `null`), tools), "", "", one, llm.StopTools},
		{"every index 0", events(
			choice(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"look","arguments":"{\"at\":1}"}}]}`, `null`),
			choice(`{"tool_calls":[{"index":0,"id":"b","function":{"name":"nap","arguments":"{}"}}]}`, `null`), stop), "",
			"", two, llm.StopTools},
		{"id and name again and again", events(
			choice(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"look","arguments":"{\"at\""}}]}`, `null`),
			choice(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"look","arguments":":1}"}}]}`, `null`), tools), "",
			"", one, llm.StopTools},
		{"name behind arguments", events(
			choice(`{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{\"at\""}}]}`, `null`),
			choice(`{"tool_calls":[{"index":0,"function":{"name":"look","arguments":":1}"}}]}`, `null`), tools), "",
			"", one, llm.StopTools},
		{"interleaved", events(
			choice(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"look"}},{"index":1,"id":"b","function":{"name":"nap"}}]}`, `null`),
			choice(`{"tool_calls":[{"index":1,"function":{"arguments":"{}"}},{"index":0,"function":{"arguments":"{\"at\":1}"}}]}`, `null`), tools), "", "", two, llm.StopTools},
		{"arguments as an object",
			events(choice(`{"tool_calls":[{"index":7,"id":"a","function":{"name":"look","arguments":{"at":1}}}]}`, `"stop"`)),
			"", "", one, llm.StopTools},
		{"arguments null", events(choice(`{"tool_calls":[{"id":"b","function":{"name":"nap","arguments":null}}]}`, `"stop"`)),
			"", "", two[1:], llm.StopTools},
		{"tool_calls without a call", events(choice(`{"content":"x"}`, `null`), tools), "x", "", nil, llm.StopEnd},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := answer(t, llmtest.Fault{Body: tt.body}).Message
			if m == nil {
				t.Fatal("no answer")
			}
			think := ""
			if m.Parts[0].Kind == llm.PartThinking {
				think = m.Parts[0].Text
			}
			if m.PlainText() != tt.text || think != tt.think || m.Stop != tt.stop {
				t.Errorf("text %q, thinking %q, stop %q; want %q, %q, %q", m.PlainText(), think, m.Stop, tt.text, tt.think, tt.stop)
			}
			if d := cmp.Diff(tt.calls, m.Calls()); d != "" {
				t.Errorf("calls (-want +got):\n%s", d)
			}
		})
	}
}

// answer returns the answer decoded from a response with the fault.
func answer(t *testing.T, f llmtest.Fault) *llmtest.Collected {
	t.Helper()
	step := llmtest.Say("Some text")
	step.Fault = f
	srv := llmtest.NewServer(t, llmtest.OpenAI, step)
	c, err := llmtest.Collect(t.Context(), open(srv.Pipe()), llmtest.Ask("Hi"))
	if err != nil {
		t.Errorf("contract violation: %v", err)
	}
	return c
}

func TestIDs(t *testing.T) {
	t.Parallel()
	c := answer(t, llmtest.Fault{Body: events(choice(`{"tool_calls":[`+
		`{"function":{"name":"look"}},{"function":{"name":"look"}},{"id":"a","function":{"name":"look"}},`+
		`{"id":"b","function":{"name":"nap"}},{"index":5,"id":"a","function":{"name":"nap"}}]}`, `"stop"`))})
	seen := map[string]bool{}
	for _, k := range c.Message.Calls() {
		if k.ID == "" || seen[k.ID] {
			t.Errorf("id %q is duplicate or empty", k.ID)
		}
		seen[k.ID] = true
	}
	if len(seen) != 5 || !seen["a"] || !seen["b"] {
		t.Errorf("ids = %v, want five, with a and b", seen)
	}
}

func TestWhole(t *testing.T) {
	t.Parallel()
	step := llmtest.Think("hm", "", llmtest.Call("a", "look", `{"at":1}`))
	step.Fault.Whole = true
	step.Usage = &llm.Usage{Input: 7, Output: 8}
	synctest.Test(t, func(t *testing.T) {
		srv := llmtest.NewServer(t, llmtest.OpenAI, step)
		c, err := llmtest.Collect(t.Context(), open(srv.Pipe()), llmtest.Ask("Hi"))
		if err != nil || c.Err != nil {
			t.Fatalf("answer: %v, %v", err, c.Err)
		}
		if d := cmp.Diff(step.Parts, c.Message.Parts); d != "" || c.Usage != *step.Usage {
			t.Errorf("usage %+v, parts (-want +got):\n%s", c.Usage, d)
		}
	})
}

func TestErrorsInTheStream(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		data  string
		class llm.Class
	}{
		{`{"error":{"message":"slow down","type":"rate_limit_exceeded","code":429}}`, llm.ClassRate},
		{`{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}`,
			llm.ClassContext},
		{`{"error":{"message":"busy","code":503}}`, llm.ClassOverload},
		{`{"error":"just words"}`, llm.ClassNetwork},
		{choice(`{"content":"x"}`, `"error"`), llm.ClassNetwork},
		{`{"error":{"message":"no money","code":402}}`, llm.ClassBilling},
	} {
		if c := answer(t, llmtest.Fault{Body: events(tt.data, "[DONE]")}); llm.ClassOf(c.Err) != tt.class {
			t.Errorf("%s: %v, want class %s", tt.data, c.Err, tt.class)
		}
	}
}

func TestCached(t *testing.T) {
	t.Parallel()
	want := llm.Usage{Input: 10, Output: 5, CacheRead: 90}
	for _, u := range []string{
		`{"prompt_tokens":100,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":90}}`,
		`{"prompt_tokens":100,"completion_tokens":5,"prompt_cache_hit_tokens":90,"prompt_cache_miss_tokens":10}`,
		`{"prompt_tokens":100,"completion_tokens":5,"cached_tokens":90,"prompt_tokens_details":null}`,
	} {
		c := answer(t, llmtest.Fault{Body: events(choice(`{"content":"x"}`, `"stop"`), `{"choices":[],"usage":`+u+
			`}`, "[DONE]")})
		if c.Usage != want {
			t.Errorf("%s: usage = %+v, want %+v", u, c.Usage, want)
		}
	}
}
