package chelatest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// TestFast asks for the faster tier of services. A server that is not the service refuses
// requests with the fields of the tier.
func TestFast(t *testing.T) {
	t.Parallel()
	const asked, plain = true, false
	start := func(t *testing.T, o Options, answer func(service string, n int, got llmtest.ReceivedRequest) llmtest.Step,
		f func(t *testing.T, s services, o Options)) {
		synctest.Test(t, func(t *testing.T) {
			s, hc := network(t, answer)
			for _, at := range testServices() {
				hc.Transport.(hosts)["api."+at.name+".com"] = hc.Transport.(hosts)[at.name+".invalid"]
			}
			o.Dir, o.HTTP, o.Env = t.TempDir(), hc, keys(nil)
			f(t, s, o)
			s.close()
		})
	}
	counted := &llm.Usage{Input: 1000, Output: 100, Fast: true}
	say := func(service string, n int, _ llmtest.ReceivedRequest) llmtest.Step {
		step := llmtest.Say("from " + service)
		if step.Usage = counted; n == 2 { // the service answers at the usual speed
			step.Usage = &llm.Usage{Input: 1000, Output: 100}
		}
		return step
	}
	for _, at := range []struct {
		name, model, field string
		cost               float64 // of a call
		factor             float64
	}{
		{"anthropic", "anthropic/claude-opus-5-5", `"speed":"fast"`, 0.006, 2},
		{"openai", "openai/gpt-5.5", `"service_tier":"priority"`, 0.008, 2.5},
	} {
		home := Options{Config: Config{"agents.defaults": json.RawMessage(fmt.Sprintf(`{"model": %q}`, at.model))}}
		t.Run("CMD-01 /fast is sent in the form of the service, survives a restart, and its tokens have their own price: "+
			at.name, func(t *testing.T) {
			start(t, home, say, func(t *testing.T, s services, o Options) {
				g := Start(t, o)
				c := g.Client()
				spent, calls := 0.0, 0
				sends := func(session, text, want string, fast bool, factor float64) {
					t.Helper()
					c.Ask(session, text)
					got := s[at.name].Requests()
					if calls++; len(got) != calls {
						t.Fatalf("%s: %d requests, want %d", text, len(got), calls)
					}
					body := got[calls-1].Body
					if bytes.Contains(body, []byte(at.field)) != fast || !bytes.Contains(body, []byte(want)) ||
						bytes.Contains(body, []byte("/fast")) {
						t.Errorf("%s: sent %.300s", text, body)
					}
					if session != "main" {
						return
					}
					spent += factor * at.cost
					if cost := c.describe(session).Cost; cost == nil {
						t.Errorf("%s: the cost is not known", text)
					} else if *cost < spent-1e-9 || *cost > spent+1e-9 {
						t.Errorf("%s: the session cost %v, want %v", text, *cost, spent)
					}
				}
				sends("main", "before", "before", plain, 1)
				if got := c.Ask("main", "/fast on").Text; !strings.HasPrefix(got, "Fast: on.") ||
					!strings.Contains(got, fmt.Sprintf("cost %v times", at.factor)) {
					t.Errorf("/fast on: %q", got)
				}
				sends("main", "quick", "quick", asked, at.factor)
				sends("main", "third", "third", asked, 1)
				sends("main", "slowly /fast off now", "slowly now", plain, 1)
				sends("work", "another session", "another session", plain, 1)
				c.Close()
				g.Stop()
				g = Start(t, o)
				c = g.Client()
				if got := c.Ask("main", "/status").Text; c.describe("main").Fast != true || !strings.Contains(got, "fast: on ·") {
					t.Errorf("after a restart: %v, %s", c.describe("main").Fast, got)
				}
				sends("main", "again", "again", asked, at.factor)
				if got := c.Ask("main", "/fast loud").Text; !strings.Contains(got, "Options: off, on, auto, default.") {
					t.Errorf("/fast loud: %q", got)
				}
				if got := c.Ask("main", "/fast default").Text; !strings.HasPrefix(got, "Fast: off (default).") {
					t.Errorf("/fast default: %q", got)
				}
				sends("main", "after", "after", plain, 1)
				sends("main", "/fast on just this", "just this", asked, at.factor)
				var sent wire.ChatSent
				c.must(wire.MethodChatSend,
					wire.ChatSend{SessionKey: "main", Message: "of a client", Fast: true, IdempotencyKey: "f1"}, &sent)
				c.Await("f1")
				if got := s[at.name].Requests(); !bytes.Contains(got[len(got)-1].Body, []byte(at.field)) {
					t.Error("chat.send with fastMode did not ask")
				}
				c.Close()
				g.Stop()
			})
		})
		proxy := Options{Config: asks(`{"fastModeDefault": true}`, at.model)}
		t.Run("PROV-10 a proxy is not asked for the faster tier, and /fast says so: "+at.name, func(t *testing.T) {
			start(t, proxy, say, func(t *testing.T, s services, o Options) {
				g := Start(t, o)
				c := g.Client()
				c.Ask("main", "hi")
				if got := c.Ask("main", "/fast on").Text; !strings.Contains(got, "has no faster tier") ||
					c.describe("main").Fast != nil {
					t.Errorf("/fast on: %q, stored %v", got, c.describe("main").Fast)
				}
				c.must(wire.MethodSessionsPatch, map[string]any{"key": "main", "fastMode": true}, nil)
				c.Ask("main", "stored, and ignored")
				if got := s[at.name].Requests(); len(got) != 2 || got[0].Err != nil || got[1].Err != nil {
					t.Errorf("%d requests: %v", len(got), got[0].Err)
				}
				c.Close()
				g.Stop()
			})
		})
		for _, status := range []int{400, 429} {
			refusing := func(service string, _ int, got llmtest.ReceivedRequest) llmtest.Step {
				if bytes.Contains(got.Body, []byte(at.field)) {
					return llmtest.Status(status, "service_tier or speed: not available for this organization")
				}
				return say(service, 0, got)
			}
			t.Run(fmt.Sprintf("THINK a refused tier (%d) is left out once, and not asked for again at once: %s", status,
				at.name), func(t *testing.T) {
				start(t, home, refusing, func(t *testing.T, s services, o Options) {
					g := Start(t, o)
					c := g.Client()
					c.Ask("main", "/fast on")
					end := c.Ask("main", "hi")
					c.Ask("main", "again")
					got := s[at.name].Requests()
					if end.State != wire.StateFinal || end.Text != "from "+at.name || len(got) != 3 {
						t.Fatalf("%s %q %s after %d requests", end.State, end.Text, end.Error, len(got))
					}
					if cost := c.describe("main").Cost; cost == nil || *cost > 2*at.cost+1e-9 || *cost < 2*at.cost-1e-9 {
						t.Errorf("cost %v, want %v", cost, 2*at.cost) // of two calls
					}
					c.Close()
					g.Stop()
				})
			})
		}
		t.Run("auto asks in the run of a person, and neither in that of a subagent nor in the one that its result begins: "+
			at.name, func(t *testing.T) {
			spawning := func(_ string, n int, got llmtest.ReceivedRequest) llmtest.Step {
				switch {
				case bytes.Contains(got.Body, []byte("# Subagent Context")):
					return llmtest.Say("child done")
				case n == 0:
					return llmtest.Call("call_1", "sessions_spawn", `{"task":"look"}`)
				}
				return llmtest.Say("ok")
			}
			auto := Options{
				Config: Config{"agents.defaults": json.RawMessage(fmt.Sprintf(`{"model": %q, "fastModeDefault": "auto"}`,
					at.model))}}
			start(t, auto, spawning, func(t *testing.T, s services, o Options) {
				g := Start(t, o)
				c := g.Client()
				c.Ask("main", "go")
				synctest.Wait()
				children, later, mine := 0, 0, 0
				for _, r := range s[at.name].Requests() {
					fast := bytes.Contains(r.Body, []byte(at.field))
					switch {
					case bytes.Contains(r.Body, []byte("# Subagent Context")):
						if children++; fast {
							t.Error("a subagent asked")
						}
					case bytes.Contains(r.Body, []byte("child done")):
						if later++; fast {
							t.Error("the run about the result asked")
						}
					default:
						if mine++; !fast {
							t.Error("the run of the person did not ask")
						}
					}
				}
				if children != 1 || later == 0 || mine == 0 {
					t.Errorf("%d requests of children, %d about the result, %d others", children, later, mine)
				}
				c.Close()
				g.Stop()
			})
		})
	}
	t.Run("a model without the tier refuses /fast and ignores what is stored; params of a model are its default",
		func(t *testing.T) {
			conf := `{"model": "openai/gpt-5.4-nano", "models": {"openai/gpt-5.4": {"params": {"fastMode": true}}}}`
			start(t, Options{Config: Config{"agents.defaults": json.RawMessage(conf)}}, say,
				func(t *testing.T, s services, o Options) {
					g := Start(t, o)
					c := g.Client()
					c.Ask("main", "hi /fast on")
					for _, text := range []string{"/fast on", "/fast auto"} {
						if got := c.Ask("main", text).Text; !strings.HasPrefix(got, "openai/gpt-5.4-nano has no faster tier") {
							t.Errorf("%s: %q", text, got)
						}
					}
					c.Ask("main", "/model openai/gpt-5.4")
					if got := c.Ask("main", "/fast").Text; !strings.HasPrefix(got, "Fast: on (default).") {
						t.Errorf("/fast: %q", got)
					}
					c.Ask("main", "hi")
					got := s["openai"].Requests()
					if bytes.Contains(got[0].Body, []byte("service_tier")) ||
						!bytes.Contains(got[1].Body, []byte(`"service_tier":"priority"`)) {
						t.Errorf("sent %.200s and %.200s", got[0].Body, got[1].Body)
					}
					c.Close()
					g.Stop()
				})
		})
}
