package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/budget"
	"github.com/chela-ai/chela/internal/engine/dispatch"
	"github.com/chela-ai/chela/internal/engine/inbound"
	"github.com/chela-ai/chela/internal/engine/invoke"
	"github.com/chela-ai/chela/internal/engine/leaseholder"
	"github.com/chela-ai/chela/internal/engine/notice"
	"github.com/chela-ai/chela/internal/engine/runner"
	"github.com/chela-ai/chela/internal/engine/runner/runnertest"
	"github.com/chela-ai/chela/internal/kit/lane"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
)

const key = chela.SessionKey("agent:main:main")

// harness is the engine without its surfaces, on a real store.
type harness struct {
	apart bool // a message is accepted in one commit and its run begins in another

	t    testing.TB
	path string
	p    runner.Profile
	q    queue.Policy
	gen  atomic.Uint64 // of the configuration

	db   *sqlite.DB
	st   store.Store
	bus  *bus.Bus
	gate *inbound.Gate
	con  *dispatch.Dispatcher

	lanes *lane.Lanes
	stop  func()

	wrap     func(store.Store) store.Store                // the store that open opens
	outer    func(store.Store) store.Store                // any store
	refuse   error                                        // of Resolve
	resolve  func(context.Context, session.Meta, run.Run) // called in Resolve
	step     func(string)
	ended    []runner.Ended
	children runner.Children
	ttl      time.Duration // of the leases; 0: no other process uses the store
	drain    time.Duration

	mu     sync.Mutex
	events []chela.Event
	boots  int
}

func newHarness(t testing.TB, model llm.Provider, tools ...tool.Tool) *harness {
	h := &harness{t: t, path: filepath.Join(t.TempDir(), "chela.db"), p: runner.Profile{
		Provider: model, Model: llm.Model{Provider: "mock", ID: "m", Context: 1 << 20},
		Tools: tool.NewSet(tools...), Dir: t.TempDir(),
	}}
	return h
}

// open starts the engine on the store.
func (h *harness) open() *harness {
	h.t.Helper()
	log := slog.New(slog.NewTextHandler(logWriter{h.t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	db, err := sqlite.Open(context.Background(), sqlite.Options{Path: h.path, Log: log})
	if err != nil {
		h.t.Fatal(err)
	}
	h.db = db
	var st store.Store = db
	if h.wrap != nil {
		st = h.wrap(db)
	}
	h.start(st, log, db.Close)
	return h
}

// start starts the engine on a store; shut closes it.
func (h *harness) start(st store.Store, log *slog.Logger, shut func() error) {
	if h.outer != nil {
		st = h.outer(st)
	}
	h.st = st
	h.bus = bus.New(log)
	h.bus.Subscribe(func(e chela.Event) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.events = append(h.events, e)
	})
	lanes := new(lane.Lanes)
	lanes.Set("main", 8)
	h.lanes = lanes
	h.boots++
	own, err := leaseholder.New(context.Background(), leaseholder.Options{
		Log:   log,
		Store: h.st,
		ID:    fmt.Sprint("boot", h.boots),
		TTL:   h.ttl,
		Step:  h.step,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.con = dispatch.New(dispatch.Options{Lanes: lanes, Drain: h.drain, Runner: runner.Options{
		Log: log, Store: h.st, Bus: h.bus, Owner: own,
		Executor: invoke.New(invoke.Options{Log: log}), Ended: h.ended, Children: h.children, Step: h.step, Profiles: h,
		Budgets: budget.New(budget.Options{Store: h.st, Bus: h.bus, Notices: notice.New(notice.Options{})}),
	}})
	h.gate = inbound.New(inbound.Options{
		Log:      log,
		Store:    h.st,
		Bus:      h.bus,
		Live:     h.con.Live,
		Reserve:  h.reserve,
		StopRuns: h.con.StopRuns,
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	leases, end := context.WithCancel(context.Background())
	var beats sync.WaitGroup
	beats.Go(func() { _ = own.Run(leases) })
	go func() {
		defer close(done)
		defer beats.Wait()
		defer end()
		if err := h.con.Run(ctx); err != nil {
			h.t.Errorf("dispatcher: %v", err)
		}
	}()
	var once sync.Once
	h.stop = func() {
		once.Do(func() {
			cancel()
			<-done
			if err := shut(); err != nil {
				h.t.Errorf("close: %v", err)
			}
		})
	}
	h.t.Cleanup(h.stop)
}

// Resolve implements runner.Profiles.
func (h *harness) Resolve(ctx context.Context, m session.Meta, r run.Run) (*runner.Profile, error) {
	p, _ := runnertest.Static{Profile: h.p}.Resolve(ctx, m, r)
	p.Gen = h.gen.Load()
	if h.resolve != nil {
		h.resolve(ctx, m, r)
	}
	return p, h.refuse
}

// Ready implements runner.Profiles. Nothing is ready while a test watches Resolve.
func (h *harness) Ready(m session.Meta, r run.Run) (*runner.Profile, bool) {
	if h.resolve != nil || h.refuse != nil {
		return nil, false
	}
	p, err := h.Resolve(context.Background(), m, r)
	return p, err == nil
}

// Policy implements runner.Profiles.
func (h *harness) Policy(m session.Meta, _ chela.Address) queue.Policy {
	return h.q.With(m.Queue)
}

// Sends implements runner.Profiles.
func (h *harness) Sends(m session.Meta, to chela.Address) bool { return session.SendAlways(m, to) }

// Gen implements runner.Profiles.
func (h *harness) Gen() uint64 { return h.gen.Load() }

// reserve lets a message begin its run in the commit that accepts it.
func (h *harness) reserve(key chela.SessionKey) *dispatch.Reservation {
	if h.apart {
		return nil
	}
	return h.con.Reserve(key)
}

type logWriter struct{ t testing.TB }

func (w logWriter) Write(p []byte) (int, error) {
	w.t.Logf("%s", strings.TrimSpace(string(p)))
	return len(p), nil
}

func owner(ctx context.Context) context.Context {
	return chela.WithPrincipal(ctx, chela.Owner("test"))
}

// send admits a message and returns the id of its run.
func (h *harness) send(id, text string, change ...func(*chela.Inbound)) chela.RunID {
	h.t.Helper()
	in := chela.Inbound{
		ID: id, Session: key, Text: text, Time: time.Now(),
		Address: chela.Address{Channel: chela.LocalChannel}, Sender: chela.Sender{ID: "owner"},
	}
	for _, f := range change {
		f(&in)
	}
	r, err := h.gate.Admit(owner(h.t.Context()), in)
	if err != nil {
		h.t.Fatalf("admit %q: %v", text, err)
	}
	return r.Run
}

func mode(m string) func(*chela.Inbound) { return func(in *chela.Inbound) { in.Mode = m } }

// wait waits for a run's end.
func (h *harness) wait(id chela.RunID) run.Run {
	h.t.Helper()
	r, err := h.con.Wait(waittest.Context(h.t), id)
	if err != nil {
		h.t.Fatalf("wait for %s: %v (%+v)", id, err, r)
	}
	return r
}

func (h *harness) ask(id, text string) run.Run { return h.wait(h.send(id, text)) }

// view reads the store.
func (h *harness) view(f func(store.Reader) error) {
	h.t.Helper()
	if err := h.st.View(context.Background(), f); err != nil {
		h.t.Fatal(err)
	}
}

// entries returns the transcript of the main session.
func (h *harness) entries() []session.Entry { return h.entriesOf(key) }

// entriesOf returns the transcript of a session.
func (h *harness) entriesOf(key chela.SessionKey) []session.Entry {
	h.t.Helper()
	var es []session.Entry
	h.view(func(r store.Reader) error {
		m, err := r.Sessions().Get(key)
		if errors.Is(err, chela.ErrNotFound) {
			return nil
		} else if err != nil {
			return err
		}
		es, err = r.Sessions().Entries(m.ID, 0, 0)
		return err
	})
	return es
}

// lines returns the transcript in short: "user: hi".
func (h *harness) lines() []string {
	h.t.Helper()
	var out []string
	for _, e := range h.entries() {
		out = append(out, line(e))
	}
	return out
}

func line(e session.Entry) string {
	if e.Kind != session.KindMessage {
		return string(e.Kind) + ": " + e.Text
	}
	s := string(e.Message.Role) + ": " + e.Message.PlainText()
	for _, c := range e.Message.Calls() {
		s += "<" + c.Name + ">"
	}
	return s
}

// seen returns the events of a stream and phase ("": any).
func (h *harness) seen(s chela.Stream, phase chela.Phase) []chela.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []chela.Event
	for _, e := range h.events {
		if e.Stream == s && (phase == "" || e.Phase == phase) {
			out = append(out, e)
		}
	}
	return out
}

// until waits until f holds. f is called after each event.
func (h *harness) until(what string, f func() bool) {
	h.t.Helper()
	changed := make(chan struct{}, 1)
	cancel := h.bus.Subscribe(func(chela.Event) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	defer cancel()
	limit := time.After(waittest.Limit)
	for !f() {
		select {
		case <-changed:
		case <-time.After(20 * time.Millisecond):
		case <-limit:
			h.t.Fatalf("never happened: %s\n%s", what, strings.Join(h.lines(), "\n"))
		}
	}
}

// pass sends on a channel that is received from when what happens.
func (h *harness) pass(what string, to chan<- struct{}) {
	h.t.Helper()
	select {
	case to <- struct{}{}:
	case <-time.After(waittest.Limit):
		h.t.Fatalf("never happened: %s\n%s", what, strings.Join(h.lines(), "\n"))
	}
}

func (h *harness) waiting() []queue.Item {
	var items []queue.Item
	h.view(func(r store.Reader) error {
		var err error
		items, err = r.Queue().Waiting(key)
		return err
	})
	return items
}

// notify queues an event for the next run of the main session.
func (h *harness) notify(text string) {
	h.t.Helper()
	if err := h.con.Notify(h.t.Context(), key, text); err != nil {
		h.t.Fatal(err)
	}
}
