package power_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/lease"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/test/power"
)

// TestSweepWork cuts the power between the commits of a run that another process
// takes over: the lease, the hold of its budget, the spawn of a child with its bounds,
// a tool call that starts and is blocked, and the suspension and the end, which free
// the lease.
func TestSweepWork(t *testing.T) {
	const key, child = chela.SessionKey("agent:main:main"), chela.SessionKey("agent:main:subagent:1")
	name := lease.Session(key)
	now := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	hold := usage.Hold{
		ID:      "r:2",
		Run:     "r",
		Scopes:  []usage.Scope{{Name: usage.TreeScope("r"), Limit: 100}},
		Nano:    40,
		Created: now,
	}
	power.Sweep(t, func(t testing.TB, s store.Store, report func(power.Fact)) {
		var l lease.Lease
		row := run.Run{ID: "r", Session: key, SessionID: "t", Kind: run.Turn, State: run.Running, Started: now}
		commit := func(sync store.Sync, f func(store.Tx) error) {
			t.Helper()
			if err := s.Update(t.Context(), sync, f); err != nil {
				t.Fatal(err)
			}
		}
		held := func(sync store.Sync, f func(store.Tx) error) {
			t.Helper()
			if err := store.Held(t.Context(), s, l, sync, f); err != nil {
				t.Fatal(err)
			}
		}
		acquire := func(owner string) func(store.Tx) error {
			return func(tx store.Tx) error {
				got, ok, err := tx.Leases().Acquire(name, owner)
				if l = got; err == nil && !ok {
					err = fmt.Errorf("%s holds the lease", got.Owner)
				}
				return errors.Join(err, tx.Runs().Put(row))
			}
		}
		commit(store.Ordered, acquire("first"))
		commit(store.Synced, acquire("second")) // from another owner, before it acts
		report(owned(name, "second"))

		held(store.Ordered, func(tx store.Tx) error { return usage.Reserve(tx.Usage(), hold) })
		held(store.Ordered, func(tx store.Tx) error {
			return tx.Calls().Plan(session.Call{ID: "c", Run: "r", Session: key, Wire: llm.ToolCall{Name: "exec"}, Updated: now})
		})
		held(store.Ordered, func(tx store.Tx) error { // a call before it spawned a child
			_, err := tx.Queue().Put(queue.Item{
				ID:      "spawn:r",
				Key:     "spawn:r",
				Session: child,
				Kind:    queue.Message,
				State:   queue.Waiting,
				Parent:  "r",
				Created: now,
			})
			return errors.Join(err, tx.Sessions().Put(session.Meta{Key: child, ID: "u", Agent: "main",
				Bounds: session.Bounds{}.Narrow(key, run.Tools{Deny: []string{"exec"}})}))
		})
		held(store.Synced, func(tx store.Tx) error { return tx.Calls().Move("c", session.Started, session.Planned) })
		report(func(r store.Reader) error { // the child exists, with its bounds
			_, missing := r.Queue().ByKey("spawn:r")
			m, err := r.Sessions().Get(child)
			if b := m.Bounds; err == nil && (b.SpawnedBy != key || b.Depth != 1 || len(b.Tools) != 1) {
				err = fmt.Errorf("bounds %+v", b)
			}
			return errors.Join(missing, err)
		})
		report(func(r store.Reader) error { // the tool runs: the hold of the model call that requested it is stored too
			spent, err := r.Usage().Committed(hold.Scopes[0].Name)
			if err == nil && spent != hold.Nano {
				err = fmt.Errorf("%d spent or held, want %d", spent, hold.Nano)
			}
			return errors.Join(err, callIn("c", session.Started, session.Waiting, session.Closed)(r))
		})

		// blocked: one commit requests approval, suspends the run and frees the lease
		held(store.Synced, func(tx store.Tx) error {
			_, err := session.Block(tx.Calls(), "c", "a", []string{"net:example.org"}, now, session.Started)
			row.State, row.Waits = run.Suspended, run.WaitsApproval
			return errors.Join(err, tx.Approvals().Put(approval.Request{
				ID:      "a",
				Session: key,
				Run:     "r",
				Call:    "c",
				Rights:  []string{"net:example.org"},
				Created: now,
			}),
				tx.Runs().Put(row), tx.Leases().Release(l))
		})
		before := l
		report(func(r store.Reader) error {
			got, err := r.Runs().Get("r")
			if err == nil && got.State != run.OK && (got.State != run.Suspended || got.Waits != run.WaitsApproval) {
				err = fmt.Errorf("the run is %s, waits for %q", got.State, got.Waits)
			}
			_, asked := r.Approvals().Get("a")
			return errors.Join(err, asked, freed(before)(r), callIn("c", session.Waiting, session.Closed)(r))
		})

		commit(store.Ordered, acquire("second")) // it is resumed, and ends
		held(store.Synced, func(tx store.Tx) error {
			row.State, row.Waits, row.Ended = run.OK, "", now
			return errors.Join(tx.Calls().Move("c", session.Closed), tx.Runs().Put(row), tx.Leases().Release(l))
		})
		last := l
		report(func(r store.Reader) error {
			got, err := r.Runs().Get("r")
			if err == nil && got.State != run.OK {
				err = fmt.Errorf("the run is %s", got.State)
			}
			return errors.Join(err, freed(last)(r))
		})
	})
}

// owned promises that the owner acquired the lease: it holds the lease, or has
// released it.
func owned(name, owner string) power.Fact {
	return func(r store.Reader) error {
		l, err := r.Leases().Get(name)
		if err == nil && l.Owner != owner && l.Owner != "" {
			err = fmt.Errorf("%s holds the lease, want %q", l.Owner, owner)
		}
		if err == nil && l.Fence < 2 {
			err = fmt.Errorf("fence %d", l.Fence)
		}
		return err
	}
}

// freed promises that the lease was released.
func freed(l lease.Lease) power.Fact {
	return func(r store.Reader) error {
		got, err := r.Leases().Get(l.Name)
		if err == nil && got == l {
			err = fmt.Errorf("%s still holds the lease", l.Owner)
		}
		return err
	}
}

// callIn promises that the call is in one of the states.
func callIn(id string, states ...session.CallState) power.Fact {
	return func(r store.Reader) error {
		c, err := r.Calls().Call(id)
		if err != nil {
			return err
		}
		for _, s := range states {
			if c.State == s {
				return nil
			}
		}
		return fmt.Errorf("call %s is %s", id, c.State)
	}
}
