package dispatch_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/usage"
)

// TestMoneyAfterCrash kills the process before and after the commits that reserve and
// settle money.
func TestMoneyAfterCrash(t *testing.T) {
	t.Parallel()
	for step, want := range map[string]struct {
		calls int
		holds int64 // full holds that stay spent
	}{
		"model.reserve":  {1, 0},
		"model.reserved": {2, 1}, // a dead process of the tests can still call
		"run.end":        {2, 1}, // the answer was not stored
		"run.ended":      {1, 0},
	} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			model := llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step {
				s := llmtest.Say("here")
				s.Usage = &llm.Usage{Input: 10, Output: 10}
				return s
			})
			h := newHarness(t, model)
			h.p.Model.Price, h.p.MaxTokens = &llm.Price{Output: 1}, 1_000_000 // a hold of $1 and a cost of $0.00001
			h.p.Limits = usage.Limits{Day: 100e9}
			h.crashAt(step, 1, func() { h.send("m1", "hello") })
			if r := h.wait("m1"); r.State != run.OK || len(model.Requests()) != want.calls {
				t.Errorf("run is %s after %d calls: %s", r.State, len(model.Requests()), r.Error)
			}
			scope := usage.DayScope(time.Now().UTC())
			var all, held int64
			h.view(func(r store.Reader) error {
				var err1, err2 error
				all, err1 = r.Usage().Committed(scope)
				held, err2 = r.Usage().Held(scope)
				return errors.Join(err1, err2)
			})
			if held != want.holds*1e9 || all != held+10_000 {
				t.Errorf("committed %d, held %d", all, held)
			}
		})
	}
}

// TestMoneyWithoutLimits counts the commits of a turn.
func TestMoneyWithoutLimits(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int64]int64{0: 2, 100e9: 3} {
		c := new(counted)
		h := newHarness(t, says("here"))
		h.wrap = func(s store.Store) store.Store { c.Store = s; return c }
		h.p.Model.Price, h.p.Limits = &llm.Price{Output: 1}, usage.Limits{Day: limit}
		h.open()
		h.ask("m1", "first")
		h.reserved(key).Release(false)
		before := c.updates.Load()
		h.ask("m2", "second")
		if got := c.updates.Load() - before; got != want {
			t.Errorf("limit %d: %d commits, want %d", limit, got, want)
		}
	}
}

// TestMoneyOfFailures has model calls fail for which money is reserved.
func TestMoneyOfFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		step llmtest.Step
		want int64 // that is spent
	}{
		{"refused", llmtest.Status(400, "no"), 0},
		{"empty answers", func() llmtest.Step {
			s := llmtest.Say("")
			s.Usage = &llm.Usage{Output: 1000}
			return s
		}(), 2_000_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step { return c.step }))
			h.p.Model.Price, h.p.Limits = &llm.Price{Output: 1}, usage.Limits{Day: 100e9}
			h.open()
			h.send("m1", "hello")
			if r := h.wait("m1"); r.State != run.Failed || strings.Contains(r.Error, "budget") {
				t.Errorf("run is %s: %s", r.State, r.Error)
			}
			h.view(func(r store.Reader) error {
				all, err := r.Usage().Committed(usage.DayScope(time.Now().UTC()))
				if all != c.want {
					t.Errorf("committed %d, want %d", all, c.want)
				}
				return err
			})
		})
	}
}
