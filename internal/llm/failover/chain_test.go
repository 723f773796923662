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

	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/llm/failover"
	"github.com/chela-ai/chela/internal/llm/llmtest"
)

// bench is services and who of them was asked, in order.
type bench struct {
	t      *testing.T
	health *failover.Health
	saved  []byte

	mu    sync.Mutex
	asked []string
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t}
	b.health = failover.NewHealth(nil, func(s []byte) { b.saved = s })
	return b
}

// key is a key whose service answers with the steps in order, then with its id.
func (b *bench) key(id string, steps ...llmtest.Step) failover.Key {
	return failover.Key{ID: id, Provider: llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
		b.mu.Lock()
		b.asked = append(b.asked, id+" "+r.Model)
		b.mu.Unlock()
		if n < len(steps) {
			return steps[n]
		}
		return llmtest.Say("from " + id)
	})}
}

// since returns who was asked since the last time.
func (b *bench) since() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := strings.Join(b.asked, ", ")
	b.asked = nil
	return s
}

func model(ref string, keys ...failover.Key) failover.Candidate {
	p, id, _ := strings.Cut(ref, "/")
	return failover.Candidate{Model: llm.Model{Provider: p, ID: id}, Keys: keys}
}

func hi(session string) *llm.Request {
	return &llm.Request{Model: "m1", Session: session, Messages: []*llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{llm.Text("hi")}}}}
}

// ask returns the text that a caller ends with, and how the stream ended.
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
	return text, llm.Event{}, errors.New("the stream ended without an end")
}

func status(code int, text string) llmtest.Step { return llmtest.Status(code, text) }

func TestChain(t *testing.T) {
	t.Parallel()
	slow := status(429, "slow down")
	slow.Fault.RetryAfter = "120"
	died := llmtest.Step{Parts: []llm.Part{llm.Text("half an ans")}, Fault: llmtest.Fault{Error: true, Kind: "api_error", Message: "gone"}}
	for _, tt := range []struct {
		name  string
		run   func(b *bench) llm.Provider
		text  string // of the first turn
		asked string // in the first turn
		next  string // in the second one
		err   string
		rests string
	}{
		{
			"FAIL-01 of two keys the second serves the turn, and the next one", func(b *bench) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", status(429, "slow")), b.key("b")))
			}, "from b", "a m1, b m1", "b m1", "", "a m1 rate_limit 1m0s",
		},
		{
			"FAIL-02 an account without credit rests for five hours", func(b *bench) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", status(403, "insufficient credit")), b.key("b")))
			}, "from b", "a m1, b m1", "b m1", "", "a billing 5h0m0s",
		},
		{
			"FAIL-04 a service that asks for two minutes is not waited for", func(b *bench) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", slow)), model("q/m2", b.key("c")))
			}, "from c", "a m1, c m2", "c m2", "", "a m1 rate_limit 2m0s",
		},
		{
			"FAIL-05 a prompt that is too long is nobody's fault", func(b *bench) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", status(400, "prompt is too long")), b.key("b")), model("q/m2", b.key("c")))
			}, "", "a m1", "a m1", "context_overflow", "",
		},
		{
			"a request that is refused for what it says counts against no key", func(b *bench) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", status(400, "tool_use without tool_result")), b.key("b")))
			}, "", "a m1", "a m1", "format", "",
		},
		{
			"FAIL-08 a rate limit on one model leaves the other to the key", func(b *bench) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", status(429, "slow"))), model("p/m2", b.key("a")))
			}, "from a", "a m1, a m2", "a m2", "", "a m1 rate_limit 1m0s",
		},
		{
			"FAIL-12 a key that is refused rests, and the other one serves", func(b *bench) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", status(401, "no")), b.key("b")))
			}, "from b", "a m1, b m1", "b m1", "", "a auth 1m0s",
		},
		{
			"a refused key rests for all its models", func(b *bench) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", status(401, "no"))), model("p/m2", b.key("a")), model("q/m3", b.key("c")))
			}, "from c", "a m1, c m3", "c m3", "", "a auth 1m0s",
		},
		{
			"a model that there is not is asked for with one key only", func(b *bench) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", status(404, "no such model")), b.key("b")), model("q/m2", b.key("c")))
			}, "from c", "a m1, c m2", "a m1", "", "",
		},
		{
			"what is too long for the stand-in may be right for the next", func(b *bench) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", status(500, "oops"))), model("q/m2", b.key("b", status(400, "prompt is too long"))), model("r/m3", b.key("c")))
			}, "from c", "a m1, b m2, c m3", "b m2", "", "a m1 network 1m0s",
		},
		{
			"what a stand-in refuses for what it says may be right for the next", func(b *bench) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", status(500, "oops"))), model("q/m2", b.key("b", status(400, "no"))), model("r/m3", b.key("c")))
			}, "from c", "a m1, b m2, c m3", "b m2", "", "a m1 network 1m0s",
		},
		{
			"what a service asks for does not shorten the rest of an account without credit", func(b *bench) llm.Provider {
				broke := status(429, "insufficient_quota")
				broke.Fault.RetryAfter = "2"
				return failover.New(b.health, model("p/m1", b.key("a", broke), b.key("b")))
			}, "from b", "a m1, b m1", "b m1", "", "a billing 5h0m0s",
		},
		{
			"an answer that dies in the middle goes on from another, from its beginning", func(b *bench) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", died)), model("q/m2", b.key("c")))
			}, "from c", "a m1, c m2", "c m2", "", "a m1 network 1m0s",
		},
		{
			"FAIL-09 with nobody else, what was shown is followed by the error and no second answer", func(b *bench) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", died)))
			}, "half an ans", "a m1", "a m1", "network", "a m1 network 1m0s",
		},
		{
			"FAIL-06 when all fail there is one error, which names each", func(b *bench) llm.Provider {
				return failover.New(b.health, model("p/m1", b.key("a", slow)), model("q/m2", b.key("c", status(500, "down"))))
			}, "", "a m1, c m2", "c m2", "no model answered: p/m1: rate_limit; q/m2: network", "a m1 rate_limit 2m0s, c m2 network 1m0s",
		},
		{
			"a candidate that cannot be asked is passed over", func(b *bench) llm.Provider {
				gone := failover.Candidate{Model: llm.Model{Provider: "x", ID: "y"}, Err: errors.New("there is no key for x")}
				return failover.New(b.health, gone, model("q/m2", b.key("c")))
			}, "from c", "c m2", "c m2", "", "",
		},
		{
			"nobody that can be asked", func(b *bench) llm.Provider {
				return failover.New(b.health, failover.Candidate{Model: llm.Model{Provider: "x", ID: "y"}, Err: errors.New("there is no key for x")})
			}, "", "", "", "there is no key for x", "",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				p := tt.run(b)
				text, _, err := ask(p, "s")
				if text != tt.text || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%q, %v; want %q, %q", text, err, tt.text, tt.err)
				}
				if got := b.since(); got != tt.asked {
					t.Errorf("asked %s, want %s", got, tt.asked)
				}
				var rests []string
				for _, place := range []failover.Place{{Key: "a"}, {Key: "a", Model: "m1"}, {Key: "b"}, {Key: "c", Model: "m2"}} {
					if r, ok := b.health.Rests()[place]; ok {
						rests = append(rests, fmt.Sprintf("%s %s %s", strings.TrimSpace(place.Key+" "+place.Model), r.Reason, time.Until(r.Until)))
					}
				}
				if got := strings.Join(rests, ", "); got != tt.rests {
					t.Errorf("rests %q, want %q", got, tt.rests)
				}
				ask(p, "s")
				if got := b.since(); !strings.HasPrefix(got, tt.next) {
					t.Errorf("in the next turn asked %s, want %s", got, tt.next)
				}
			})
		})
	}
}

func TestRests(t *testing.T) {
	t.Parallel()
	down := status(503, "busy")
	t.Run("FAIL-03 rests grow with failures in a row, to an hour", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			p := failover.New(b.health, model("p/m1", b.key("a", down, down, down, down, down)), model("q/m2", b.key("c")))
			for _, want := range []time.Duration{time.Minute, 5 * time.Minute, 25 * time.Minute, time.Hour, time.Hour} {
				ask(p, "s")
				rest := time.Until(b.health.Rests()[failover.Place{Key: "a", Model: "m1"}].Until)
				if rest != want {
					t.Errorf("rests %v, want %v", rest, want)
				}
				time.Sleep(rest - time.Second)
				if _, e, err := ask(p, "s"); err != nil || e.By == nil || e.By.Ref() != "q/m2" {
					t.Errorf("a second before the end: %v %v", e.By, err)
				}
				time.Sleep(2 * time.Second)
			}
			if _, e, err := ask(p, "s"); err != nil || e.By != nil || len(b.health.Rests()) != 0 {
				t.Errorf("it answers again: by %v, %v, rests %v", e.By, err, b.health.Rests())
			}
		})
	})
	t.Run("FAIL-10 rests are in force after a restart", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			ask(failover.New(b.health, model("p/m1", b.key("a", down)), model("q/m2", b.key("c"))), "s")
			b.since()
			again := failover.NewHealth(b.saved, nil)
			if diff := cmp.Diff(b.health.Rests(), again.Rests()); diff != "" || len(again.Rests()) != 1 {
				t.Error(diff)
			}
			ask(failover.New(again, model("p/m1", b.key("a")), model("q/m2", b.key("c"))), "s")
			if got := b.since(); got != "c m2" {
				t.Errorf("asked %s", got)
			}
		})
	})
	t.Run("FAIL-07 a conversation stays with its key until that rests", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			p := failover.New(b.health, model("p/m1", b.key("a", down), b.key("b", llmtest.Say("1"), llmtest.Say("2"), down)))
			ask(p, "s") // a fails, b answers
			time.Sleep(2 * time.Minute)
			b.since()
			ask(p, "s")
			ask(p, "other")
			ask(p, "s")
			if got := b.since(); got != "b m1, a m1, b m1, a m1" {
				t.Errorf("asked %s", got)
			}
		})
	})
	t.Run("when a rest is over one call tries and the others wait for it", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			late := llmtest.Say("late")
			late.Delay = time.Second
			p := failover.New(b.health, model("p/m1", b.key("a", down, late)), model("q/m2", b.key("c")))
			ask(p, "")
			time.Sleep(time.Minute + time.Second)
			b.since()
			go ask(p, "")
			synctest.Wait()
			ask(p, "")
			if got := b.since(); got != "a m1, c m2" {
				t.Errorf("asked %s", got)
			}
			time.Sleep(2 * time.Second)
			ask(p, "")
			if got := b.since(); got != "a m1" {
				t.Errorf("after the probe asked %s", got)
			}
		})
	})
	t.Run("when all rest, the one that rests shortest is asked", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			p := failover.New(b.health, model("p/m1", b.key("a", status(402, "no money"))), model("q/m2", b.key("c", down)))
			if _, _, err := ask(p, ""); err == nil {
				t.Fatal("an answer")
			} else if x, ok := errors.AsType[*llm.Exhausted](err); !ok || time.Until(x.Retry) != time.Minute {
				t.Errorf("%v %+v", err, x)
			}
			b.since()
			if text, _, err := ask(p, ""); err != nil || text != "from c" || b.since() != "c m2" {
				t.Errorf("%q %v", text, err)
			}
		})
	})
	t.Run("FAIL-06 who was not asked because he rests is named too, with the earliest time", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			p := failover.New(b.health, model("p/m1", b.key("a", status(402, "no money"))), model("q/m2", b.key("c", down, down, status(404, "gone"))))
			for range 2 {
				_, _, err := ask(p, "")
				x, ok := errors.AsType[*llm.Exhausted](err)
				if want := "no model answered: p/m1: billing; q/m2: overloaded"; !ok || err.Error() != want || time.Until(x.Retry) != time.Minute {
					t.Errorf("%v %+v; want %s", err, x, want)
				}
			}
			if got := b.since(); got != "a m1, c m2, c m2" {
				t.Errorf("asked %s", got)
			}
			if _, _, err := ask(p, ""); llm.ClassOf(err) != llm.ClassBilling || !strings.Contains(err.Error(), "q/m2: model_not_found") {
				t.Errorf("%v", err)
			}
		})
	})
	t.Run("a failure during a rest, when there is nobody else, is no further step", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			p := failover.New(b.health, model("p/m1", b.key("a", down, down, down)))
			for range 3 {
				ask(p, "")
				if r := b.health.Rests()[failover.Place{Key: "a", Model: "m1"}]; r.Count != 1 || time.Until(r.Until) != time.Minute {
					t.Errorf("%+v", r)
				}
			}
		})
	})
	t.Run("of many that find a rest over at once each is answered", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			for range 200 {
				b := newBench(t)
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
			kept := 0
			h := failover.NewHealth(nil, func([]byte) { time.Sleep(time.Second); kept++ })
			b := newBench(t)
			begun := time.Now()
			for e, err := range failover.New(h, model("p/m1", b.key("a", down), b.key("b"))).Stream(t.Context(), hi("")) {
				if took := time.Since(begun); took > 0 || err != nil {
					t.Errorf("%v after %v, %v", e, took, err)
				}
			}
			if kept != 1 {
				t.Errorf("kept %d times", kept)
			}
		})
	})
	t.Run("damaged state is forgotten", func(t *testing.T) {
		t.Parallel()
		if got := failover.NewHealth([]byte(`{"a":`), nil).Rests(); len(got) != 0 {
			t.Error(got)
		}
	})
}

// A stand-in that thinks less is asked to think as much as it can.
func TestThinking(t *testing.T) {
	t.Parallel()
	var asked []llm.Level
	key := failover.Key{ID: "a", Provider: llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
		asked = append(asked, r.Thinking)
		return status(500, "no")
	})}
	with := func(id string, levels ...llm.Level) failover.Candidate {
		return failover.Candidate{Model: llm.Model{Provider: id, ID: id, Levels: levels}, Keys: []failover.Key{{ID: id, Provider: key.Provider}}}
	}
	p := failover.New(failover.NewHealth(nil, nil), with("1", llm.Levels[:]...), with("2", llm.Low, llm.Medium), with("3"), with("4", llm.XHigh))
	r := hi("")
	r.Thinking = llm.High
	for range p.Stream(t.Context(), r) {
	}
	if diff := cmp.Diff([]llm.Level{llm.High, llm.Medium, llm.Off, llm.Off}, asked); diff != "" {
		t.Error(diff)
	}
}

// A stop ends the chain: nobody else is asked.
func TestStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		hang := llmtest.Step{Fault: llmtest.Fault{Hang: llmtest.HangHeaders}}
		p := failover.New(b.health, model("p/m1", b.key("a", hang)), model("q/m2", b.key("c")))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, err := range p.Stream(ctx, hi("")) {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v", err)
			}
		}
		if got := b.since(); got != "a m1" || len(b.health.Rests()) != 0 {
			t.Errorf("asked %s, rests %v", got, b.health.Rests())
		}
	})
}

// BenchmarkNext is the time from a failure to the call of the next key.
func BenchmarkNext(b *testing.B) {
	h := failover.NewHealth(nil, nil)
	bad := llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step { return status(404, "no") })
	good := llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step { return llmtest.Say("ok") })
	p := failover.New(h, model("p/m1", failover.Key{ID: "a", Provider: bad}), model("q/m2", failover.Key{ID: "b", Provider: good}))
	for b.Loop() {
		if _, _, err := ask(p, ""); err != nil {
			b.Fatal(err)
		}
	}
}

// TestSpent: what a call used that broke off is told once, with whose it was.
func TestSpent(t *testing.T) {
	t.Parallel()
	broke := func(n int64, f llmtest.Fault) llmtest.Step {
		step := llmtest.Say("some")
		step.Usage, step.Fault = &llm.Usage{Input: n}, f
		step.Fault.Error = true
		return step
	}
	over, wrong := llmtest.Fault{Kind: "overloaded_error"}, llmtest.Fault{Status: 0, Kind: "invalid_request_error", Message: "context length"}
	for _, tt := range []struct {
		name  string
		first []llmtest.Step
		other []llmtest.Step
		want  []string
	}{
		{"an answer in the end", []llmtest.Step{broke(10, over)}, []llmtest.Step{broke(20, over)}, []string{"spent 10", "spent 20 by m2", "done by m3"}},
		{"no usage", []llmtest.Step{broke(0, over)}, nil, []string{"done by m2"}},
		{"a request that is wrong", []llmtest.Step{broke(10, wrong)}, nil, []string{"error with 10"}},
		{"nobody answers", []llmtest.Step{broke(10, over)}, []llmtest.Step{broke(20, over), broke(30, over)}, []string{"spent 10", "spent 20 by m2", "spent 30 by m3", "error with 0"}},
	} {
		b := newBench(t)
		other := append(tt.other, llmtest.Say("x"), llmtest.Say("x")) //nolint:gocritic // its own
		third := llmtest.Say("x")
		if len(tt.other) > 1 {
			third = tt.other[1]
		}
		p := failover.New(b.health, model("p/m1", b.key("a", tt.first...)), model("p/m2", b.key("b", other[0])), model("p/m3", b.key("c", third)))
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

// clocked is a provider that notes when it is asked, and says when it failed.
type clocked struct {
	asked, failed time.Time
	err           error
}

func (c *clocked) Stream(context.Context, *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		c.asked = time.Now()
		if c.err == nil {
			yield(llm.Event{Kind: llm.Done, Message: &llm.Message{Role: llm.RoleAssistant}}, nil)
			return
		}
		c.failed = time.Now()
		yield(llm.Event{}, c.err)
	}
}

// BenchmarkNextKey measures the time from the error of one key to the call with
// the next, while many keys and models rest and their state goes to a disk.
func BenchmarkNextKey(b *testing.B) {
	var gap time.Duration
	save := func([]byte) { time.Sleep(20 * time.Millisecond) }
	h := failover.NewHealth(nil, save)
	n := 0
	for b.Loop() {
		n++
		first := &clocked{err: &llm.Error{Class: llm.ClassRate}}
		second := &clocked{}
		ch := failover.New(h, model("p/m1", failover.Key{ID: fmt.Sprint("a", n), Provider: first}, failover.Key{ID: fmt.Sprint("b", n), Provider: second}))
		for range ch.Stream(b.Context(), hi("")) {
		}
		gap += second.asked.Sub(first.failed)
	}
	b.ReportMetric(float64(gap.Microseconds())/float64(n), "µs-to-the-next-key")
	b.ReportMetric(0, "ns/op")
}
