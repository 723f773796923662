package budget_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/engine/budget"
	"github.com/chela-ai/chela/internal/engine/notice"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
)

// open opens a store, and the Budgets of n processes on it.
func open(t *testing.T, n int) (*sqlite.DB, []*budget.Budgets) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	db, err := sqlite.Open(context.Background(), sqlite.Options{Path: filepath.Join(t.TempDir(), "chela.db"), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	var all []*budget.Budgets
	for range n {
		all = append(all, budget.New(budget.Options{Store: db, Bus: bus.New(log), Notices: notice.New(notice.Options{})}))
	}
	return db, all
}

// committed returns what is spent or reserved today.
func committed(t *testing.T, st store.Store) (all, held int64) {
	t.Helper()
	scope := usage.DayScope(time.Now().UTC())
	err := st.View(t.Context(), func(r store.Reader) error {
		var err1, err2 error
		all, err1 = r.Usage().Committed(scope)
		held, err2 = r.Usage().Held(scope)
		return errors.Join(err1, err2)
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, held
}

var priced = llm.Model{Provider: "mock", ID: "m", Price: &llm.Price{Output: 1}}

// TestProvider makes calls outside of a run.
func TestProvider(t *testing.T) {
	t.Parallel()
	db, b := open(t, 1)
	step := llmtest.Say("seen")
	step.Usage = &llm.Usage{Input: 5, Output: 700}
	model := llmtest.NewScript(llmtest.Status(500, "oops"), step, step, step)
	p := b[0].Provider(model, priced, budget.Call{Run: "r", Agent: "main", Session: "agent:main:main"},
		usage.Limits{Day: 2_000_000, Task: 1e9})
	ask := func() error {
		for _, err := range p.Stream(t.Context(),
			&llm.Request{Model: "m", Messages: []*llm.Message{llm.User("look")}, MaxTokens: 1500}) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	for i, want := range []struct {
		fails       bool
		spent, held int64
	}{{true, 0, 0}, {false, 700_000, 0}, {true, 700_000, 0}} {
		if i == 2 { // an answer of 1,024 tokens fits, and costs the last one
			if err := ask(); err != nil {
				t.Fatal(err)
			}
			want.spent = 1_400_000
		}
		err := ask()
		all, held := committed(t, db)
		if (err != nil) != want.fails || all != want.spent || held != want.held {
			t.Errorf("call %d: %v, committed %d, held %d", i, err, all, held)
		}
		if _, over := errors.AsType[*usage.BudgetError](err); over != (i == 2) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	reqs := model.Requests()
	if n := len(reqs); n != 3 || reqs[1].MaxTokens != 1500 || reqs[2].MaxTokens != 1300 {
		t.Errorf("%d requests: %+v", n, reqs)
	}
	sum, err := store.Get(t.Context(), db, func(r store.Reader) (usage.Sum, error) { return r.Usage().OfRun("r") })
	if err != nil || sum.Calls != 2 || sum.NanoUSD != 1_400_000 {
		t.Errorf("%+v, %v", sum, err)
	}
}

// TestRace has several processes compete for the last cent of a store.
func TestRace(t *testing.T) {
	t.Parallel()
	db, b := open(t, 4)
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 64 {
		wg.Go(func() {
			_, err := b[i%4].Reserve(t.Context(), budget.Call{Run: "r", Agent: "main"}, usage.Limits{Day: 7_500_000},
				usage.Quote{Prices: []llm.Price{{Output: 1}}, Output: 1000},
				func(ctx context.Context, f func(store.Tx) error) error {
					return db.Update(ctx, store.Ordered, f)
				})
			mu.Lock()
			defer mu.Unlock()
			if _, over := errors.AsType[*usage.BudgetError](err); err == nil {
				won++
			} else if !over {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if all, held := committed(t, db); won != 7 || all != 7_000_000 || held != all {
		t.Errorf("%d got money, committed %d, held %d", won, all, held)
	}
}
