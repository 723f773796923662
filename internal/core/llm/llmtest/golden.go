package llmtest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/chela-ai/chela/internal/core/llm"
)

// Golden compares the requests that a dialect sends for [Conversation] with a
// txtar file, or rewrites the file if update is true. JSON is indented in the
// file.
func Golden(t *testing.T, w Wire, open Open, file string, update bool) {
	t.Helper()
	var got txtar.Archive
	for _, c := range Conversation(w) {
		srv := NewServer(t, w, Say("ok"))
		p := open(srv.Pipe())
		if c, err := Collect(t.Context(), p, c.Request); err != nil || c.Err != nil {
			t.Fatalf("ask: %v, %v", err, c.Err)
		}
		var b bytes.Buffer
		if err := json.Indent(&b, srv.Requests()[0].Body, "", "\t"); err != nil {
			t.Fatal(err)
		}
		b.WriteByte('\n')
		got.Files = append(got.Files, txtar.File{Name: c.Name, Data: b.Bytes()})
	}
	if update {
		if err := os.WriteFile(file, txtar.Format(&got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(data), string(txtar.Format(&got))); d != "" {
		t.Errorf("bodies (-want +got), rewrite with -update:\n%s", d)
	}
}

// Named is a request with a name.
type Named struct {
	Name    string
	Request *llm.Request
}

// Conversation returns requests that cover what conversations contain: a plain
// one, one with tools, images and thinking, and one with every option.
func Conversation(w Wire) []Named {
	call := func(id, name, args string) llm.Part {
		c := ToolCall(id, name, args)
		return llm.Part{Kind: llm.PartCall, Call: &c}
	}
	thought := llm.Part{Kind: llm.PartThinking, Text: "First look.", Signature: "c2ln"}
	hidden := llm.Part{Kind: llm.PartThinking, Redacted: "ZW5j"}
	image := llm.Image("image/png", pixel[:])
	msgs := []*llm.Message{
		{Role: llm.RoleUser, Parts: []llm.Part{llm.Text("What is\n\"this\"?"), image}},
		{
			Role: llm.RoleAssistant, Provider: "golden",
			Parts: []llm.Part{thought, hidden, llm.Text("Looking."), call("call_1", "look", `{"at": 1}`),
				call("call_2", "shot", `{}`)},
		},
		Result("call_1", "a crab"),
		{Role: llm.RoleTool, CallID: "call_2", Parts: []llm.Part{llm.Text("the screen"), image}, IsError: true},
		{
			Role: llm.RoleAssistant, Provider: "another",
			Parts: []llm.Part{{Kind: llm.PartThinking, Text: "Foreign.", Signature: "eA=="}, llm.Text("A crab.")},
		},
		llm.User("Sure?"), llm.User("Look again."),
	}
	tools := []llm.ToolSpec{Tool("look"), {
		Name: "shot", Description: "Takes a picture.",
		Schema: json.RawMessage(`{"oneOf":[{"properties":{"screen":{"type":"integer"}},"required":["screen"]},{"properties":{"window":{"type":"string"}},"required":["window"]}]}`),
	}}
	system := []llm.Block{{Text: "You are Chela.", Cache: true}, {Text: "It is noon."}}
	full := &llm.Request{
		Model: "golden-1", System: system, Messages: msgs, Tools: tools, MaxTokens: 2000, Thinking: llm.High,
		Temperature: 0.5, HasTemperature: true, Cache: "long", Session: "session-1",
		Params: w.params(),
	}
	closing := *full
	closing.Tools, closing.Thinking, closing.Cache, closing.Params = nil, llm.Off, "none", nil
	noted := &llm.Request{Model: "golden-1", System: system, Messages: msgs[:4], Tools: tools, Note: "The plan is open."}
	return []Named{
		{"plain.json", &llm.Request{Model: "golden-1", Messages: []*llm.Message{llm.User("Hi")}}},
		{"tools.json", &llm.Request{Model: "golden-1", System: system, Messages: msgs[:4], Tools: tools}},
		{"everything.json", full},
		{"closing.json", &closing},
		{"note.json", noted},
		{"fast.json", &llm.Request{Model: "golden-1", Messages: []*llm.Message{llm.User("Hi")}, Fast: true}},
	}
}

// params are request fields of a configuration: they add one, and remove one of the
// dialect.
func (w Wire) params() json.RawMessage {
	switch w {
	case Gemini:
		return json.RawMessage(`{"generationConfig": {"topP": 0.9, "temperature": null}}`)
	case Ollama:
		return json.RawMessage(`{"options": {"top_p": 0.9, "temperature": null}, "keep_alive": "1h"}`)
	}
	return json.RawMessage(`{"top_p": 0.9, "temperature": null}`)
}

// RerouteClient returns a client that sends all requests through hc to the
// server, whatever their host: for dialects that depend on the host.
func RerouteClient(serverURL string, hc *http.Client) *http.Client {
	return &http.Client{Transport: rerouted{serverURL, hc}}
}

type rerouted struct {
	url string
	hc  *http.Client
}

// RoundTrip implements http.RoundTripper.
func (r rerouted) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req.Clone(req.Context())
	out.Host = req.URL.Host
	out.URL.Scheme = "http"
	out.URL.Host = r.url[len("http://"):]
	return r.hc.Transport.RoundTrip(out)
}
