package deliver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
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
	"github.com/chela-ai/chela/internal/core/session"
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
	gone    bool            // the channel is not running
	held    atomic.Int64    // instances that are not released
	notices []string
	sent    []Sent
	style   Style
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
		Log: slog.New(slog.DiscardHandler), Store: st, Bus: b.bus, Sent: b.sent,
		Style: func(chela.AgentID, chela.Address) Style { return b.style },
		Track: func() func() bool { return func() bool { return true } },
		Channel: func(_ context.Context, name string, _ chela.AccountID) (channel.Instance, error) {
			if name != "fake" || b.gone {
				return channel.Instance{}, chela.ErrNotFound
			}
			b.held.Add(1)
			return channel.Instance{Channel: b.view, Lease: held, Release: func() { b.held.Add(-1) }}, nil
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
	if n := b.held.Load(); n != 0 {
		b.t.Errorf("%d instances of the account are not released", n)
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

// row returns a row.
func (b *bench) row(key string) outbox.Row {
	b.t.Helper()
	row, err := b.w.row(b.t.Context(), key)
	if err != nil {
		b.t.Fatal(err)
	}
	return row
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

// tells is what a chat is told about a message whose outcome is unknown.
func tells(what string) string {
	return "I don't know whether " + what +
		" arrived here: the connection broke while I was sending. Ask me to repeat it if it is missing."
}

func TestEnded(t *testing.T) {
	for _, c := range []struct {
		name string
		r    run.Run
		want []string
	}{
		{"one message", run.Run{State: run.OK, Text: "hello"}, []string{"hello"}},
		{"parts in order", run.Run{State: run.OK, Text: long},
			[]string{strings.SplitN(long, "\n\n", 2)[0], "The second part."}},
		{"USAGE-07 the footer is last", run.Run{State: run.OK, Text: "hello", Footer: "in 1 · out 2"},
			[]string{"hello\n\nin 1 · out 2"}},
		{"LOOP-11 silence", run.Run{State: run.OK, Text: "NO_REPLY", Silent: true}, nil},
		{"LOOP-12 one line for a tool that failed", run.Run{State: run.OK, Text: "⚠️ read: no such file"},
			[]string{"⚠️ read: no such file"}},
		{"LOOP-20 the token in a sentence", run.Run{State: run.OK, Text: "Say NO_REPLY to be silent."},
			[]string{"Say NO_REPLY to be silent."}},
		{"a failure is reported", run.Run{State: run.Failed, Error: "the service is overloaded"},
			[]string{"⚠️ the service is overloaded"}},
		{"a failure after a partial answer", run.Run{State: run.TimedOut, Text: "Half", Error: "too slow"},
			[]string{"Half\n\n⚠️ too slow"}},
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
	for _, kind := range []chela.PeerKind{chela.Group, chela.Room} {
		for _, state := range []run.State{run.Failed, run.TimedOut} {
			on(t, "the error of a run ("+string(state)+") is not reported to a "+string(kind), func(t *testing.T, b *bench) {
				b.start()
				for i, text := range []string{"", "Half"} {
					r := answer(chela.RunID(fmt.Sprint("r", i)), text)
					r.State, r.Error, r.Address.Peer.Kind = state, "sk-secret was refused", kind
					b.ended(r)
				}
				synctest.Wait()
				got := b.fake.Messages(chela.Address{})
				if len(got) != 1 || got[0].Text != "Half" {
					t.Errorf("messages: %+v, want only what the model wrote", got)
				}
			})
		}
	}
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
			got := b.fake.Texts(at("1"))
			if want := []string{"The second part.",
				tells("the message that begins \"The first part is about as long as one m…\"")}; !slices.Equal(
				got[max(0, len(got)-2):], want) || sent != (len(got) == 3) {
				t.Errorf("the chat shows %q", got)
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
		{"temporary", []F{channeltest.Temporary(), channeltest.Temporary()}, false,
			[2]string{"0 sent", "1 sent"}, 4, 3 * time.Second},
		{"five temporary ones", slices.Repeat([]F{channeltest.Temporary()}, 5), false,
			[2]string{"0 failed", "1 sent"}, 6, time.Minute},
		{"permanent", []F{channeltest.Permanent()}, false, [2]string{"0 failed", "1 sent"}, 2, 0},
		{"rate limited, which is not counted as an attempt", append(slices.Repeat([]F{channeltest.Limited(30 * time.Second)},
			8), channeltest.Temporary()), false, [2]string{"0 sent", "1 sent"}, 11, 241 * time.Second},
		{"cut, found", []F{channeltest.Cut()}, false, [2]string{"0 sent", "1 sent"}, 2, 0},
		{"broken, not found", []F{channeltest.Broken()}, false, [2]string{"0 sent", "1 sent"}, 3, 2 * time.Second},
		// the third call tells about the first
		{"cut, cannot be found", []F{channeltest.Cut()}, true, [2]string{"0 ambiguous", "1 sent"}, 3, 0},
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
			if sent := strings.HasSuffix(c.states[first], "sent"); sent == (len(b.notices) > 0) {
				t.Errorf("notices %q", b.notices)
			}
		})
	}
	on(t, "a lookup that fails is repeated", func(t *testing.T, b *bench) {
		lookups := &lookups{Fake: b.fake, fail: 2}
		b.view = lookups
		b.fake.Fail(channeltest.Cut())
		b.start()
		b.ended(answer("r1", long))
		time.Sleep(time.Hour)
		b.states("r1", "0 sent", "1 sent")
		if n := len(b.fake.Calls("send")); n != 2 || len(lookups.times) != 3 {
			t.Errorf("%d calls and %d lookups, want 2 and 3", n, len(lookups.times))
		}
	})
	on(t, "a lookup that keeps failing is given up, and the next rows are sent", func(t *testing.T, b *bench) {
		lookups := &lookups{Fake: b.fake, fail: 1000}
		b.view = lookups
		b.fake.Fail(channeltest.Cut())
		b.start()
		b.ended(answer("r1", long))
		time.Sleep(time.Hour)
		b.states("r1", "0 ambiguous", "1 sent")
		if n := len(b.fake.Calls("send")); n != 3 || len(lookups.times) != maxAttempts {
			t.Fatalf("%d calls and %d lookups, want 3 and %d", n, len(lookups.times), maxAttempts)
		}
		for i, at := range lookups.times[1:] {
			if pause := at.Sub(lookups.times[i]); pause < time.Second {
				t.Errorf("lookups %v apart", pause)
			}
		}
	})
	on(t, "a call that does not return", func(t *testing.T, b *bench) {
		b.view = hangs{b.fake.Plain(), make(chan struct{}, 1)}
		b.start()
		b.ended(answer("r1", long))
		time.Sleep(time.Hour)
		b.states("r1", "0 ambiguous", "1 sent")
	})
	on(t, "one message tells about all messages whose outcome is unknown", func(t *testing.T, b *bench) {
		b.view = b.fake.Plain()
		b.fake.Fail(channeltest.Cut(), channeltest.Broken(), channeltest.Cut(), channeltest.Broken())
		for _, id := range []chela.RunID{"r1", "r2", "r3"} {
			b.ended(answer(id, "text "+string(id)))
		}
		b.start()
		time.Sleep(time.Hour)
		want := []string{"text r1", "text r3"}
		if got := b.fake.Texts(at("1")); !slices.Equal(got, want) || len(b.notices) != 4 {
			t.Errorf("the chat shows %q after notices %q", got, b.notices)
		}
		b.fake.Fail(channeltest.Cut(), channeltest.Cut())
		b.ended(answer("r4", "text r4"))
		b.ended(answer("r5", "text r5"))
		time.Sleep(time.Hour)
		want = append(want, "text r4", "text r5", tells(`everything since the message that begins "text r4"`))
		if got := b.fake.Texts(at("1")); !slices.Equal(got, want) {
			t.Errorf("the chat shows %q", got)
		}
	})
	on(t, "a platform that never accepts the message", func(t *testing.T, b *bench) {
		b.fake.Fail(slices.Repeat([]channeltest.Fault{channeltest.Limited(time.Hour)}, 100)...)
		b.start()
		b.ended(answer("r1", "hello"))
		time.Sleep(23 * time.Hour)
		b.states("r1", "0 pending")
		time.Sleep(3 * time.Hour)
		b.states("r1", "0 failed")
	})
	on(t, "an attempt without an outcome, of a channel that is not running any more", func(t *testing.T, b *bench) {
		b.fake.Latency = time.Hour
		b.start()
		b.ended(answer("r1", "hello"))
		time.Sleep(time.Second)
		b.restart()
		b.states("r1", "0 attempted")
		b.gone = true
		b.start()
		time.Sleep(26 * time.Hour)
		b.states("r1", "0 ambiguous")
		if len(b.notices) != 1 || !strings.Contains(b.notices[0], "may not have reached fake") ||
			len(b.fake.Calls("send")) > 1 {
			t.Errorf("notices %q", b.notices)
		}
	})
	on(t, "a platform that asks for a pause of a year gets a day", func(t *testing.T, b *bench) {
		b.fake.Fail(channeltest.Limited(365 * 24 * time.Hour))
		b.start()
		b.ended(answer("r1", "hello"))
		time.Sleep(23 * time.Hour)
		b.ended(answer("r2", "again"))
		b.states("r1", "0 pending")
		time.Sleep(2 * time.Hour)
		b.states("r1", "0 sent")
		b.states("r2", "0 sent")
	})
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

// TestSend checks what a row hands to the platform, and what it records.
func TestSend(t *testing.T) {
	full := outbox.Row{
		Key: "r1:0", Run: "r1", Session: "agent:main:main", Address: at("1"), ReplyTo: "m0", State: outbox.Pending,
		Media: []chela.Media{{Name: "a.png", Ref: "ref"}},
	}
	put := func(b *bench, rows ...outbox.Row) {
		b.update(func(tx store.Tx) error {
			tx.Wake(store.Topic{Kind: store.TopicOutbox})
			return tx.Outbox().Put(rows...)
		})
		synctest.Wait()
	}
	on(t, "an attachment without a text", func(t *testing.T, b *bench) {
		b.w.o.Load = func(m chela.Media) (chela.Media, error) {
			m.Data = []byte("content of " + m.Ref)
			return m, nil
		}
		b.start()
		put(b, full)
		got := b.fake.Messages(at("1"))
		if len(got) != 1 || got[0].ReplyTo != "m0" || len(got[0].Media) != 1 ||
			string(got[0].Media[0].Data) != "content of ref" {
			t.Fatalf("messages %+v", got)
		}
		if row := b.row("r1:0"); row.PlatformID != got[0].ID || row.Media[0].Data != nil {
			t.Errorf("row %+v", row)
		}
	})
	on(t, "an attachment that is lost", func(t *testing.T, b *bench) {
		b.update(func(tx store.Tx) error {
			return tx.Sessions().Put(session.Meta{Key: full.Session, ID: "t1", Agent: "main"})
		})
		b.w.o.Load = func(chela.Media) (chela.Media, error) { return chela.Media{}, errors.New("the file is gone") }
		b.start()
		put(b, full)
		b.states("r1", "0 failed")
		if len(b.fake.Calls("send")) > 0 {
			t.Error("it was sent without its attachment")
		}
		entries, err := store.Get(t.Context(), b.db,
			func(r store.Reader) ([]session.Entry, error) { return r.Sessions().Entries("t1", 0, 0) })
		if err != nil || len(entries) != 1 {
			t.Fatalf("entries %+v, %v", entries, err)
		}
		e := entries[0]
		if e.Kind != session.KindNotice || e.Run != "r1" || e.NanoUSD != -1 ||
			!strings.Contains(e.Text, "to fake: the file is gone") {
			t.Errorf("entry %+v", e)
		}
	})
	on(t, "an error that is over is forgotten", func(t *testing.T, b *bench) {
		b.fake.Fail(channeltest.Temporary())
		b.start()
		b.ended(answer("r1", "hello"))
		synctest.Wait()
		if row := b.row("r1:0"); row.Error == "" || row.Attempts != 1 || !row.NotBefore.After(time.Now()) {
			t.Errorf("row after the first attempt: %+v", row)
		}
		time.Sleep(time.Minute)
		if row := b.row("r1:0"); row.Error != "" || row.PlatformID != "m1" {
			t.Errorf("row after the second attempt: %+v", row)
		}
	})
	for _, c := range []struct {
		name  string
		fault channeltest.Fault
		sends int // in addition to the preview
	}{{"temporarily", channeltest.Temporary(), 0}, {"for good", channeltest.Permanent(), 1}} {
		on(t, "the edit to the answer is refused "+c.name, func(t *testing.T, b *bench) {
			b.start()
			r := b.live(chela.PhaseStart)
			b.delta("half an")
			time.Sleep(2 * time.Second)
			b.fake.FailEdits(c.fault)
			r.Text = "the answer"
			b.finish(r)
			time.Sleep(time.Minute)
			got := b.fake.Calls("send")
			if len(got) != 1+c.sends {
				t.Errorf("%d messages were sent", len(got))
			}
			if row := b.row("r1:0"); row.State != outbox.Sent || row.PlatformID != got[len(got)-1].ID {
				t.Errorf("row %+v", row)
			}
		})
	}
	on(t, "a preview that was never sent, of a silent answer", func(t *testing.T, b *bench) {
		b.start()
		put(b, outbox.Row{Key: "r1:0", Run: "r1", Address: at("1"), State: outbox.Draft, Text: "half an"})
		r := answer("r1", "")
		r.Silent = true
		b.ended(r)
		time.Sleep(time.Minute)
		b.states("r1")
		if len(b.notices) > 0 {
			t.Errorf("notices %q", b.notices)
		}
	})
	on(t, "the preview of a run that ended without the earlier process", func(t *testing.T, b *bench) {
		r := answer("r1", "")
		r.State = run.Superseded
		b.update(func(tx store.Tx) error { return tx.Runs().Put(r) })
		put(b, outbox.Row{Key: "r1:0", Run: "r1", Address: at("1"), State: outbox.Draft, PlatformID: "m1"},
			outbox.Row{Key: "r2:0", Run: "r2", Address: at("1"), State: outbox.Draft, PlatformID: "m2"}) // no such run
		b.start()
		b.states("r1", "0 sent")
		b.states("r2", "0 sent")
	})
	for _, old := range []bool{false, true} {
		on(t, fmt.Sprintf("a process that is stopped again and again before the call (an old row: %v)", old),
			func(t *testing.T, b *bench) {
				checks := 0
				b.w.o.Track = func() func() bool {
					return func() bool { checks++; return checks%2 == 1 || checks > 4*maxAttempts }
				}
				r := answer("r1", "hello")
				if old {
					r.Ended = time.Now().Add(-2 * maxAge)
				} else {
					b.fake.Fail(channeltest.Temporary()) // the first attempt
				}
				b.ended(r)
				b.start()
				time.Sleep(time.Hour)
				b.states("r1", "0 sent")
			})
	}
	on(t, "an account that another process has taken over at this moment", func(t *testing.T, b *bench) {
		channels, refused := b.w.o.Channel, 0
		b.w.o.Channel = func(ctx context.Context, name string, account chela.AccountID) (channel.Instance, error) {
			if refused++; refused < 5 {
				return channel.Instance{}, fmt.Errorf("account: %w", chela.ErrFenced)
			}
			return channels(ctx, name, account)
		}
		b.ended(answer("r1", "hello"))
		b.start()
		if row := b.row("r1:0"); !row.NotBefore.IsZero() || row.Error != "" {
			t.Errorf("the process changed the row of another one: %+v", row)
		}
		time.Sleep(10 * time.Second)
		b.states("r1", "0 sent")
	})
	on(t, "an account of another process", func(t *testing.T, b *bench) {
		b.w.o.Elsewhere = func(name string, account chela.AccountID) bool { return name == "fake" && account == "bot" }
		b.ended(answer("r1", "hello"))
		b.start()
		time.Sleep(time.Hour)
		b.states("r1", "0 pending")
	})
	on(t, "an account that is being restarted when the worker stops", func(t *testing.T, b *bench) {
		b.w.o.Channel = func(ctx context.Context, _ string, _ chela.AccountID) (channel.Instance, error) {
			<-ctx.Done()
			return channel.Instance{}, ctx.Err()
		}
		b.ended(answer("r1", "hello"))
		b.start()
		b.restart()
		if row := b.row("r1:0"); row.State != outbox.Pending || !row.NotBefore.IsZero() {
			t.Errorf("row %+v", row)
		}
	})
	on(t, "a stop waits for the call in progress", func(t *testing.T, b *bench) {
		b.fake.Latency = grace - time.Second
		b.start()
		b.ended(answer("r1", "hello"))
		synctest.Wait()
		b.stop()
		b.stop = nil
		b.states("r1", "0 sent")
	})
	on(t, "the store fails for a moment", func(t *testing.T, b *bench) {
		failed := false
		b.w.o.Store = views{b.db, func() error {
			if !failed && len(b.rows("r1")) > 0 {
				failed = true
				return errors.New("locked")
			}
			return nil
		}}
		b.ended(answer("r1", "hello"))
		b.start()
		time.Sleep(2 * recheck)
		if b.states("r1", "0 sent"); !failed {
			t.Error("the store did not fail")
		}
	})
	on(t, "each chat is retried at its own time", func(t *testing.T, b *bench) {
		b.start()
		begun := time.Now()
		for i, pause := range []time.Duration{300 * time.Second, 30 * time.Second, 600 * time.Second} {
			b.fake.Fail(channeltest.Limited(pause))
			r := answer(chela.RunID(fmt.Sprint("r", i)), "hello")
			r.Address = at(fmt.Sprint(i))
			b.ended(r)
			synctest.Wait()
		}
		time.Sleep(time.Hour)
		var got []time.Duration
		for _, c := range b.fake.Calls("send")[3:] {
			got = append(got, c.Time.Sub(begun))
		}
		if want := []time.Duration{30 * time.Second, 300 * time.Second, 600 * time.Second}; !slices.Equal(got, want) {
			t.Errorf("retried after %v, want %v", got, want)
		}
	})
}

// views is a store whose reads can fail.
type views struct {
	store.Store
	fail func() error
}

func (v views) View(ctx context.Context, f func(store.Reader) error) error {
	if err := v.fail(); err != nil {
		return err
	}
	return v.Store.View(ctx, f)
}

// lookups is a platform whose first lookups fail.
type lookups struct {
	*channeltest.Fake
	fail  int
	times []time.Time
}

func (l *lookups) Find(ctx context.Context, a chela.Address, key string) (channel.Receipt, bool, error) {
	l.times = append(l.times, time.Now())
	if len(l.times) <= l.fail {
		return channel.Receipt{}, false, errors.New("no answer")
	}
	return l.Fake.Find(ctx, a, key)
}

// hangs is a channel whose first call does not return before its context ends.
type hangs struct {
	channeltest.Plain
	first chan struct{}
}

func (h hangs) Send(ctx context.Context, p channel.Part) (channel.Receipt, error) {
	select {
	case h.first <- struct{}{}:
		<-ctx.Done()
		return channel.Receipt{}, ctx.Err()
	default:
		return h.Plain.Send(ctx, p)
	}
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
		got := slices.DeleteFunc(b.fake.Texts(at("1")),
			func(text string) bool { return strings.HasPrefix(text, "I don't know whether ") })
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
