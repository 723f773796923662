package llmtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	call := Call("a", "look", `{}`)
	calls := call.message("p", "m")
	ask := func(msgs ...*llm.Message) *llm.Request { return &llm.Request{Model: "m", Messages: msgs} }
	user := llm.User("x")
	for _, tt := range []struct {
		name string
		r    *llm.Request
		err  string
	}{
		{"good", ask(user, calls, Result("a", "r")), ""},
		{"good, steered", ask(user, calls, Result("a", "r"), user, user), ""},
		{"no model", &llm.Request{Messages: ask(user).Messages}, "no model"},
		{"no messages", ask(), "no messages"},
		{"nil", ask(nil), "no content"},
		{"assistant first", ask(calls, Result("a", "r")), "want user"},
		{"assistant last", ask(user, &llm.Message{Role: llm.RoleAssistant, Parts: user.Parts}), "role assistant"},
		{"open call", ask(user, calls), "without result"},
		{"open call in the middle", ask(user, calls, user), "without result"},
		{"result of nothing", ask(user, Result("a", "r")), "no open call"},
		{"two results", ask(user, calls, Result("a", "r"), Result("a", "r")), "no open call"},
		{"call twice", ask(user, calls, Result("a", "r"), calls, Result("a", "r")), "duplicate"},
		{"empty text", ask(llm.User("")), "empty text"},
		{"no parts", ask(&llm.Message{Role: llm.RoleUser}), "no content"},
		{"role", ask(user, &llm.Message{Role: "system", Parts: user.Parts}), "role"},
		{"image", ask(&llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Image("", nil)}}), "image"},
		{"tools unsorted", &llm.Request{Model: "m", Messages: ask(user).Messages, Tools: []llm.ToolSpec{Tool("b"),
			Tool("a")}}, "ascending"},
		{"schema", &llm.Request{Model: "m", Messages: ask(user).Messages, Tools: []llm.ToolSpec{{Name: "b"}}}, "schema"},
	} {
		err := Validate(tt.r)
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v, want an error with %q", tt.name, err, tt.err)
		}
	}
}

func TestScript(t *testing.T) {
	t.Parallel()
	late := Say("late")
	late.Delay = time.Hour
	broken := Say("Some text")
	broken.Fault.Error = true
	synctest.Test(t, func(t *testing.T) {
		p := NewScript(Think("Hm.", "", Calls(ToolCall("a", "look", `{"at":1}`), ToolCall("b", "nap", `{`))),
			Step{Fault: Fault{Status: 429, RetryAfter: "7"}}, late, broken, Step{})
		first := mustAnswer(t, p, Ask("Hi"))
		if m := first.Message; m.Stop != llm.StopTools || len(m.Calls()) != 2 || m.Calls()[1].Raw != "{" ||
			first.Usage.Output == 0 {
			t.Errorf("message = %+v, usage %+v", m, first.Usage)
		}
		if e, ok := errors.AsType[*llm.Error](ask(t, p, Ask("Hi")).Err); !ok || e.Class != llm.ClassRate ||
			e.RetryAfter != 7*time.Second {
			t.Errorf("error = %+v", e)
		}
		started := time.Now()
		if got := mustAnswer(t, p, Ask("Hi")).Message.PlainText(); got != "late" || time.Since(started) != time.Hour {
			t.Errorf("answer %q after %v", got, time.Since(started))
		}
		if c := ask(t, p, Ask("Hi")); llm.ClassOf(c.Err) != llm.ClassOverload || c.Text() != "Some text" {
			t.Errorf("answer %q, %v", c.Text(), c.Err)
		}
		if m := mustAnswer(t, p, Ask("Hi")).Message; len(m.Parts) != 0 || m.Stop != llm.StopEnd {
			t.Errorf("message = %+v, want an empty one", m)
		}
		for _, r := range []*llm.Request{Ask("Hi"), Ask("")} { // no step; invalid request
			if c := ask(t, p, r); llm.ClassOf(c.Err) != llm.ClassFormat {
				t.Errorf("error = %v, want class %s", c.Err, llm.ClassFormat)
			}
		}
		if n := len(p.Requests()); n != 7 {
			t.Errorf("%d requests, want 7", n)
		}
	})
}

// hello is a valid body.
const hello = `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}]}`

func TestServerRefuses(t *testing.T) {
	t.Parallel()
	srv := NewServer(t, Anthropic, Say("one"), Say("two"))
	srv.Lenient, srv.Key = true, "k"
	url, hc := srv.Pipe()
	send := func(path, key, body string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Anthropic-Version", "1")
		req.Header.Set("X-Api-Key", key)
		resp, err := hc.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	got := []int{
		send("/v1/messages", "k", hello), send("/v1/messages", "wrong", hello), send("/v1/other", "k", hello),
		send("/v1/messages", "k", "{}"), send("/v1/messages", "k", hello),
	}
	got = append(got, send("/v1/messages", "k", hello)) // rejected requests consumed no step; now there is none left
	want := []int{200, 401, 400, 400, 200, 400}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("request %d: status %d, want %d", i, got[i], want[i])
		}
	}
}

func TestChunks(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "a", "世界和平", strings.Repeat("x世", 50)} {
		for n := range 7 {
			if got := strings.Join(chunks(text, n), ""); got != text {
				t.Errorf("chunks(%q, %d) join to %q", text, n, got)
			}
		}
	}
}

// TestEventsAreJSON checks that servers send valid JSON if there is no fault.
func TestEventsAreJSON(t *testing.T) {
	t.Parallel()
	step := Think("Hm.", "c2ln", Calls(ToolCall("a", "look", `{"at":1}`)))
	for _, w := range []Wire{Anthropic, OpenAI} {
		for _, line := range bytes.Split(Body(w, step), []byte("\n")) {
			data, ok := bytes.CutPrefix(line, []byte("data: "))
			if ok && string(data) != "[DONE]" && !json.Valid(data) {
				t.Errorf("%s: %s", w, data)
			}
		}
	}
}
