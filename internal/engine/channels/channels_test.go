package channels

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/leaseholder"
	"github.com/chela-ai/chela/internal/test/power"
)

// line is a channel that records its calls.
type line struct {
	name   string
	events *eventLog
}

func (l line) Run(ctx context.Context, _ channel.Sink) error {
	l.events.add("run " + l.name)
	<-ctx.Done()
	l.events.add("end " + l.name)
	return ctx.Err()
}

func (l line) Send(context.Context, channel.Part) (channel.Receipt, error) {
	return channel.Receipt{ID: l.name}, nil
}

// eventLog records events of several goroutines.
type eventLog struct {
	mu    sync.Mutex
	lines []string
}

func (e *eventLog) add(line string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lines = append(e.lines, line)
}

// take returns the events since the last call, and forgets them.
func (e *eventLog) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	lines := e.lines
	e.lines = nil
	return lines
}

// conf is the configuration section channels.line.
type conf string

func (c conf) section(path string) json.RawMessage {
	if path != "channels.line" || c == "" {
		return nil
	}
	return json.RawMessage(c)
}

// start runs a Supervisor on a configuration.
func start(t *testing.T, c conf) (s *Supervisor, events *eventLog, change func(conf), stop func()) {
	t.Helper()
	events = new(eventLog)
	st := power.New(t).Open(t)
	h, err := leaseholder.New(t.Context(), leaseholder.Options{Store: st, ID: "boot"})
	if err != nil {
		t.Fatal(err)
	}
	s, change, stop = startOn(t, c, st, h, events)
	return s, events, change, stop
}

// startOn runs a Supervisor of a process on a configuration.
func startOn(t *testing.T, c conf, st store.Store, h *leaseholder.Holder, events *eventLog) (s *Supervisor, change func(conf), stop func()) {
	t.Helper()
	s = New(Options{
		Log: slog.New(slog.DiscardHandler), Store: st, Owner: h, HTTP: func() *http.Client { return nil },
		Factories: []channel.Factory{{
			Name: "line", Aliases: []string{"wire"}, Limits: channel.Limits{Text: 10},
			New: func(_ channel.Env, id string, raw json.RawMessage) (channel.Channel, error) {
				var o struct {
					Key string `json:"key"`
				}
				if err := json.Unmarshal(raw, &o); err != nil || o.Key == "bad" {
					return nil, errors.Join(errors.New("no such key"), err)
				}
				return line{id + o.Key, events}, nil
			},
		}},
	})
	change = func(c conf) {
		t.Helper()
		p, err := s.Prepare(c.section)
		if err != nil {
			t.Fatal(err)
		}
		s.Apply(p)
		synctest.Wait()
	}
	change(c)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Run(ctx, nil) }()
	synctest.Wait()
	return s, change, func() { cancel(); <-done }
}

const two = `{"accounts": {"a": {"key": "1"}, "b": {"key": "1"}}}`

func TestSupervisor(t *testing.T) {
	t.Run("a changed account starts after its calls have returned", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, events, change, stop := start(t, two)
			defer stop()
			old, err := s.Acquire(t.Context(), "wire", "a")
			if err != nil {
				t.Fatal("the account is not found by an alias of the channel")
			}
			events.take()
			change(`{"accounts": {"a": {"key": "2"}, "b": {"key": "1"}}}`)
			if got, want := events.take(), []string{"end a1"}; !slices.Equal(got, want) {
				t.Errorf("while a call is in progress: %q, want %q", got, want)
			}
			var next channel.Instance
			go func() { next, _ = s.Acquire(t.Context(), "line", "a") }()
			synctest.Wait()
			if next.Channel != nil {
				t.Error("the new instance was used before the old one was done")
			}
			old.Release()
			synctest.Wait()
			if got, want := events.take(), []string{"run a2"}; !slices.Equal(got, want) || next.Channel == nil || next.Channel == old.Channel {
				t.Errorf("%q, want %q; the new instance is %v", got, want, next.Channel)
			}
		})
	})
	t.Run("a removed account is not found", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, events, change, stop := start(t, two)
			defer stop()
			events.take()
			change(`{"accounts": {"b": {"key": "1"}}}`)
			if _, err := s.Acquire(t.Context(), "line", "a"); !errors.Is(err, chela.ErrNotFound) {
				t.Error("the removed account is found")
			}
			if got, want := events.take(), []string{"end a1"}; !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
			if _, err := s.Acquire(t.Context(), "line", ""); err != nil {
				t.Error("the only account is not used for an address without an account")
			}
			change(`{"enabled": false, "accounts": {"b": {"key": "1"}}}`)
			if states := s.States(); len(states) != 0 {
				t.Errorf("accounts of a disabled channel: %v", states)
			}
		})
	})
	t.Run("an account that cannot be created changes nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, events, _, stop := start(t, two)
			defer stop()
			events.take()
			if _, err := s.Prepare(conf(`{"accounts": {"a": {"key": "bad"}}}`).section); err == nil || !strings.Contains(err.Error(), "channel line/a: no such key") {
				t.Errorf("error %v", err)
			}
			if _, err := s.Acquire(t.Context(), "line", "b"); err != nil {
				t.Error("the other account is not found")
			}
			if got := events.take(); len(got) != 0 {
				t.Errorf("%q, want no change", got)
			}
		})
	})
	t.Run("messages can be sent after Run has returned", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, _, _, stop := start(t, `{"key": "1"}`)
			stop()
			if in, err := s.Acquire(t.Context(), "line", chela.AccountID("default")); err != nil {
				t.Error("the account is not found")
			} else {
				in.Release()
			}
			if l := s.Limits("line"); l.Text != 10 {
				t.Errorf("limits %+v", l)
			}
		})
	})
}
