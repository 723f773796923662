package deliver

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
)

// recordKey is the key of the item that recordClosed writes for a row.
func recordKey(row outbox.Row) string { return "closed:" + row.Key }

// recordClosed is a Sent that writes a queue item with the state of the row.
func recordClosed(t *testing.T) Sent {
	return func(row outbox.Row) func(store.Tx) error {
		return func(tx store.Tx) error {
			r, err := tx.Queue().Put(queue.Item{
				ID: recordKey(row), Key: recordKey(row), Session: row.Session, Kind: queue.Event, Next: true,
				State: queue.Done, Note: string(row.State), Created: time.Now(),
			})
			if err == nil && !r.New {
				t.Errorf("row %s was closed twice", row.Key)
			}
			return err
		}
	}
}

// recorded checks that a row is closed if and only if its record exists, and
// returns the rows of the run.
func (b *bench) recorded(id chela.RunID) []outbox.Row {
	b.t.Helper()
	var rows []outbox.Row
	err := b.db.View(b.t.Context(), func(r store.Reader) error {
		var err error
		rows, err = r.Outbox().OfRun(id)
		for _, row := range rows {
			it, gerr := r.Queue().Get(recordKey(row))
			switch {
			case gerr != nil && !errors.Is(gerr, chela.ErrNotFound):
				return gerr
			case closed(row) != (gerr == nil):
				b.t.Errorf("row %s is %s, record: %v", row.Key, row.State, gerr)
			case gerr == nil && it.Note != string(row.State):
				b.t.Errorf("row %s is %s, recorded as %s", row.Key, row.State, it.Note)
			}
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return rows
}

// dying is a store whose process dies before the nth commit.
type dying struct {
	store.Store
	left *atomic.Int64
}

func (d dying) Update(ctx context.Context, s store.Sync, f func(store.Tx) error) error {
	if d.left.Add(-1) < 0 {
		return errors.New("the process is dead")
	}
	return d.Store.Update(ctx, s, f)
}

func TestSent(t *testing.T) {
	on(t, "each state that closes a row is recorded with it", func(t *testing.T, b *bench) {
		b.sent = []Sent{recordClosed(t), func(outbox.Row) func(store.Tx) error { return nil }}
		b.restart()
		b.view = b.fake.Plain()
		b.fake.Fail(channeltest.Permanent(), channeltest.Cut(), channeltest.Temporary())
		b.start()
		for _, id := range []chela.RunID{"r1", "r2", "r3"} {
			b.ended(answer(id, "hello"))
			time.Sleep(time.Minute)
			b.recorded(id)
		}
		b.states("r1", "0 failed")
		b.states("r2", "0 ambiguous")
		b.states("r3", "0 sent")
	})
	on(t, "a row that waits is not recorded", func(t *testing.T, b *bench) {
		b.sent = []Sent{recordClosed(t)}
		b.restart()
		r := answer("r1", "hello")
		r.Address.Channel = "gone"
		b.ended(r)
		b.start()
		time.Sleep(23 * time.Hour)
		b.states("r1", "0 pending")
		b.recorded("r1")
		time.Sleep(2 * time.Hour)
		b.states("r1", "0 failed")
		b.recorded("r1")
	})
	on(t, "the preview of a superseded run", func(t *testing.T, b *bench) {
		b.sent = []Sent{recordClosed(t)}
		b.restart()
		b.start()
		r := b.live(chela.PhaseStart)
		b.delta("half an")
		time.Sleep(2 * time.Second)
		b.recorded("r1")
		r.State = run.Superseded
		b.update(func(tx store.Tx) error { return tx.Runs().Put(r) })
		time.Sleep(time.Minute)
		b.states("r1", "0 sent")
		b.recorded("r1")
	})
	for n, died := int64(0), true; died; n++ { // n commits, then the process dies
		left := &atomic.Int64{}
		left.Store(n)
		on(t, fmt.Sprintf("killed after %d commits", n), func(t *testing.T, b *bench) {
			b.sent = []Sent{recordClosed(t)}
			b.wrap = func(s store.Store) store.Store { return dying{s, left} }
			b.restart()
			b.fake.Fail(channeltest.Temporary(), channeltest.Fault{}, channeltest.Permanent())
			for _, id := range []chela.RunID{"r1", "r2", "r3"} {
				b.ended(answer(id, "answer "+string(id)))
			}
			b.start()
			time.Sleep(time.Minute)
			died = left.Load() < 0
			for _, id := range []chela.RunID{"r1", "r2", "r3"} {
				b.recorded(id)
			}
			b.wrap = nil
			b.restart()
			b.start()
			time.Sleep(time.Minute)
			for _, id := range []chela.RunID{"r1", "r2", "r3"} {
				if rows := b.recorded(id); len(rows) != 1 || !closed(rows[0]) {
					t.Errorf("rows of %s: %+v", id, rows)
				}
			}
		})
		if n > 30 {
			t.Fatal("the worker never finished")
		}
	}
}
