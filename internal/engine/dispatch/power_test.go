package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/lease"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/test/power"
)

// TestPower cuts the power at every moment of turns with a tool, with an approval,
// and without either, and compares what was published with what is on the disk.
// Each synced commit, made ordered, must break a promise.
func TestPower(t *testing.T) {
	power.Sweep(t, func(t testing.TB, s store.Store, report func(power.Fact)) {
		act := newTool("act", tool.Acts, func(context.Context, tool.Call) (tool.Result, error) {
			report(callIs("act", session.Started, session.Closed))
			return tool.Text("acted"), nil
		})
		danger := mustAsk("danger")
		danger.run = func(context.Context, tool.Call) (tool.Result, error) {
			report(callIs("danger", session.Started, session.Closed))
			return tool.Text("dangerous"), nil
		}
		taken := make(chan struct{}) // the run would be faster than the test
		model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
			last := r.Messages[len(r.Messages)-1]
			if last.Role == llm.RoleUser {
				<-taken
			}
			switch {
			case last.Role == llm.RoleTool:
				return llmtest.Say("done")
			case last.PlainText() == "act":
				return llmtest.Call("c1", "act", `{}`)
			case last.PlainText() == "danger":
				return llmtest.Call("c2", "danger", `{}`)
			}
			return llmtest.Say("hello")
		})
		h := newHarness(t, model, act, danger)
		h.start(s, slog.New(slog.DiscardHandler), func() error { return nil })
		turn := func(id, text string, meanwhile func()) {
			h.send(id, text)
			report(accepted(id))
			h.pass("the model is asked about "+text, taken)
			meanwhile()
			r := h.wait(chela.RunID(id))
			report(ended(r.ID, r.Text))
		}
		turn("m1", "act", func() {})
		turn("m2", "danger", func() {
			h.until("the approval is published",
				func() bool { return len(h.seen(chela.StreamApproval, chela.PhaseRequested)) > 0 })
			q := h.pending()
			report(asked(q.ID))
			h.suspended()
			h.decide(q.ID, "allow-once")
			report(decided(q.ID))
		})
		turn("m3", "hi", func() {})
		h.stop()
	})
}

// TestPowerTakeover cuts the power after every commit of a run that another process
// resumes. Before that process calls the model, the disk says that it has the lease.
func TestPowerTakeover(t *testing.T) {
	power.Sweep(t, func(t testing.TB, s store.Store, report func(power.Fact)) {
		start := func(owner int, model llm.Provider) *harness {
			h := newHarness(t, model)
			h.boots, h.drain, h.apart = owner-1, time.Millisecond, true
			h.start(s, slog.New(slog.DiscardHandler), func() error { return nil })
			return h
		}
		begun, taken := make(chan struct{}), make(chan struct{})
		first := start(1, llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step {
			<-taken
			close(begun)
			return llmtest.Step{Delay: time.Hour} // until the process ends
		}))
		first.send("m1", "hi")
		report(accepted("m1"))
		close(taken)
		waittest.For(t, "a call of the model by the first process", begun)
		first.stop()
		second := start(2, llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step {
			report(fenced(2))
			return llmtest.Say("hello")
		}))
		r := second.wait("m1")
		report(ended(r.ID, r.Text))
		second.stop()
	})
}

// TestPowerStop cuts the power after every commit of a run that is stopped just before
// it would wait for an approval.
func TestPowerStop(t *testing.T) {
	power.Sweep(t, func(t testing.TB, s store.Store, report func(power.Fact)) {
		taken := make(chan struct{})
		model := llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step {
			<-taken
			return llmtest.Call("c1", "act", `{}`)
		})
		h := newHarness(t, model, mustAsk("act"))
		h.apart = true
		h.at("run.suspend", func() {
			h.stopAll()
			report(stopped("m1"))
		})
		h.start(s, slog.New(slog.DiscardHandler), func() error { return nil })
		h.bus.Subscribe(func(e chela.Event) {
			if q, ok := e.Data.(approval.Request); ok && e.Phase == chela.PhaseRequested {
				report(asked(q.ID))
			}
		})
		h.send("m1", "use it")
		report(accepted("m1"))
		close(taken)
		h.until("the end is published", func() bool { return len(h.seen(chela.StreamLifecycle, chela.PhaseEnd)) > 0 })
		report(ended("m1", ""))
		h.stop()
	})
}

// stopped promises that the run has ended or will not go on.
func stopped(id chela.RunID) power.Fact {
	return func(r store.Reader) error {
		got, err := r.Runs().Get(id)
		if err == nil && got.Stop == "" && !got.State.Final() {
			err = fmt.Errorf("run %s is %s", id, got.State)
		}
		return err
	}
}

// fenced promises that the lease of the session was acquired with the fence.
func fenced(fence int64) power.Fact {
	return func(r store.Reader) error {
		l, err := r.Leases().Get(lease.Session(key))
		if err == nil && l.Fence < fence {
			err = fmt.Errorf("the lease is %+v, want the fence %d", l, fence)
		}
		return err
	}
}

func accepted(id string) power.Fact {
	return func(r store.Reader) error {
		_, err := r.Queue().Get(id)
		return err
	}
}

func ended(id chela.RunID, text string) power.Fact {
	return func(r store.Reader) error {
		got, err := r.Runs().Get(id)
		if err == nil && (!got.State.Final() || got.Text != text) {
			err = fmt.Errorf("run %s is %s with %q", id, got.State, got.Text)
		}
		l, lerr := r.Leases().Get(lease.Session(got.Session))
		if lerr == nil && l.Owner != "" && l.Fence == got.Fence {
			lerr = fmt.Errorf("run %s ended and %s still holds its lease", id, l.Owner)
		}
		return errors.Join(err, lerr)
	}
}

// callIs promises that the call of a tool is in one of the states.
func callIs(name string, states ...session.CallState) power.Fact {
	return func(r store.Reader) error {
		for i := range 10 { // m1 or m2, under any of the first leases
			k, err := r.Calls().Call(fmt.Sprintf("m%d:%d:1:0", 1+i%2, 1+i/2))
			if err != nil || k.Wire.Name != name {
				continue
			}
			for _, s := range states {
				if k.State == s {
					return nil
				}
			}
			return fmt.Errorf("the call of %s is %s", name, k.State)
		}
		return fmt.Errorf("there is no call of %s", name)
	}
}

func asked(id string) power.Fact {
	return func(r store.Reader) error {
		_, err := r.Approvals().Get(id)
		return err
	}
}

func decided(id string) power.Fact {
	return func(r store.Reader) error {
		q, err := r.Approvals().Get(id)
		if err == nil && q.Decision != approval.AllowOnce {
			err = fmt.Errorf("the decision is %q", q.Decision)
		}
		return err
	}
}
