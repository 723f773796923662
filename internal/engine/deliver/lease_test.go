package deliver_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/channels"
	"github.com/chela-ai/chela/internal/engine/deliver"
	"github.com/chela-ai/chela/internal/engine/leaseholder"
	"github.com/chela-ai/chela/internal/test/power"
)

const ttl = 30 * time.Second

// gateway is the outbound side of one of several processes that share a store.
type gateway struct {
	*deliver.Worker
	store.Store
	*channeltest.Fake // the platform, of all processes

	stopAt  string // the point at which the process is stopped: check 1, check 2, sent
	checks  int
	stopped atomic.Bool
	reached chan struct{}
	resume  chan struct{}
	end     func()
}

// launch starts a process.
func launch(t *testing.T, st store.Store, fake *channeltest.Fake, id, stopAt string) *gateway {
	t.Helper()
	g := &gateway{Store: st, Fake: fake, stopAt: stopAt, reached: make(chan struct{}), resume: make(chan struct{})}
	log := slog.New(slog.DiscardHandler)
	h, err := leaseholder.New(t.Context(), leaseholder.Options{Log: log, Store: g, ID: id, TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	accounts := channels.New(channels.Options{
		Log: log, Store: g, Owner: h,
		Factories: []channel.Factory{{Name: "fake", New: func(channel.Env, string, json.RawMessage) (channel.Channel, error) {
			return g, nil
		}}},
	})
	plan, err := accounts.Prepare(func(string) json.RawMessage { return json.RawMessage(`{"accounts": {"bot": {}}}`) })
	if err != nil {
		t.Fatal(err)
	}
	accounts.Apply(plan)
	g.Worker = deliver.New(deliver.Options{
		Log:       log,
		Store:     g,
		Bus:       bus.New(log),
		Channel:   accounts.Acquire,
		Elsewhere: accounts.Elsewhere,
		Limits:    accounts.Limits,
		Track: func() func() bool {
			alive := h.Track()
			return func() bool {
				g.checks++
				if g.checks == 2 {
					g.at("before the call")
					if g.stopAt == "before the call" {
						synctest.Wait() // the process sends heartbeats again before this goroutine continues
					}
				}
				now := alive()
				if g.checks == 1 {
					g.at("before the attempt is stored")
				}
				return now
			}
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	beating, stop := context.WithCancel(context.Background())
	var parts, beats sync.WaitGroup
	beats.Go(func() { _ = h.Run(beating) })
	parts.Go(func() { _ = accounts.Run(ctx, nil) })
	synctest.Wait()
	parts.Go(func() { _ = g.Worker.Run(ctx) })
	synctest.Wait()
	g.end = func() { cancel(); parts.Wait(); stop(); beats.Wait() }
	return g
}

// at stops the process at a point: all its goroutines stop at their next point.
func (g *gateway) at(point string) {
	if point == g.stopAt && !g.stopped.Swap(true) {
		close(g.reached)
	}
	if g.stopped.Load() {
		<-g.resume
	}
}

func (g *gateway) View(ctx context.Context, f func(store.Reader) error) error {
	g.at("store")
	return g.Store.View(ctx, f)
}

func (g *gateway) Update(ctx context.Context, s store.Sync, f func(store.Tx) error) error {
	g.at("store")
	return g.Store.Update(ctx, s, f)
}

// Run implements channel.Channel.
func (g *gateway) Run(ctx context.Context, _ channel.Sink) error { <-ctx.Done(); return ctx.Err() }

// Send implements channel.Channel.
func (g *gateway) Send(ctx context.Context, p channel.Part) (channel.Receipt, error) {
	r, err := g.Fake.Send(ctx, p)
	g.at("before the outcome is stored")
	return r, err
}

// TestStoppedProcess stops the process that sends a message for longer than its leases
// last, and continues it after another one has taken the account over.
func TestStoppedProcess(t *testing.T) {
	for _, point := range []string{"before the attempt is stored", "before the call", "before the outcome is stored"} {
		for _, takenOver := range []bool{true, false} {
			name := point + map[bool]string{true: ", taken over", false: ", alone"}[takenOver]
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					fake, st := &channeltest.Fake{}, power.New(t).Open(t)
					a := launch(t, st, fake, "a", point)
					defer a.end()
					if takenOver {
						defer launch(t, st, fake, "b", "").end()
					}
					if point == "before the outcome is stored" {
						fake.Fail(channeltest.Temporary())
					}
					write := a.Ended(run.Run{
						ID:      "r1",
						Session: "agent:main:main",
						Address: from("ann"),
						State:   run.OK,
						Text:    "hello",
						Ended:   time.Now(),
					})
					if err := st.Update(t.Context(), store.Synced, write); err != nil {
						t.Fatal(err)
					}
					<-a.reached
					time.Sleep(3 * ttl)
					if n := len(fake.Messages(from("ann"))); n != map[bool]int{true: 1}[takenOver] {
						t.Errorf("%d messages while the process is stopped", n)
					}
					a.stopped.Store(false)
					close(a.resume)
					time.Sleep(3 * ttl)
					if n := len(fake.Messages(from("ann"))); n != 1 {
						t.Errorf("%d messages", n)
					}
					rows, err := store.Get(t.Context(), st,
						func(r store.Reader) ([]outbox.Row, error) { return r.Outbox().OfRun("r1") })
					if err != nil || len(rows) != 1 || rows[0].State != outbox.Sent {
						t.Errorf("rows %+v, %v", rows, err)
					}
				})
			})
		}
	}
}
