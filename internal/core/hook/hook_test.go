package hook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/hook"
)

func anything(json.RawMessage) error { return nil }

func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

// points is hooks around tool calls.
type points struct{ *hook.Points }

func chain(log *slog.Logger, before []hook.Before, after ...hook.After) points {
	p := hook.New(log)
	for _, h := range before {
		p.BeforeToolCall.Add(h)
	}
	for _, h := range after {
		p.AfterToolCall.Add(h)
	}
	return points{p}
}

// decision is what the hooks before a tool call decided.
type decision struct {
	Block  string // why the call is blocked; empty: it is not
	By     string
	Asks   []hook.Ask
	Args   json.RawMessage // to use
	Change []string
}

func (p points) before(ctx context.Context, call hook.Call, valid func(json.RawMessage) error) (decision, error) {
	call.Valid = valid
	out, err := p.BeforeToolCall.Decide(ctx, call)
	d := decision{By: out.By, Asks: out.Answer.Asks, Args: call.Args, Change: out.Changed}
	if out.Answer.Args != nil {
		d.Args = out.Answer.Args
	}
	if out.Answer.Block {
		d.Block = out.Answer.Reason
	}
	return d, err
}

// says returns a hook that always gives the same verdict.
func says(name string, priority int, v hook.Verdict) hook.Before {
	return hook.Before{Name: name, Priority: priority, Func: func(context.Context, hook.Call) (hook.Verdict, error) {
		return v, nil
	}}
}

// adds returns a hook that appends its name to the arguments.
func adds(name string, priority int) hook.Before {
	return hook.Before{Name: name, Priority: priority, Func: func(_ context.Context, c hook.Call) (hook.Verdict, error) {
		return hook.Verdict{Args: append(slices.Clip(c.Args), name...)}, nil
	}}
}

func TestBefore(t *testing.T) {
	t.Parallel()
	never := hook.Before{Name: "never", Priority: 10, Func: func(context.Context, hook.Call) (hook.Verdict, error) {
		panic("never was called")
	}}
	for _, tt := range []struct {
		name  string
		hooks []hook.Before
		want  decision
	}{
		{"none", nil, decision{Args: json.RawMessage("x")}},
		{"a zero verdict", []hook.Before{says("a", 0, hook.Verdict{})}, decision{Args: json.RawMessage("x")}},
		{"HOOK-01 the first hook that blocks decides, and later ones are not called",
			[]hook.Before{never, says("guard", 50, hook.Verdict{Block: true, Reason: "no"})},
			decision{Block: "no", By: "guard", Args: json.RawMessage("x")}},
		{"a block without a reason", []hook.Before{says("guard", 0, hook.Verdict{Block: true})},
			decision{Block: "the hook guard blocked it", By: "guard", Args: json.RawMessage("x")}},
		{"a later block overrides an earlier request for approval",
			[]hook.Before{says("late", 1, hook.Verdict{Block: true, Reason: "no"}),
				says("early", 2, hook.Verdict{Ask: true, Reason: "look"})},
			decision{Block: "no", By: "late", Asks: []hook.Ask{{Hook: "early", Reason: "look"}}, Args: json.RawMessage("x")}},
		{"requests for approval and changed arguments are collected",
			[]hook.Before{says("a", 2, hook.Verdict{Ask: true, Reason: "look", Args: json.RawMessage("y")}),
				says("b", 1, hook.Verdict{Ask: true})},
			decision{Asks: []hook.Ask{{Hook: "a", Reason: "look"}, {Hook: "b"}}, Args: json.RawMessage("y"),
				Change: []string{"a"}}},
		{"arguments are passed on by priority, then by order",
			[]hook.Before{adds("c", 0), adds("b", 5), adds("d", 0), adds("a", 9)},
			decision{Args: json.RawMessage("xabcd"), Change: []string{"a", "b", "c", "d"}}},
		{"a hook that panics is skipped", []hook.Before{never, adds("b", 0)},
			decision{Args: json.RawMessage("xb"), Change: []string{"b"}}},
		{"a hook that fails is skipped, whatever it returned", []hook.Before{fails("a"), quick(fails("b")), adds("c", 0)},
			decision{Args: json.RawMessage("xc"), Change: []string{"c"}}},
		{"a quick hook that panics is skipped", []hook.Before{quick(never), quick(adds("b", 0))},
			decision{Args: json.RawMessage("xb"), Change: []string{"b"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := chain(silent(), tt.hooks).before(t.Context(), hook.Call{Args: json.RawMessage("x")}, anything)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("arguments that are invalid", func(t *testing.T) {
		c := chain(silent(), []hook.Before{adds("a", 0)})
		d, err := c.before(t.Context(), hook.Call{}, func(json.RawMessage) error { return errors.New("want a path") })
		if err != nil || d.By != "a" || !strings.Contains(d.Block, "want a path") || string(d.Args) != "" {
			t.Errorf("%+v, %v", d, err)
		}
	})
	t.Run("HOOK-03 a hook that hangs blocks after its time limit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			for budget, want := range map[time.Duration]time.Duration{0: 15 * time.Second, time.Second: time.Second} {
				begun := time.Now()
				deaf := hook.Before{Name: "deaf", Timeout: budget, Func: func(context.Context, hook.Call) (hook.Verdict, error) {
					time.Sleep(time.Hour)
					return hook.Verdict{}, nil
				}}
				d, err := chain(silent(), []hook.Before{deaf, adds("next", 0)}).before(t.Context(), hook.Call{}, anything)
				if err != nil || !strings.Contains(d.Block, want.String()) || d.By != "deaf" || d.Change != nil ||
					time.Since(begun) != want {
					t.Errorf("after %v: %+v, %v", time.Since(begun), d, err)
				}
				time.Sleep(time.Hour)
			}
		})
	})
	t.Run("a quick hook has no time limit, another one has a context that ends with it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var kept context.Context
			patient := hook.Before{Name: "patient", Quick: true,
				Func: func(ctx context.Context, _ hook.Call) (hook.Verdict, error) {
					time.Sleep(time.Hour)
					return hook.Verdict{Ask: true}, ctx.Err()
				}}
			keeps := hook.Before{Name: "keeps", Func: func(ctx context.Context, _ hook.Call) (hook.Verdict, error) {
				kept = ctx
				return hook.Verdict{}, nil
			}}
			d, err := chain(silent(), []hook.Before{patient, keeps}).before(t.Context(), hook.Call{}, anything)
			if err != nil || d.Block != "" || len(d.Asks) != 1 || kept.Err() == nil {
				t.Errorf("%+v, %v", d, err)
			}
		})
	})
	t.Run("an abort is not a decision", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		stop := hook.Before{Name: "stop", Func: func(context.Context, hook.Call) (hook.Verdict, error) {
			cancel()
			return hook.Verdict{Block: true}, nil
		}}
		if d, err := chain(silent(), []hook.Before{stop}).before(ctx, hook.Call{}, anything); !errors.Is(err,
			context.Canceled) || d.Block != "" {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// fails returns a hook that returns arguments and a request, and an error.
func fails(name string) hook.Before {
	return hook.Before{Name: name, Func: func(_ context.Context, c hook.Call) (hook.Verdict, error) {
		return hook.Verdict{Ask: true, Args: append(slices.Clip(c.Args), name...)}, errors.New("failed")
	}}
}

// quick returns the hook without a time limit.
func quick(b hook.Before) hook.Before {
	b.Quick = true
	return b
}

func TestAfter(t *testing.T) {
	t.Parallel()
	t.Run("in order, once each, and only failures where requested", func(t *testing.T) {
		var all, bad []string
		note := func(to *[]string) func(context.Context, hook.Done) (hook.None, error) {
			return func(ctx context.Context, d hook.Done) (hook.None, error) {
				if ctx.Err() != nil {
					return hook.None{}, ctx.Err()
				}
				*to = append(*to, fmt.Sprint(d.Tool, " ", d.Took, " ", d.Err))
				return hook.None{}, nil
			}
		}
		c := chain(silent(), nil, hook.After{Name: "all", Func: note(&all)})
		c.ToolCallFailed.Add(hook.After{Name: "bad", Func: note(&bad)})
		aborted, cancel := context.WithCancel(t.Context())
		cancel() // the call was aborted, but the hooks learn of it
		for i := range 5 {
			d := hook.Done{Call: hook.Call{Tool: fmt.Sprint("t", i)}, Took: time.Second}
			if c.AfterToolCall.Notify(aborted, d); i == 3 {
				c.ToolCallFailed.Notify(aborted, d)
			}
			if i == 2 { // nothing is pending now
				c.Wait(t.Context())
			}
		}
		c.Wait(t.Context())
		if diff := cmp.Diff([]string{"t0 1s <nil>", "t1 1s <nil>", "t2 1s <nil>", "t3 1s <nil>", "t4 1s <nil>"},
			all); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"t3 1s <nil>"}, bad); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a quick hook runs synchronously", func(t *testing.T) {
		var log bytes.Buffer
		calls := 0 // not guarded: the race detector reports another goroutine
		c := chain(slog.New(slog.NewTextHandler(&log, nil)), nil,
			hook.After{Name: "count", Quick: true, Func: func(context.Context, hook.Done) (hook.None, error) {
				if calls++; calls > 1 {
					panic("oh")
				}
				return hook.None{}, nil
			}})
		for n := range 2 {
			if c.AfterToolCall.Notify(t.Context(), hook.Done{}); calls != n+1 {
				t.Errorf("%d calls, want %d", calls, n+1)
			}
		}
		if c.Wait(t.Context()); calls != 2 {
			t.Errorf("%d calls later, want 2", calls)
		}
		if !strings.Contains(log.String(), "panic: oh") {
			t.Errorf("the panic is not in the log: %s", log.String())
		}
	})
	// of two calls
	for limit, want := range map[time.Duration]time.Duration{0: 30 * time.Second, time.Second: 2 * time.Second} {
		t.Run("HOOK-03 a hook that hangs does not delay the call, and errors and panics are logged: "+
			want.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				calls := 0
				c := chain(slog.New(slog.NewTextHandler(&log, nil)), nil,
					hook.After{Name: "deaf", Timeout: limit, Func: func(context.Context, hook.Done) (hook.None, error) {
						time.Sleep(time.Hour)
						return hook.None{}, nil
					}},
					hook.After{Name: "bad", Func: func(context.Context, hook.Done) (hook.None, error) {
						if calls++; calls > 1 {
							panic("oh")
						}
						return hook.None{}, errors.New("no disk")
					}})
				begun := time.Now()
				for range 2 {
					c.AfterToolCall.Notify(t.Context(), hook.Done{})
				}
				if time.Since(begun) > 0 {
					t.Errorf("the call waited for %v", time.Since(begun))
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				c.Wait(ctx)
				if time.Since(begun) != want || calls != 2 {
					t.Errorf("%d calls after %v", calls, time.Since(begun))
				}
				for _, want := range []string{"no disk", "panic: oh", "time limit"} {
					if !strings.Contains(log.String(), want) {
						t.Errorf("the log does not contain %q: %s", want, log.String())
					}
				}
				time.Sleep(2 * time.Hour)
			})
		})
	}
	t.Run("a slow hook misses calls", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n, log := 0, bytes.Buffer{}
			c := chain(slog.New(slog.NewTextHandler(&log, nil)), nil,
				hook.After{Name: "slow", Func: func(context.Context, hook.Done) (hook.None, error) {
					time.Sleep(time.Second)
					n++
					return hook.None{}, nil
				}})
			for range 1000 {
				c.AfterToolCall.Notify(t.Context(), hook.Done{})
			}
			c.Wait(t.Context())
			if n < 256 || n > 257 || !strings.Contains(log.String(), "an event was dropped") {
				t.Errorf("%d calls, want 256 or 257; log: %.200s", n, log.String())
			}
		})
	})
}

// FuzzBefore runs arbitrary hooks and compares the decision with a reference
// implementation of the rules.
func FuzzBefore(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7})
	f.Add([]byte{0x41, 0x92, 0x03})
	f.Add([]byte{0x12, 0x10, 0x31, 0x24})
	f.Add([]byte{0x03, 0x04, 0x05, 0x06, 0x03, 0x02, 0x07})
	f.Fuzz(func(t *testing.T, plan []byte) {
		plan = plan[:min(len(plan), 12)]
		var hooks []hook.Before
		for i, b := range plan {
			hooks = append(hooks, behaves(fmt.Sprint(i), b))
		}
		got, err := chain(silent(), hooks).before(t.Context(), hook.Call{Args: json.RawMessage("")},
			func(a json.RawMessage) error {
				if bytes.HasSuffix(a, []byte("!")) {
					return errors.New("bad")
				}
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(expected(plan), got, cmp.Transformer("decision", func(d decision) []string {
			return []string{fmt.Sprint(d.Block != ""), d.By, fmt.Sprint(d.Asks), string(d.Args), fmt.Sprint(d.Change)}
		})); diff != "" {
			t.Errorf("%x: %s", plan, diff)
		}
	})
}

// behaves returns a hook whose behavior and priority are encoded in one byte.
func behaves(name string, b byte) hook.Before {
	return hook.Before{Name: name, Priority: int(b >> 4),
		Func: func(_ context.Context, c hook.Call) (hook.Verdict, error) {
			args := append(slices.Clip(c.Args), name...)
			switch b & 7 {
			case 1:
				return hook.Verdict{Block: true, Reason: "no", Args: args}, nil
			case 2:
				return hook.Verdict{Args: args}, nil
			case 3:
				return hook.Verdict{Block: true, Args: args}, errors.New("failed")
			case 4:
				return hook.Verdict{Ask: true}, nil
			case 5:
				return hook.Verdict{Ask: true, Args: args}, nil
			case 6:
				panic("oh")
			case 7:
				return hook.Verdict{Args: append(args, '!')}, nil
			}
			return hook.Verdict{}, nil
		}}
}

// expected is a reference implementation: it repeatedly takes the remaining hook
// with the highest priority.
func expected(plan []byte) decision {
	d := decision{Args: json.RawMessage("")}
	left := make([]int, len(plan))
	for i := range left {
		left[i] = i
	}
	for len(left) > 0 {
		next := 0
		for i := range left {
			if plan[left[i]]>>4 > plan[left[next]]>>4 {
				next = i
			}
		}
		i := left[next]
		left = slices.Delete(left, next, next+1)
		name := fmt.Sprint(i)
		switch plan[i] & 7 {
		case 1, 7:
			d.Block, d.By = "no", name
			return d
		case 2, 5:
			d.Args, d.Change = append(d.Args, name...), append(d.Change, name)
		}
		if plan[i]&7 == 4 || plan[i]&7 == 5 {
			d.Asks = append(d.Asks, hook.Ask{Hook: name})
		}
	}
	return d
}
