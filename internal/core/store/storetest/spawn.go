package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/usage"
)

// testSpawn repeats the commit of a spawn, as the recovery of a call does after a
// kill: the same call creates one child and one item.
func testSpawn(t *testing.T, s store.Store) {
	spawn := func(child chela.SessionKey) queue.Receipt {
		var r queue.Receipt
		update(t, s, func(tx store.Tx) error {
			var err error
			r, err = tx.Queue().Put(queue.Item{
				ID: "spawn:run-1:4:1:0", Key: "spawn:run-1:4:1:0", Session: child, Kind: queue.Message, Created: at(1),
				Origin: chela.Origin{Kind: chela.OriginSubagent, ID: string(keyA)}, Parent: "run-1", Root: "run-1",
				Principal: chela.Owner("socket"), Inbound: chela.Inbound{Text: "look it up"},
			})
			if err != nil || !r.New {
				return err
			}
			return tx.Sessions().Put(session.Meta{
				Key: child, ID: "t-" + string(child), Agent: "main", Updated: at(1),
				Bounds: session.Bounds{}.Narrow(keyA, run.Tools{Deny: []string{"exec"}}),
			})
		})
		return r
	}
	first := spawn("agent:main:subagent:1")
	again := spawn("agent:main:subagent:2") // with a newly generated session key
	if !first.New || again.New {
		t.Errorf("new: %v, then %v", first.New, again.New)
	}
	same(t, "the child of the second commit", again.Item.Session, first.Item.Session)
	view(t, s, func(r store.Reader) error {
		list, n, err1 := r.Sessions().List(session.Query{})
		keys, err2 := r.Queue().Sessions()
		items, err3 := r.Queue().Waiting(first.Item.Session)
		if n != 1 || len(keys) != 1 || len(items) != 1 {
			t.Fatalf("%d sessions, %d of them with items, %d items", n, len(keys), len(items))
		}
		b := list[0].Bounds
		same(t, "bounds", b, session.Bounds{Tools: []run.Tools{{Deny: []string{"exec"}}}, SpawnedBy: keyA, Depth: 1})
		return errors.Join(err1, err2, err3)
	})
	update(t, s, func(tx store.Tx) error {
		m, err := session.Reset(tx.Sessions(), first.Item.Session, "new", at(2))
		same(t, "depth in a new transcript", m.Bounds.Depth, 1)
		return err
	})
	b := get(t, s, func(r store.Reader) (session.Meta, error) { return r.Sessions().Get(first.Item.Session) }).Bounds
	same(t, "bounds of a new transcript", b,
		session.Bounds{Tools: []run.Tools{{Deny: []string{"exec"}}}, SpawnedBy: keyA, Depth: 1})
}

// testHolds lets the runs of one tree compete for the rest of a budget. A hold that
// is never settled, because its process ended, counts as spent.
func testHolds(t *testing.T, s store.Store) {
	const limit = 100
	scopes := []usage.Scope{{Name: usage.DayScope(epoch), Limit: 10 * limit},
		{Name: usage.TreeScope("root"), Limit: limit}}
	hold := func(n int, nano int64) usage.Hold {
		return usage.Hold{
			ID:      fmt.Sprintf("run-%d:1", n),
			Run:     chela.RunID(fmt.Sprint("run-", n)),
			Scopes:  scopes,
			Nano:    nano,
			Created: at(n),
		}
	}
	reserve := func(h usage.Hold) error {
		return s.Update(t.Context(), store.Ordered, func(tx store.Tx) error { return usage.Reserve(tx.Usage(), h) })
	}
	committed := func(scope string) int64 {
		return get(t, s, func(r store.Reader) (int64, error) { return r.Usage().Committed(scope) })
	}
	same(t, "no hold", committed(scopes[1].Name), 0)
	if err := reserve(hold(0, 60)); err != nil {
		t.Fatal(err)
	}
	errs := make([]error, 8)
	var racing sync.WaitGroup
	for i := range errs {
		racing.Go(func() { errs[i] = reserve(hold(i+1, 40)) })
	}
	racing.Wait()
	winner, refused := -1, 0
	for i, err := range errs {
		over, ok := errors.AsType[*usage.BudgetError](err)
		switch {
		case err == nil:
			winner = i + 1
		case ok && over.Scope == scopes[1] && over.Spent == limit:
			refused++
		default:
			t.Errorf("run %d: %v", i+1, err)
		}
	}
	if winner < 0 || refused != len(errs)-1 {
		t.Fatalf("%d of %d refused", refused, len(errs))
	}
	for _, scope := range scopes {
		same(t, "held in "+scope.Name, committed(scope.Name), limit)
	}
	row := usage.Row{
		Run:      "run-0",
		Session:  keyA,
		Agent:    "main",
		Provider: "p",
		Model:    "m",
		Time:     at(1),
		Tokens:   llm.Usage{Input: 1},
		NanoUSD:  10,
		Priced:   true,
	}
	update(t, s, func(tx store.Tx) error { return hold(0, 60).Settle(tx.Usage(), row) })
	same(t, "after settling one of two holds", committed(scopes[1].Name), 50)
	same(t, "held", get(t, s, func(r store.Reader) (int64, error) { return r.Usage().Held(scopes[1].Name) }), 40)
	same(t, "the usage row",
		get(t, s, func(r store.Reader) (usage.Sum, error) { return r.Usage().OfRun("run-0") }).NanoUSD, 10)
	err := s.Update(t.Context(), store.Ordered, func(tx store.Tx) error { return tx.Usage().SettleHold("run-0:1", 1) })
	if chela.CodeOf(err) != chela.CodeConflict {
		t.Errorf("settled twice: %v", err)
	}
	if err := reserve(hold(9, 50)); err != nil {
		t.Errorf("hold of the released amount: %v", err)
	}
	if err := reserve(hold(9, 0)); chela.CodeOf(err) != chela.CodeConflict {
		t.Errorf("duplicate hold: %v", err)
	}
	if err := reserve(hold(10, 1)); !errors.As(err, new(*usage.BudgetError)) {
		t.Errorf("hold over the budget: %v", err)
	}
	update(t, s, func(tx store.Tx) error {
		n, err := tx.Usage().PruneHolds(at(1))
		same(t, "pruned", n, 2)
		return err
	})
	same(t, "after pruning", committed(scopes[1].Name), 90)
}
