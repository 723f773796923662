package chelatest

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// TestFallback tests a fallback from the point of view of a client.
func TestFallback(t *testing.T) {
	first, standIn := testServices()[0], testServices()[1]
	// with runs f with an application whose services follow the steps. The
	// model of the second service is the fallback.
	with := func(name, fallback string, answer func(service string, n int, got llmtest.ReceivedRequest) llmtest.Step,
		f func(t *testing.T, s services, c *Client)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, hc := network(t, answer)
				conf := asks(`{"thinkingDefault": "high"}`, first.ref(), fallback)
				conf["models"] = json.RawMessage(strings.Replace(string(conf["models"]), `"openai":{`,
					`"openai":{"models":[{"id":"plain","contextWindow":16000,"maxTokens":1000}],`, 1))
				g := Start(t, Options{HTTP: hc, Env: keys(nil), Config: conf})
				c := g.Client()
				f(t, s, c)
				c.Close()
				g.Stop()
				s.close()
			})
		})
	}
	// failing returns steps with n responses of the status by the first
	// service.
	failing := func(status, times int) func(string, int, llmtest.ReceivedRequest) llmtest.Step {
		return func(service string, n int, _ llmtest.ReceivedRequest) llmtest.Step {
			if service == first.name && n < times {
				return llmtest.Status(status, "not now")
			}
			return llmtest.Say("from " + service)
		}
	}
	notices := func(seen []wire.Event) (texts []string) {
		for _, ev := range seen {
			var a wire.Agent
			var n wire.Notice
			if ev.Name == wire.EventAgent && ev.Decode(&a) == nil && a.Stream == wire.StreamNotice &&
				json.Unmarshal(a.Data, &n) == nil {
				texts = append(texts, n.Text)
			}
		}
		return texts
	}

	with("MODEL-03 the notice appears once, and the status names the model that answers", standIn.ref(), failing(429, 1),
		func(t *testing.T, s services, c *Client) {
			one := c.Ask("main", "one")
			if got := notices(one.Seen); one.Text != "from openai" || len(got) != 1 ||
				got[0] != "↪️ Model Fallback: openai/gpt-5 (selected anthropic/claude-sonnet-4-5; rate_limit)" {
				t.Errorf("%q, notices %q", one.Text, got)
			}
			if two := c.Ask("main", "two"); two.Text != "from openai" || len(notices(two.Seen)) != 0 {
				t.Errorf("%q, notices %q", two.Text, notices(two.Seen))
			}
			if got := c.Ask("main", "/status").Text; !strings.Contains(got,
				"Model: anthropic/claude-sonnet-4-5 (openai/gpt-5 answered instead)") {
				t.Error(got)
			}
			time.Sleep(2 * time.Minute)
			three := c.Ask("main", "three")
			if got := notices(three.Seen); three.Text != "from anthropic" || len(got) != 1 ||
				!strings.Contains(got[0], "cleared") {
				t.Errorf("%q, notices %q", three.Text, got)
			}
			if got := c.Ask("main", "/status").Text; strings.Contains(got, "in its place") {
				t.Error(got)
			}
		})
	with("MODEL-02 a model chosen by a person is not replaced", standIn.ref(), failing(500, 99),
		func(t *testing.T, s services, c *Client) {
			c.Ask("main", "/model "+first.ref())
			if end := c.Ask("main", "hi"); end.State != wire.StateError || !strings.Contains(end.Error, first.ref()) {
				t.Errorf("%s %q %s", end.State, end.Text, end.Error)
			}
			if n := len(s[standIn.name].Requests()); n != 0 {
				t.Errorf("the fallback was asked %d times", n)
			}
		})
	down := func(string, int, llmtest.ReceivedRequest) llmtest.Step { return llmtest.Status(429, "not now") }
	with("FAIL-06 if all models fail, one message names each of them and the time", standIn.ref(), down,
		func(t *testing.T, s services, c *Client) {
			end := c.Ask("main", "hi")
			want := "no model answered: anthropic/claude-sonnet-4-5 (rate_limit), openai/gpt-5 (rate_limit); try again in "
			wait, err := time.ParseDuration(strings.TrimPrefix(end.Error, want))
			if end.State != wire.StateError || err != nil || wait <= 0 || wait > time.Minute {
				t.Errorf("%s %q %q", end.State, end.Text, end.Error)
			}
			if lines := c.lines("main"); len(lines) != 2 {
				t.Errorf("%q", lines)
			}
		})
	small := func(service string, n int, got llmtest.ReceivedRequest) llmtest.Step {
		switch {
		case service == first.name:
			return llmtest.Status(503, "not now")
		case bytes.Contains(got.Body, []byte("too much")):
			return llmtest.Status(400, "prompt is too long")
		}
		return llmtest.Say("seen nothing")
	}
	with("a fallback without vision and thinking, and with a small context window", standIn.name+"/plain", small,
		func(t *testing.T, s services, c *Client) {
			run, err := c.Client.Send(t.Context(), "main", "what is this?",
				wire.Attachment{Type: "image", MIME: "image/png", FileName: "a.png", Content: dot(t)})
			if err != nil {
				t.Fatal(err)
			}
			if end := c.Await(run); end.Text != "seen nothing" {
				t.Errorf("%s %q %s", end.State, end.Text, end.Error)
			}
			for _, got := range s[standIn.name].Requests() {
				body := string(got.Body)
				if strings.Contains(body, "image_url") || !strings.Contains(body, "does not support images") ||
					!strings.Contains(body, `"max_tokens":1000`) || got.Err != nil {
					t.Errorf("%v %.300s", got.Err, body)
				}
			}
			end := c.Ask("main", "too much")
			if want := "anthropic/claude-sonnet-4-5 (overloaded), openai/plain (context_overflow)"; !strings.Contains(end.Error,
				want) {
				t.Errorf("%s %q %s", end.State, end.Text, end.Error)
			}
			if lines := strings.Join(c.lines("main"), "\n"); !strings.Contains(lines, "what is this?") ||
				strings.Contains(lines, "left out") {
				t.Errorf("the history was truncated for the fallback:\n%s", lines)
			}
		})
	slow := func(service string, n int, _ llmtest.ReceivedRequest) llmtest.Step {
		if service == first.name {
			return llmtest.Status(503, "not now")
		}
		if n == 0 {
			step := llmtest.Call("call_1", "ls", `{}`)
			step.Delay = 5 * time.Second
			return step
		}
		return llmtest.Say("done")
	}
	with("a message during a fallback steers the run", standIn.ref(), slow, func(t *testing.T, s services, c *Client) {
		c.Ask("main", "/queue steer")
		run := c.Send("main", "one")
		time.Sleep(2 * time.Second)
		c.Send("main", "two, by the way")
		if end := c.Await(run); end.Text != "done" {
			t.Errorf("%s %q %s", end.State, end.Text, end.Error)
		}
		all := s[standIn.name].Requests()
		if last := all[len(all)-1]; !bytes.Contains(last.Body, []byte("two, by the way")) {
			t.Errorf("the fallback did not get the message; %d requests", len(all))
		}
	})
	stuck := func(service string, n int, _ llmtest.ReceivedRequest) llmtest.Step {
		switch {
		case service == first.name:
			return llmtest.Status(503, "not now")
		case n == 1:
			step := llmtest.Say(strings.Repeat("half an answer ", 10))
			step.Gap = 5 * time.Second
			return step
		}
		return llmtest.Say("done")
	}
	with("a stop during a fallback ends the run without a notice about the model", standIn.ref(), stuck,
		func(t *testing.T, s services, c *Client) {
			c.Ask("main", "one")
			run := c.Send("main", "two")
			time.Sleep(8 * time.Second)
			var stopped wire.ChatAborted
			c.must(wire.MethodChatAbort, wire.ChatAbort{SessionKey: "main", RunID: run}, &stopped)
			if end := c.Await(run); end.State != wire.StateAborted || len(notices(end.Seen)) != 0 {
				t.Errorf("%s %q %s, notices %q", end.State, end.Text, end.Error, notices(end.Seen))
			}
			if got := c.Ask("main", "/status").Text; !strings.Contains(got, "answered instead") {
				t.Error(got)
			}
			if end := c.Ask("main", "three"); end.Text != "done" || len(notices(end.Seen)) != 0 {
				t.Errorf("%s %q %s, notices %q", end.State, end.Text, end.Error, notices(end.Seen))
			}
		})
	dies := func(service string, n int, _ llmtest.ReceivedRequest) llmtest.Step {
		step := llmtest.Say("All of it, from " + service + ".")
		step.Usage, step.Gap = &llm.Usage{Input: 500, Output: 9}, time.Second
		if service == first.name {
			step.Parts = []llm.Part{llm.Text("Half of it, from " + service + ", and then nothing more.")}
			step.Usage = &llm.Usage{Input: 700, Output: 90}
			step.Fault = llmtest.Fault{Abort: true, Cut: true,
				CutAt: bytes.Index(llmtest.Body(first.wire, step), []byte("nothing"))}
		}
		return step
	}
	with("a service that dies in the middle and a fallback that answers: one answer, and usage of both", standIn.ref(),
		dies, func(t *testing.T, s services, c *Client) {
			end := c.Ask("main", "go on")
			want := "All of it, from openai."
			if end.State != wire.StateFinal || end.Text != want || len(notices(end.Seen)) != 1 {
				t.Fatalf("%s %q %s, notices %q", end.State, end.Text, end.Error, notices(end.Seen))
			}
			for _, name := range []string{wire.EventAgent, wire.EventChat} {
				text, void := streamed(end.Seen, name)
				if text != want || len(void) != 1 || !strings.HasPrefix(void[0], "Half of it, from anth") {
					t.Errorf("%s: the deltas make %q, and %q were replaced", name, text, void)
				}
			}
			var spent wire.UsageReport
			c.must(wire.MethodUsageCost, wire.UsageCost{}, &spent)
			got := map[string]int64{}
			for _, m := range spent.Models {
				got[m.Provider] = m.Input
			}
			if d := cmp.Diff(map[string]int64{"anthropic": 700, "openai": 500}, got); d != "" || spent.Totals.Calls != 2 {
				t.Errorf("%d calls, input %s", spent.Totals.Calls, d)
			}
			if got := c.Ask("main", "/status").Text; !strings.Contains(got, "Tokens: in 1.2k · ") {
				t.Error(got)
			}
			if lines := c.lines("main"); len(lines) < 3 || lines[2] != "assistant: "+want {
				t.Errorf("%q", lines)
			}
		})
	broken := func(service string, n int, _ llmtest.ReceivedRequest) llmtest.Step {
		if n > 0 {
			return llmtest.Say("A whole answer.")
		}
		step := llmtest.Say("Half of it, and then nothing more.")
		step.Chunk = 20
		step.Gap = time.Second
		step.Fault = llmtest.Fault{Abort: true, Cut: true,
			CutAt: bytes.Index(llmtest.Body(first.wire, step), []byte("nothing"))}
		return step
	}
	with("FAIL-09 an answer was shown in part when its stream dies: then the error, and no second answer", first.ref(),
		broken, func(t *testing.T, s services, c *Client) {
			end := c.Ask("main", "go on")
			if end.State != wire.StateError || end.Error == "" || strings.ContainsAny(end.Error, "\n{}") ||
				strings.Contains(end.Text, "whole") {
				t.Errorf("%s %q %q", end.State, end.Text, end.Error)
			}
			for _, name := range []string{wire.EventAgent, wire.EventChat} {
				if text, void := streamed(end.Seen, name); !strings.HasPrefix(text, "Half of it") ||
					strings.Contains(text, "whole") || len(void) != 0 {
					t.Errorf("%s: the deltas make %q, and %q were replaced", name, text, void)
				}
			}
			if n := len(s[first.name].Requests()); n != 1 {
				t.Errorf("the model was asked %d times", n)
			}
			if lines := c.lines("main"); len(lines) != 2 && len(lines) != 3 ||
				!strings.Contains(lines[len(lines)-1], end.Error) {
				t.Errorf("%q", lines)
			}
			if end := c.Ask("main", "and now?"); end.Text != "A whole answer." {
				t.Errorf("next message: %s %q %s", end.State, end.Text, end.Error)
			}
		})
}

// streamed assembles the deltas of an answer in events of one name, as a client
// does that uses no other events. void are the texts that were replaced.
func streamed(seen []wire.Event, name string) (text string, void []string) {
	for _, ev := range seen {
		delta, replace := "", false
		switch name {
		case wire.EventAgent:
			var a wire.Agent
			var d wire.Assistant
			if ev.Name != name || ev.Decode(&a) != nil || a.Stream != wire.StreamAssistant || json.Unmarshal(a.Data, &d) != nil {
				continue
			}
			delta, replace = d.Delta, d.Replace
		case wire.EventChat:
			var d wire.Chat
			if ev.Name != name || ev.Decode(&d) != nil || d.State != wire.StateDelta {
				continue
			}
			delta, replace = d.Delta, d.Replace
		}
		if replace {
			if text != "" {
				void = append(void, text)
			}
			text = ""
		}
		text += delta
	}
	return text, void
}
