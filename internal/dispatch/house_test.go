package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/bus"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/dispatch"
	"github.com/chela-ai/chela/internal/inbound"
	"github.com/chela-ai/chela/internal/invoke"
	"github.com/chela-ai/chela/internal/lane"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/run"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/store/sqlite"
	"github.com/chela-ai/chela/internal/tool"
)

const key = chela.SessionKey("agent:main:main")

// house is the engine without its surfaces, on a real store.
type house struct {
	apart bool // a message is taken first, and its run begins in a second commit

	t    testing.TB
	path string
	p    dispatch.Profile // copied at each start

	db   *sqlite.DB
	st   store.Store
	bus  *bus.Bus
	gate *inbound.Gate
	con  *dispatch.Conductor
	stop func()

	wrap   func(store.Store) store.Store
	refuse error // why there is no profile
	step   func(string)
	ended  []dispatch.Ended
	drain  time.Duration

	mu     sync.Mutex
	events []chela.Event
	boots  int
}

func newHouse(t testing.TB, model llm.Provider, tools ...tool.Tool) *house {
	h := &house{t: t, path: filepath.Join(t.TempDir(), "chela.db"), p: dispatch.Profile{
		Provider: model, Model: llm.Model{Provider: "mock", ID: "m", Context: 1 << 20},
		System: func(dispatch.Facts) []llm.Block { return []llm.Block{{Text: "You are a test."}} },
		Tools:  tool.NewSet(tools...), Dir: t.TempDir(),
	}}
	return h
}

// open starts the engine on the house's store.
func (h *house) open() *house {
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

// start starts the engine on a store, which shut closes.
func (h *house) start(st store.Store, log *slog.Logger, shut func() error) {
	h.st = st
	h.bus = bus.New(log)
	h.bus.Subscribe(func(e chela.Event) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.events = append(h.events, e)
	})
	lanes := new(lane.Lanes)
	lanes.Set("main", 8)
	h.boots++
	h.con = dispatch.New(dispatch.Options{
		Log: log, Store: h.st, Bus: h.bus, Owner: fmt.Sprint("boot", h.boots), Lanes: lanes, Cache: session.NewCache(1 << 20),
		Door: invoke.New(invoke.Options{Log: log}), Ended: h.ended, Step: h.step, Drain: h.drain,
		Profile: func(session.Meta) (*dispatch.Profile, error) { p := h.p; return &p, h.refuse },
	})
	h.gate = inbound.New(inbound.Options{Log: log, Store: h.st, Bus: h.bus, Live: h.con.Live, Reserve: h.reserve})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := h.con.Run(ctx); err != nil {
			h.t.Errorf("conductor: %v", err)
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

// reserve lets a message begin its run in the commit that takes it, as the
// product does.
func (h *house) reserve(key chela.SessionKey) inbound.Place {
	if h.apart {
		return nil
	}
	if p := h.con.Reserve(key); p != nil {
		return p
	}
	return nil
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
func (h *house) send(id, text string, change ...func(*chela.Inbound)) chela.RunID {
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
func (h *house) wait(id chela.RunID) run.Run {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 20*time.Second)
	defer cancel()
	r, err := h.con.Wait(ctx, id)
	if err != nil {
		h.t.Fatalf("wait for %s: %v (%+v)", id, err, r)
	}
	return r
}

func (h *house) ask(id, text string) run.Run { return h.wait(h.send(id, text)) }

// view reads the store.
func (h *house) view(f func(store.Reader) error) {
	h.t.Helper()
	if err := h.st.View(context.Background(), f); err != nil {
		h.t.Fatal(err)
	}
}

// entries is the transcript of the main session.
func (h *house) entries() []session.Entry {
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

// lines is the transcript in short: "user: hi".
func (h *house) lines() []string {
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
func (h *house) seen(s chela.Stream, phase string) []chela.Event {
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

// until waits until f holds; it is looked at whenever something is published.
func (h *house) until(what string, f func() bool) {
	h.t.Helper()
	changed := make(chan struct{}, 1)
	cancel := h.bus.Subscribe(func(chela.Event) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	defer cancel()
	limit := time.After(20 * time.Second)
	for !f() {
		select {
		case <-changed:
		case <-time.After(20 * time.Millisecond):
		case <-limit:
			h.t.Fatalf("never happened: %s\n%s", what, strings.Join(h.lines(), "\n"))
		}
	}
}

func (h *house) waiting() []queue.Item {
	var items []queue.Item
	h.view(func(r store.Reader) error {
		var err error
		items, err = r.Queue().Waiting(key)
		return err
	})
	return items
}
