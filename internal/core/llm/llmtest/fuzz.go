package llmtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/wiretest"
)

// AnswerClient returns a client that answers every request with body. It passes
// each request's body to saw.
func AnswerClient(w Wire, body []byte, saw func(request []byte) error) *http.Client {
	return &http.Client{Transport: answering{w, body, saw}}
}

type answering struct {
	wire Wire
	body []byte
	saw  func([]byte) error
}

// RoundTrip implements http.RoundTripper.
func (a answering) RoundTrip(req *http.Request) (*http.Response, error) {
	request, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	if int64(len(request)) != req.ContentLength {
		return nil, fmt.Errorf("content length %d, body %d", req.ContentLength, len(request))
	}
	if err := a.saw(request); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Request: req, Body: io.NopCloser(bytes.NewReader(a.body)),
		Header: http.Header{"Content-Type": {a.wire.contentType()}},
	}, nil
}

// DiscardClient returns a client that reads requests and fails them. n is set
// to the size of the last one.
func DiscardClient(n *int64) *http.Client { return &http.Client{Transport: discarding{n}} }

type discarding struct{ n *int64 }

// RoundTrip implements http.RoundTripper.
func (d discarding) RoundTrip(req *http.Request) (*http.Response, error) {
	n, err := io.Copy(io.Discard, req.Body)
	if *d.n = n; err != nil {
		return nil, err
	}
	return nil, io.ErrUnexpectedEOF
}

// Body returns the response body that a server sends for the step.
func Body(w Wire, step Step) []byte {
	return bytes.Join(NewServer(nil, w).events([]byte(`{"model":"scripted-1"}`), &step, nil), nil)
}

// ServiceBody returns the response body that a service with OpenAI's format
// sends for the step.
func ServiceBody(at *wiretest.Service, step Step) []byte {
	return bytes.Join(NewServer(nil, OpenAI).events([]byte(`{"model":"scripted-1"}`), &step, at), nil)
}

func validator(w Wire) func([]byte) error {
	switch w {
	case OpenAI:
		return wiretest.Compatible
	case Responses:
		return wiretest.ResponsesCompatible
	case Ollama:
		return wiretest.Ollama
	case Gemini:
		return func(body []byte) error { return wiretest.Gemini("m", body) }
	}
	return wiretest.Anthropic
}

// FuzzDecode checks that no stream makes a dialect panic or break the contract
// of [llm.Provider], and that the resulting message can be sent back.
func FuzzDecode(f *testing.F, w Wire, open Open) {
	think := Think("Hm.", "c2ln", Calls(ToolCall("a", "look", `{"at":1}`), ToolCall("b", "nap", `{"x`)))
	failing := Say("Some text")
	failing.Fault.Error = true
	whole := Say("Some text")
	whole.Fault.Whole = true
	for _, step := range []Step{Say("Hello, 世界"), think, failing, whole, {}} {
		body := Body(w, step)
		f.Add(body)
		f.Add(body[:len(body)/2])
	}
	valid := validator(w)
	f.Fuzz(func(t *testing.T, body []byte) {
		p := open("http://fuzz.invalid", AnswerClient(w, body, valid))
		r := Ask("Hi")
		c, err := Collect(t.Context(), p, r)
		if err != nil {
			t.Fatal(err)
		}
		if c.Message == nil {
			return
		}
		r.Messages = append(r.Messages, c.Message)
		for _, call := range c.Message.Calls() {
			r.Messages = append(r.Messages, Result(call.ID, "x"))
		}
		r.Messages = append(r.Messages, llm.User("Next"))
		var refused error
		p = open("http://fuzz.invalid", AnswerClient(w, body, func(b []byte) error { refused = valid(b); return refused }))
		if _, err := Collect(t.Context(), p, r); err != nil || refused != nil {
			t.Errorf("the answer cannot be sent back: %v, %v", err, refused)
		}
	})
}

// FuzzRequest checks that a dialect makes a valid request of any valid list of
// messages.
func FuzzRequest(f *testing.F, w Wire, open Open) {
	f.Add("Hi", "call_1", "look", `{"at":1}`, "c2ln", "image/png", []byte("data"), "high")
	f.Add(" \n", "call:1|x", "a.b", `[1,"\ud800"]`, "", "image/tiff", []byte{}, "off")
	f.Add("\xff\x00\u2028", "", "", `null`, "\x7f", "IMAGE/JPG; q=1", []byte{0}, "max")
	valid := validator(w)
	f.Fuzz(func(t *testing.T, text, id, name, args, signature, mime string, data []byte, level string) {
		call, other := ToolCall(id, name, args), ToolCall(id+"2", name+"2", args)
		call.Args = json.RawMessage(args)
		parts := []llm.Part{llm.Text(text), llm.Image(mime, data)}
		r := &llm.Request{
			Model: "m", System: []llm.Block{{Text: text, Cache: true}, {Text: name}}, Thinking: llm.Level(level), Session: id,
			Messages: []*llm.Message{
				{Role: llm.RoleUser, Parts: append(parts, llm.Text("x"))},
				{Role: llm.RoleAssistant, Provider: "golden", Parts: []llm.Part{
					{Kind: llm.PartThinking, Text: text, Signature: signature}, llm.Text(text),
					{Kind: llm.PartCall, Call: &call}, {Kind: llm.PartCall, Call: &other},
				}},
				{Role: llm.RoleTool, CallID: id, Parts: parts, IsError: len(text)%2 == 0},
				{Role: llm.RoleTool, CallID: other.ID, Parts: []llm.Part{llm.Text(text)}},
				{Role: llm.RoleAssistant, Provider: "golden", Parts: []llm.Part{
					llm.Text(text), {Kind: llm.PartThinking, Text: text, Signature: signature},
				}},
				llm.User(text),
			},
		}
		for n := 1; n <= len(r.Messages); n++ {
			if n == 2 || n == 3 {
				continue // calls without results are invalid
			}
			part := *r
			part.Messages = r.Messages[:n]
			var bodies [2][]byte
			for i := range bodies {
				var refused error
				hc := AnswerClient(w, nil, func(b []byte) error { bodies[i], refused = b, valid(b); return refused })
				if _, err := Collect(t.Context(), open("http://fuzz.invalid", hc), &part); err != nil || refused != nil {
					t.Errorf("%d messages: %v, %v", n, err, refused)
				}
			}
			if d := cmp.Diff(string(bodies[0]), string(bodies[1])); d != "" {
				t.Errorf("%d messages: stored and fresh encodings differ:\n%s", n, d)
			}
		}
	})
}

// Long returns a request with n messages whose texts have about size bytes in
// total.
func Long(n, size int) *llm.Request {
	r := Ask("Begin")
	r.System = []llm.Block{{Text: string(bytes.Repeat([]byte("Rules. "), 2000)), Cache: true}}
	for i := range 20 {
		r.Tools = append(r.Tools, Tool(fmt.Sprintf("tool_%02d", i)))
	}
	text := string(bytes.Repeat([]byte("Some \"text\" of a file.\n"), size/(n/3*2)/23+1))
	for i := range n / 3 {
		id := fmt.Sprintf("call_%d", i)
		call := Call(id, "tool_01", `{"at":1}`)
		r.Messages = append(r.Messages, call.message("golden", "m"), Result(id, text), llm.User(text))
	}
	return r
}
