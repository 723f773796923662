package maintenance

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/test/power"
)

func TestMaintenance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := power.New(t).Open(t)
		put := func(id string) {
			err := db.Update(t.Context(), store.Ordered, func(tx store.Tx) error {
				_, err := tx.Queue().Put(queue.Item{ID: id, Key: id, Kind: queue.Message, State: queue.Done, Created: time.Now()})
				return errors.Join(err,
					tx.Children().Put(subagent.Child{ID: chela.RunID(id), Session: chela.SessionKey(id), Ended: time.Now(),
						Archived: time.Now()}),
					tx.Runs().Put(run.Run{ID: chela.RunID(id), State: run.OK, Started: time.Now(), Ended: time.Now()}),
					tx.Outbox().Put(outbox.Row{Key: id, State: outbox.Sent, Created: time.Now()}),
					tx.Usage().PutHold(usage.Hold{ID: id, Scopes: []usage.Scope{{Name: id}}, Nano: 1, Created: time.Now()}))
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		left := func(id string) (n int) {
			err := db.View(t.Context(), func(r store.Reader) error {
				_, err1 := r.Queue().Get(id)
				_, err2 := r.Runs().Get(chela.RunID(id))
				_, err3 := r.Outbox().Get(id)
				_, err4 := r.Children().Get(chela.RunID(id))
				held, err := r.Usage().Committed(id)
				n = int(held)
				for _, err := range [...]error{err1, err2, err3, err4} {
					if err == nil {
						n++
					}
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		put("old")
		time.Sleep(retention)
		put("new")

		var log bytes.Buffer
		var checks atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			done <- Worker{Log: slog.New(slog.NewTextHandler(&log, nil)), Store: db,
				Sweep: func(context.Context) (int, error) { return 0, nil }, Check: func(context.Context) error {
					checks.Add(1)
					return errors.New("page 7 is torn")
				}}.Run(ctx)
		}()
		time.Sleep(startDelay - time.Second)
		synctest.Wait()
		if checks.Load() != 0 || left("old") != 5 {
			t.Errorf("in the first minute: %d checks, %d old rows, want 0 and 5", checks.Load(), left("old"))
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if checks.Load() != 1 || left("old") != 0 || left("new") != 5 {
			t.Errorf("after it: %d checks, %d old and %d new rows, want 1, 0 and 5", checks.Load(), left("old"), left("new"))
		}
		time.Sleep(retention)
		time.Sleep(pruneEvery)
		synctest.Wait()
		if checks.Load() != 1 || left("new") != 0 {
			t.Errorf("a month later: %d checks, %d rows, want 1 and 0", checks.Load(), left("new"))
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "page 7 is torn") {
			t.Errorf("the damage is not in the log: %s", &log)
		}
	})
}
