package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/deliver"
	"github.com/chela-ai/chela/internal/test/power"
)

// reportingChannel records a promise when it is called: the row that a message is
// sent for is on disk, in the state that recovery depends on.
type reportingChannel struct {
	*channeltest.Fake
	report func(power.Fact)
}

func (c reportingChannel) Send(ctx context.Context, p channel.Part) (channel.Receipt, error) {
	key, isPreview := strings.CutSuffix(p.Key, ":preview")
	c.report(func(r store.Reader) error { // a row is closed if and only if Sent has recorded it
		row, err := r.Outbox().Get(key)
		recorded, rerr := r.Setting("closed:" + key)
		if open := row.State == outbox.Pending || row.State == outbox.Draft || row.State == outbox.Attempted; err == nil &&
			open != (recorded == "") {
			err = fmt.Errorf("row %s is %s, recorded as %q", key, row.State, recorded)
		}
		return errors.Join(err, rerr)
	})
	c.report(func(r store.Reader) error {
		row, err := r.Outbox().Get(key)
		switch {
		case err != nil:
			return fmt.Errorf("row %s: %w", key, err)
		case isPreview:
			return nil // any state: the row says that there may be a message
		case row.State == outbox.Pending, row.State == outbox.Draft:
			return fmt.Errorf("row %s is %s", key, row.State)
		case row.State == outbox.Attempted && row.PlatformID != "":
			return fmt.Errorf("row %s would be edited, not looked up", key)
		}
		return nil
	})
	return c.Fake.Send(ctx, p)
}

// waiting is a store whose transactions wait for a lock.
type waiting struct {
	store.Store
	mu *sync.Mutex
}

func (s waiting) Update(ctx context.Context, sync store.Sync, f func(store.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Store.Update(ctx, sync, f)
}

// TestPower cuts the power after every commit of an answer, of one with a
// preview that cannot be edited, and compares what the platform received with
// what is on disk. Each synced commit, made ordered, must break a promise.
func TestPower(t *testing.T) {
	power.Sweep(t, func(t testing.TB, s store.Store, report func(power.Fact)) {
		fake := &channeltest.Fake{}
		events := bus.New(slog.New(slog.DiscardHandler))
		held := acquire(t, s, "boot")
		var mu sync.Mutex // held until what a commit promises is reported
		w := deliver.New(deliver.Options{
			Log:   slog.New(slog.DiscardHandler),
			Store: waiting{s, &mu},
			Bus:   events,
			Style: func(chela.AgentID, chela.Address) deliver.Style { return deliver.Style{Stream: deliver.StreamPartial} },
			Track: func() func() bool { return func() bool { return true } },

			Channel: func(context.Context, string, chela.AccountID) (channel.Instance, error) {
				return channel.Instance{Channel: reportingChannel{fake, report}, Lease: held, Release: func() {}}, nil
			},
			Limits: func(string) channel.Limits { return channel.Limits{} },
			Sent: []deliver.Sent{func(row outbox.Row) func(store.Tx) error {
				return func(tx store.Tx) error { return tx.SetSetting("closed:"+row.Key, string(row.State)) }
			}},
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = w.Run(ctx) }()
		defer func() { cancel(); <-done }()
		put := func(r run.Run) {
			mu.Lock()
			defer mu.Unlock()
			write := w.Ended(r)
			err := s.Update(ctx, store.Synced, func(tx store.Tx) error {
				if r.State.Final() {
					if err := write(tx); err != nil {
						return err
					}
				}
				return tx.Runs().Put(r)
			})
			if err != nil {
				t.Fatal(err)
			}
			report(func(rd store.Reader) error {
				got, err := rd.Runs().Get(r.ID)
				if err == nil && r.State.Final() && got.State != r.State {
					err = fmt.Errorf("run %s is %s", r.ID, got.State)
				}
				return err
			})
		}
		answered := func(id chela.RunID) {
			rows, err := w.Await(ctx, string(id)+":0")
			if err != nil || rows[0].State != outbox.Sent {
				t.Fatalf("row of %s: %+v, %v", id, rows, err)
			}
		}
		one := run.Run{
			ID:      "r1",
			Session: "agent:main:main",
			Address: from("ann"),
			State:   run.OK,
			Text:    "hello",
			Ended:   time.Now(),
		}
		put(one)
		answered(one.ID)

		two := run.Run{ID: "r2", Session: "agent:main:main", Address: from("bob"), State: run.Running}
		put(two)
		publish := func(e chela.Event) { e.Run, e.Session = two.ID, two.Session; events.Publish(e) }
		publish(chela.Event{Stream: chela.StreamLifecycle, Phase: chela.PhaseStart})
		publish(chela.Event{Stream: chela.StreamAssistant, Delta: "half an"})
		previewID := ""
		for previewID == "" { // until the row has the preview's id
			select {
			case <-time.After(5 * time.Millisecond):
			case <-t.Context().Done():
				t.Fatal("no preview")
			}
			err := s.View(ctx, func(r store.Reader) error {
				rows, err := r.Outbox().OfRun(two.ID)
				if len(rows) > 0 {
					previewID = rows[0].PlatformID
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		fake.Vanish(previewID) // the answer must be sent as a new message
		two.State, two.Text, two.Ended = run.OK, "the answer", time.Now()
		put(two)
		publish(chela.Event{Stream: chela.StreamLifecycle, Phase: chela.PhaseEnd, End: &chela.EndEvent{}})
		answered(two.ID)
	})
}
