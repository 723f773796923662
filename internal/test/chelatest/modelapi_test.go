package chelatest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/app/endpoint"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/sse"
	"github.com/chela-ai/chela/wire"
)

const portToken = "the-token-of-the-port"

// asModel is a gateway that programs use as a model.
type asModel struct {
	*Gateway
	t     *testing.T
	web   *llmtest.Listener
	hc    *http.Client
	model *llmtest.Script
}

// modelEndpoints switches the endpoints on.
const modelEndpoints = `{"chatCompletions": {"enabled": true}, "responses": {"enabled": true}, "messages": {"enabled": true}}`

// asModelWith starts a gateway with the endpoints, and other options.
func asModelWith(t *testing.T, endpoints string, o Options) *asModel {
	t.Helper()
	m := &asModel{t: t, web: llmtest.Pipe()}
	if m.model, _ = o.Model.(*llmtest.Script); o.Model == nil {
		m.model = llmtest.ScriptFunc(func(n int, _ *llm.Request) llmtest.Step {
			return llmtest.Say(fmt.Sprintf("answer %d", n+1))
		})
		o.Model = m.model
	}
	if o.Config == nil {
		o.Config = Config{}
	}
	o.Config["gateway"] = merge(o.Config["gateway"],
		fmt.Sprintf(`{"auth": {"token": %q}, "http": {"endpoints": %s}}`, portToken, endpoints))
	o.Listen = &endpoint.Listen{Listener: m.web}
	m.Gateway = Start(t, o)
	m.hc = m.web.Client()
	t.Cleanup(m.hc.CloseIdleConnections)
	return m
}

// asModelInBubble runs a test with a gateway whose time is that of a bubble.
func asModelInBubble(t *testing.T, name string, o Options, f func(t *testing.T, m *asModel)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			m := asModelWith(t, modelEndpoints, o)
			f(t, m)
			m.hc.CloseIdleConnections()
			m.Stop()
			time.Sleep(time.Second) // of the server, for connections that it has closed
		})
	})
}

// modelAnswer is the answer to a request, in any form.
type modelAnswer struct {
	status int
	header http.Header
	body   []byte

	ID      string          `json:"id"`
	Model   string          `json:"model"`
	Status  string          `json:"status"`
	Stop    string          `json:"stop_reason"`
	Error   json.RawMessage `json:"error"`
	Choices []struct {
		Message struct{ Role, Content string }
		Finish  string `json:"finish_reason"`
	} `json:"choices"`
	Output  []struct{ Content []struct{ Text string } } `json:"output"`
	Content []struct{ Text string }                     `json:"content"`
	Usage   map[string]any                              `json:"usage"`
}

// text returns the text of the answer.
func (a modelAnswer) text() string {
	switch {
	case len(a.Choices) > 0:
		return a.Choices[0].Message.Content
	case len(a.Output) > 0:
		return a.Output[0].Content[0].Text
	case len(a.Content) > 0:
		return a.Content[0].Text
	}
	return ""
}

// message returns the text of the error.
func (a modelAnswer) message() string {
	var e struct{ Message string }
	_ = json.Unmarshal(a.Error, &e)
	return e.Message
}

// open makes a request; headers are names and values.
func (m *asModel) open(ctx context.Context, method, path string, body io.Reader,
	headers ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://127.0.0.1"+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+portToken)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
		}
	}
	return m.hc.Do(req)
}

// post makes a request with the token.
func (m *asModel) post(path, body string, headers ...string) modelAnswer {
	m.t.Helper()
	return m.do(http.MethodPost, path, body, headers...)
}

func (m *asModel) do(method, path, body string, headers ...string) modelAnswer {
	m.t.Helper()
	res, err := m.open(m.t.Context(), method, path, strings.NewReader(body), headers...)
	if err != nil {
		m.t.Fatalf("%s: %v", path, err)
	}
	return readModelAnswer(m.t, res)
}

func readModelAnswer(t *testing.T, res *http.Response) modelAnswer {
	t.Helper()
	defer res.Body.Close()
	a := modelAnswer{status: res.StatusCode, header: res.Header}
	var err error
	if a.body, err = io.ReadAll(res.Body); err != nil {
		t.Fatal(err)
	}
	if res.Header.Get("Content-Type") != "application/json; charset=utf-8" {
		t.Errorf("Content-Type %s", res.Header.Get("Content-Type"))
	}
	if err := json.Unmarshal(a.body, &a); err != nil {
		t.Errorf("the answer is not JSON: %v: %s", err, a.body)
	}
	return a
}

// streamed makes a request for a stream, and returns the data of its events.
func (m *asModel) streamed(path, body string, headers ...string) []string {
	m.t.Helper()
	res, err := m.open(m.t.Context(), http.MethodPost, path, strings.NewReader(body), headers...)
	if err != nil {
		m.t.Fatal(err)
	}
	defer res.Body.Close()
	if kind := res.Header.Get("Content-Type"); res.StatusCode != 200 || !strings.HasPrefix(kind, "text/event-stream") {
		b, _ := io.ReadAll(res.Body)
		m.t.Fatalf("%d %s: %s", res.StatusCode, kind, b)
	}
	var out []string
	for data, err := range sse.Read(res.Body, 0) {
		if err != nil {
			m.t.Fatal(err)
		}
		out = append(out, string(data))
	}
	return out
}

// streamText returns the text of a stream in any form.
func streamText(t *testing.T, list []string) string {
	t.Helper()
	var b strings.Builder
	for _, data := range list {
		if data == "[DONE]" {
			continue
		}
		var e struct {
			Type    string
			Delta   json.RawMessage
			Choices []struct{ Delta struct{ Content string } }
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		var text string
		var part struct{ Text string }
		switch {
		case len(e.Choices) > 0:
			text = e.Choices[0].Delta.Content
		case e.Type == "response.output_text.delta":
			_ = json.Unmarshal(e.Delta, &text)
		case e.Type == "content_block_delta":
			_ = json.Unmarshal(e.Delta, &part)
			text = part.Text
		}
		b.WriteString(text)
	}
	return b.String()
}

// modelForms are the forms, with a request that says a text.
var modelForms = map[string]func(text string) string{
	"/v1/chat/completions": func(s string) string {
		return fmt.Sprintf(`{"model":"chela","messages":[{"role":"user","content":%q}]}`, s)
	},
	"/v1/responses": func(s string) string { return fmt.Sprintf(`{"model":"chela","input":%q}`, s) },
	"/v1/messages": func(s string) string {
		return fmt.Sprintf(
			`{"model":"chela","max_tokens":100,"messages":[{"role":"user","content":[{"type":"text","text":%q}]}]}`, s)
	},
}

// asStream makes a request one for a stream.
func asStream(body string) string { return strings.Replace(body, "{", `{"stream":true,`, 1) }

// last returns the last message of the last request to the model.
func (m *asModel) last() string {
	all := m.model.Requests()
	list := all[len(all)-1].Messages
	return list[len(list)-1].PlainText()
}

// said returns all messages of the last request to the model.
func (m *asModel) said() []string {
	all := m.model.Requests()
	var out []string
	for _, x := range all[len(all)-1].Messages {
		out = append(out, string(x.Role)+": "+x.PlainText())
	}
	return out
}

func TestModelAPI(t *testing.T) {
	for path, body := range modelForms {
		usage := &llm.Usage{Input: 70, Output: 9, CacheRead: 5}
		step := llmtest.Step{Parts: []llm.Part{llm.Text("The answer, in several pieces: 世界.")}, Usage: usage,
			Chunk: 5, Gap: time.Second}
		o := Options{Model: llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step { return step })}
		asModelInBubble(t, "GW-21 "+path+" answers whole and in pieces", o, func(t *testing.T, m *asModel) {
			a := m.post(path, body("What is it?"))
			if a.status != 200 || a.text() != step.Parts[0].Text || a.Model != "chela" {
				t.Fatalf("%d %s", a.status, a.body)
			}
			if m.last() != "What is it?" {
				t.Errorf("the model was asked %q", m.last())
			}
			events := m.streamed(path, asStream(body("Again?")))
			if got := streamText(t, events); got != step.Parts[0].Text {
				t.Errorf("streamed %q", got)
			}
			if end := events[len(events)-1]; path != "/v1/messages" && end != "[DONE]" ||
				path == "/v1/messages" && !strings.Contains(end, "message_stop") {
				t.Errorf("the stream ends with %s", end)
			}
			if n := len(events); n < 6 {
				t.Errorf("%d events: the answer did not come in pieces", n)
			}
			for name, want := range map[string]float64{
				"prompt_tokens":     75,
				"completion_tokens": 9,
				"total_tokens":      84,
				"input_tokens":      75,
				"output_tokens":     9,
			} {
				if path == "/v1/messages" && name == "input_tokens" {
					want = 70
				}
				if got, ok := a.Usage[name]; ok && got != want {
					t.Errorf("%s is %v, want %v", name, got, want)
				}
			}
			if len(a.Usage) < 3 {
				t.Errorf("usage: %v", a.Usage)
			}
			if got := m.Client().waited(a.ID); got.Status != wire.StatusOK {
				t.Errorf("the id of the answer is that of no run: %+v", got)
			}
		})
	}
	asModelInBubble(t, "GW-21 without the token nothing is read and no model is called", Options{},
		func(t *testing.T, m *asModel) {
			for path, body := range modelForms {
				for _, auth := range [][]string{{"Authorization", ""}, {"Authorization", "Bearer x"},
					{"Authorization", "", "x-api-key", "x"}, {"Authorization", "Basic " + portToken}} {
					a := m.post(path, body("hi"), auth...)
					if a.status != 401 || !strings.Contains(a.message(), "Unauthorized") {
						t.Errorf("%s with %v: %d %s", path, auth, a.status, a.body)
					}
					if want := map[bool]string{
						true:  `"type":"authentication_error"`,
						false: `"code":"invalid_api_key"`,
					}[path == "/v1/messages"]; !bytes.Contains(a.body, []byte(want)) {
						t.Errorf("%s: %s, want %s", path, a.body, want)
					}
				}
			}
			if n := len(m.model.Requests()); n != 0 {
				t.Errorf("%d model calls", n)
			}
		})
	asModelInBubble(t, "GW-21 the token is accepted as x-api-key, as Anthropic's clients send it", Options{},
		func(t *testing.T, m *asModel) {
			if a := m.post("/v1/messages", modelForms["/v1/messages"]("hi"), "Authorization", "", "x-api-key", portToken,
				"anthropic-version", "2023-06-01"); a.status != 200 {
				t.Errorf("%d %s", a.status, a.body)
			}
		})
	proxy := Options{
		Config: Config{
			"gateway": json.RawMessage(
				`{"auth": {"mode": "trusted-proxy", "trustedProxy": {"userHeader": "X-User"}}, "trustedProxies": ["0.0.0.0"]}`)}}
	asModelInBubble(t, "a client needs the scope to write", proxy, func(t *testing.T, m *asModel) {
		for path, body := range modelForms {
			for scopes, want := range map[string]int{"operator.read": 403, "operator.write": 200} {
				if a := m.post(path, body("hi"), "X-User", "ann", "X-Openclaw-Scopes", scopes); a.status != want ||
					want == 403 && !strings.Contains(a.message(), "operator.write") {
					t.Errorf("%s with %s: %d %s", path, scopes, a.status, a.body)
				}
			}
			if a := m.post(path, body("hi")); a.status != 401 {
				t.Errorf("%s without a user: %d %s", path, a.status, a.body)
			}
		}
	})
	asModelInBubble(t, "earlier messages and instructions are context", Options{}, func(t *testing.T, m *asModel) {
		a := m.post("/v1/chat/completions", `{"model":"openclaw","messages":[{"role":"system","content":"Rule one."},{"role":"user","content":"/new my name is Ann"},
			{"role":"assistant","content":"Hello\nAnn"},{"role":"developer","content":"Rule two."},{"role":"user","name":"Bob","content":"Who am I?"}]}`)
		want := []string{"user: [Earlier messages of this conversation, as the client has them]\nUser: /new my name is Ann\nAssistant: Hello\n  Ann", "user: Who am I?"}
		if got := m.said(); a.status != 200 || !slices.Equal(got, want) {
			t.Errorf("%d: the model got %q", a.status, got)
		}
		system := ""
		for _, b := range m.model.Requests()[0].System {
			system += b.Text
		}
		if !strings.Contains(system, "Rule one.\n\nRule two.") {
			t.Error("the instructions are not in the system prompt")
		}
	})
	asModelInBubble(t, "requests of the same user share a session, others have one of their own", Options{},
		func(t *testing.T, m *asModel) {
			ask := func(user, text string) string {
				a := m.post("/v1/chat/completions",
					fmt.Sprintf(`{"model":"chela","user":%q,"messages":[{"role":"user","content":%q}]}`, user, text))
				if a.status != 200 {
					t.Fatalf("%d %s", a.status, a.body)
				}
				return a.header.Get("X-Chela-Session-Key")
			}
			if key := ask("ann@example.org", "one"); key != "agent:main:openai-user:ann@example.org" {
				t.Errorf("the session is %s", key)
			}
			if ask("ann@example.org", "two"); !slices.Equal(m.said(),
				[]string{"user: one", "assistant: answer 1", "user: two"}) {
				t.Errorf("the model got %q", m.said())
			}
			if key := ask("Bob B", "three"); key != "agent:main:openai-user:Bob%20B" || len(m.said()) != 1 {
				t.Errorf("%s: the model got %q", key, m.said())
			}
			if key := ask("", "four"); !strings.HasPrefix(key, "agent:main:openai:") || len(m.said()) != 1 {
				t.Errorf("%s: the model got %q", key, m.said())
			}
			a := m.post("/v1/messages", modelForms["/v1/messages"]("five"), "x-openclaw-session-key", "agent:main:main")
			if m.Client().Ask("main", "six"); a.status != 200 ||
				!slices.Equal(m.said(), []string{"user: five", "assistant: answer 5", "user: six"}) {
				t.Errorf("the chat got %q", m.said())
			}
		})
	asModelInBubble(t, "a client that repeats the conversation of its session does not double it", Options{},
		func(t *testing.T, m *asModel) {
			ask := func(messages string) {
				if a := m.post("/v1/chat/completions", `{"model":"chela","user":"u","messages":[`+messages+`]}`); a.status != 200 {
					t.Fatalf("%d %s", a.status, a.body)
				}
			}
			const one, own, two = `{"role":"user","content":"one"}`, `,{"role":"assistant","content":"answer 1"}`,
				`,{"role":"user","content":"two"}`
			ask(one)
			if ask(one + own + two); !slices.Equal(m.said(), []string{"user: one", "assistant: answer 1", "user: two"}) {
				t.Errorf("the model got %q", m.said())
			}
			ask(one + own + two + `,{"role":"assistant","content":"answer 2"},{"role":"user","content":"I forgot:"}` +
				`,{"role":"user","content":"three"}`)
			if got := m.said(); len(got) != 6 || !strings.HasSuffix(got[4], "]\nUser: I forgot:") || got[5] != "user: three" {
				t.Errorf("the model got %q", got)
			}
			if ask(one + `,{"role":"assistant","content":"something else"}` + two); !strings.HasSuffix(m.said()[7],
				"]\nUser: one\nAssistant: something else") {
				t.Errorf("the model got %q", m.said())
			}
		})
	asModelInBubble(t, "a response continues another one", Options{}, func(t *testing.T, m *asModel) {
		first := m.post("/v1/responses", `{"model":"chela","input":"one"}`)
		m.post("/v1/responses", fmt.Sprintf(`{"model":"chela","input":[{"role":"user","content":[{"type":"input_text","text":"two"}]}],"previous_response_id":%q}`, first.ID))
		if !slices.Equal(m.said(), []string{"user: one", "assistant: answer 1", "user: two"}) {
			t.Errorf("the model got %q", m.said())
		}
		if a := m.post("/v1/responses", `{"model":"chela","input":"x","previous_response_id":"resp_no"}`); a.status != 400 ||
			!strings.Contains(a.message(), "there is no response resp_no") {
			t.Errorf("%d %s", a.status, a.body)
		}
	})
}

// TestModelNames tries the names of models.
func TestModelNames(t *testing.T) {
	agents := Options{Config: Config{"agents.list": json.RawMessage(`[{"id": "main"}, {"id": "work"}]`)}}
	asModelInBubble(t, "GW-21 names of models", agents, func(t *testing.T, m *asModel) {
		for name, agent := range map[string]string{
			"chela":            "main",
			"chela/default":    "main",
			"chela/main":       "main",
			"chela/work":       "work",
			"openclaw":         "main",
			"openclaw/default": "main",
			"openclaw/work":    "work",
			"agent:main":       "main",
			"agent:work":       "work",
			"":                 "main",
			"gpt-5":            "",
			"chela/none":       "",
			"agent:none":       "",

			"openclaw/": "",
			"agent:":    "",
			"chelas":    "",
		} {
			a := m.post("/v1/chat/completions", fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"hi"}]}`, name))
			switch {
			case agent == "" && (a.status != 400 || !strings.Contains(a.message(), "chela/work") ||
				!bytes.Contains(a.body, []byte(`"code":"model_not_found"`))):
				t.Errorf("%q: %d %s", name, a.status, a.body)
			case agent != "" &&
				(a.status != 200 || !strings.HasPrefix(a.header.Get("X-Chela-Session-Key"), "agent:"+agent+":openai:")):
				t.Errorf("%q: %d %s", name, a.status, a.header.Get("X-Chela-Session-Key"))
			}
		}
		if a := m.post("/v1/chat/completions", modelForms["/v1/chat/completions"]("hi"), "x-openclaw-agent-id",
			"work"); !strings.HasPrefix(a.header.Get("X-Chela-Session-Key"), "agent:work:") {
			t.Errorf("the header has no effect: %v", a.header)
		}
		for _, h := range [][]string{{"x-openclaw-agent-id", "none"}, {"x-openclaw-model", "none/none"},
			{"x-openclaw-session-key", "agent:none:x"}, {"x-openclaw-session-key", "a b"}} {
			if a := m.post("/v1/chat/completions", modelForms["/v1/chat/completions"]("hi"), h...); a.status != 400 {
				t.Errorf("%v: %d %s", h, a.status, a.body)
			}
		}
		if a := m.post("/v1/chat/completions", `{"model":"chela/main","messages":[{"role":"user","content":"hi"}]}`,
			"x-openclaw-session-key", "agent:work:x"); a.status != 400 {
			t.Errorf("a session of another agent: %d %s", a.status, a.body)
		}
		var list struct {
			Data []struct{ ID, Object, Type string }
		}
		if err := json.Unmarshal(m.do(http.MethodGet, "/v1/models", "").body, &list); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, x := range list.Data {
			names = append(names, x.ID)
		}
		if want := []string{"chela", "chela/default", "chela/main", "chela/work", "openclaw", "openclaw/default",
			"openclaw/main", "openclaw/work"}; !slices.Equal(names, want) {
			t.Errorf("models: %q", names)
		}
		for path, want := range map[string]int{
			"/v1/models/chela":           200,
			"/v1/models/chela/work":      200,
			"/v1/models/openclaw%2Fmain": 200,
			"/v1/models/gpt-5":           404,
			"/v1/models/chela/none":      404,
		} {
			if a := m.do(http.MethodGet, path, ""); a.status != want || want == 200 && a.ID == "" {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
		}
		if a := m.do(http.MethodGet, "/v1/models/gpt-5", "", "anthropic-version", "2023-06-01"); !bytes.Contains(a.body,
			[]byte(`"type":"not_found_error"`)) {
			t.Errorf("for Anthropic's client: %s", a.body)
		}
	})
}

// TestModelDefault names no agent, where another one than main is the default.
func TestModelDefault(t *testing.T) {
	o := Options{Config: Config{"agents.list": json.RawMessage(`[{"id": "main"}, {"id": "work", "default": true}]`)}}
	asModelInBubble(t, "the default agent answers", o, func(t *testing.T, m *asModel) {
		for _, name := range []string{"chela", "openclaw/default", ""} {
			a := m.post("/v1/responses", fmt.Sprintf(`{"model":%q,"input":"hi"}`, name))
			if key := a.header.Get("X-Chela-Session-Key"); !strings.HasPrefix(key, "agent:work:openresponses:") {
				t.Errorf("%q: %d, the session is %s", name, a.status, key)
			}
		}
	})
}

// TestModelRefusals sends what is not supported, or wrong.
func TestModelRefusals(t *testing.T) {
	chat := func(more string) string {
		return `{"model":"chela","messages":[{"role":"user","content":"hi"}],` + more + `}`
	}
	tools := `"tools":[{"type":"function","function":{"name":"look"}}]`
	asModelInBubble(t, "what is not supported is refused, and no model is called", Options{},
		func(t *testing.T, m *asModel) {
			for _, tt := range []struct{ path, body, part string }{
				{"/v1/chat/completions", chat(`"n":2`), "n is not supported"},
				{"/v1/chat/completions", chat(`"audio":{"voice":"a"}`), "audio is not supported"},
				{"/v1/chat/completions", chat(`"modalities":["text","audio"]`), "modalities is not supported"},
				{"/v1/chat/completions", chat(`"logprobs":true`), "logprobs is not supported"},
				{"/v1/chat/completions", chat(`"response_format":{"type":"json_object"}`), "ask for JSON in the message"},
				{"/v1/chat/completions", chat(`"stop":["x"]`), "stop is not supported"},
				{"/v1/chat/completions", chat(tools), "tools is not supported"},
				{"/v1/chat/completions", chat(`"functions":[{"name":"f"}]`), "functions is not supported"},
				{"/v1/chat/completions", `{"model":"chela","messages":[]}`, "there is no message"},
				{"/v1/chat/completions", `{"model":"chela"}`, "there is no message"},
				{"/v1/chat/completions", `{"model":"chela","messages":[{"role":"system","content":"x"}]}`, "there is no message"},
				{"/v1/chat/completions", `{"model":"chela","messages":[{"role":"user","content":" "}]}`,
					"the last message is empty"},
				{"/v1/chat/completions",
					`{"model":"chela","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"y"}]}`,
					"must be one of the user"},
				{"/v1/chat/completions", `{"model":"chela","messages":[{"role":"owner","content":"x"}]}`,
					"the role \"owner\" does not exist"},
				{"/v1/chat/completions",
					`{"model":"chela","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}]}`,
					"audio is not supported"},
				{"/v1/chat/completions", `{"model":"chela","messages":[{"role":"user","content":[{"type":"video","video":{}}]}]}`,
					`parts of the type "video"`},
				{"/v1/chat/completions", `{"model":"chela","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.org/a.png"}}]}]}`, "send its content in base64"},
				{"/v1/chat/completions", `{"model":"chela","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]}]}`, "the image cannot be read"},
				{"/v1/chat/completions", `{"model":"chela","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png,x"}}]}]}`, "want a URL such as"},
				{"/v1/chat/completions", `{"model":7,"messages":[]}`, "model has the wrong type: number"},
				{"/v1/chat/completions", `{"model":`, "not valid JSON"},
				{"/v1/chat/completions", ``, "not valid JSON"},
				{"/v1/chat/completions", `[]`, "the body has the wrong type: array"},
				{"/v1/responses", `{"model":"chela","input":"x","text":{"format":{"type":"json_schema"}}}`,
					"text.format is not supported"},
				{"/v1/responses", `{"model":"chela","input":"x","background":true}`, "background is not supported"},
				{"/v1/responses", `{"model":"chela","input":"x","tools":[{"type":"web_search"}]}`, "tools is not supported"},
				{"/v1/responses", `{"model":"chela","input":[{"type":"computer_call"}]}`, `items of the type "computer_call"`},
				{"/v1/messages", `{"model":"chela","messages":[{"role":"user","content":"x"}],"tools":[{"name":"look"}]}`,
					"tools is not supported"},
				{"/v1/messages", `{"model":"chela","messages":[{"role":"user","content":"x"}],"stop_sequences":["x"]}`,
					"stop_sequences is not supported"},
				{"/v1/messages", `{"model":"claude-sonnet-4-5","messages":[{"role":"user","content":"x"}]}`, "Use chela"},
			} {
				a := m.post(tt.path, tt.body)
				if a.status != 400 || !strings.Contains(a.message(), tt.part) ||
					!bytes.Contains(a.body, []byte(`"type":"invalid_request_error"`)) {
					t.Errorf("%s: %d %s, want %q", tt.body, a.status, a.body, tt.part)
				}
			}
			if a := m.post("/v1/chat/completions", "x", "Content-Type", "text/plain"); a.status != 415 {
				t.Errorf("plain text: %d %s", a.status, a.body)
			}
			if a := m.do(http.MethodGet, "/v1/chat/completions", ""); a.status != 405 || a.header.Get("Allow") != "POST" {
				t.Errorf("GET: %d %s", a.status, a.body)
			}
			if a := m.do(http.MethodGet, "/v1/nothing", ""); a.status != 404 ||
				!strings.Contains(a.message(), "there is nothing at /v1/nothing") {
				t.Errorf("%d %s", a.status, a.body)
			}
			if n := len(m.model.Requests()); n != 0 {
				t.Errorf("%d model calls", n)
			}
			for _, more := range []string{
				`"n":1`, `"n":null`, `"temperature":0.2,"max_tokens":5,"seed":1`, `"stop":null`, `"tools":[]`,
				tools + `,"tool_choice":"none"`, `"response_format":{"type":"text"}`, `"modalities":["text"]`,
				`"logprobs":false`, `"unknown":{"a":[1]}`,
			} {
				if a := m.post("/v1/chat/completions", chat(more)); a.status != 200 {
					t.Errorf("%s: %d %s", more, a.status, a.body)
				}
			}
		})
	t.Run("what is switched off says how it is switched on", func(t *testing.T) {
		t.Parallel()
		m := asModelWith(t, `{"responses": {"enabled": true}}`, Options{})
		for path, body := range modelForms {
			a := m.post(path, body("hi"))
			on := "chela config set gateway.http.endpoints." + map[string]string{
				"/v1/chat/completions": "chatCompletions",
				"/v1/messages":         "messages",
			}[path] + ".enabled true"
			if path != "/v1/responses" && (a.status != 404 || !strings.Contains(a.message(), on)) ||
				path == "/v1/responses" && a.status != 200 {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
		}
		if n := len(m.model.Requests()); n != 1 {
			t.Errorf("%d model calls", n)
		}
	})
	t.Run("by default all is switched off", func(t *testing.T) {
		t.Parallel()
		m := asModelWith(t, `{}`, Options{})
		for path, body := range modelForms {
			if a := m.post(path, body("hi"), "Authorization", ""); a.status != 404 ||
				!strings.Contains(a.message(), "chela config set") {
				t.Errorf("%s: %d %s", path, a.status, a.body)
			}
		}
		if a := m.do(http.MethodGet, "/v1/models", ""); a.status != 404 ||
			!strings.Contains(a.message(), "chela config set") {
			t.Errorf("%d %s", a.status, a.body)
		}
		if len(m.model.Requests()) != 0 {
			t.Error("the model was called")
		}
	})
}

// TestModelBounds exceeds the limits of requests.
func TestModelBounds(t *testing.T) {
	slow := llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step {
		return llmtest.Step{Delay: time.Hour, Parts: []llm.Part{llm.Text("late")}}
	})
	asModelInBubble(t, "a body has a size and a time", Options{}, func(t *testing.T, m *asModel) {
		if a := m.post("/v1/chat/completions", modelForms["/v1/chat/completions"](strings.Repeat("x", 28<<20))); a.status !=
			413 {
			t.Errorf("a large body: %d %s", a.status, a.body)
		}
		if a := m.post("/v1/chat/completions", modelForms["/v1/chat/completions"](strings.Repeat("x", 2<<20))); a.status !=
			400 || !strings.Contains(a.message(), "bytes of text, at most") {
			t.Errorf("a long text: %d %s", a.status, a.body)
		}
		r, w := io.Pipe()
		defer w.Close()
		go func() { _, _ = io.WriteString(w, `{"model":`) }()
		begin := time.Now()
		res, err := m.open(t.Context(), http.MethodPost, "/v1/chat/completions", r)
		if err != nil {
			t.Fatal(err)
		}
		if a := readModelAnswer(t, res); a.status != 408 || time.Since(begin) > 2*time.Minute {
			t.Errorf("a slow body: %d %s after %v", a.status, a.body, time.Since(begin))
		}
		if len(m.model.Requests()) != 0 {
			t.Error("the model was called")
		}
	})
	asModelInBubble(t, "the number of requests at once is limited, and a client that leaves stops nothing",
		Options{Model: slow}, func(t *testing.T, m *asModel) {
			ctx, leave := context.WithCancel(t.Context())
			const most = 64
			done := make(chan bool, most)
			for i := range most {
				go func() {
					res, err := m.open(ctx, http.MethodPost, "/v1/chat/completions",
						strings.NewReader(modelForms["/v1/chat/completions"]("hi")), "Idempotency-Key", fmt.Sprint(i))
					if err == nil {
						res.Body.Close()
					}
					done <- true
				}()
			}
			synctest.Wait()
			if a := m.post("/v1/chat/completions", modelForms["/v1/chat/completions"]("hi")); a.status != 429 ||
				a.header.Get("Retry-After") != "1" {
				t.Errorf("one more: %d %s", a.status, a.body)
			}
			leave()
			for range most {
				<-done
			}
			synctest.Wait()
			asked := len(m.model.Requests())
			a := m.post("/v1/chat/completions", modelForms["/v1/chat/completions"]("hi"), "Idempotency-Key", "0")
			if a.status != 200 || a.text() != "late" || len(m.model.Requests()) < asked {
				t.Errorf("the answer of the request that was cut: %d %s", a.status, a.body)
			}
		})
}

// TestModelRetries repeats requests.
func TestModelRetries(t *testing.T) {
	slow := func() Options {
		return Options{Model: llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step {
			return llmtest.Step{Parts: []llm.Part{llm.Text("one two three four")}, Chunk: 5, Gap: time.Minute}
		})}
	}
	for path, body := range modelForms {
		asModelInBubble(t, path+" is repeated with the same Idempotency-Key", slow(), func(t *testing.T, m *asModel) {
			ctx, leave := context.WithCancel(t.Context())
			res, err := m.open(ctx, http.MethodPost, path, strings.NewReader(asStream(body("hi"))), "Idempotency-Key", "k")
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(res.Body)
			for lines.Scan() && !strings.Contains(lines.Text(), "one t") {
			}
			leave()
			res.Body.Close()
			during := m.streamed(path, asStream(body("hi")), "Idempotency-Key", "k")
			after := m.streamed(path, asStream(body("hi")), "Idempotency-Key", "k")
			for _, list := range [][]string{during, after} {
				if got := streamText(t, list); got != "one two three four" {
					t.Errorf("streamed %q", got)
				}
			}
			if a := m.post(path, body("other"), "Idempotency-Key", "k"); a.status != 409 ||
				a.header.Get("X-Should-Retry") != "false" {
				t.Errorf("another request with the key: %d %s", a.status, a.body)
			}
			if n := len(m.model.Requests()); n != 1 {
				t.Errorf("%d model calls", n)
			}
			if a := m.post(path, body("hi"), "Idempotency-Key", strings.Repeat("k", 300)); a.status != 400 {
				t.Errorf("a long key: %d %s", a.status, a.body)
			}
		})
	}
	asModelInBubble(t, "messages to a session in work wait for their turn", slow(), func(t *testing.T, m *asModel) {
		type ended struct {
			text string
			at   time.Duration
		}
		begin, out := time.Now(), make(chan ended, 3)
		for i := range 3 {
			go func() {
				a := m.post("/v1/chat/completions",
					fmt.Sprintf(`{"model":"chela","user":"u","messages":[{"role":"user","content":"m%d"}]}`, i))
				out <- ended{a.text(), time.Since(begin).Round(time.Minute)}
			}()
		}
		for i := range 3 {
			if e := <-out; e.text != "one two three four" || e.at != time.Duration(3*(i+1))*time.Minute {
				t.Errorf("answer %d: %+v", i, e)
			}
		}
		if n := len(m.model.Requests()); n != 3 {
			t.Errorf("%d model calls, want one for each message", n)
		}
	})
}

// TestModelRun checks that the work is that of any run.
func TestModelRun(t *testing.T) {
	look := func(ran *int) tool.Tool {
		return toolFunc{spec: tool.Spec{Name: "look", Description: "Looks.", Schema: json.RawMessage(`{"type":"object"}`)},
			run: func() string { *ran++; return "a heron" }}
	}
	t.Run("tools, and what is said between their calls", func(t *testing.T) {
		for path, body := range modelForms {
			ran := 0
			steps := func() *llmtest.Script {
				return llmtest.ScriptFunc(func(n int, _ *llm.Request) llmtest.Step {
					if n%2 == 1 {
						return llmtest.Say("It is a heron.")
					}
					call := llmtest.Call("c", "look", "{}")
					call.Parts = append([]llm.Part{llm.Text("Let me look.")}, call.Parts...)
					return call
				})
			}
			asModelInBubble(t, path, Options{Model: steps(), Tools: []tool.Tool{look(&ran)}}, func(t *testing.T, m *asModel) {
				if a := m.post(path, body("what is it?")); a.text() != "It is a heron." || ran != 1 {
					t.Errorf("%s, the tool ran %d times", a.body, ran)
				}
				if got := streamText(t, m.streamed(path, asStream(body("and now?")))); got != "Let me look.\n\nIt is a heron." ||
					ran != 2 {
					t.Errorf("streamed %q, the tool ran %d times", got, ran)
				}
			})
		}
	})
	t.Run("a failure is an error in the client's form", func(t *testing.T) {
		for path, body := range modelForms {
			fails := llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step {
				return llmtest.Status(400, "the model is unwell")
			})
			asModelInBubble(t, path, Options{Model: fails}, func(t *testing.T, m *asModel) {
				a := m.post(path, body("hi"))
				if a.status != 500 || !strings.Contains(a.message(), "unwell") || a.header.Get("X-Should-Retry") != "false" ||
					!bytes.Contains(a.body, []byte(`"type":"api_error"`)) {
					t.Errorf("%d %s %v", a.status, a.body, a.header)
				}
				events := strings.Join(m.streamed(path, asStream(body("hi"))), "\n")
				if !strings.Contains(events, "unwell") || !strings.Contains(events, `"error":{`) {
					t.Errorf("streamed %s", events)
				}
			})
		}
	})
	asks := Options{Model: llmtest.NewScript(llmtest.Call("c", "write", `{"path":"a.txt","content":"x"}`),
		llmtest.Say("written")), Before: []hook.Before{
		says("careful", "write", hook.Verdict{Ask: true, Reason: "it is Sunday"}),
	}}
	asModelInBubble(t, "a request waits for the approval of a call", asks, func(t *testing.T, m *asModel) {
		c, got := m.Client(), make(chan string, 1)
		go func() {
			got <- streamText(t, m.streamed("/v1/responses", asStream(modelForms["/v1/responses"]("write it"))))
		}()
		q := c.question()
		time.Sleep(5 * time.Minute)
		select {
		case text := <-got:
			t.Fatalf("answered %q before the decision", text)
		default:
		}
		c.decide(q.ID, wire.AllowOnce)
		if text := <-got; text != "written" {
			t.Errorf("answered %q", text)
		}
	})
	asModelInBubble(t, "a silent answer is empty, and a cut one says so",
		Options{Model: llmtest.NewScript(llmtest.Say("NO_REPLY"), llmtest.Say("NO_REPLY"),
			llmtest.Step{Parts: []llm.Part{llm.Text("half")}, Stop: llm.StopLength},
			llmtest.Step{Parts: []llm.Part{llm.Text("half")}, Stop: llm.StopLength})}, func(t *testing.T, m *asModel) {
			chat := modelForms["/v1/chat/completions"]("hi")
			if a := m.post("/v1/chat/completions", chat); a.status != 200 || a.text() != "" || len(a.Choices) != 1 {
				t.Errorf("%s", a.body)
			}
			if got := streamText(t, m.streamed("/v1/chat/completions", asStream(chat))); got != "" {
				t.Errorf("streamed %q", got)
			}
			if a := m.post("/v1/chat/completions", chat); a.Choices[0].Finish != "length" ||
				!strings.HasPrefix(a.text(), "half") {
				t.Errorf("%s", a.body)
			}
			if a := m.post("/v1/messages", modelForms["/v1/messages"]("hi")); a.Stop != "max_tokens" {
				t.Errorf("%s", a.body)
			}
		})
	again := llmtest.NewScript(llmtest.Status(400, "unwell"), llmtest.Say("better"))
	asModelInBubble(t, "a failed request is sent again with its instructions", Options{Model: again},
		func(t *testing.T, m *asModel) {
			if a := m.post("/v1/responses", `{"user":"u","input":"hi","instructions":"Rule one."}`); a.status != 500 {
				t.Errorf("%d %s", a.status, a.body)
			}
			if a := m.post("/v1/responses", `{"user":"u","input":"/retry"}`); a.status != 200 ||
				!strings.HasPrefix(a.text(), "better") {
				t.Errorf("%d %s", a.status, a.body)
			}
			system := ""
			for _, b := range m.model.Requests()[1].System {
				system += b.Text
			}
			if !strings.Contains(system, "Rule one.") {
				t.Error("the instructions are not in the system prompt")
			}
		})
	asModelInBubble(t, "usage at the end of a stream, if the client asks for it", Options{},
		func(t *testing.T, m *asModel) {
			chat := asStream(modelForms["/v1/chat/completions"]("hi"))
			with := m.streamed("/v1/chat/completions",
				strings.Replace(chat, "{", `{"stream_options":{"include_usage":true},`, 1))
			if u := with[len(with)-2]; !strings.Contains(u, `"choices":[]`) || !strings.Contains(u, `"prompt_tokens":`) {
				t.Errorf("%s", u)
			}
			if all := strings.Join(m.streamed("/v1/chat/completions", chat), "\n"); strings.Contains(all, "usage") {
				t.Errorf("not asked for: %s", all)
			}
		})
	asModelInBubble(t, "slash commands are answered without a model", Options{}, func(t *testing.T, m *asModel) {
		for path, body := range modelForms {
			if a := m.post(path, body("/help")); a.status != 200 || !strings.Contains(a.text(), "/status") {
				t.Errorf("%s: %s", path, a.body)
			}
			if got := streamText(t, m.streamed(path, asStream(body("/help")))); !strings.Contains(got, "/status") {
				t.Errorf("%s: streamed %q", path, got)
			}
		}
		if len(m.model.Requests()) != 0 {
			t.Error("the model was called")
		}
	})
	asModelInBubble(t, "images and files reach the model", Options{}, func(t *testing.T, m *asModel) {
		png := base64.StdEncoding.EncodeToString(dot(t))
		for path, body := range map[string]string{
			"/v1/chat/completions": `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + png + `"}}]},{"role":"assistant","content":"Nice."},
				{"role":"user","content":[{"type":"text","text":"See?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + png + `"}},
				{"type":"file","file":{"filename":"n.txt","file_data":"data:text/plain;base64,` +
				base64.StdEncoding.EncodeToString([]byte("a note")) + `"}}]}]}`,
			"/v1/responses": `{"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"See?"},{"type":"input_image","image_url":"data:image/png;base64,` + png + `"}]}]}`,
			"/v1/messages":  `{"messages":[{"role":"user","content":[{"type":"text","text":"See?"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + png + `"}}]}]}`,
		} {
			if a := m.post(path, body); a.status != 200 {
				t.Fatalf("%s: %d %s", path, a.status, a.body)
			}
			all := m.model.Requests()
			msgs := all[len(all)-1].Messages
			images := 0
			for _, x := range msgs {
				for _, p := range x.Parts {
					if p.Kind == llm.PartImage {
						images++
					}
				}
			}
			if images != 1 || !strings.Contains(m.last(), "See?") {
				t.Errorf("%s: %d images, %q", path, images, m.said())
			}
			if path == "/v1/chat/completions" && (!strings.Contains(m.said()[0], "User: [image]\nAssistant: Nice.") ||
				!strings.Contains(m.last(), "a note")) {
				t.Errorf("%q", m.said())
			}
		}
	})
}

// TestModelStop stops the gateway during requests.
func TestModelStop(t *testing.T) {
	for name, tt := range map[string]struct {
		takes time.Duration
		want  string
		code  int
	}{
		"a run that ends in time is answered":               {3 * time.Second, "in time", 200},
		"a run that goes on later is an error that says so": {time.Hour, "the gateway is stopping", 503},
	} {
		o := Options{Model: llmtest.NewScript(llmtest.Step{Delay: tt.takes, Parts: []llm.Part{llm.Text("in time")}})}
		asModelInBubble(t, name, o, func(t *testing.T, m *asModel) {
			got := make(chan modelAnswer, 1)
			go func() { got <- m.post("/v1/chat/completions", modelForms["/v1/chat/completions"]("hi")) }()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := m.Close(ctx); err != nil {
				t.Error(err)
			}
			m.Engine = nil
			a := <-got
			if a.status != tt.code || !strings.Contains(a.text()+a.message(), tt.want) {
				t.Errorf("%d %s", a.status, a.body)
			}
			if tt.code == 503 && a.header.Get("X-Should-Retry") != "false" {
				t.Error("the client may repeat the request, although its work goes on")
			}
		})
	}
}

// toolFunc is a tool without arguments.
type toolFunc struct {
	spec tool.Spec
	run  func() string
}

func (f toolFunc) Spec() tool.Spec { return f.spec }

func (f toolFunc) Run(context.Context, tool.Call) (tool.Result, error) {
	return tool.Text(f.run()), nil
}
