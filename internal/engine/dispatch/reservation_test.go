package dispatch_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/dispatch"
)

// counted is a store that counts transactions. Its next commit can be made to fail
// after the function ran.
type counted struct {
	store.Store
	views, updates atomic.Int64
	fail           atomic.Bool
}

var errDisk = errors.New("the disk is full")

func (c *counted) View(ctx context.Context, f func(store.Reader) error) error {
	c.views.Add(1)
	return c.Store.View(ctx, f)
}

func (c *counted) Update(ctx context.Context, s store.Sync, f func(store.Tx) error) error {
	c.updates.Add(1)
	return c.Store.Update(ctx, s, func(tx store.Tx) error {
		if err := f(tx); err != nil {
			return err
		}
		if c.fail.Swap(false) {
			return errDisk
		}
		return nil
	})
}

// reserved waits until the session can be reserved, and reserves it.
func (h *harness) reserved(key chela.SessionKey) (p *dispatch.Reservation) {
	h.until("the session is idle", func() bool {
		p = h.con.Reserve(key)
		return p != nil
	})
	return p
}

func TestReservation(t *testing.T) {
	t.Parallel()
	t.Run("a turn of an idle session is two commits and no read", func(t *testing.T) {
		t.Parallel()
		c := new(counted)
		h := newHarness(t, llmtest.NewScript(llmtest.Say("one"), llmtest.Say("two")))
		h.wrap = func(s store.Store) store.Store { c.Store = s; return c }
		h.open()
		h.ask("m1", "first") // the transcript is read once
		h.reserved(key).Release(false)
		views, updates := c.views.Load(), c.updates.Load()
		over := make(chan struct{})
		defer h.bus.Subscribe(func(e chela.Event) {
			if e.End != nil {
				close(over)
			}
		})()
		h.send("m2", "second")
		<-over
		if v, u := c.views.Load()-views, c.updates.Load()-updates; v != 0 || u != 2 {
			t.Errorf("%d reads and %d commits, want 0 and 2", v, u)
		}
	})
	t.Run("a commit that fails leaves the session as it was", func(t *testing.T) {
		t.Parallel()
		c := new(counted)
		h := newHarness(t, llmtest.NewScript(llmtest.Say("here")))
		h.wrap = func(s store.Store) store.Store { c.Store = s; return c }
		h.open()
		h.notify("the printer is on fire")
		h.reserved(key).Release(false)
		c.fail.Store(true)
		in := chela.Inbound{
			ID:      "m1",
			Session: key,
			Text:    "hi",
			Address: chela.Address{Channel: chela.LocalChannel},
			Sender:  chela.Sender{ID: "owner"},
		}
		if _, err := h.gate.Admit(owner(t.Context()), in); !errors.Is(err, errDisk) {
			t.Fatalf("admit: %v, want %v", err, errDisk)
		}
		if got := h.lines(); len(got) > 0 || h.con.Live(key) {
			t.Errorf("live %t, transcript %q, want neither", h.con.Live(key), got)
		}
		h.ask("m1", "hi")
		want := []string{"user: [System events since the last turn]\n- the printer is on fire", "user: hi", "assistant: here"}
		if d := cmp.Diff(want, h.lines()); d != "" {
			t.Error(d)
		}
	})
	t.Run("a message waits for the debounce time", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, llmtest.NewScript(llmtest.Say("both")))
		h.q.Debounce = 1
		h.open()
		res := h.reserved(key) // so that the messages are queued
		h.send("m1", "one")
		h.send("m2", "two")
		if again := h.con.Reserve(key); again != nil || len(h.waiting()) != 2 {
			t.Errorf("a second reservation %v, %d waiting, want none and 2", again, len(h.waiting()))
		}
		res.Release(false)
		h.wait("m1")
		if got := h.lines(); !slices.Equal(got, []string{"user: one", "user: two", "assistant: both"}) {
			t.Errorf("transcript %q", got)
		}
	})
	t.Run("a full lane", func(t *testing.T) {
		t.Parallel()
		gate := make(chan struct{})
		h := newHarness(t, llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step {
			<-gate
			return llmtest.Say("here")
		}))
		h.open()
		var all []*dispatch.Reservation
		for _, c := range "abcdefgh" {
			all = append(all, h.reserved("agent:main:"+chela.SessionKey(c)))
		}
		if h.con.Reserve("agent:main:i") != nil {
			t.Error("a ninth reservation in a lane of 8")
		}
		id := h.send("m1", "hi")
		for _, p := range all {
			p.Release(false)
		}
		close(gate)
		if r := h.wait(id); r.State != run.OK || r.Text != "here" {
			t.Errorf("run is %s: %q", r.State, r.Text)
		}
	})
	t.Run("a device that is revoked while its message is accepted", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, llmtest.NewScript(llmtest.Say("never")))
		h.open()
		h.reserved(key).Release(false)
		h.pair("phone", true, chela.ScopeWrite)
		ctx := chela.WithPrincipal(t.Context(), device("phone"))
		in := chela.Inbound{
			ID:      "m1",
			Session: key,
			Text:    "hi",
			Address: chela.Address{Channel: chela.LocalChannel},
			Sender:  chela.Sender{ID: "owner"},
		}
		if _, err := h.gate.Admit(ctx, in); err != nil {
			t.Fatal(err)
		}
		h.until("it is cancelled", func() bool {
			it, err := store.Get(t.Context(), h.st, func(r store.Reader) (queue.Item, error) { return r.Queue().Get("m1") })
			return err == nil && it.State == queue.Cancelled
		})
		if got := h.lines(); len(got) > 0 {
			t.Errorf("transcript %q, want none", got)
		}
	})
}
