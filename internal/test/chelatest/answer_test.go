package chelatest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// TestAnswers tests models that answer late, incompletely or in an unusual
// form, with a server for each wire format.
func TestAnswers(t *testing.T) {
	first, standIn := testServices()[0], testServices()[1]
	with := func(name string, conf Config, answer func(service string, n int, got llmtest.ReceivedRequest) llmtest.Step,
		f func(t *testing.T, s services, c *Client)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, hc := network(t, answer)
				for _, at := range testServices() { // also for the provider itself, which has special rules
					hc.Transport.(hosts)["api."+at.name+".com"] = hc.Transport.(hosts)[at.name+".invalid"]
				}
				g := Start(t, Options{HTTP: hc, Env: keys(nil), Config: conf})
				c := g.Client()
				f(t, s, c)
				c.Close()
				g.Stop()
				s.close()
			})
		})
	}
	say := func(service string, _ int, _ llmtest.ReceivedRequest) llmtest.Step {
		return llmtest.Say("from " + service)
	}

	silent := func(service string, _ int, _ llmtest.ReceivedRequest) llmtest.Step {
		step := llmtest.Say("Some words, and then nothing for a long time.")
		if service == first.name {
			step.Fault.Hang = llmtest.HangMiddle
		}
		return step
	}
	with("LOOP-15 a model that streams nothing within the idle limit is abandoned, and the fallback answers",
		asks(`{}`, first.ref(), standIn.ref()), silent, func(t *testing.T, s services, c *Client) {
			begun := time.Now()
			end := c.Ask("main", "hi")
			if took := time.Since(begun); end.State != wire.StateFinal || took < silence || took > silence+5*time.Second {
				t.Errorf("%s %q %s after %v", end.State, end.Text, end.Error, took)
			}
			if got := c.Ask("main", "/status").Text; !strings.Contains(got, standIn.ref()+" answered instead") {
				t.Error(got)
			}
			synctest.Wait()
			if n := s[first.name].Active(); n != 0 {
				t.Errorf("%d requests are still in progress", n)
			}
		})

	overflows := func(_ string, n int, got llmtest.ReceivedRequest) llmtest.Step {
		if n < 4 {
			return llmtest.Say(fmt.Sprint("answer ", n))
		}
		return llmtest.Status(400, "prompt is too long: 250000 tokens")
	}
	with("LOOP-16 a run whose model always reports an overflow ends with an error at the limit of the outer loop",
		asks(`{"maxRunLoopIterations": 2}`, first.ref()), overflows, func(t *testing.T, s services, c *Client) {
			for i := range 4 {
				c.Ask("main", fmt.Sprint("message ", i))
			}
			end := c.Ask("main", "one more")
			if end.State != wire.StateError || !strings.Contains(end.Error, "too long for ") {
				t.Errorf("%s %q %s", end.State, end.Text, end.Error)
			}
			if n := len(s[first.name].Requests()); n != 6 {
				t.Errorf("%d requests, want 4 and 2", n)
			}
		})

	unknown := asks(`{}`, "openai/nobody-knows-it")
	with("PROV-08 the status assumes a context window of 200k for a model without one", unknown, say,
		func(t *testing.T, _ services, c *Client) {
			if got := c.Ask("main", "/status").Text; !strings.Contains(got, "Context: 0 of 200k (0%)") {
				t.Error(got)
			}
		})

	for _, s := range testServices() {
		torn := func(_ string, n int, _ llmtest.ReceivedRequest) llmtest.Step {
			if n > 0 {
				return llmtest.Say("done")
			}
			step := llmtest.Call("call_1", "write", `{"path": "a.txt", "content": "half a`)
			step.Stop = llm.StopLength
			return step
		}
		with("PROV-12 a tool call with truncated arguments gets an error as its result: "+s.name, asks(`{}`, s.ref()), torn,
			func(t *testing.T, all services, c *Client) {
				if end := c.Ask("main", "write"); end.Text != "done" {
					t.Fatalf("%s %q %s", end.State, end.Text, end.Error)
				}
				got := all[s.name].Requests()
				if len(got) != 2 || !bytes.Contains(got[1].Body, []byte("call_1")) ||
					!bytes.Contains(got[1].Body, []byte("Not run: your answer was cut off by the output limit")) {
					t.Errorf("%d requests: %s", len(got), got[len(got)-1].Body[max(0, len(got[len(got)-1].Body)-800):])
				}
			})
		form := map[string]string{
			"anthropic": `"thinking":{"budget_tokens":16000,"type":"enabled"}`,
			"openai":    `"reasoning_effort":"high"`,
		}[s.name]
		home := Config{"agents.defaults": json.RawMessage(fmt.Sprintf(`{"model": %q}`, s.ref()))}
		with("THINK-01 /think high is sent in the form of the service: "+s.name, home, say,
			func(t *testing.T, all services, c *Client) {
				c.Ask("main", "hi")
				c.Ask("main", "/think high")
				c.Ask("main", "think")
				got := all[s.name].Requests()
				if len(got) != 2 || bytes.Contains(got[0].Body, []byte(form)) || !bytes.Contains(got[1].Body, []byte(form)) {
					t.Errorf("%d requests, the last %.600s, want %s", len(got), got[len(got)-1].Body, form)
				}
			})
	}

	fields := asks(`{"params": {"top_p": 0.5, "temperature": 0.1, "stop": ["x"]}, "models": {"openai/gpt-4.1": {"params": {"temperature": 0.2, "top_p": 0.6}}}}`, "openai/gpt-4.1")
	fields["agents"] = json.RawMessage(`{"entries": {"main": {"params": {"top_p": 0.7}}}}`)
	with("PROV-13 params at three levels: those of the agent take precedence by name, the others are kept", fields, say,
		func(t *testing.T, s services, c *Client) {
			c.Ask("main", "hi")
			if got := s["openai"].Requests()[0].Body; !bytes.Contains(got, []byte(`"temperature":0.2,`)) ||
				!bytes.Contains(got, []byte(`"stop":["x"],"top_p":0.7,"messages"`)) {
				t.Errorf("%.100s … %s", got, got[max(0, bytes.Index(got, []byte(`"messages"`))-200):][:200])
			}
		})
}
