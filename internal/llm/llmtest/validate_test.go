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

	"github.com/chela-ai/chela/internal/llm"
)

// Valid bodies, in each of which the tables below change one thing.
const (
	validAnthropic = `{"model":"m","max_tokens":2048,"stream":true,"thinking":{"type":"enabled","budget_tokens":1024},` +
		`"tools":[{"name":"look","input_schema":{"type":"object"}}],"system":[{"type":"text","text":"s"}],"messages":[` +
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eA=="}}]},` +
		`{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"c1","name":"look","input":{}},{"type":"tool_use","id":"c2","name":"look","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"r"}]},{"type":"tool_result","tool_use_id":"c2","cache_control":{"type":"ephemeral"}}]}]}`
	validOwn = `{"model":"m","stream":true,"stream_options":{"include_usage":true},` +
		`"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}],"messages":[` +
		`{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,eA=="}}]},` +
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"look","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"c2","content":"r"},{"role":"tool","tool_call_id":"c1","content":"r"},{"role":"user","content":"b"}]}`
)

type change struct{ name, from, to, err string }

func refuses(t *testing.T, valid string, validate func([]byte) error, changes []change) {
	t.Helper()
	if err := validate([]byte(valid)); err != nil {
		t.Fatalf("the valid body is refused: %v", err)
	}
	for _, c := range changes {
		if !strings.Contains(valid, c.from) {
			t.Fatalf("%s: nothing to change", c.name)
		}
		err := validate([]byte(strings.Replace(valid, c.from, c.to, 1)))
		if err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.err)
		}
	}
}

func TestValidateAnthropic(t *testing.T) {
	t.Parallel()
	refuses(t, validAnthropic, ValidateAnthropic, []change{
		{"no JSON", `{"model"`, `"model"`, "cannot unmarshal"},
		{"more than JSON", `]}]}`, `]}]}{}`, "follows"},
		{"unknown field", `"stream":true`, `"stream":true,"store":false`, "unknown field"},
		{"no model", `"model":"m",`, ``, "model"},
		{"no max_tokens", `"max_tokens":2048,`, ``, "max_tokens"},
		{"no stream", `"stream":true,`, ``, "stream"},
		{"hot", `"stream":true`, `"stream":true,"temperature":1.5`, "temperature"},
		{"temperature and thinking", `"stream":true`, `"stream":true,"temperature":1`, "not with thinking"},
		{"small budget", `:1024`, `:1023`, "budget_tokens"},
		{"large budget", `:1024`, `:2048`, "budget_tokens"},
		{"kind of thinking", `"enabled"`, `"on"`, "thinking"},
		{"empty tools", `[{"name":"look","input_schema":{"type":"object"}}]`, `[]`, "leave the field out"},
		{"no tools", `"tools":[{"name":"look","input_schema":{"type":"object"}}],`, ``, "must be defined"},
		{"tool name", `"name":"look","input_schema"`, `"name":"lo.ok","input_schema"`, "letters, digits"},
		{"tool twice", `"tools":[`, `"tools":[{"name":"look","input_schema":{"type":"object"}},`, "twice"},
		{"schema", `{"type":"object"}`, `{"type":"string"}`, "want object"},
		{"union", `{"type":"object"}`, `{"type":"object","oneOf":[]}`, "at the top"},
		{"empty system", `"system":[{"type":"text","text":"s"}]`, `"system":[]`, "system"},
		{"blank system", `"text":"s"`, `"text":" "`, "white space"},
		{"no messages", `"messages":[`, `"messages":[],"metadata":[`, "messages: empty"},
		{"assistant first", `{"role":"user"`, `{"role":"assistant"`, "want user"},
		{"role", `{"role":"assistant"`, `{"role":"system"`, "want assistant"},
		{"blank text", `"text":"a"`, `"text":"\n"`, "white space"},
		{"text as content", `"content":[{"type":"text","text":"r"}]`, `"content":"r"`, "cannot unmarshal"},
		{"no content", `[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eA=="}}]`, `[]`, "no content"},
		{"media type", `image/png`, `image/tiff`, "media type"},
		{"no image", `"eA=="`, `""`, "0 bytes"},
		{"large image", `"eA=="`, `"` + strings.Repeat("eA==", 5<<18+1) + `"`, "bytes in base 64"},
		{"image no base 64", `"eA=="`, `"e"`, "illegal base64"},
		{"no signature", `"signature":"s"`, `"signature":""`, "signature"},
		{"thinking last", `{"type":"tool_use","id":"c1","name":"look","input":{}},{"type":"tool_use","id":"c2","name":"look","input":{}}`, `{"type":"redacted_thinking","data":"x"}`, "must not end"},
		{"no thinking", `{"type":"thinking","thinking":"t","signature":"s"},`, ``, "expected thinking"},
		{"id", `"id":"c1"`, `"id":"c:1"`, "tool_use id"},
		{"id twice", `"id":"c1"`, `"id":"c2"`, "twice"},
		{"input", `"input":{}`, `"input":[]`, "want an object"},
		{"unpaired call", `"tool_use_id":"c1"`, `"tool_use_id":"c2"`, "no call"},
		{"missing result", `,{"type":"tool_result","tool_use_id":"c2","cache_control":{"type":"ephemeral"}}`, ``, "without result: c2"},
		{"result behind text", `[{"type":"tool_result","tool_use_id":"c1"`, `[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"c1"`, "behind other content"},
		{"block in a result", `[{"type":"text","text":"r"}]`, `[{"type":"thinking"}]`, "in a tool_result"},
		{"image in an error", `"tool_use_id":"c1","content":[{"type":"text","text":"r"}]`, `"tool_use_id":"c1","is_error":true,"content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eA=="}}]`, "must be text"},
		{"block of a user", `{"type":"text","text":"a"}`, `{"type":"tool_use"}`, "in a user message"},
		{"block of the assistant", `{"type":"thinking","thinking":"t","signature":"s"}`, `{"type":"image"}`, "in an assistant message"},
		{"assistant last", `]}]}`, `]},{"role":"assistant","content":[{"type":"text","text":"x"}]}]}`, "the last one"},
		{"marker", `"ephemeral"`, `"forever"`, "cache_control"},
		{"marker on thinking", `"signature":"s"`, `"signature":"s","cache_control":{"type":"ephemeral"}`, "of type thinking"},
		{"many markers", `"system":[`, `"system":[` + strings.Repeat(`{"type":"text","text":"s","cache_control":{"type":"ephemeral"}},`, 4), "at most 4"},
	})
}

func TestValidateOpenAI(t *testing.T) {
	t.Parallel()
	changes := []change{
		{"no JSON", `{"model"`, `"model"`, "cannot unmarshal"},
		{"unknown field", `"stream":true`, `"stream":true,"system":[]`, "unknown field"},
		{"no model", `"model":"m",`, ``, "model"},
		{"no stream", `"stream":true,`, ``, "stream"},
		{"hot", `"stream":true`, `"stream":true,"temperature":3`, "temperature"},
		{"max_tokens", `"stream":true`, `"stream":true,"max_tokens":0`, "max_tokens"},
		{"empty tools", `[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}]`, `[]`, "leave the field out"},
		{"tool name", `"name":"look","parameters"`, `"name":"a b","parameters"`, "letters, digits"},
		{"tool type", `"tools":[{"type":"function"`, `"tools":[{"type":"tool"`, "not taken"},
		{"schema", `{"type":"object"}`, `{}`, "want object"},
		{"no user", `{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,eA=="}}]},`, ``, "want user"},
		{"system later", `{"role":"user","content":"b"}`, `{"role":"system","content":"b"}`, "want it first"},
		{"empty content", `"content":"b"`, `"content":""`, "empty"},
		{"empty parts", `[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,eA=="}}]`, `[]`, "empty"},
		{"empty part", `"text":"a"`, `"text":""`, "or empty"},
		{"image by URL", `data:image/png;base64,eA==`, `https://h/x.png`, "data URI"},
		{"image type", `data:image/png`, `data:image/tiff`, "media type"},
		{"null without calls", `{"role":"user","content":"b"}`, `{"role":"assistant","content":null},{"role":"user","content":"b"}`, "content: empty"},
		{"calls of a user", `{"role":"user","content":"b"}`, `{"role":"user","content":"b","tool_calls":[]}`, "tool_call_id or tool_calls"},
		{"empty calls", `"content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"look","arguments":"{}"}}]`, `"content":"x","tool_calls":[]`, "leave the field out"},
		{"long id", `"id":"c1"`, `"id":"` + strings.Repeat("c", 41) + `"`, "40 characters"},
		{"id twice", `"id":"c1"`, `"id":"c2"`, "twice"},
		{"arguments", `"arguments":"{}"`, `"arguments":"null"`, "want an object"},
		{"unpaired result", `"tool_call_id":"c2"`, `"tool_call_id":"c3"`, "no call"},
		{"missing result", `{"role":"tool","tool_call_id":"c2","content":"r"},`, ``, "without result: c2"},
		{"parts of a result", `"tool_call_id":"c2","content":"r"`, `"tool_call_id":"c2","content":[{"type":"text","text":"r"}]`, "cannot unmarshal"},
		{"assistant last", `{"role":"user","content":"b"}`, `{"role":"assistant","content":"b"}`, "the last one"},
		{"calls last", `{"role":"user","content":"b"}`, `{"role":"user","content":"b"},{"role":"assistant","tool_calls":[{"id":"c4","type":"function","function":{"name":"look","arguments":"{}"}}]}`, "at the end: c4"},
		{"role", `{"role":"user","content":"b"}`, `{"role":"human","content":"b"}`, "role"},
	}
	refuses(t, validOwn, ValidateOpenAI, changes)
	refuses(t, validOwn, validateCompatible, append(changes,
		change{"PROV-10 store", `"stream":true`, `"stream":true,"store":false`, "only OpenAI"},
		change{"PROV-10 tier", `"stream":true`, `"stream":true,"service_tier":"auto"`, "only OpenAI"},
		change{"PROV-10 key", `"stream":true`, `"stream":true,"prompt_cache_key":"x"`, "only OpenAI"},
		change{"PROV-10 role", `"system"`, `"developer"`, "developer"},
		change{"marker", `"text":"a"`, `"text":"a","cache_control":{"type":"ephemeral"}`, "cache marker"},
		change{"reasoning", `"content":null`, `"content":null,"reasoning_content":"x"`, "reasoning_content"},
	))
}

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
		{"good, and steered", ask(user, calls, Result("a", "r"), user, user), ""},
		{"no model", &llm.Request{Messages: ask(user).Messages}, "no model"},
		{"no messages", ask(), "no messages"},
		{"nil", ask(nil), "no content"},
		{"assistant first", ask(calls, Result("a", "r")), "want user"},
		{"assistant last", ask(user, &llm.Message{Role: llm.RoleAssistant, Parts: user.Parts}), "assistant's"},
		{"open call", ask(user, calls), "without result"},
		{"open call in the middle", ask(user, calls, user), "without result"},
		{"result of nothing", ask(user, Result("a", "r")), "no call"},
		{"two results", ask(user, calls, Result("a", "r"), Result("a", "r")), "no call"},
		{"call twice", ask(user, calls, Result("a", "r"), calls, Result("a", "r")), "twice"},
		{"empty text", ask(llm.User("")), "empty text"},
		{"no parts", ask(&llm.Message{Role: llm.RoleUser}), "no content"},
		{"role", ask(user, &llm.Message{Role: "system", Parts: user.Parts}), "role"},
		{"image", ask(&llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Image("", nil)}}), "image"},
		{"tools fall", &llm.Request{Model: "m", Messages: ask(user).Messages, Tools: []llm.ToolSpec{Tool("b"), Tool("a")}}, "rise"},
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
		first := answered(t, p, Ask("Hi"))
		if m := first.Message; m.Stop != llm.StopTools || len(m.Calls()) != 2 || m.Calls()[1].Raw != "{" || first.Usage.Output == 0 {
			t.Errorf("message = %+v, usage %+v", m, first.Usage)
		}
		if e, ok := errors.AsType[*llm.Error](ask(t, p, Ask("Hi")).Err); !ok || e.Class != llm.ClassRate || e.RetryAfter != 7*time.Second {
			t.Errorf("error = %+v", e)
		}
		begun := time.Now()
		if got := answered(t, p, Ask("Hi")).Message.PlainText(); got != "late" || time.Since(begun) != time.Hour {
			t.Errorf("answer %q after %v", got, time.Since(begun))
		}
		if c := ask(t, p, Ask("Hi")); llm.ClassOf(c.Err) != llm.ClassOverload || c.Text() != "Some text" {
			t.Errorf("answer %q, %v", c.Text(), c.Err)
		}
		if m := answered(t, p, Ask("Hi")).Message; len(m.Parts) != 0 || m.Stop != llm.StopEnd {
			t.Errorf("message = %+v, want an empty one", m)
		}
		for _, r := range []*llm.Request{Ask("Hi"), Ask("")} { // no step; no valid request
			if c := ask(t, p, r); llm.ClassOf(c.Err) != llm.ClassFormat {
				t.Errorf("error = %v, want class %s", c.Err, llm.ClassFormat)
			}
		}
		if n := len(p.Requests()); n != 7 {
			t.Errorf("%d requests, want 7", n)
		}
	})
}

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
		send("/v1/messages", "k", validAnthropic), send("/v1/messages", "wrong", validAnthropic), send("/v1/other", "k", validAnthropic),
		send("/v1/messages", "k", "{}"), send("/v1/messages", "k", validAnthropic),
	}
	got = append(got, send("/v1/messages", "k", validAnthropic)) // what was refused took no step; now there is none
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

// TestEventsAreJSON: what the servers send is what it should be, before any
// fault touches it.
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
