package ollama_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"testing"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/plugin/llm/ollama"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func open(url string, hc *http.Client) llm.Provider {
	return ollama.New(ollama.Options{Name: "golden", BaseURL: url, HTTP: hc})
}

func TestSuite(t *testing.T) { llmtest.Suite(t, llmtest.Ollama, open) }

func TestGolden(t *testing.T) {
	t.Run("PROV-05 requests are valid and unchanged", func(t *testing.T) {
		llmtest.Golden(t, llmtest.Ollama, open, "testdata/requests.txtar", *update)
	})
}

// ask sends r to a server of o and returns the request that was sent, and the answer.
func ask(t *testing.T, o ollama.Options, r *llm.Request,
	step llmtest.Step) (llmtest.ReceivedRequest, *llmtest.Collected) {
	t.Helper()
	srv := llmtest.NewServer(t, llmtest.Ollama, step)
	url, hc := srv.Pipe()
	o.HTTP = llmtest.RerouteClient(url, hc)
	c, err := llmtest.Collect(t.Context(), ollama.New(o), r)
	if err != nil {
		t.Fatal(err)
	}
	return srv.Requests()[0], c
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"": "/api/chat", "http://box:11434/v1/": "/api/chat", "http://box:11434/api": "/api/chat",
		"http://box/proxy/api/chat": "/proxy/api/chat",
	} {
		got, c := ask(t, ollama.Options{BaseURL: base, Key: secret.New("k")}, llmtest.Ask("Hi"), llmtest.Say("ok"))
		if c.Err != nil || got.Path != want || got.Header.Get("Authorization") != "Bearer k" {
			t.Errorf("%s: %s, %v", base, got.Path, c.Err)
		}
	}
}

// TestOptions checks that a request says how large the window has to be, and that the
// configuration has the last word.
func TestOptions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		model   llm.Model
		level   llm.Level
		params  string
		options string
		think   string
	}{
		{llm.Model{}, llm.Off, ``, `{"num_ctx":32768,"num_predict":9}`, ``},
		{llm.Model{ID: "m", Context: 40960}, llm.High, ``, `{"num_ctx":40960,"num_predict":9}`, ``},
		{llm.Model{ID: "m", Levels: []llm.Level{llm.Low}}, llm.High, `{"options":{"num_ctx":8192,"num_gpu":1}}`,
			`{"num_ctx":8192,"num_predict":9,"num_gpu":1}`, `true`},
		{llm.Model{ID: "m", Context: 40960, Levels: []llm.Level{llm.Low}}, llm.Off, `{"options":{"num_ctx":8192}}`,
			`{"num_ctx":8192,"num_predict":9}`, `false`},
		{llm.Model{ID: "gpt-oss:20b", Levels: []llm.Level{llm.Low, llm.High}}, llm.Max, ``,
			`{"num_ctx":32768,"num_predict":9}`, `"high"`},
	} {
		r := llmtest.Ask("Hi")
		r.MaxTokens, r.Thinking = 9, tt.level
		if tt.params != "" {
			r.Params = json.RawMessage(tt.params)
		}
		if tt.model.ID != "" {
			r.Model = tt.model.ID
		}
		got, c := ask(t, ollama.Options{Model: func(string) llm.Model { return tt.model }}, r, llmtest.Say("ok"))
		var body struct{ Options, Think json.RawMessage }
		if c.Err == nil {
			c.Err = json.Unmarshal(got.Body, &body)
		}
		_ = json.Unmarshal(got.Body, &body)
		if string(body.Options) != tt.options || string(body.Think) != tt.think {
			t.Errorf("%+v, %s: options %s, think %s (%v)", tt.model, tt.level, body.Options, body.Think, c.Err)
		}
	}
}

// TestThoughts checks that the thinking that led to calls is sent back with them.
func TestThoughts(t *testing.T) {
	t.Parallel()
	r := llmtest.Ask("Hi")
	_, c := ask(t, ollama.Options{}, r, llmtest.Think("Let me see.", "", llmtest.Call("", "look", `{"at":1}`)))
	if c.Err != nil || c.Message.Calls()[0].ID == "" {
		t.Fatalf("%+v, %v", c.Message, c.Err)
	}
	result := llmtest.Result(c.Message.Calls()[0].ID, "x")
	result.ToolName = "look"
	r.Messages = append(r.Messages, c.Message, result)
	got, c := ask(t, ollama.Options{}, r, llmtest.Say("ok"))
	const want = `{"content":"","role":"assistant","thinking":"Let me see.","tool_calls":[{"function":{"arguments":{"at":1},"name":"look"}}]},{"content":"x","role":"tool","tool_name":"look"}`
	if c.Err != nil || !bytes.Contains(got.Body, []byte(want)) {
		t.Errorf("%s (%v), want %s", got.Body, c.Err, want)
	}
}

// TestErrors checks errors of the server, which are texts.
func TestErrors(t *testing.T) {
	t.Parallel()
	_, c := ask(t, ollama.Options{}, llmtest.Ask("Hi"),
		llmtest.Status(404, `model "nope" not found, try pulling it first`))
	if llm.ClassOf(c.Err) != llm.ClassNoModel {
		t.Errorf("%v", c.Err)
	}
	srv := llmtest.NewServer(t, llmtest.Ollama, llmtest.Status(400, `"gemma" does not support thinking`),
		llmtest.Say("ok"))
	url, hc := srv.Pipe()
	r := llmtest.Ask("Hi")
	r.Thinking = llm.High
	if c, err := llmtest.Collect(t.Context(), ollama.New(ollama.Options{BaseURL: url, HTTP: hc}), r); err != nil ||
		c.Err != nil {
		t.Errorf("a model that does not think: %v, %v", err, c.Err)
	}
}
