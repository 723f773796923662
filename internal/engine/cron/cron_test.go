package cron_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/cron"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
)

// settings is a configuration in which everything exists.
type settings struct{ job.Config }

func (s settings) Cron() job.Config                     { return s.Config }
func (settings) HasAgent(chela.AgentID) bool            { return true }
func (settings) Sends(session.Meta, chela.Address) bool { return true }

func (settings) CheckModel(chela.AgentID, string) error { return nil }
func (settings) FindLevel(_ chela.AgentID, _, name string) (llm.Level, error) {
	return llm.FindLevel(name, "mock/m", []string{"off", "high"})
}
func (settings) Location() *time.Location { return time.UTC }

func open(t testing.TB) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "chela.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func scheduler(st store.Store, now func() time.Time) *cron.Scheduler {
	log := slog.New(slog.DiscardHandler)
	return cron.New(cron.Options{
		Log: log, Store: st, Bus: bus.New(log), Config: settings{}, Now: now,
		Has:   func(string, chela.AccountID) bool { return true },
		Rows:  func(outbox.Row, string) []outbox.Row { return nil },
		Abort: func(context.Context, chela.SessionKey, chela.RunID) ([]chela.RunID, error) { return nil, nil },
		Delete: func(context.Context, chela.SessionKey, func(store.Tx, session.Meta) (bool, error)) (bool, error) {
			return false, nil
		},
	})
}

// carry ends every turn of a job as soon as it is queued, in place of a dispatcher.
func carry(ctx context.Context, t *testing.T, st store.Store, s *cron.Scheduler, carried map[string]int) {
	for ctx.Err() == nil {
		err := st.Update(ctx, store.Ordered, func(tx store.Tx) error {
			keys, err := tx.Queue().Sessions()
			if err != nil {
				return err
			}
			for _, key := range keys {
				items, err := tx.Queue().Waiting(key)
				if err != nil {
					return err
				}
				for _, it := range items {
					it.Run = chela.RunID(it.ID)
					if err := tx.Queue().Set(queue.Done, it); err != nil {
						return err
					}
					row := run.Run{
						ID:      it.Run,
						Session: key,
						Kind:    run.Turn,
						Origin:  it.Origin,
						State:   run.OK,
						Text:    "done",
						Started: it.Created,
						Ended:   time.Now(),
					}
					if err := s.Ended(row)(tx); err != nil {
						return err
					}
					carried[it.Key]++
				}
			}
			return nil
		})
		if err != nil && ctx.Err() == nil {
			t.Error(err)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// TestTwo runs two schedulers on one store, whose clocks are stepped.
func TestTwo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		var mu sync.Mutex
		shift := time.Duration(0)
		now := func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(shift)
		}
		a, b := scheduler(db, now), scheduler(db, now)
		for i := range 5 {
			j := job.Job{
				Name:      fmt.Sprint("job ", i),
				Enabled:   true,
				Principal: chela.Owner("test"),
				Schedule:  job.Schedule{Kind: job.KindEvery, EveryMs: int64(10+i) * 1000},
				Payload:   job.Payload{Kind: job.AgentTurn, Message: "report"},
				Delivery:  &job.Delivery{Mode: job.None},
			}
			if _, err := a.Add(t.Context(), j); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		carried := map[string]int{}
		var wg sync.WaitGroup
		for _, s := range []*cron.Scheduler{a, b} {
			wg.Go(func() { s.Run(ctx) })
		}
		wg.Go(func() { carry(ctx, t, db, a, carried) })
		for i := range 20 {
			time.Sleep(time.Minute)
			mu.Lock()
			shift = time.Duration(i%3-1) * time.Hour
			mu.Unlock()
		}
		cancel()
		wg.Wait()
		all, total, err := a.Runs(t.Context(), job.Query{Limit: 10_000, Oldest: true})
		if err != nil || total < 50 {
			t.Fatalf("%d runs, %v", total, err)
		}
		seen := map[string]bool{}
		for _, r := range all {
			slot := fmt.Sprint(r.Job, " ", r.Slot)
			if seen[slot] {
				t.Errorf("R7 slot %s ran twice", slot)
			}
			seen[slot] = true
		}
		for key, n := range carried {
			if n != 1 {
				t.Errorf("item %s was carried out %d times", key, n)
			}
		}
		if len(carried) != total {
			t.Errorf("%d items for %d runs", len(carried), total)
		}
	})
}

// TestLevel stores jobs with thinking levels of the model only.
func TestLevel(t *testing.T) {
	t.Parallel()
	s := scheduler(open(t), nil)
	j := job.Job{
		Name:      "report",
		Enabled:   true,
		Principal: chela.Owner("test"),
		Schedule:  job.Schedule{Kind: job.KindCron, Expr: "0 9 1 1 *"},
		Payload:   job.Payload{Kind: job.AgentTurn, Message: "report", Thinking: "medium"},
	}
	const refused = `payload.thinking: "medium" is not a level of mock/m; use one of off, high`
	if _, err := s.Add(t.Context(), j); err == nil || err.Error() != refused {
		t.Errorf("add: %v, want %s", err, refused)
	}
	j.Payload.Thinking = "Highest"
	j, err := s.Add(t.Context(), j)
	if err != nil || j.Payload.Thinking != "high" {
		t.Fatalf("another name of a level: %q, %v", j.Payload.Thinking, err)
	}
	set := func(level string) error {
		_, err := s.Update(t.Context(), j.ID, func(j job.Job) (job.Job, error) { j.Payload.Thinking = level; return j, nil },
			"")
		return err
	}
	if err := set("medium"); err == nil || err.Error() != refused {
		t.Errorf("update: %v, want %s", err, refused)
	}
	if err := set(""); err != nil {
		t.Errorf("update: %v", err)
	}
}

// TestIdle looks at a scheduler that has nothing to do.
func TestIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := open(t)
		reads := 0
		s := scheduler(counting{db, &reads}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { s.Run(ctx) })
		synctest.Wait()
		before := reads
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if reads != before {
			t.Errorf("%d reads in a day without jobs", reads-before)
		}
		cancel()
		wg.Wait()
	})
}

// counting counts the reads of a store.
type counting struct {
	store.Store
	n *int
}

func (c counting) View(ctx context.Context, f func(store.Reader) error) error {
	*c.n++
	return c.Store.View(ctx, f)
}

// BenchmarkRest measures a tick with 10,000 jobs of which none is due.
func BenchmarkRest(b *testing.B) {
	db := open(b)
	s := scheduler(db, nil)
	for i := range 10_000 {
		j := job.Job{
			ID:        job.ID(fmt.Sprint(i)),
			Name:      fmt.Sprint("job ", i),
			Enabled:   true,
			Principal: chela.Owner("test"),
			Schedule:  job.Schedule{Kind: job.KindCron, Expr: "0 9 1 1 *"},
			Payload:   job.Payload{Kind: job.AgentTurn, Message: "report"},
		}
		if _, err := s.Add(b.Context(), j); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	for b.Loop() {
		if _, err := s.Overview(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
