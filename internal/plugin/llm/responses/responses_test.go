package responses_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/plugin/llm/responses"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const home = "https://api.openai.com"

func open(url string, hc *http.Client) llm.Provider {
	return responses.New(responses.Options{Name: "golden", BaseURL: url, HTTP: hc})
}

func TestSuite(t *testing.T) { llmtest.Suite(t, llmtest.Responses, open) }

func TestGolden(t *testing.T) {
	t.Run("PROV-03 requests are valid and unchanged", func(t *testing.T) {
		llmtest.Golden(t, llmtest.Responses, open, "testdata/requests.txtar", *update)
	})
}

// sent returns the first request that a provider of o sends for r, and the answer.
func sent(t *testing.T, o responses.Options, r *llm.Request,
	steps ...llmtest.Step) (*llmtest.Server, *llmtest.Collected) {
	t.Helper()
	if steps == nil {
		steps = []llmtest.Step{llmtest.Say("ok")}
	}
	srv := llmtest.NewServer(t, llmtest.Responses, steps...)
	url, hc := srv.Pipe()
	o.HTTP = llmtest.RerouteClient(url, hc)
	c, err := llmtest.Collect(t.Context(), responses.New(o), r)
	if err != nil || c.Err != nil {
		t.Fatalf("ask: %v, %v", err, c.Err)
	}
	return srv, c
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
	three := llm.Model{ID: "m", Levels: []llm.Level{llm.Low, llm.Medium, llm.High}}
	for _, tt := range []struct {
		name        string
		model       llm.Model
		level       llm.Level
		reasoning   string
		temperature string
	}{
		{"off", three, llm.Off, "", ""},
		{"THINK-01 high", three, llm.High, `{"effort":"high","summary":"auto"}`, ""},
		{"more than it has", three, llm.Max, `{"effort":"high","summary":"auto"}`, ""},
		{"adaptive", llm.Model{ID: "m", Levels: llm.Levels[1:7]}, llm.Adaptive, `{"summary":"auto"}`, ""},
		{"does not think", llm.Model{ID: "m"}, llm.High, "", "0.5"},
		{"unknown", llm.Model{}, llm.Minimal, `{"effort":"minimal","summary":"auto"}`, "0.5"},
	} {
		r := llmtest.Ask("Hi")
		r.Thinking, r.Temperature, r.HasTemperature, r.MaxTokens = tt.level, 0.5, true, 3
		srv, _ := sent(t, responses.Options{BaseURL: "http://h", Model: func(string) llm.Model { return tt.model }}, r)
		body := srv.Requests()[0].Body
		if got := field(t, body, "reasoning"); got != tt.reasoning {
			t.Errorf("%s: reasoning = %s, want %s", tt.name, got, tt.reasoning)
		}
		if got := field(t, body, "temperature"); got != tt.temperature {
			t.Errorf("%s: temperature = %s, want %s", tt.name, got, tt.temperature)
		}
		if got := field(t, body, "max_output_tokens"); got != "16" { // the least that the service accepts
			t.Errorf("%s: max_output_tokens = %s", tt.name, got)
		}
	}
}

// TestThoughtsReturn checks that what a model thought is sent back to it, before what came
// of it, and to no other model.
func TestThoughtsReturn(t *testing.T) {
	t.Parallel()
	o := responses.Options{BaseURL: home, Model: func(id string) llm.Model {
		return llm.Model{ID: id, Levels: []llm.Level{llm.Low, llm.High}}
	}}
	r := llmtest.Ask("Hi")
	r.Model, r.Thinking = "one", llm.High
	srv, c := sent(t, o, r, llmtest.Think("Let me see.", "c2ln", llmtest.Call("a", "look", `{}`)))
	if got := field(t, srv.Requests()[0].Body, "include"); got != `["reasoning.encrypted_content"]` {
		t.Errorf("include = %s", got)
	}
	r.Messages = append(r.Messages, c.Message, llmtest.Result("a", "x"))
	for model, want := range map[string]string{
		"one": `{"encrypted_content":"c2ln","id":"item_0","summary":[{"text":"Let me see.","type":"summary_text"}],"type":"reasoning"},{"arguments":"{}","call_id":"a"`,
		"two": `[{"content":"Hi","role":"user"},{"arguments":"{}","call_id":"a"`,
	} {
		r.Model = model
		srv, _ := sent(t, o, r)
		if got := srv.Requests()[0].Body; !bytes.Contains(got, []byte(want)) {
			t.Errorf("to model %s: %s, want %s", model, got, want)
		}
	}
	cut := &llm.Message{Role: llm.RoleAssistant, Provider: "openai", Model: "one",
		Parts: []llm.Part{llm.Text("Well,"), c.Message.Parts[0]}}
	r.Model, r.Messages = "one", []*llm.Message{llm.User("Hi"), cut, llm.User("Go on.")}
	if srv, _ := sent(t, o, r); bytes.Contains(srv.Requests()[0].Body, []byte("c2ln")) {
		t.Error("a thought that nothing followed was sent back")
	}
}

// TestHome checks which fields only OpenAI's own host gets.
func TestHome(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, base string
		path       string
		own        bool
	}{
		{"its own", home, "/v1/responses", true},
		{"PROV-10 a proxy", "https://proxy.example.org/openai/v1/", "/openai/v1/responses", false},
		{"PROV-10 a name similar to its own", "https://api.openai.com.example.org", "/v1/responses", false},
		{"the whole address", "http://h/v1/responses", "/v1/responses", false},
	} {
		r := llmtest.Ask("Hi")
		r.Session, r.Fast = "session-1", true
		o := responses.Options{BaseURL: tt.base, Key: secret.New("k"),
			Model: func(id string) llm.Model { return llm.Model{ID: id, Fast: 2, Levels: []llm.Level{llm.Low}} }}
		srv, c := sent(t, o, r)
		got := srv.Requests()[0]
		if got.Path != tt.path || got.Header.Get("Authorization") != "Bearer k" {
			t.Errorf("%s: %s, Authorization %q", tt.name, got.Path, got.Header.Get("Authorization"))
		}
		for _, name := range []string{"store", "include", "prompt_cache_key", "service_tier"} {
			if is := field(t, got.Body, name) != ""; is != tt.own {
				t.Errorf("%s: %s is sent: %v", tt.name, name, is)
			}
		}
		if c.Usage.Fast != tt.own {
			t.Errorf("%s: usage %+v", tt.name, c.Usage)
		}
	}
}

// TestRepairs checks that a request which is refused because of a field is made without it,
// and that the next one is right at once.
func TestRepairs(t *testing.T) {
	t.Parallel()
	for message, name := range map[string]string{
		"Unsupported parameter: 'reasoning.effort' is not supported with this model.":                    "reasoning",
		"Encrypted content is not supported with this model.":                                            "include",
		"Unsupported parameter: 'temperature' is not supported with this model.":                         "temperature",
		"Unknown parameter: 'prompt_cache_key'.":                                                         "prompt_cache_key",
		"Your organization must be verified to generate reasoning summaries (param: reasoning.summary).": "reasoning",
	} {
		srv := llmtest.NewServer(t, llmtest.Responses, llmtest.Status(400, message), llmtest.Say("one"), llmtest.Say("two"))
		url, hc := srv.Pipe()
		p := responses.New(responses.Options{BaseURL: home, HTTP: llmtest.RerouteClient(url, hc)})
		r := llmtest.Ask("Hi")
		r.Thinking, r.Temperature, r.HasTemperature, r.Session = llm.Low, 0.5, true, "s"
		for range 2 {
			c, err := llmtest.Collect(t.Context(), p, r)
			if err != nil || c.Err != nil {
				t.Fatalf("%s: %v, %v", message, err, c.Err)
			}
		}
		first, second := field(t, srv.Requests()[0].Body, name), field(t, srv.Requests()[1].Body, name)
		if first == "" || second == first || strings.Contains(message, "summar") && second != `{"effort":"low"}` {
			t.Errorf("%s: %s = %s, then %s", message, name, first, second)
		}
		if n := len(srv.Requests()); n != 3 {
			t.Errorf("%s: %d requests", message, n)
		}
	}
}

// TestStreams decodes streams of servers that send less, or more, than OpenAI's.
func TestStreams(t *testing.T) {
	t.Parallel()
	const head = `data: {"type":"response.created","response":{"model":"m"}}` + "\n\n"
	const end = `data: {"type":"response.completed","response":{"usage":{"input_tokens":7,"output_tokens":2}}}` + "\n\n"
	for _, tt := range []struct{ name, events, text, calls string }{
		{"without deltas", `{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"Hello"}]}}`, "Hello", ""},
		{"a call without deltas", `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","call_id":"c","name":"look","arguments":"{\"a\":1}"}}`, "", `c look {"a":1}`},
		{"a delta without its item", `{"type":"response.output_text.delta","output_index":0,"delta":"Hello"}`, "Hello", ""},
		{"a delta that is no text", `{"type":"response.new.delta","output_index":0,"delta":{"x":1}}` + "\n\n" +
			`data: {"type":"response.output_text.delta","delta":"Hello"}`, "Hello", ""},
		{"an item of another type",
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"web_search_call"}}` + "\n\n" +
				`data: {"type":"response.output_text.delta","output_index":1,"delta":"Hello"}`, "Hello", ""},
	} {
		step := llmtest.Say("x")
		step.Fault.Body = func([]byte) []byte { return []byte(head + "data: " + tt.events + "\n\n" + end) }
		_, c := sent(t, responses.Options{BaseURL: "http://h"}, llmtest.Ask("Hi"), step)
		calls := ""
		for _, k := range c.Message.Calls() {
			calls += k.ID + " " + k.Name + " " + string(k.Args)
		}
		if c.Message.PlainText() != tt.text || calls != tt.calls || c.Usage.Input != 7 {
			t.Errorf("%s: text %q, calls %q, usage %+v", tt.name, c.Message.PlainText(), calls, c.Usage)
		}
	}
	refusal := llmtest.Say("x")
	refusal.Fault.Body = func([]byte) []byte {
		return []byte(head + `data: {"type":"response.refusal.delta","output_index":0,"delta":"No."}` + "\n\n" + end)
	}
	if _, c := sent(t, responses.Options{BaseURL: "http://h"}, llmtest.Ask("Hi"), refusal); c.Message.Stop !=
		llm.StopRefusal || c.Message.PlainText() != "No." {
		t.Errorf("a refusal: %q, %q", c.Message.Stop, c.Message.PlainText())
	}
}
