package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
)

// testChildren reads and writes records of subagents.
func testChildren(t *testing.T, s store.Store) {
	child := func(id string, requester chela.SessionKey, ended time.Time) subagent.Child {
		return subagent.Child{
			ID:        chela.RunID(id),
			Session:   chela.SessionKey("agent:main:subagent:" + id),
			Requester: requester,
			Parent:    "run-1",
			Root:      "run-0",
			Principal: chela.Owner("socket"),

			Address: chela.Address{Channel: "telegram", Peer: chela.Peer{Kind: chela.Direct, ID: "7"}},
			Task:    "look it up",
			Label:   "Task " + id,
			Name:    "t" + id,
			Type:    "explore",
			Model:   "mock/m",
			Timeout: time.Minute,

			Cleanup: subagent.Keep,
			Created: at(1),
			Ended:   ended,
		}
	}
	a, b, c := child("a", keyA, time.Time{}), child("b", keyA, at(5)), child("c", keyB, time.Time{})
	update(t, s, func(tx store.Tx) error {
		return errors.Join(tx.Children().Put(a), tx.Children().Put(b), tx.Children().Put(c))
	})
	ids := func(list []subagent.Child) (out []chela.RunID) {
		for _, c := range list {
			out = append(out, c.ID)
		}
		return out
	}
	read := func(f func(subagent.Reader) ([]subagent.Child, error)) []chela.RunID {
		return ids(get(t, s, func(r store.Reader) ([]subagent.Child, error) { return f(r.Children()) }))
	}
	one := func(f func(subagent.Reader) (subagent.Child, error)) (subagent.Child, error) {
		return store.Get(t.Context(), s, func(r store.Reader) (subagent.Child, error) { return f(r.Children()) })
	}
	got, err := one(func(r subagent.Reader) (subagent.Child, error) { return r.Get("a") })
	same(t, "read by id", got, a)
	same(t, "error", err, nil)
	got, err = one(func(r subagent.Reader) (subagent.Child, error) { return r.In(b.Session) })
	same(t, "read by session", got, b)
	same(t, "error", err, nil)
	for _, f := range []func(subagent.Reader) (subagent.Child, error){
		func(r subagent.Reader) (subagent.Child, error) { return r.Get("x") },
		func(r subagent.Reader) (subagent.Child, error) { return r.In(keyA) },
	} {
		if _, err := one(f); !errors.Is(err, chela.ErrNotFound) {
			t.Errorf("unknown: %v", err)
		}
	}
	same(t, "of a requester", read(func(r subagent.Reader) ([]subagent.Child, error) { return r.Of(keyA) }),
		[]chela.RunID{"a", "b"})
	same(t, "open of a requester", read(func(r subagent.Reader) ([]subagent.Child, error) { return r.Open(keyA) }),
		[]chela.RunID{"a"})
	same(t, "open", read(func(r subagent.Reader) ([]subagent.Child, error) { return r.Open("") }), []chela.RunID{"a", "c"})
	same(t, "recent", read(func(r subagent.Reader) ([]subagent.Child, error) { return r.Recent(2) }),
		[]chela.RunID{"c", "b"})
	tree := func(root chela.RunID) int {
		return get(t, s, func(r store.Reader) (int, error) { return r.Children().Tree(root) })
	}
	same(t, "of a tree", tree("run-0"), 3)
	same(t, "of another tree", tree("run-1"), 0)
	same(t, "ended before their end", read(func(r subagent.Reader) ([]subagent.Child, error) { return r.Ended(at(5)) }),
		nil)
	same(t, "ended", read(func(r subagent.Reader) ([]subagent.Child, error) { return r.Ended(at(6)) }), []chela.RunID{"b"})

	b.Archived, b.Outcome, b.Silent, b.Result, b.Error = at(7), chela.OutcomeOK, subagent.Skipped, "found", "none"
	b.Tokens, b.NanoUSD, b.Priced, b.Requester = llm.Usage{Input: 1, Output: 2}, 3, true, keyB
	update(t, s, func(tx store.Tx) error { return tx.Children().Put(b) })
	same(t, "of a tree, without those that are archived", tree("run-0"), 2)
	got, _ = one(func(r subagent.Reader) (subagent.Child, error) { return r.Get("b") })
	same(t, "replaced", got, b)
	same(t, "archived of its requester", read(func(r subagent.Reader) ([]subagent.Child, error) { return r.Of(keyB) }),
		[]chela.RunID{"c"})
	same(t, "ended and archived", read(func(r subagent.Reader) ([]subagent.Child, error) { return r.Ended(at(6)) }), nil)
	err = s.Update(t.Context(), store.Ordered, func(tx store.Tx) error {
		d := child("d", keyA, time.Time{})
		d.Session = a.Session
		return tx.Children().Put(d)
	})
	if err == nil {
		t.Error("two children have one session")
	}
	for _, prune := range []struct {
		before time.Time
		n      int
	}{{at(5), 0}, {at(6), 1}} {
		update(t, s, func(tx store.Tx) error {
			n, err := tx.Children().Prune(prune.before)
			same(t, "pruned", n, prune.n)
			return err
		})
	}
	same(t, "left", read(func(r subagent.Reader) ([]subagent.Child, error) { return r.Recent(9) }),
		[]chela.RunID{"c", "a"})
}
