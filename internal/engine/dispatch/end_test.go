package dispatch_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/runner"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
)

// syncs is a store that knows how the transaction in progress is committed.
type syncs struct {
	store.Store
	now atomic.Bool
}

func (s *syncs) Update(ctx context.Context, sync store.Sync, f func(store.Tx) error) error {
	return s.Store.Update(ctx, sync, func(tx store.Tx) error {
		s.now.Store(bool(sync))
		return f(tx)
	})
}

// observeEnds records in the store, in the commit that ends a run, how often and
// in which state it ended, and whether that commit is not synced.
func (h *harness) observeEnds() {
	s := new(syncs)
	h.outer = func(st store.Store) store.Store { s.Store = st; return s }
	h.ended = []runner.Ended{func(r run.Run) func(store.Tx) error {
		return func(tx store.Tx) error {
			had, err := tx.Setting("ended:" + string(r.ID))
			if err != nil {
				return err
			}
			if !s.now.Load() {
				had += " ordered "
			}
			return tx.SetSetting("ended:"+string(r.ID), had+"+"+string(r.State))
		}
	}}
}

// TestEndIsObservedOnce ends runs in every way and compares what an Ended
// observer wrote.
func TestEndIsObservedOnce(t *testing.T) {
	t.Parallel()
	// suspend starts a run that waits for an approval.
	suspend := func(h *harness) {
		h.p.Provider, h.p.Tools = asksOnce("act"), tool.NewSet(mustAsk("act"))
		h.open()
		h.send("m1", "use it")
		h.pending()
		h.suspended()
	}
	// reinterrupt makes the run with the id, or a copy of it with another id, look
	// interrupted while no engine runs, and starts the engine again.
	reinterrupt := func(h *harness, id chela.RunID, change func(*run.Run)) {
		h.open()
		h.ask(string(id), "hi")
		h.stop()
		db, err := sqlite.Open(h.t.Context(), sqlite.Options{Path: h.path})
		if err != nil {
			h.t.Fatal(err)
		}
		err = db.Update(h.t.Context(), store.Synced, func(tx store.Tx) error {
			r, err := tx.Runs().Get(id)
			r.State, r.Ended = run.Running, time.Time{}
			change(&r)
			if r.ID != id { // another run, whose message is not answered
				message := session.Entry{ID: "own", Kind: session.KindMessage, Run: r.ID, Message: llm.User("hi")}
				err = errors.Join(err, tx.Sessions().Append(r.SessionID, &message))
			}
			err = errors.Join(err, tx.Runs().Put(r), tx.SetSetting("ended:m1", ""))
			if r.Stop != "" {
				_, serr := tx.Runs().RequestStop(r.ID, r.Stop)
				err = errors.Join(err, serr)
			}
			return err
		})
		if err := errors.Join(err, db.Close()); err != nil {
			h.t.Fatal(err)
		}
		h.events = nil
		h.open()
		h.wait("m1")
	}
	hang := func() *llmtest.Script { // does not answer the first call
		return llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			if n == 0 {
				return llmtest.Step{Fault: llmtest.Fault{Hang: llmtest.HangHeaders}}
			}
			return llmtest.Say("ok")
		})
	}
	for _, c := range []struct {
		name string
		do   func(*harness)
		want string

		published int // ends in the last process
	}{
		{"an answer", func(h *harness) { h.open().ask("m1", "hi") }, "+ok", 1},
		{"an error of the model", func(h *harness) {
			h.p.Provider = llmtest.NewScript(llmtest.Status(401, "invalid x-api-key"))
			h.open().ask("m1", "hi")
		}, "+error", 1},
		{"no profile", func(h *harness) {
			h.refuse = errors.New("the model does not exist")
			h.open().ask("m1", "hi")
		}, "+error", 1},
		{"a panic", func(h *harness) {
			h.p.Provider = llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step { panic("boom") })
			h.open().ask("m1", "hi")
		}, "+error", 1},
		{"the time limit", func(h *harness) {
			h.p.Provider, h.p.Timeout = hang(), 50*time.Millisecond
			h.open().ask("m1", "hi")
		}, "+timeout", 1},
		{"a stop", func(h *harness) {
			model := hang()
			h.p.Provider = model
			h.open()
			h.send("m1", "hi")
			h.until("the model is called", func() bool { return len(model.Requests()) == 1 })
			h.stopAll()
			h.wait("m1")
		}, "+aborted", 1},
		{"an interruption by a newer message", func(h *harness) {
			model := hang()
			h.p.Provider, h.q.Mode = model, "interrupt"
			h.open()
			h.send("m1", "hi")
			h.until("the model is called", func() bool { return len(model.Requests()) == 1 })
			h.ask("m2", "something else")
			h.wait("m1")
		}, "+superseded", 1},
		{"a message to a suspended run", func(h *harness) {
			suspend(h)
			h.ask("m2", "hello")
		}, "+superseded", 1},
		{"a stop of a suspended run", func(h *harness) {
			suspend(h)
			h.stopAll()
			h.wait("m1")
		}, "+aborted", 1},
		{"a reset of the session of a suspended run", func(h *harness) {
			suspend(h)
			err := h.st.Update(h.t.Context(), store.Synced, func(tx store.Tx) error {
				_, err := session.Reset(tx.Sessions(), key, "idle", time.Now())
				return err
			})
			if err != nil {
				h.t.Fatal(err)
			}
			h.ask("m2", "hello")
		}, "+aborted", 1},
		{"the deletion of the session", func(h *harness) {
			suspend(h)
			if deleted, err := h.con.DeleteSession(h.t.Context(), key, nil); err != nil || !deleted {
				h.t.Fatal(deleted, err)
			}
		}, "+aborted", 1},
		{"several crashes", func(h *harness) {
			reinterrupt(h, "m1", func(r *run.Run) { r.Attempts = 3 })
		}, "+ok", 1},
		{"too many crashes", func(h *harness) {
			reinterrupt(h, "m0", func(r *run.Run) { r.ID, r.Attempts, r.Started = "m1", 10, time.Now().Add(-10*time.Minute) })
		}, "+error", 1},
		{"a crash long ago", func(h *harness) {
			reinterrupt(h, "m0", func(r *run.Run) { r.ID, r.Started = "m1", time.Now().Add(-24*time.Hour) })
		}, "+ok", 1},
		{"a stop before a crash", func(h *harness) {
			reinterrupt(h, "m1", func(r *run.Run) { r.Stop = "stopped" })
		}, "+aborted", 1},
		{"a crash that is resumed", func(h *harness) {
			reinterrupt(h, "m1", func(*run.Run) {})
		}, "+ok", 1},
		{"a crash before the end", func(h *harness) {
			h.crashAt("run.end", 1, func() { h.send("m1", "hi") })
			h.wait("m1")
		}, "+ok", 1},
		{"a crash after the end", func(h *harness) {
			h.crashAt("run.ended", 1, func() { h.send("m1", "hi") })
			h.wait("m1")
			h.ask("m2", "again")
		}, "+ok", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, asksOnce("none"))
			h.observeEnds()
			c.do(h)
			got, err := store.Get(t.Context(), h.st, func(r store.Reader) (string, error) { return r.Setting("ended:m1") })
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("observed (-want +got): %v\n%s\n%s", err, diff, strings.Join(h.lines(), "\n"))
			}
			h.stop() // now everything is published
			published := 0
			for _, e := range append(h.seen(chela.StreamLifecycle, chela.PhaseEnd),
				h.seen(chela.StreamLifecycle, chela.PhaseError)...) {
				if e.Run == "m1" {
					published++
					if failed := c.want == "+error" || c.want == "+timeout"; failed != (e.Phase == chela.PhaseError) {
						t.Errorf("the end %s was published as %s", c.want, e.Phase)
					}
				}
			}
			if published != c.published {
				t.Errorf("the end was published %d times, want %d", published, c.published)
			}
		})
	}
}
