package failover_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/failover"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
)

// fixture is a set of scripted services that records the calls in order.
type fixture struct {
	t      *testing.T
	health *failover.Health
	saved  []byte

	mu     sync.Mutex
	called []string
}

func newFixture(t *testing.T) *fixture {
	b := &fixture{t: t}
	b.health = failover.NewHealth(nil, func(s []byte) { b.saved = s })
	return b
}

// key returns a key whose service answers with the steps in order, then with its
// id.
func (b *fixture) key(id string, steps ...llmtest.Step) failover.Key {
	return failover.Key{ID: id, Provider: llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
		b.mu.Lock()
		b.called = append(b.called, id+" "+r.Model)
		b.mu.Unlock()
		if n < len(steps) {
			return steps[n]
		}
		return llmtest.Say("from " + id)
	})}
}

// calls returns the calls since the last time.
func (b *fixture) calls() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := strings.Join(b.called, ", ")
	b.called = nil
	return s
}

func model(ref string, keys ...failover.Key) failover.Candidate {
	p, id, _ := strings.Cut(ref, "/")
	return failover.Candidate{Model: llm.Model{Provider: p, ID: id}, Keys: keys}
}

func hi(session string) *llm.Request {
	return &llm.Request{Model: "m1", Session: session,
		Messages: []*llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{llm.Text("hi")}}}}
}

// ask returns the final text, and the event and error that ended the stream.
func ask(p llm.Provider, session string) (string, llm.Event, error) {
	var text string
	for e, err := range p.Stream(context.Background(), hi(session)) {
		switch {
		case err != nil:
			return text, e, err
		case e.Kind == llm.TextDelta:
			text += e.Text
		case e.Kind == llm.Restart:
			text = ""
		case e.Kind == llm.Done:
			return text, e, nil
		}
	}
	return text, llm.Event{}, errors.New("the stream ended without Done or an error")
}

func status(code int, text string) llmtest.Step { return llmtest.Status(code, text) }

func TestChain(t *testing.T) {
	t.Parallel()
	slow := status(429, "slow down")
	slow.Fault.RetryAfter = "120"
	forever := status(429, "slow down")
	forever.Fault.RetryAfter = "31536000" // a year
	overloaded := status(529, "overloaded")
	overloaded.Fault.RetryAfter = "Fri, 31 Dec 9999 23:59:59 GMT"
	died := llmtest.Step{Parts: []llm.Part{llm.Text("half an ans")},
		Fault: llmtest.Fault{Error: true, Kind: "api_error", Message: "gone"}}
	for _, tt := range []struct {
		name      string
		run       func(b *fixture) llm.Provider
		text      string // of the first turn
		calls     string // in the first turn
		next      string // in the second one
		err       string
		cooldowns string
	}{
		{
			"FAIL-01 of two keys the second serves the turn, and the next one", func(b *fixture) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", status(429, "slow")), b.key("b")))
			}, "from b", "a m1, b m1", "b m1", "", "a m1 rate_limit 1m0s",
		},
		{
			"FAIL-02 an account without credit is on cooldown for five hours", func(b *fixture) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", status(403, "insufficient credit")), b.key("b")))
			}, "from b", "a m1, b m1", "b m1", "", "a billing 5h0m0s",
		},
		{
			"FAIL-04 a Retry-After of two minutes fails over", func(b *fixture) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", slow)), model("q/m2", b.key("c")))
			}, "from c", "a m1, c m2", "c m2", "", "a m1 rate_limit 2m0s",
		},
		{
			"a Retry-After of a year puts the key on cooldown for a day", func(b *fixture) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", forever)), model("q/m2", b.key("c", overloaded)),
					model("r/m3", b.key("d")))
			}, "from d", "a m1, c m2, d m3", "d m3", "", "a m1 rate_limit 24h0m0s, c m2 overloaded 24h0m0s",
		},
		{
			"FAIL-05 a prompt that is too long counts against no key", func(b *fixture) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", status(400, "prompt is too long")), b.key("b")),
					model("q/m2", b.key("c")))
			}, "", "a m1", "a m1", "context_overflow", "",
		},
		{
			"an invalid request counts against no key", func(b *fixture) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", status(400, "tool_use without tool_result")), b.key("b")))
			}, "", "a m1", "a m1", "format", "",
		},
		{
			"FAIL-08 a rate limit applies to one model of the key", func(b *fixture) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", status(429, "slow"))), model("p/m2", b.key("a")))
			}, "from a", "a m1, a m2", "a m2", "", "a m1 rate_limit 1m0s",
		},
		{
			"FAIL-12 a rejected key is on cooldown, and the other one serves", func(b *fixture) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", status(401, "no")), b.key("b")))
			}, "from b", "a m1, b m1", "b m1", "", "a auth 1m0s",
		},
		{
			"a rejected key is on cooldown for all its models", func(b *fixture) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", status(401, "no"))), model("p/m2", b.key("a")),
					model("q/m3", b.key("c")))
			}, "from c", "a m1, c m3", "c m3", "", "a auth 1m0s",
		},
		{
			"an unknown model is tried with one key only", func(b *fixture) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", status(404, "no such model")), b.key("b")),
					model("q/m2", b.key("c")))
			}, "from c", "a m1, c m2", "a m1", "", "",
		},
		{
			"a prompt too long for a fallback goes to the next one", func(b *fixture) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", status(500, "oops"))),
					model("q/m2", b.key("b", status(400, "prompt is too long"))), model("r/m3", b.key("c")))
			}, "from c", "a m1, b m2, c m3", "b m2", "", "a m1 network 1m0s",
		},
		{
			"a request that a fallback refuses goes to the next one", func(b *fixture) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", status(500, "oops"))),
					model("q/m2", b.key("b", status(400, "no"))), model("r/m3", b.key("c")))
			}, "from c", "a m1, b m2, c m3", "b m2", "", "a m1 network 1m0s",
		},
		{
			"Retry-After does not shorten a billing cooldown", func(b *fixture) llm.Provider {
				noCredit := status(429, "insufficient_quota")
				noCredit.Fault.RetryAfter = "2"
				return failover.New(b.health, model("p/m1", b.key("a", noCredit), b.key("b")))
			}, "from b", "a m1, b m1", "b m1", "", "a billing 5h0m0s",
		},
		{
			"a broken answer is restarted by another model", func(b *fixture) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", died)), model("q/m2", b.key("c")))
			}, "from c", "a m1, c m2", "c m2", "", "a m1 network 1m0s",
		},
		{
			"without a fallback, a partial answer is followed by the error", func(b *fixture) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", died)))
			}, "half an ans", "a m1", "a m1", "network", "a m1 network 1m0s",
		},
		{
			"FAIL-06 if all fail, one error names each", func(b *fixture) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", slow)), model("q/m2", b.key("c", status(500, "down"))))
			}, "", "a m1, c m2", "c m2", "no model answered: p/m1: rate_limit; q/m2: network",
			"a m1 rate_limit 2m0s, c m2 network 1m0s",
		},
		{
			"a candidate with an error is skipped", func(b *fixture) llm.Provider {
				gone := failover.Candidate{Model: llm.Model{Provider: "x", ID: "y"}, Err: errors.New("there is no key for x")}
				return failover.New(b.health, gone, model("q/m2", b.key("c")))
			}, "from c", "c m2", "c m2", "", "",
		},
		{
			"no usable candidate", func(b *fixture) llm.Provider {
				return failover.New(b.health,
					failover.Candidate{Model: llm.Model{Provider: "x", ID: "y"}, Err: errors.New("there is no key for x")})
			}, "", "", "", "there is no key for x", "",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newFixture(t)
				p := tt.run(b)
				text, _, err := ask(p, "s")
				if text != tt.text || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%q, %v; want %q, %q", text, err, tt.text, tt.err)
				}
				if got := b.calls(); got != tt.calls {
					t.Errorf("calls %s, want %s", got, tt.calls)
				}
				var cooldowns []string
				for _, target := range []failover.Target{{Key: "a"}, {Key: "a", Model: "m1"}, {Key: "b"}, {Key: "c", Model: "m2"}} {
					if r, ok := b.health.Cooldowns()[target]; ok {
						cooldowns = append(cooldowns, fmt.Sprintf("%s %s %s", strings.TrimSpace(target.Key+" "+target.Model), r.Reason,
							time.Until(r.Until)))
					}
				}
				if got := strings.Join(cooldowns, ", "); got != tt.cooldowns {
					t.Errorf("cooldowns %q, want %q", got, tt.cooldowns)
				}
				ask(p, "s")
				if got := b.calls(); !strings.HasPrefix(got, tt.next) {
					t.Errorf("calls of the next turn %s, want %s", got, tt.next)
				}
			})
		})
	}
}

func TestCooldowns(t *testing.T) {
	t.Parallel()
	down := status(503, "busy")
	t.Run("FAIL-03 cooldowns grow with consecutive failures, up to an hour", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newFixture(t)
			p := failover.New(b.health, model("p/m1", b.key("a", down, down, down, down, down)), model("q/m2", b.key("c")))
			for _, want := range []time.Duration{time.Minute, 5 * time.Minute, 25 * time.Minute, time.Hour, time.Hour} {
				ask(p, "s")
				left := time.Until(b.health.Cooldowns()[failover.Target{Key: "a", Model: "m1"}].Until)
				if left != want {
					t.Errorf("cooldown %v, want %v", left, want)
				}
				time.Sleep(left - time.Second)
				if _, e, err := ask(p, "s"); err != nil || e.By == nil || e.By.Ref() != "q/m2" {
					t.Errorf("a second before the end: %v %v", e.By, err)
				}
				time.Sleep(2 * time.Second)
			}
			if _, e, err := ask(p, "s"); err != nil || e.By != nil || len(b.health.Cooldowns()) != 0 {
				t.Errorf("after a success: by %v, %v, cooldowns %v", e.By, err, b.health.Cooldowns())
			}
		})
	})
	t.Run("FAIL-10 cooldowns survive a restart", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newFixture(t)
			ask(failover.New(b.health, model("p/m1", b.key("a", down)), model("q/m2", b.key("c"))), "s")
			b.calls()
			restarted := failover.NewHealth(b.saved, nil)
			if diff := cmp.Diff(b.health.Cooldowns(), restarted.Cooldowns()); diff != "" || len(restarted.Cooldowns()) != 1 {
				t.Error(diff)
			}
			ask(failover.New(restarted, model("p/m1", b.key("a")), model("q/m2", b.key("c"))), "s")
			if got := b.calls(); got != "c m2" {
				t.Errorf("calls %s", got)
			}
		})
	})
	t.Run("a conversation keeps its key until the key is on cooldown", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newFixture(t)
			p := failover.New(b.health, model("p/m1", b.key("a", down), b.key("b", llmtest.Say("1"), llmtest.Say("2"), down)))
			ask(p, "s") // a fails, b answers
			time.Sleep(2 * time.Minute)
			b.calls()
			ask(p, "s")
			ask(p, "other")
			ask(p, "s")
			if got := b.calls(); got != "b m1, a m1, b m1, a m1" {
				t.Errorf("calls %s", got)
			}
		})
	})
	t.Run("the keys of 4096 conversations are remembered", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newFixture(t)
			p := failover.New(b.health, model("p/m1", b.key("a", down), b.key("b")))
			ask(p, "first") // a fails, b answers
			time.Sleep(2 * time.Minute)
			for i := range 4095 {
				ask(p, fmt.Sprint(i))
			}
			b.calls()
			ask(p, "first")
			ask(p, "one more")
			ask(p, "first")
			if got := b.calls(); got != "b m1, a m1, a m1" {
				t.Errorf("calls %s", got)
			}
		})
	})
	t.Run("after a cooldown one call probes and the others wait for it", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newFixture(t)
			late := llmtest.Say("late")
			late.Delay = time.Second
			p := failover.New(b.health, model("p/m1", b.key("a", down, late)), model("q/m2", b.key("c")))
			ask(p, "")
			time.Sleep(time.Minute + time.Second)
			b.calls()
			go ask(p, "")
			synctest.Wait()
			ask(p, "")
			if got := b.calls(); got != "a m1, c m2" {
				t.Errorf("calls %s", got)
			}
			time.Sleep(2 * time.Second)
			ask(p, "")
			if got := b.calls(); got != "a m1" {
				t.Errorf("calls after the probe %s", got)
			}
		})
	})
	t.Run("if all are on cooldown, the one that ends first is called", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newFixture(t)
			p := failover.New(b.health, model("p/m1", b.key("a", status(402, "no money"))), model("q/m2", b.key("c", down)))
			if _, _, err := ask(p, ""); err == nil {
				t.Fatal("got an answer, want an error")
			} else if x, ok := errors.AsType[*llm.Exhausted](err); !ok || time.Until(x.Retry) != time.Minute {
				t.Errorf("%v %+v", err, x)
			}
			b.calls()
			if text, _, err := ask(p, ""); err != nil || text != "from c" || b.calls() != "c m2" {
				t.Errorf("%q %v", text, err)
			}
		})
	})
	t.Run("FAIL-06 the error names keys on cooldown and the earliest retry time", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newFixture(t)
			p := failover.New(b.health, model("p/m1", b.key("a", status(402, "no money"))),
				model("q/m2", b.key("c", down, down, status(404, "gone"))))
			for range 2 {
				_, _, err := ask(p, "")
				x, ok := errors.AsType[*llm.Exhausted](err)
				if want := "no model answered: p/m1: billing; q/m2: overloaded"; !ok || err.Error() != want ||
					time.Until(x.Retry) != time.Minute {
					t.Errorf("%v %+v; want %s", err, x, want)
				}
			}
			if got := b.calls(); got != "a m1, c m2, c m2" {
				t.Errorf("calls %s", got)
			}
			if _, _, err := ask(p, ""); llm.ClassOf(err) != llm.ClassBilling ||
				!strings.Contains(err.Error(), "q/m2: model_not_found") {
				t.Errorf("%v", err)
			}
		})
	})
	t.Run("a failure during a cooldown does not advance it", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newFixture(t)
			p := failover.New(b.health, model("p/m1", b.key("a", down, down, down)))
			for range 3 {
				ask(p, "")
				if r := b.health.Cooldowns()[failover.Target{Key: "a", Model: "m1"}]; r.Count != 1 ||
					time.Until(r.Until) != time.Minute {
					t.Errorf("%+v", r)
				}
			}
		})
	})
	t.Run("concurrent calls after a cooldown are all answered", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			for range 200 {
				b := newFixture(t)
				p := failover.New(b.health, model("p/m1", b.key("a", down)))
				ask(p, "")
				time.Sleep(2 * time.Minute)
				var wg sync.WaitGroup
				for range 4 {
					wg.Go(func() {
						if text, _, err := ask(p, ""); text != "from a" {
							t.Errorf("%q, %v", text, err)
						}
					})
				}
				wg.Wait()
			}
		})
	})
	t.Run("the next key does not wait for the disk", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			saved := 0
			h := failover.NewHealth(nil, func([]byte) { time.Sleep(time.Second); saved++ })
			b := newFixture(t)
			started := time.Now()
			for e, err := range failover.New(h, model("p/m1", b.key("a", down), b.key("b"))).Stream(t.Context(), hi("")) {
				if took := time.Since(started); took > 0 || err != nil {
					t.Errorf("%v after %v, %v", e, took, err)
				}
			}
			if saved != 1 {
				t.Errorf("saved %d times", saved)
			}
		})
	})
	t.Run("invalid state is discarded", func(t *testing.T) {
		t.Parallel()
		for _, state := range []string{`{"a":`, `null`, `{"a": {"until": "2999-01-01T00:00:00Z"}, "b": 5}`} {
			b := newFixture(t)
			b.health = failover.NewHealth([]byte(state), nil)
			if _, _, err := ask(failover.New(b.health, model("p/m1", b.key("a", down)), model("q/m2", b.key("c"))), ""); err !=
				nil || len(b.health.Cooldowns()) != 1 || b.calls() != "a m1, c m2" {
				t.Errorf("%s: cooldowns %v, %v", state, b.health.Cooldowns(), err)
			}
		}
	})
	t.Run("a day without a failure ends the count", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newFixture(t)
			p := failover.New(b.health, model("p/m1", b.key("a", down, down, down)))
			for i, pause := range []time.Duration{23 * time.Hour, 25 * time.Hour, 0} {
				ask(p, "")
				left := time.Until(b.health.Cooldowns()[failover.Target{Key: "a", Model: "m1"}].Until)
				if want := []time.Duration{time.Minute, 5 * time.Minute, time.Minute}[i]; left != want {
					t.Errorf("failure %d: cooldown %v, want %v", i, left, want)
				}
				time.Sleep(pause)
			}
		})
	})
	t.Run("a failure during a cooldown does not shorten it", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newFixture(t)
			wait := down
			wait.Fault.RetryAfter = "7200"
			p := failover.New(b.health, model("p/m1", b.key("a", wait, down)))
			ask(p, "")
			ask(p, "")
			if left := time.Until(b.health.Cooldowns()[failover.Target{Key: "a", Model: "m1"}].Until); left != 2*time.Hour {
				t.Errorf("cooldown %v", left)
			}
		})
	})
	t.Run("a success ends the count of failures", func(t *testing.T) {
		t.Parallel()
		for target, fault := range map[failover.Target]llmtest.Step{
			{Key: "a"}:              status(401, "no"),
			{Key: "a", Model: "m1"}: down,
		} {
			synctest.Test(t, func(t *testing.T) {
				b := newFixture(t)
				p := failover.New(b.health, model("p/m1", b.key("a", fault, llmtest.Say("hi"), fault)), model("q/m2", b.key("c")))
				for i := range 3 {
					ask(p, "")
					if i == 1 && string(b.saved) != "{}" {
						t.Errorf("%v: saved after a success: %s", target, b.saved)
					}
					time.Sleep(time.Minute - time.Second)
					if left := time.Until(b.health.Cooldowns()[target].Until); left > time.Second {
						t.Errorf("%v: still on cooldown for %v", target, left)
					}
					time.Sleep(2 * time.Second)
				}
				if got := b.calls(); got != "a m1, c m2, a m1, a m1, c m2" {
					t.Errorf("calls %s", got)
				}
			})
		}
	})
}

// TestThinking checks that the thinking level is limited to what a fallback
// supports.
func TestThinking(t *testing.T) {
	t.Parallel()
	var levels []llm.Level
	key := failover.Key{ID: "a", Provider: llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
		levels = append(levels, r.Thinking)
		return status(500, "no")
	})}
	with := func(id string, levels ...llm.Level) failover.Candidate {
		return failover.Candidate{Model: llm.Model{Provider: id, ID: id, Levels: levels},
			Keys: []failover.Key{{ID: id, Provider: key.Provider}}}
	}
	p := failover.New(failover.NewHealth(nil, nil), with("1", llm.Levels[:]...), with("2", llm.Low, llm.Medium),
		with("3"), with("4", llm.XHigh))
	r := hi("")
	r.Thinking = llm.High
	for range p.Stream(t.Context(), r) {
	}
	if diff := cmp.Diff([]llm.Level{llm.High, llm.Medium, llm.Off, llm.Off}, levels); diff != "" {
		t.Error(diff)
	}
}

// events is a provider that yields events, and then an error.
type events struct {
	list []llm.Event
	err  error
}

func (p events) Stream(_ context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		for _, e := range p.list {
			if e.Text == "most" {
				e.Text = fmt.Sprint(r.MaxTokens)
			}
			if !yield(e, nil) {
				return
			}
		}
		if p.err != nil {
			yield(llm.Event{}, p.err)
		}
	}
}

// TestEvents checks what the caller sees of models that fail at different points.
func TestEvents(t *testing.T) {
	t.Parallel()
	busy := &llm.Error{Class: llm.ClassOverload}
	text := func(s string) llm.Event { return llm.Event{Kind: llm.TextDelta, Text: s} }
	restart := llm.Event{Kind: llm.Restart}
	candidate := func(id string, most int, err error, list ...llm.Event) failover.Candidate {
		c := model("p/"+id, failover.Key{ID: "key " + id, Provider: events{list, err}})
		c.Model.MaxOutput = most
		return c
	}
	p := failover.New(failover.NewHealth(nil, nil),
		candidate("m1", 200, busy, text("one "), text("most")),
		candidate("m2", 0, busy), // before it has answered anything
		candidate("m3", 0, busy, text("most"), restart),
		candidate("m4", 50, nil, text("most"), llm.Event{Kind: llm.Spent, Usage: llm.Usage{Input: 5}},
			llm.Event{Kind: llm.Done}),
	)
	r := hi("")
	r.MaxTokens = 100
	names := map[llm.EventKind]string{llm.TextDelta: "text", llm.Restart: "restart", llm.Spent: "spent", llm.Done: "done"}
	var got []string
	for e, err := range p.Stream(t.Context(), r) {
		line := strings.TrimSpace(names[e.Kind] + " " + e.Text)
		if e.By != nil {
			line += " by " + e.By.ID
		}
		for _, a := range e.Tried {
			line += " not " + a.Provider + "/" + a.Model + " with " + a.Key
		}
		if got = append(got, line); err != nil {
			t.Errorf("error %v", err)
		}
	}
	want := []string{
		"text one", "text 100", "restart", "text 100", "restart", "text 50", "spent by m4",
		"done by m4 not p/m1 with key m1 not p/m2 with key m2 not p/m3 with key m3",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestStop checks that canceling the request ends the chain.
func TestStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newFixture(t)
		hang := llmtest.Step{Fault: llmtest.Fault{Hang: llmtest.HangHeaders}}
		p := failover.New(b.health, model("p/m1", b.key("a", hang)), model("q/m2", b.key("c")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, err := range p.Stream(ctx, hi("")) {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
		}
		if got := b.calls(); got != "a m1" || len(b.health.Cooldowns()) != 0 {
			t.Errorf("calls %s, cooldowns %v", got, b.health.Cooldowns())
		}
		// The provider reports the cancellation as an error of its own.
		lost := failover.Key{ID: "a", Provider: events{err: &llm.Error{Class: llm.ClassNetwork, Err: ctx.Err()}}}
		for _, err := range failover.New(b.health, model("p/m1", lost), model("q/m2", b.key("c"))).Stream(ctx, hi("")) {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
		}
		if got := b.calls(); got != "" || len(b.health.Cooldowns()) != 0 {
			t.Errorf("calls %s, cooldowns %v", got, b.health.Cooldowns())
		}
	})
}

// BenchmarkNext measures a failed call and the call of the next candidate.
func BenchmarkNext(b *testing.B) {
	h := failover.NewHealth(nil, nil)
	bad := llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step { return status(404, "no") })
	good := llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step { return llmtest.Say("ok") })
	p := failover.New(h, model("p/m1", failover.Key{ID: "a", Provider: bad}),
		model("q/m2", failover.Key{ID: "b", Provider: good}))
	for b.Loop() {
		if _, _, err := ask(p, ""); err != nil {
			b.Fatal(err)
		}
	}
}

// TestSpent checks that the usage of a broken call is reported once, with its
// model.
func TestSpent(t *testing.T) {
	t.Parallel()
	broken := func(n int64, f llmtest.Fault) llmtest.Step {
		step := llmtest.Say("some")
		step.Usage, step.Fault = &llm.Usage{Input: n}, f
		step.Fault.Error = true
		return step
	}
	over, wrong := llmtest.Fault{Kind: "overloaded_error"},
		llmtest.Fault{Status: 0, Kind: "invalid_request_error", Message: "context length"}
	for _, tt := range []struct {
		name  string
		first []llmtest.Step
		other []llmtest.Step
		want  []string
	}{
		{"an answer after failures", []llmtest.Step{broken(10, over)}, []llmtest.Step{broken(20, over)},
			[]string{"spent 10", "spent 20 by m2", "done by m3"}},
		{"no usage", []llmtest.Step{broken(0, over)}, nil, []string{"done by m2"}},
		{"an invalid request", []llmtest.Step{broken(10, wrong)}, nil, []string{"error with 10"}},
		{"all fail", []llmtest.Step{broken(10, over)}, []llmtest.Step{broken(20, over), broken(30, over)},
			[]string{"spent 10", "spent 20 by m2", "spent 30 by m3", "error with 0"}},
	} {
		b := newFixture(t)
		other := append(tt.other, llmtest.Say("x"), llmtest.Say("x")) //nolint:gocritic // a copy
		third := llmtest.Say("x")
		if len(tt.other) > 1 {
			third = tt.other[1]
		}
		p := failover.New(b.health, model("p/m1", b.key("a", tt.first...)), model("p/m2", b.key("b", other[0])),
			model("p/m3", b.key("c", third)))
		var got []string
		for e, err := range p.Stream(t.Context(), hi("")) {
			by := ""
			if e.By != nil {
				by = " by " + e.By.ID
			}
			switch {
			case err != nil:
				got = append(got, fmt.Sprint("error with ", e.Usage.Input))
			case e.Kind == llm.Spent:
				got = append(got, fmt.Sprint("spent ", e.Usage.Input, by))
			case e.Kind == llm.Done:
				got = append(got, "done"+by)
			}
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
	}
}

// timedProvider records when it was called and when it failed.
type timedProvider struct {
	called, failed time.Time
	err            error
}

func (c *timedProvider) Stream(context.Context, *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		c.called = time.Now()
		if c.err == nil {
			yield(llm.Event{Kind: llm.Done, Message: &llm.Message{Role: llm.RoleAssistant}}, nil)
			return
		}
		c.failed = time.Now()
		yield(llm.Event{}, c.err)
	}
}

// BenchmarkNextKey measures the time from the error of one key to the call with
// the next, while many keys are on cooldown and saving the state is slow.
func BenchmarkNextKey(b *testing.B) {
	var gap time.Duration
	save := func([]byte) { time.Sleep(20 * time.Millisecond) }
	h := failover.NewHealth(nil, save)
	n := 0
	for b.Loop() {
		n++
		first := &timedProvider{err: &llm.Error{Class: llm.ClassRate}}
		second := &timedProvider{}
		ch := failover.New(h, model("p/m1", failover.Key{ID: fmt.Sprint("a", n), Provider: first},
			failover.Key{ID: fmt.Sprint("b", n), Provider: second}))
		for range ch.Stream(b.Context(), hi("")) {
		}
		gap += second.called.Sub(first.failed)
	}
	b.ReportMetric(float64(gap.Microseconds())/float64(n), "µs-to-the-next-key")
	b.ReportMetric(0, "ns/op")
}
