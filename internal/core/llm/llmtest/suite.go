package llmtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/llm"
)

// Open returns a provider of the dialect under test for the service at the URL.
// It has no model catalog.
type Open func(url string, hc *http.Client) llm.Provider

// Suite is the conformance suite of a dialect, run against scripted servers.
func Suite(t *testing.T, w Wire, open Open) {
	s := suite{w, open}
	for _, tt := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"text", s.text},
		{"thinking", s.thinking},
		{"tools", s.tools},
		{"large", s.large},
		{"images", s.images},
		{"histories", s.histories},
		{"faults", s.faults},
		{"bodies", s.bodies},
		{"cut", s.cut},
		{"hang", s.hang},
		{"keep-alives are no silence", s.thinks},
		{"leave", s.stop},
		{"usage", s.usage},
		{"arguments", s.arguments},
		{"memo", s.memo},
		{"reuse", s.reuse},
		{"socket", s.socket},
	} {
		t.Run(tt.name, tt.run)
	}
}

type suite struct {
	wire Wire
	open Open
}

// with runs f in a synctest bubble with a server of the steps.
func (s suite) with(t *testing.T, f func(t *testing.T, srv *Server, p llm.Provider), steps ...Step) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := NewServer(t, s.wire, steps...)
		f(t, srv, s.open(srv.Pipe()))
	})
}

// Ask returns a request of one user message.
func Ask(text string) *llm.Request {
	return &llm.Request{Model: "scripted-1", Messages: []*llm.Message{llm.User(text)}}
}

// ask calls p and fails the test if the stream violates the contract.
func ask(t *testing.T, p llm.Provider, r *llm.Request) *Collected {
	t.Helper()
	c, err := Collect(t.Context(), p, r)
	if err != nil {
		t.Errorf("contract violation: %v", err)
	}
	return c
}

// mustAnswer is like ask, but requires an answer.
func mustAnswer(t *testing.T, p llm.Provider, r *llm.Request) *Collected {
	t.Helper()
	c := ask(t, p, r)
	if c.Err != nil || c.Message == nil {
		t.Fatalf("answer: %v", c.Err)
	}
	return c
}

func (s suite) text(t *testing.T) {
	step := Say("Hello, 世界. \"Quoted\"\n\ttext.")
	step.Chunk = 3
	s.with(t, func(t *testing.T, srv *Server, p llm.Provider) {
		c := mustAnswer(t, p, Ask("Hi"))
		if got, want := c.Message.PlainText(), step.Parts[0].Text; got != want {
			t.Errorf("text = %q, want %q", got, want)
		}
		if len(c.Events) < 5 {
			t.Errorf("%d events: the text was not streamed", len(c.Events))
		}
		if c.Message.Stop != llm.StopEnd {
			t.Errorf("stop = %q, want %q", c.Message.Stop, llm.StopEnd)
		}
		for _, r := range srv.Requests() {
			if bytes.Contains(r.Body, []byte(`"tools"`)) {
				t.Errorf("PROV-21: empty tools field: %s", r.Body)
			}
		}
		for _, want := range []llm.StopReason{llm.StopLength, llm.StopRefusal} {
			if want == llm.StopRefusal && s.wire == Ollama {
				break // no model of it refuses in that way
			}
			if c := mustAnswer(t, p, Ask("Hi")); c.Message.Stop != want {
				t.Errorf("stop = %q, want %q", c.Message.Stop, want)
			}
		}
	}, step, Step{Parts: step.Parts, Stop: llm.StopLength}, Step{Parts: step.Parts, Stop: llm.StopRefusal})
}

func (s suite) thinking(t *testing.T) {
	s.with(t, func(t *testing.T, srv *Server, p llm.Provider) {
		r := Ask("Think")
		r.Thinking = llm.High
		c := mustAnswer(t, p, r)
		var thought string
		for _, e := range c.Events {
			if e.Kind == llm.ThinkingDelta {
				thought += e.Text
			}
		}
		if thought != "Let me see." || c.Message.Parts[0].Kind != llm.PartThinking {
			t.Errorf("thought = %q, parts %+v", thought, c.Message.Parts)
		}
		call := c.Message.Calls()[0]
		r.Messages = append(r.Messages, c.Message, Result(call.ID, "out"))
		r.Tools = []llm.ToolSpec{Tool("look")}
		mustAnswer(t, p, r)
		last := srv.Requests()[1].Body
		if got, want := bytes.Contains(last, []byte("c2lnbmVk")), s.wire != OpenAI && s.wire != Ollama; got != want {
			t.Errorf("signature sent back: %v, want %v: %s", got, want, last)
		}

		foreign := Fresh(c.Message)
		foreign.Provider = "another"
		r.Messages[1] = foreign
		mustAnswer(t, p, r)
		if last := srv.Requests()[2].Body; bytes.Contains(last, []byte("Let me see")) {
			t.Errorf("thinking of another provider was sent: %s", last)
		}
	}, Think("Let me see.", "c2lnbmVk", Call("t1", "look", `{"at":1}`)), Say("done"), Say("done"))
}

// Fresh returns a copy of m without a stored encoding. It shares the parts.
func Fresh(m *llm.Message) *llm.Message {
	return &llm.Message{
		Role: m.Role, Parts: m.Parts, Provider: m.Provider, Model: m.Model, Stop: m.Stop,
		CallID: m.CallID, ToolName: m.ToolName, IsError: m.IsError,
	}
}

// Result returns a tool result with one text.
func Result(callID, text string) *llm.Message {
	return &llm.Message{Role: llm.RoleTool, CallID: callID, Parts: []llm.Part{llm.Text(text)}}
}

// Tool returns the specification of a tool with arbitrary arguments.
func Tool(name string) llm.ToolSpec {
	return llm.ToolSpec{
		Name: name, Description: "Does " + name + ".",
		Schema: json.RawMessage(`{"type":"object","properties":{"at":{"type":"integer"}}}`),
	}
}

func (s suite) tools(t *testing.T) {
	calls := []llm.ToolCall{
		ToolCall("a", "look", `{"at":1}`), ToolCall("b", "look", `{"at":2,"why":"\"so\" – 因为"}`), ToolCall("c", "nap", `{}`),
	}
	step := Calls(calls...)
	step.Chunk = 4
	step.Parts = append([]llm.Part{llm.Text("Looking.")}, step.Parts...)
	s.with(t, func(t *testing.T, srv *Server, p llm.Provider) {
		r := Ask("Look")
		r.Tools = []llm.ToolSpec{Tool("look"), Tool("nap")}
		c := mustAnswer(t, p, r)
		if d := cmp.Diff(calls, c.Message.Calls()); d != "" {
			t.Errorf("calls (-want +got):\n%s", d)
		}
		if c.Message.Stop != llm.StopTools || c.Message.PlainText() != "Looking." {
			t.Errorf("stop %q, text %q", c.Message.Stop, c.Message.PlainText())
		}
		failed := Result("b", "no")
		failed.IsError = true
		r.Messages = append(r.Messages, c.Message, Result("a", "1"), failed, Result("c", ""))
		mustAnswer(t, p, r)
		union := Tool("pick")
		union.Schema = json.RawMessage(
			`{"anyOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{}}}]}`)
		r.Tools = append(r.Tools, union, llm.ToolSpec{Name: "zero", Schema: json.RawMessage(`{}`)})
		mustAnswer(t, p, r) // PROV-06: the server rejects schemas that are not objects
		r.Tools = nil
		mustAnswer(t, p, r) // the last call of a run has no tools
	}, step, Say("done"), Say("done"), Say("done"))
}

// large tests large answers: a text of 10 MB in one event, and many calls, two
// of which have the same id.
func (s suite) large(t *testing.T) {
	text := Say(strings.Repeat("0123456789", 1<<20))
	text.Chunk = 10 << 20
	var calls []llm.ToolCall
	for i := range 200 {
		calls = append(calls, ToolCall(fmt.Sprint("call_", i%199), "look", fmt.Sprintf(`{"at":%d}`, i)))
	}
	s.with(t, func(t *testing.T, _ *Server, p llm.Provider) {
		if got := mustAnswer(t, p, Ask("Hi")).Message.PlainText(); got != text.Parts[0].Text {
			t.Errorf("text of %d bytes, want %d", len(got), 10<<20)
		}
		seen := map[string]bool{}
		got := mustAnswer(t, p, Ask("Hi")).Message.Calls()
		for i, c := range got {
			if seen[c.ID] || string(c.Args) != string(calls[i].Args) {
				t.Errorf("call %d: duplicate id %s, or arguments %s", i, c.ID, c.Args)
			}
			seen[c.ID] = true
		}
		if len(got) != 200 {
			t.Errorf("%d calls, want 200", len(got))
		}
	}, text, Calls(calls...))
}

// pixel is a PNG.
var pixel = [...]byte{0x89, 'P', 'N', 'G', 0xd, 0xa, 0x1a, 0xa, 0, 0, 0, 0xd, 'I', 'H', 'D', 'R'}

func (s suite) images(t *testing.T) {
	s.with(t, func(t *testing.T, srv *Server, p llm.Provider) {
		png := llm.Image("image/png", pixel[:])
		user := &llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Text("See"), png, llm.Image("image/tiff", pixel[:])}}
		calls := Calls(ToolCall("a", "shot", `{}`), ToolCall("b", "shot", `{}`))
		shot := &llm.Message{Role: llm.RoleTool, CallID: "a", Parts: []llm.Part{png}}
		r := Ask("")
		r.Messages = []*llm.Message{user, calls.message("x", "y"), shot, Result("b", "text"), llm.User("Well?")}
		r.Tools = []llm.ToolSpec{Tool("shot")}
		mustAnswer(t, p, r)
		body := srv.Requests()[0].Body
		if n := bytes.Count(body, []byte("iVBORw0KGgo")); n != 2 {
			t.Errorf("%d images were sent, want 2: %s", n, body)
		}
		if !bytes.Contains(body, []byte("image/tiff")) {
			t.Errorf("nothing says that an image was left out: %s", body)
		}
	}, Say("done"))
}

// histories tests message lists that occur in conversations.
func (s suite) histories(t *testing.T) {
	say := func(parts ...llm.Part) *llm.Message {
		return &llm.Message{Role: llm.RoleAssistant, Parts: parts, Provider: "another"}
	}
	call := func(id, name, args string) llm.Part {
		c := ToolCall(id, name, args)
		return llm.Part{Kind: llm.PartCall, Call: &c}
	}
	thought := llm.Part{Kind: llm.PartThinking, Text: "hm"}
	odd := "call:1|fc_" + strings.Repeat("x", 60)
	for name, msgs := range map[string][]*llm.Message{
		"users in a row":      {llm.User("a"), llm.User("b"), llm.User("c")},
		"white space":         {llm.User("a"), say(llm.Text(" \n")), llm.User("b")},
		"only thinking":       {llm.User("a"), say(thought), llm.User("b")},
		"thinking at the end": {llm.User("a"), say(llm.Text("x"), thought), llm.User("b")},
		"assistant first":     {say(llm.Text("x")), llm.User("b")},
		"assistant last":      {llm.User("a"), say(llm.Text("x ")), say(llm.Text("y"))},
		"odd ids and names":   {llm.User("a"), say(call(odd, "a.b/c d", `{}`)), Result(odd, "x")},
		"no name":             {llm.User("a"), say(call("c", "", `{}`)), Result("c", "x")},
		"arguments no object": {llm.User("a"), say(call("c", "t", `[1]`)), Result("c", "x")},
		"arguments null":      {llm.User("a"), say(call("c", "t", `null`)), Result("c", "x")},
		"arguments no JSON":   {llm.User("a"), say(call("c", "t", `{"a`)), Result("c", "x")},
		"half a character":    {llm.User("a"), say(call("c", "t", `{"a":"\ud83d"}`)), Result("c", "x\xff")},
		"empty result":        {llm.User("a"), say(call("c", "t", `{}`)), Result("c", "")},
		"empty result image": {llm.User("a"), say(call("c", "t", `{}`)),
			{Role: llm.RoleTool, CallID: "c", Parts: []llm.Part{llm.Image("image/png", nil)}}},
		"result without parts": {llm.User("a"), say(call("c", "t", `{}`)), {Role: llm.RoleTool, CallID: "c"}},
		"steered":              {llm.User("a"), say(call("c", "t", `{}`)), Result("c", "x"), llm.User("b"), llm.User("c")},
		"answer behind results": {llm.User("a"), say(call("c", "t", `{}`)), Result("c", "x"),
			say(llm.Text("y")), llm.User("b")},
	} {
		t.Run(name, func(t *testing.T) {
			s.with(t, func(t *testing.T, _ *Server, p llm.Provider) {
				for _, level := range []llm.Level{llm.Off, llm.High} {
					r := Ask("")
					r.Messages, r.Thinking = msgs, level
					mustAnswer(t, p, r)
				}
			}, Say("done"), Say("done"))
		})
	}
}

func (s suite) faults(t *testing.T) {
	in := func(f Fault) Step { step := Say("Some text"); step.Fault = f; return step }
	for name, tt := range map[string]struct {
		step  Step
		class llm.Class
		after time.Duration
	}{
		"400":          {Status(400, "bad field"), llm.ClassFormat, 0},
		"400 too long": {Status(400, "prompt is too long: 210000 tokens"), llm.ClassContext, 0},
		"401":          {Status(401, "invalid key"), llm.ClassAuth, 0},
		"402":          {Status(402, "pay"), llm.ClassBilling, 0},
		"403":          {Status(403, "no"), llm.ClassAuth, 0},
		"403 billing":  {Status(403, "insufficient credit"), llm.ClassBilling, 0},
		"404":          {Status(404, "no such model"), llm.ClassNoModel, 0},
		"408":          {Status(408, "late"), llm.ClassTimeout, 0},
		"413":          {Status(413, "large"), llm.ClassContext, 0},
		"429 seconds":  {Step{Fault: Fault{Status: 429, RetryAfter: "12"}}, llm.ClassRate, 12 * time.Second},
		"429 date": {Step{Fault: Fault{Status: 429, RetryAfter: "Sat, 01 Jan 2000 00:02:00 GMT"}},
			llm.ClassRate, 2 * time.Minute},
		"429 garbage":   {Step{Fault: Fault{Status: 429, RetryAfter: "soon"}}, llm.ClassRate, 0},
		"500":           {Status(500, "oops"), llm.ClassNetwork, 0},
		"502 page":      {Step{Fault: Fault{Status: 502, Body: page}}, llm.ClassNetwork, 0},
		"503":           {Status(503, "busy"), llm.ClassOverload, 0},
		"529":           {Status(529, "busy"), llm.ClassOverload, 0},
		"redirect":      {Step{Fault: Fault{Status: 307, Header: location}}, llm.ClassFormat, 0},
		"in the stream": {in(Fault{Error: true}), llm.ClassOverload, 0},
		"rate in the stream": {
			in(Fault{Error: true, Kind: "rate_limit_error"}), llm.ClassRate, 0,
		},
		"a web page": {in(Fault{Body: page, Header: html}), llm.ClassNetwork, 0},
		"no events":  {in(Fault{Body: func([]byte) []byte { return nil }}), llm.ClassNetwork, 0},
		"no JSON":    {in(Fault{Body: func([]byte) []byte { return []byte("data: {\"type\":\n\n") }}), llm.ClassNetwork, 0},
		"huge event": {in(Fault{Body: func([]byte) []byte { return append([]byte("data: "), make([]byte, 17<<20)...) }}),
			llm.ClassNetwork, 0},
		"flood": {in(Fault{Body: func([]byte) []byte {
			if s.wire == Ollama {
				return bytes.Repeat([]byte("{}"+strings.Repeat(" ", 1<<20)+"\n"), 70)
			}
			return bytes.Repeat([]byte("data: {}\n\n: "+strings.Repeat("x", 1<<20)+"\n\n"), 70)
		}}), llm.ClassNetwork, 0},
	} {
		if s.wire == Ollama && name == "rate in the stream" {
			continue // a server of one's own has no rates
		}
		t.Run(name, func(t *testing.T) {
			s.with(t, func(t *testing.T, srv *Server, p llm.Provider) {
				c := ask(t, p, Ask("Hi"))
				e, ok := errors.AsType[*llm.Error](c.Err)
				if !ok {
					t.Fatalf("error = %v, want an *llm.Error", c.Err)
				}
				if e.Class != tt.class || e.RetryAfter != tt.after || e.Provider == "" || e.Model != "scripted-1" {
					t.Errorf("error = %+v, want class %s, retry after %v", e, tt.class, tt.after)
				}
				if strings.ContainsAny(e.Message, "\n\r") || len(e.Message) > 600 || e.Message == "" {
					t.Errorf("message = %q: want one short line", e.Message)
				}
				if name == "flood" && !strings.Contains(e.Message, "larger than") {
					t.Errorf("message = %q: the flood was read to its end", e.Message)
				}
				if len(srv.Requests()) != 1 {
					t.Errorf("%d requests, want 1", len(srv.Requests()))
				}
			}, tt.step)
		})
	}
}

func page([]byte) []byte {
	return []byte("<html>\n<body>" + strings.Repeat("Bad gateway. ", 200) + "</body>\n</html>")
}
func html(set func(k, v string))     { set("Content-Type", "text/html; charset=utf-8") }
func location(set func(k, v string)) { set("Location", "http://elsewhere.invalid/") }

// bodies tests variations of the stream format.
func (s suite) bodies(t *testing.T) {
	replace := func(from, to string) func([]byte) []byte {
		return func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(from), []byte(to)) }
	}
	want := "Some text"
	for name, tt := range map[string]struct {
		body func([]byte) []byte
		text string
	}{
		"CRLF":             {replace("\n", "\r\n"), want},
		"CR":               {replace("\n", "\r"), want},
		"byte order mark":  {func(b []byte) []byte { return append([]byte("\xef\xbb\xbf"), b...) }, want},
		"comments":         {replace("\n\n", "\n\n: ping\n\n"), want},
		"no space":         {replace(": ", ":"), want},
		"invalid UTF-8":    {replace("Some", "S\xffme"), "S\ufffdme text"},
		"half a character": {replace("Some", `S\ud800me`), "S\ufffdme text"},
		"unknown events": {
			func(b []byte) []byte { return append([]byte("event: new\ndata: {\"type\":\"new\"}\n\n"), b...) }, want},
		"doubled at the end":       {double, want},
		"no blank line at the end": {func(b []byte) []byte { return bytes.TrimSuffix(b, []byte("\n")) }, want},
		"no line end at the end":   {func(b []byte) []byte { return bytes.TrimRight(b, "\n") }, want},
		"no last event":            {withoutLast, want},
		"half of the last event":   {func(b []byte) []byte { return b[:len(b)-7] }, want},
		"more behind the end": {func(b []byte) []byte {
			return append(b, "data: not even JSON\n\n"...)
		}, want},
	} {
		switch {
		case s.wire.wholeCalls() && name == "doubled at the end":
			continue // the last event but one is text
		case s.wire == Ollama &&
			slices.Contains([]string{"CR", "byte order mark", "comments", "no space", "unknown events"}, name):
			continue // it has no events
		}
		t.Run(name, func(t *testing.T) {
			step := Say("Some text")
			step.Fault.Body = tt.body
			s.with(t, func(t *testing.T, _ *Server, p llm.Provider) {
				if s.wire.endsOnce() && strings.Contains(name, "last event") { // only it says that nothing follows
					if c := ask(t, p, Ask("Hi")); llm.ClassOf(c.Err) != llm.ClassNetwork {
						t.Errorf("an answer that may be cut: %v", c.Err)
					}
					return
				}
				if got := mustAnswer(t, p, Ask("Hi")).Message.PlainText(); got != tt.text {
					t.Errorf("text = %q, want %q", got, tt.text)
				}
			}, step)
		})
	}
}

// withoutLast drops the last event, which only says that there is no other.
func withoutLast(b []byte) []byte {
	b = bytes.TrimRight(b, "\n")
	return b[:bytes.LastIndexByte(b, '\n')]
}

// double repeats the last two events.
func double(b []byte) []byte {
	events := bytes.SplitAfter(b, []byte("\n\n"))
	n := len(events) - 1 // the last is empty
	return bytes.Join(slices.Concat(events[:n-2], [][]byte{events[n-2], events[n-2], events[n-1], events[n-1]}), nil)
}

// cut truncates an answer at each byte: the result is an error or the complete
// answer.
func (s suite) cut(t *testing.T) {
	step := Think("Hm.", "c2ln", Call("a", "look", `{"at":1}`))
	whole := len(Body(s.wire, step))
	synctest.Test(t, func(t *testing.T) {
		at := 0
		srv := ServerFunc(t, s.wire, func(int, ReceivedRequest) Step {
			f := step
			f.Fault.Cut, f.Fault.CutAt, f.Fault.Abort = true, at, at%2 == 0
			return f
		})
		p := s.open(srv.Pipe())
		done := 0
		for ; at <= whole+50; at++ { // a longer request has longer numbers
			c := ask(t, p, Ask("Hi"))
			switch {
			case c.Err != nil && llm.ClassOf(c.Err) != llm.ClassNetwork:
				t.Errorf("cut at %d of %d: %v", at, whole, c.Err)
			case c.Err == nil:
				done++
				if d := cmp.Diff(step.Parts[1].Call, &c.Message.Calls()[0]); d != "" {
					t.Errorf("cut at %d of %d: call (-want +got):\n%s", at, whole, d)
				}
			}
		}
		if done == 0 || done > whole/2 {
			t.Errorf("%d of %d cuts gave a whole answer", done, whole)
		}
	})
}

// hang tests R19: a response that stops ends within the time limit, releases
// the connection, and the next call succeeds.
func (s suite) hang(t *testing.T) {
	limits := llm.Timeouts{First: 30 * time.Second, Idle: 20 * time.Second, KeepAlive: 3 * time.Minute,
		Total: 5 * time.Minute}
	say := strings.Repeat("Some text ", 60)
	for name, tt := range map[string]struct {
		fault Fault
		limit time.Duration
		says  string
	}{
		"R19 before the headers": {Fault{Hang: HangHeaders}, limits.First, "nothing was received for 30s"},
		"R19 behind the headers": {Fault{Hang: HangBody}, limits.Idle, "nothing was received for 20s"},
		"R19 in the middle":      {Fault{Hang: HangMiddle}, limits.Idle, "nothing was received for 20s"},
		"R19 keep-alives only": {Fault{Hang: HangBody, Ping: 15 * time.Second}, limits.KeepAlive,
			"only keep-alives were received for 3m0s"},
		"R19 rare keep-alives": {Fault{Hang: HangBody, Ping: 25 * time.Second}, limits.Idle,
			"nothing was received for 20s"},
		"R19 one byte a second":      {Fault{Drip: time.Second}, limits.Total, ""},
		"R19 one event in a quarter": {Fault{}, limits.Total, "there was no complete answer within 5m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			step := Say(say)
			if step.Fault = tt.fault; name == "R19 one event in a quarter" {
				step.Gap = 15 * time.Second
			}
			s.with(t, func(t *testing.T, srv *Server, p llm.Provider) {
				p = llm.Watch(p, limits)
				started := time.Now()
				c := ask(t, p, Ask("Hi"))
				if took := time.Since(started); took > tt.limit+time.Second || llm.ClassOf(c.Err) != llm.ClassTimeout {
					// One byte a second is without events first.
					t.Errorf("ended after %v with %v, want a timeout by %v", took, c.Err, tt.limit)
				}
				if c.Err != nil && !strings.Contains(c.Err.Error(), tt.says) {
					t.Errorf("error = %v, want %q", c.Err, tt.says)
				}
				synctest.Wait()
				if n := srv.Active(); n != 0 {
					t.Errorf("%d requests are still being answered", n)
				}
				mustAnswer(t, p, Ask("Hi"))
			}, step, Say("served"))
		})
	}
}

// thinks tests that a model may think for longer than a service may be silent.
func (s suite) thinks(t *testing.T) {
	step := Say("done")
	step.Delay, step.Fault.Ping = 10*time.Minute, 15*time.Second
	s.with(t, func(t *testing.T, _ *Server, p llm.Provider) {
		p = llm.Watch(p, llm.Timeouts{First: 30 * time.Second, Idle: 20 * time.Second, KeepAlive: 15 * time.Minute})
		if got := mustAnswer(t, p, Ask("Hi")).Message.PlainText(); got != "done" {
			t.Errorf("answer = %q", got)
		}
	}, step)
}

// stop tests callers that cancel the context or break out of the range.
func (s suite) stop(t *testing.T) {
	step := Say(strings.Repeat("Some text that is longer than one delta. ", 10))
	step.Fault.Hang = HangMiddle
	t.Run("cancel", func(t *testing.T) {
		s.with(t, func(t *testing.T, srv *Server, p llm.Provider) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Minute, cancel)
			c, err := Collect(ctx, p, Ask("Hi"))
			if err != nil || !errors.Is(c.Err, context.Canceled) || llm.ClassOf(c.Err) != "" {
				t.Errorf("error = %v (%v), want %v", c.Err, err, context.Canceled)
			}
			synctest.Wait()
			if n := srv.Active(); n != 0 {
				t.Errorf("%d requests are still being answered", n)
			}
			if c, _ := Collect(ctx, p, Ask("Hi")); !errors.Is(c.Err, context.Canceled) || len(srv.Requests()) != 1 {
				t.Errorf("with a dead context: %v, %d requests", c.Err, len(srv.Requests()))
			}
		}, step)
	})
	t.Run("break", func(t *testing.T) {
		s.with(t, func(t *testing.T, srv *Server, p llm.Provider) {
			for _, err := range p.Stream(t.Context(), Ask("Hi")) {
				if err != nil {
					t.Errorf("stream: %v", err)
				}
				break
			}
			synctest.Wait()
			if n := srv.Active(); n != 0 {
				t.Errorf("%d requests are still being answered", n)
			}
		}, step)
	})
}

func (s suite) usage(t *testing.T) {
	with := func(u llm.Usage, f Fault) Step { step := Say("Some text"); step.Usage, step.Fault = &u, f; return step }
	want := llm.Usage{Input: 100, Output: 20, CacheRead: 3000}
	told := want
	if s.wire == Ollama { // it does not say what it had evaluated before
		told = llm.Usage{Input: 3100, Output: 20}
	}
	absurd := llm.Usage{Input: -5, Output: 1 << 60}
	t.Run("USAGE-01 numbers are the same for each wire format", func(t *testing.T) {
		s.with(t, func(t *testing.T, _ *Server, p llm.Provider) {
			if got := mustAnswer(t, p, Ask("Hi")).Usage; got != told {
				t.Errorf("usage = %+v, want %+v", got, told)
			}
		}, with(want, Fault{}))
	})
	t.Run("PROV-17 usage in the last event only is recorded", func(t *testing.T) {
		late := func(b []byte) []byte { // no usage at the start
			return bytes.ReplaceAll(b, []byte(`"output_tokens":1}`), []byte(`"output_tokens":0}`))
		}
		s.with(t, func(t *testing.T, _ *Server, p llm.Provider) {
			if got := mustAnswer(t, p, Ask("Hi")).Usage; got != told {
				t.Errorf("usage = %+v, want %+v", got, told)
			}
		}, with(want, Fault{Body: late}))
	})
	t.Run("the usage of a broken call comes with the error", func(t *testing.T) {
		reported := llm.Usage{}
		if s.wire == Anthropic { // OpenAI reports it at the end
			reported = llm.Usage{Input: 100, Output: 1, CacheRead: 3000}
		}
		hang := with(want, Fault{Hang: HangMiddle})
		s.with(t, func(t *testing.T, _ *Server, p llm.Provider) {
			if c := ask(t, p, Ask("Hi")); c.Err == nil || c.Usage != reported {
				t.Errorf("usage = %+v with %v, want %+v", c.Usage, c.Err, reported)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if c, _ := Collect(ctx, p, Ask("Hi")); !errors.Is(c.Err, context.DeadlineExceeded) || c.Usage != reported {
				t.Errorf("usage = %+v with %v, want %+v", c.Usage, c.Err, reported)
			}
		}, with(want, Fault{Error: true}), hang)
	})
	t.Run("none or absurd", func(t *testing.T) {
		s.with(t, func(t *testing.T, _ *Server, p llm.Provider) {
			for range 2 {
				u := mustAnswer(t, p, Ask("Hi")).Usage
				if !u.Estimated || u.Input < 10 || u.Input > 1000 || u.Output != 3 {
					t.Errorf("usage = %+v, want an estimate", u)
				}
			}
		}, with(want, Fault{NoUsage: true}), with(absurd, Fault{}))
	})
}

func (s suite) arguments(t *testing.T) {
	for name, tt := range map[string]struct{ wire, args, raw string }{
		"none":      {"", `{}`, ""},
		"space":     {" ", `{}`, ""},
		"malformed": {`{"at":1`, `{}`, `{"at":1`},
		"two":       {`{}{}`, `{}`, `{}{}`},
		"words":     {`at one`, `{}`, `at one`},
		"a list":    {`[1]`, `[1]`, ""},
	} {
		if s.wire.wholeCalls() && strings.TrimSpace(tt.wire) != "" {
			continue // the arguments are always an object
		}
		t.Run(name, func(t *testing.T) {
			c := llm.ToolCall{ID: "a", Name: "nobody_knows", Args: json.RawMessage(tt.wire)}
			s.with(t, func(t *testing.T, _ *Server, p llm.Provider) {
				want := []llm.ToolCall{{ID: "a", Name: "nobody_knows", Args: json.RawMessage(tt.args), Raw: tt.raw}}
				if d := cmp.Diff(want, mustAnswer(t, p, Ask("Hi")).Message.Calls()); d != "" {
					t.Errorf("calls (-want +got):\n%s", d)
				}
			}, Calls(c))
		})
	}
	if s.wire.wholeCalls() {
		return
	}
	t.Run("PROV-12 a stream that ends in a call's arguments", func(t *testing.T) {
		step := Call("a", "look", `{"at":`)
		step.Stop = llm.StopLength
		s.with(t, func(t *testing.T, _ *Server, p llm.Provider) {
			m := mustAnswer(t, p, Ask("Hi")).Message
			if m.Stop != llm.StopLength || m.Calls()[0].Raw != `{"at":` {
				t.Errorf("stop %q, calls %+v", m.Stop, m.Calls())
			}
		}, step)
	})
}

// memo tests that a request does not depend on earlier requests, and that
// successive requests of a conversation have the same prefix.
func (s suite) memo(t *testing.T) {
	t.Run("CACHE-01 two turns begin with the same bytes", func(t *testing.T) {
		s.with(t, func(t *testing.T, srv *Server, p llm.Provider) {
			r := Ask("First")
			r.System = []llm.Block{{Text: "Stays.", Cache: true}, {Text: "Changes."}}
			for i := range 50 {
				r.Tools = append(r.Tools, Tool(fmt.Sprintf("tool_%02d", i)))
			}
			for i := range 3 {
				m := mustAnswer(t, p, r).Message
				if i > 0 {
					r.Messages = append(r.Messages, m, llm.User("Next"))
				}
			}
			got := srv.Requests()
			if !bytes.Equal(got[0].Body, got[1].Body) {
				t.Errorf("two builds differ:\n%s\n%s", got[0].Body, got[1].Body)
			}
			end := bytes.Index(got[0].Body, []byte("First")) + len("First")
			if !bytes.HasPrefix(got[2].Body, got[0].Body[:end]) {
				t.Errorf("the prefix changed:\n%s\n%s", got[0].Body, got[2].Body)
			}
			fresh := *r
			fresh.Messages = nil
			for _, m := range r.Messages {
				fresh.Messages = append(fresh.Messages, Fresh(m))
			}
			mustAnswer(t, p, r)
			mustAnswer(t, p, &fresh)
			if got := srv.Requests(); !bytes.Equal(got[3].Body, got[4].Body) {
				t.Errorf("stored and fresh encodings differ:\n%s\n%s", got[3].Body, got[4].Body)
			}
		}, Say("a"), Say("b"), Say("c"), Say("d"), Say("e"))
	})
}

func (s suite) reuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := ServerFunc(t, s.wire, func(int, ReceivedRequest) Step { return Say("ok") })
		p := s.open(srv.Pipe())
		for range 5 {
			mustAnswer(t, p, Ask("Hi"))
			synctest.Wait()
		}
		if n := srv.Connections(); n != 1 {
			t.Errorf("five calls opened %d connections, want 1", n)
		}
	})
}

func (s suite) socket(t *testing.T) {
	t.Parallel()
	srv := NewServer(t, s.wire, Say("over a socket"))
	if got := mustAnswer(t, s.open(srv.Listen()), Ask("Hi")).Message.PlainText(); got != "over a socket" {
		t.Errorf("text = %q", got)
	}
}
