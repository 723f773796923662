package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/store"
)

// testHeartbeats reads and writes wakes and the states of heartbeats.
func testHeartbeats(t *testing.T, s store.Store) {
	wake := func(key chela.SessionKey, due int) heartbeat.Wake {
		return heartbeat.Wake{
			Agent: "main", Session: key, Reason: "cron:7", Mode: heartbeat.Now, Principal: chela.Owner("cron"),
			At: at(0), Due: at(due), Tries: 2, Tick: at(1),
		}
	}
	a, b := wake(keyA, 5), wake(keyB, 3)
	update(t, s, func(tx store.Tx) error {
		return errors.Join(tx.Heartbeats().PutWake(a), tx.Heartbeats().PutWake(b))
	})
	wakes := func() []heartbeat.Wake {
		return get(t, s, func(r store.Reader) ([]heartbeat.Wake, error) { return r.Heartbeats().Wakes() })
	}
	same(t, "wakes by time", wakes(), []heartbeat.Wake{b, a})
	got := get(t, s, func(r store.Reader) (heartbeat.Wake, error) { return r.Heartbeats().Wake(keyA) })
	same(t, "wake of a session", got, a)
	b.Due, b.Mode = at(9), heartbeat.NextTick
	update(t, s, func(tx store.Tx) error { return tx.Heartbeats().PutWake(b) })
	same(t, "a replaced wake", wakes(), []heartbeat.Wake{a, b})
	update(t, s, func(tx store.Tx) error {
		return errors.Join(tx.Heartbeats().DeleteWake(keyA), tx.Heartbeats().DeleteWake("agent:main:none"))
	})
	same(t, "after a deletion", wakes(), []heartbeat.Wake{b})
	_, err := store.Get(t.Context(), s, func(r store.Reader) (heartbeat.Wake, error) { return r.Heartbeats().Wake(keyA) })
	if !errors.Is(err, chela.ErrNotFound) {
		t.Errorf("deleted wake: %v", err)
	}

	state := func(id chela.AgentID) heartbeat.State {
		return heartbeat.State{
			Agent:   id,
			Ticked:  at(1),
			Tasks:   map[string]time.Time{"mail": at(2), "": at(3)},
			Started: map[chela.SessionKey]time.Time{keyA: at(4)},
			Runs: []heartbeat.Run{{ID: "r1", Reason: "interval", Begun: at(4), Tick: at(4), Tasks: []string{"mail"}, Home: keyA,
				Blocked: "dm-blocked", ShowOK: true, Indicator: true}},
			Last: heartbeat.Result{
				Agent:    id,
				Session:  keyA,
				Run:      "r0",
				Time:     at(3),
				Status:   heartbeat.StatusSent,
				Reason:   "interval",
				Preview:  "世界 \"x\"",
				Duration: time.Second,
				To:       chela.Address{Channel: "telegram", Peer: chela.Peer{Kind: chela.Direct, ID: "7"}},

				Silent:    true,
				Indicator: "alert",
			},
		}
	}
	read := func(id chela.AgentID) heartbeat.State {
		return get(t, s, func(r store.Reader) (heartbeat.State, error) { return r.Heartbeats().State(id) })
	}
	same(t, "no state", read("main"), heartbeat.State{Agent: "main"})
	m, o := state("main"), state("alpha")
	update(t, s, func(tx store.Tx) error {
		return errors.Join(tx.Heartbeats().PutState(m), tx.Heartbeats().PutState(o))
	})
	same(t, "state", read("main"), m)
	m.Last.Status, m.Runs = heartbeat.StatusFailed, nil
	update(t, s, func(tx store.Tx) error { return tx.Heartbeats().PutState(m) })
	states := get(t, s, func(r store.Reader) ([]heartbeat.State, error) { return r.Heartbeats().States() })
	same(t, "states", states, []heartbeat.State{o, m})
	update(t, s, func(tx store.Tx) error {
		return errors.Join(tx.Heartbeats().DeleteState("alpha"), tx.Heartbeats().DeleteState("none"))
	})
	same(t, "a deleted state", read("alpha"), heartbeat.State{Agent: "alpha"})
}
