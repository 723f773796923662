package deliver

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/lease"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
)

func at(id string) chela.Address {
	return chela.Address{Channel: "fake", Account: "bot", Peer: chela.Peer{Kind: chela.Direct, ID: id}}
}

// bench is a worker with a platform and a database that outlives it.
type bench struct {
	t       *testing.T
	path    string
	db      *sqlite.DB
	w       *Worker
	bus     *bus.Bus
	fake    *channeltest.Fake
	view    channel.Channel // of the platform
	notices []string
	sent    []Sent
	wrap    func(store.Store) store.Store // nil: the worker uses the database itself

	stop func()
}

func newBench(t *testing.T, dir string) *bench {
	b := &bench{t: t, path: filepath.Join(dir, "chela.db"), fake: &channeltest.Fake{}}
	b.view = b.fake
	b.open()
	return b
}

func (b *bench) open() {
	db, err := sqlite.Open(b.t.Context(), sqlite.Options{Path: b.path})
	if err != nil {
		b.t.Fatal(err)
	}
	b.db, b.bus = db, bus.New(slog.New(slog.DiscardHandler))
	var st store.Store = db
	if b.wrap != nil {
		st = b.wrap(db)
	}
	var held lease.Lease
	b.update(func(tx store.Tx) (err error) {
		held, _, err = tx.Leases().Acquire(lease.Channel("fake", "bot"), "boot")
		return err
	})
	b.w = New(Options{
		Log: slog.New(slog.DiscardHandler), Store: st, Bus: b.bus, Typing: true, Sent: b.sent,
		Preview: func(chela.Address) bool { return true },
		Track:   func() func() bool { return func() bool { return true } },
		Channel: func(_ context.Context, name string, _ chela.AccountID) (channel.Instance, error) {
			if name != "fake" {
				return channel.Instance{}, chela.ErrNotFound
			}
			return channel.Instance{Channel: b.view, Lease: held, Release: func() {}}, nil
		},
		Limits: func(string) channel.Limits { return channel.Limits{Text: 100} },
	})
	b.bus.Subscribe(func(e chela.Event) {
		if e.Stream == chela.StreamNotice {
			b.notices = append(b.notices, e.Text)
		}
	})
}

// start starts the worker. It returns when the worker receives events.
func (b *bench) start() {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = b.w.Run(ctx) }()
	b.stop = func() { cancel(); <-done }
	synctest.Wait()
}

// restart replaces the worker by one of a new process on the same database.
func (b *bench) restart() {
	if b.stop != nil {
		b.stop()
		b.stop = nil
	}
	if err := b.db.Close(); err != nil {
		b.t.Fatal(err)
	}
	b.open()
}

func (b *bench) close() {
	if b.stop != nil {
		b.stop()
	}
	if err := b.db.Close(); err != nil {
		b.t.Error(err)
	}
}

func (b *bench) update(f func(store.Tx) error) {
	b.t.Helper()
	if err := b.db.Update(b.t.Context(), store.Synced, f); err != nil {
		b.t.Fatal(err)
	}
}

// ended commits the end of the run.
func (b *bench) ended(r run.Run) {
	b.t.Helper()
	if r.Ended.IsZero() {
		r.Ended = time.Now()
	}
	f := b.w.Ended(r)
	b.update(func(tx store.Tx) error {
		if f != nil {
			if err := f(tx); err != nil {
				return err
			}
		}
		return tx.Runs().Put(r)
	})
}

// rows returns the rows of a run as "part state".
func (b *bench) rows(id chela.RunID) []string {
	b.t.Helper()
	var out []string
	err := b.db.View(b.t.Context(), func(r store.Reader) error {
		rows, err := r.Outbox().OfRun(id)
		for _, row := range rows {
			out = append(out, fmt.Sprint(row.Part, " ", row.State))
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func (b *bench) shown(want ...string) {
	b.t.Helper()
	if diff := cmp.Diff(want, b.fake.Texts(at("1"))); diff != "" {
		b.t.Errorf("visible texts (-want +got):\n%s", diff)
	}
}

func (b *bench) states(id chela.RunID, want ...string) {
	b.t.Helper()
	if diff := cmp.Diff(want, b.rows(id)); diff != "" {
		b.t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// on runs f with a bench in a synctest bubble.
func on(t *testing.T, name string, f func(*testing.T, *bench)) {
	t.Run(name, func(t *testing.T) {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, dir)
			defer b.close()
			f(t, b)
		})
	})
}

func answer(id chela.RunID, text string) run.Run {
	return run.Run{ID: id, Session: "agent:main:main", Address: at("1"), State: run.OK, Text: text}
}

const long = "The first part is about as long as one message may be, which is a hundred characters in here.\n\nThe second part.\n\n"

func TestEnded(t *testing.T) {
	for _, c := range []struct {
		name string
		r    run.Run
		want []string
	}{
		{"one message", run.Run{State: run.OK, Text: "hello"}, []string{"hello"}},
		{"parts in order", run.Run{State: run.OK, Text: long}, []string{strings.SplitN(long, "\n\n", 2)[0], "The second part."}},
		{"USAGE-07 the footer is last", run.Run{State: run.OK, Text: "hello", Footer: "in 1 · out 2"}, []string{"hello\n\nin 1 · out 2"}},
		{"LOOP-11 silence", run.Run{State: run.OK, Text: "NO_REPLY", Silent: true}, nil},
		{"LOOP-12 one line for a tool that failed", run.Run{State: run.OK, Text: "⚠️ read: no such file"}, []string{"⚠️ read: no such file"}},
		{"LOOP-20 the token in a sentence", run.Run{State: run.OK, Text: "Say NO_REPLY to be silent."}, []string{"Say NO_REPLY to be silent."}},
		{"a failure is reported", run.Run{State: run.Failed, Error: "the service is overloaded"}, []string{"⚠️ the service is overloaded"}},
		{"a failure after a partial answer", run.Run{State: run.TimedOut, Text: "Half", Error: "too slow"}, []string{"Half\n\n⚠️ too slow"}},
		{"a stopped run has no answer", run.Run{State: run.Aborted, Text: "Half", Error: "stopped"}, nil},
	} {
		on(t, c.name, func(t *testing.T, b *bench) {
			b.start()
			c.r.ID, c.r.Address = "r1", at("1")
			b.ended(c.r)
			synctest.Wait()
			b.shown(c.want...)
		})
	}
	on(t, "a failure is not reported to a group", func(t *testing.T, b *bench) {
		b.start()
		r := answer("r1", "")
		r.State, r.Error, r.Address.Peer.Kind = run.Failed, "sk-secret was refused", chela.Group
		b.ended(r)
		synctest.Wait()
		if got := b.fake.Messages(chela.Address{}); len(got) > 0 {
			t.Errorf("messages in the group: %+v", got)
		}
	})
	on(t, "an answer to a client has no rows", func(t *testing.T, b *bench) {
		r := answer("r1", "hello")
		r.Address = chela.Address{Channel: chela.LocalChannel}
		if b.w.Ended(r) != nil {
			t.Error("Ended returned writes for a client of the gateway")
		}
	})
}

func TestRestart(t *testing.T) {
	on(t, "REC-02 killed before sending", func(t *testing.T, b *bench) {
		b.ended(answer("r1", long)) // no worker is running
		b.restart()
		b.start()
		b.states("r1", "0 sent", "1 sent")
		if n := len(b.fake.Calls("send")); n != 2 {
			t.Errorf("%d calls for two parts", n)
		}
		b.restart()
		b.start()
		time.Sleep(time.Hour)
		if n := len(b.fake.Calls("send")); n != 2 {
			t.Errorf("%d calls after another start", n)
		}
	})
	// died leaves a row in the state of a process that was killed during an attempt.
	died := func(b *bench, sent bool) {
		b.ended(answer("r1", long))
		b.update(func(tx store.Tx) error {
			row, err := tx.Outbox().Get("r1:0")
			if err != nil {
				return err
			}
			row.State, row.Attempts = outbox.Attempted, 1
			if sent {
				_, err = b.fake.Send(b.t.Context(), channel.Part{Key: row.Key, Address: row.Address, Text: row.Text})
			}
			return err
		})
		b.update(func(tx store.Tx) error {
			row, err := tx.Outbox().Get("r1:0")
			row.State, row.Attempts = outbox.Attempted, 1
			if err != nil {
				return err
			}
			return tx.Outbox().Put(row)
		})
		b.restart()
		b.start()
		time.Sleep(time.Hour)
	}
	for _, sent := range []bool{true, false} {
		on(t, fmt.Sprintf("REC-02 killed while sending (sent: %v), with lookup", sent), func(t *testing.T, b *bench) {
			died(b, sent)
			b.states("r1", "0 sent", "1 sent")
			b.shown(strings.SplitN(long, "\n\n", 2)[0], "The second part.")
		})
		on(t, fmt.Sprintf("REC-02 killed while sending (sent: %v), without lookup", sent), func(t *testing.T, b *bench) {
			b.view = b.fake.Plain()
			died(b, sent)
			b.states("r1", "0 ambiguous", "1 sent")
			if n := len(b.fake.Calls("send")); sent && n != 2 || !sent && n != 1 {
				t.Errorf("%d calls", n)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	const first, second = 0, 1
	type F = channeltest.Fault
	for _, c := range []struct {
		name   string
		faults []F
		plain  bool
		states [2]string
		calls  int
		within time.Duration
	}{
		{"none", nil, false, [2]string{"0 sent", "1 sent"}, 2, 0},
		{"temporary", []F{channeltest.Temporary(), channeltest.Temporary()}, false, [2]string{"0 sent", "1 sent"}, 4, 3 * time.Second},
		{"five temporary ones", slices.Repeat([]F{channeltest.Temporary()}, 5), false, [2]string{"0 failed", "1 sent"}, 6, time.Minute},
		{"permanent", []F{channeltest.Permanent()}, false, [2]string{"0 failed", "1 sent"}, 2, 0},
		{"rate limited, which is not counted as an attempt", append(slices.Repeat([]F{channeltest.Limited(30 * time.Second)}, 8), channeltest.Temporary()), false, [2]string{"0 sent", "1 sent"}, 11, 241 * time.Second},
		{"cut, found", []F{channeltest.Cut()}, false, [2]string{"0 sent", "1 sent"}, 2, 0},
		{"broken, not found", []F{channeltest.Broken()}, false, [2]string{"0 sent", "1 sent"}, 3, 2 * time.Second},
		{"cut, cannot be found", []F{channeltest.Cut()}, true, [2]string{"0 ambiguous", "1 sent"}, 2, 0},
	} {
		on(t, c.name, func(t *testing.T, b *bench) {
			if c.plain {
				b.view = b.fake.Plain()
			}
			b.fake.Fail(c.faults...)
			b.start()
			begun := time.Now()
			b.ended(answer("r1", long))
			time.Sleep(time.Hour)
			b.states("r1", c.states[first], c.states[second])
			calls := b.fake.Calls("send")
			if len(calls) != c.calls {
				t.Errorf("%d calls, want %d", len(calls), c.calls)
			}
			if took := calls[len(calls)-1].Time.Sub(begun); took > c.within {
				t.Errorf("took %v, want at most %v", took, c.within)
			}
			if failed := strings.HasSuffix(c.states[first], "failed"); failed != (len(b.notices) > 0) {
				t.Errorf("notices %q", b.notices)
			}
		})
	}
	on(t, "a row waits for a channel that is not running", func(t *testing.T, b *bench) {
		r := answer("r1", "hello")
		r.Address.Channel = "gone"
		b.ended(r)
		b.start()
		time.Sleep(23 * time.Hour)
		b.states("r1", "0 pending")
		time.Sleep(2 * time.Hour)
		b.states("r1", "0 failed")
	})
	on(t, "a channel that panics", func(t *testing.T, b *bench) {
		b.view = panics{b.fake.Plain()}
		b.ended(answer("r1", "hello"))
		b.start()
		time.Sleep(time.Minute)
		b.states("r1", "0 ambiguous")
	})
}

type panics struct{ channeltest.Plain }

func (panics) Send(context.Context, channel.Part) (channel.Receipt, error) { panic("boom") }

func TestOrder(t *testing.T) {
	on(t, "addresses in parallel, each in order", func(t *testing.T, b *bench) {
		b.fake.Latency = time.Second
		begun := time.Now()
		var want []string
		for i := range 5 {
			want = append(want, fmt.Sprint("text ", i))
			for _, peer := range []string{"1", "2", "3"} {
				r := answer(chela.RunID(fmt.Sprint(peer, "-", i)), want[i])
				r.Address = at(peer)
				b.ended(r)
			}
		}
		b.start()
		time.Sleep(time.Minute)
		calls := b.fake.Calls("send")
		if took := calls[len(calls)-1].Time.Sub(begun); took != 5*time.Second {
			t.Errorf("took %v, want 5s", took)
		}
		for _, peer := range []string{"1", "2", "3"} {
			if diff := cmp.Diff(want, b.fake.Texts(at(peer))); diff != "" {
				t.Errorf("peer %s (-want +got):\n%s", peer, diff)
			}
		}
	})
	on(t, "random faults: at most once, in order", func(t *testing.T, b *bench) {
		r := rand.New(rand.NewPCG(1, 2))
		faults := []channeltest.Fault{
			channeltest.Temporary(), channeltest.Permanent(), channeltest.Limited(time.Second),
			channeltest.Cut(), channeltest.Broken(), {},
		}
		for range 60 {
			b.fake.Fail(faults[r.IntN(len(faults))])
		}
		for i := range 40 {
			b.ended(answer(chela.RunID(fmt.Sprintf("r%02d", i)), fmt.Sprintf("text %02d", i)))
		}
		for i := range 6 { // with restarts
			if i%2 == 0 {
				b.view = b.fake.Plain()
			} else {
				b.view = b.fake
			}
			b.start()
			time.Sleep(time.Duration(r.IntN(5000)) * time.Millisecond)
			b.restart()
		}
		b.start()
		time.Sleep(time.Hour)
		got := b.fake.Texts(at("1"))
		if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Errorf("visible texts: %q", got)
		}
		for i := range 40 {
			s := b.rows(chela.RunID(fmt.Sprintf("r%02d", i)))[0]
			sent := slices.Contains(got, fmt.Sprintf("text %02d", i))
			if s == "0 sent" && !sent || s == "0 failed" && sent || s == "0 pending" || s == "0 attempted" {
				t.Errorf("row %d is %s, visible: %v", i, s, sent)
			}
		}
	})
}
