package channels

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
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
	dir    string // of its files
	events *eventLog
}

func (l line) Run(ctx context.Context, _ channel.Sink) error {
	l.events.add("run " + l.name)
	select {
	case err := <-l.events.broken:
		return err
	case <-ctx.Done():
	}
	l.events.add("end " + l.name)
	return ctx.Err()
}

func (l line) Send(context.Context, channel.Part) (channel.Receipt, error) {
	return channel.Receipt{ID: l.name}, nil
}

// tuned is a channel that applies every section that says so.
type tuned struct{ line }

func (l tuned) Reload(raw json.RawMessage) (bool, error) {
	var o section
	err := json.Unmarshal(raw, &o)
	if o.Live {
		l.events.add("reload " + o.Key)
	}
	return o.Live, err
}

// section is the configuration of an account.
type section struct {
	Key  string `json:"key"`
	Live bool   `json:"live"`
	Bot  string `json:"bot"` // identity on the platform
}

// eventLog records events of several goroutines.
type eventLog struct {
	missing bool       // the credential of the key "late" is missing
	broken  chan error // ends Run of an instance; nil: none
	mu      sync.Mutex
	lines   []string
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
func startOn(t *testing.T, c conf, st store.Store, h *leaseholder.Holder,
	events *eventLog) (s *Supervisor, change func(conf), stop func()) {
	t.Helper()
	first := channel.Factory{
		Name: "line", Aliases: []string{"wire"}, Limits: channel.Limits{Text: 10},
		Identity: func(raw json.RawMessage) string {
			var o section
			_ = json.Unmarshal(raw, &o)
			return o.Bot
		},
		New: func(env channel.Env, id string, raw json.RawMessage) (channel.Channel, error) {
			var o section
			if err := json.Unmarshal(raw, &o); err != nil || o.Key == "bad" || o.Key == "late" && events.missing {
				return nil, errors.Join(errors.New("no such key"), err)
			}
			if o.Live {
				return tuned{line{id + o.Key, env.Dir, events}}, nil
			}
			return line{id + o.Key, env.Dir, events}, nil
		},
	}
	second := first
	second.Name, second.Aliases = "post", nil
	s = New(Options{
		Log: slog.New(slog.DiscardHandler), Store: st, Owner: h, Factories: []channel.Factory{first, second}, Dir: "files",
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
	t.Run("CH-15 only a changed account is started again, after its calls have returned", func(t *testing.T) {
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
			if got, want := events.take(), []string{"run a2"}; !slices.Equal(got, want) || next.Channel == nil ||
				next.Channel == old.Channel {
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
			if _, err := s.Prepare(conf(`{"accounts": {"a": {"key": "bad"}}}`).section); err == nil ||
				!strings.Contains(err.Error(), "channel line/a: no such key") {
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
	t.Run("each configuration tries an account again that could not be created", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, events, change, stop := start(t, two)
			defer stop()
			events.take()
			const late = conf(`{"accounts": {"a": {"key": "late", "live": true}, "b": {"key": "1"}}}`)
			for range 2 {
				events.missing = true
				p, err := s.Prepare(late.section)
				if err == nil {
					t.Fatal("no error")
				}
				s.Apply(p) // as at the start, which such an account does not prevent
				synctest.Wait()
				if err := s.States()["line"]["a"]; err == nil {
					t.Error("the account has no error")
				}
				if _, err := s.Acquire(t.Context(), "line", "a"); !errors.Is(err, chela.ErrNotFound) || s.Elsewhere("line", "a") {
					t.Errorf("the account: %v, elsewhere %v", err, s.Elsewhere("line", "a"))
				}
			}
			if got, want := events.take(), []string{"end a1"}; !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
			events.missing = false
			change(late)
			if got, want := events.take(), []string{"run alate"}; !slices.Equal(got, want) || s.States()["line"]["a"] != nil {
				t.Errorf("%q, want %q; state %v", got, want, s.States()["line"]["a"])
			}
		})
	})
	t.Run("an account that has ended is replaced by a change, and does not apply it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, events, change, stop := start(t, `{"accounts": {"a": {"key": "1", "live": true}}}`)
			defer stop()
			if s.States()["line"]["a"] != nil {
				t.Errorf("state %v", s.States()["line"]["a"])
			}
			change(`{"accounts": {"a": {"key": "2"}}}`)
			if s.States()["line"]["a"] != nil {
				t.Errorf("state after a restart: %v", s.States()["line"]["a"])
			}
			events.broken = make(chan error)
			change(`{"accounts": {"a": {"key": "3", "live": true}}}`)
			events.broken <- errors.New("logged out")
			synctest.Wait()
			if err := s.States()["line"]["a"]; err == nil || err.Error() != "logged out" {
				t.Errorf("state %v", err)
			}
			events.take()
			change(`{"accounts": {"a": {"key": "4", "live": true}}}`)
			if got, want := events.take(), []string{"run a4"}; !slices.Equal(got, want) || s.States()["line"]["a"] != nil {
				t.Errorf("%q, want %q; state %v", got, want, s.States()["line"]["a"])
			}
		})
	})
	t.Run("the account of an address", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, _, change, stop := start(t, two)
			defer stop()
			for id, want := range map[chela.AccountID]string{"a": "a1", "b": "b1", "": "", "c": ""} {
				in, err := s.Acquire(t.Context(), "line", id)
				if (err == nil) != (want != "") {
					t.Fatalf("%q: %v", id, err)
				}
				if err == nil {
					if got := in.Channel.(line); got.name != want || got.dir != filepath.Join("files", "line", string(id)) {
						t.Errorf("%q: %s in %s, want %s", id, got.name, got.dir, want)
					}
					in.Release()
				}
			}
			if _, err := s.Acquire(t.Context(), "other", "a"); !errors.Is(err, chela.ErrNotFound) {
				t.Errorf("an unknown channel: %v", err)
			}
			change(`{"accounts": {"a": {"key": "1"}, "b": {"key": "1", "enabled": false}}}`)
			if _, err := s.Acquire(t.Context(), "line", "b"); !errors.Is(err, chela.ErrNotFound) {
				t.Errorf("a disabled account: %v", err)
			}
			p, err := s.Prepare(func(path string) json.RawMessage {
				return json.RawMessage(`{"accounts": {"` + strings.TrimPrefix(path, "channels.") + `": {"key": "1"}}}`)
			})
			if err != nil {
				t.Fatal(err)
			}
			s.Apply(p)
			for _, name := range []string{"line", "post"} {
				in, err := s.Acquire(t.Context(), name, "")
				if err != nil || in.Channel.(line).name != name+"1" {
					t.Fatalf("%s without an account: %v, %v", name, in.Channel, err)
				}
				in.Release()
			}
		})
	})
	t.Run("channels of a plan come, are restarted with a new revision, and go", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, events, _, stop := start(t, two)
			defer stop()
			events.take()
			apply := func(more ...channel.Factory) {
				t.Helper()
				p, err := s.Prepare(func(path string) json.RawMessage {
					if path == "channels.box" {
						return json.RawMessage(`{"key": "x"}`)
					}
					return conf(two).section(path)
				}, more...)
				if err != nil {
					t.Fatal(err)
				}
				s.Apply(p)
				synctest.Wait()
			}
			box := func(revision string) channel.Factory {
				return channel.Factory{Name: "box", Revision: revision, Limits: channel.Limits{Text: 7},
					New: func(channel.Env, string, json.RawMessage) (channel.Channel, error) {
						return line{"box" + revision, "", events}, nil
					}}
			}
			for i, tt := range []struct {
				more []channel.Factory
				want []string
			}{
				{[]channel.Factory{box("1")}, []string{"run box1"}},
				{[]channel.Factory{box("1")}, nil},
				{[]channel.Factory{box("2")}, []string{"end box1", "run box2"}},
				{nil, []string{"end box2"}},
				{[]channel.Factory{box("2")}, []string{"run box2"}},
			} {
				apply(tt.more...)
				if got := events.take(); !slices.Equal(got, tt.want) {
					t.Errorf("step %d: %q, want %q", i, got, tt.want)
				}
				limit, has := 0, len(tt.more) > 0
				if has {
					limit = 7
				}
				if got := s.Limits("box").Text; got != limit || s.Has("box", "default") != has {
					t.Errorf("step %d: limit %d, there is an account: %v", i, got, s.Has("box", "default"))
				}
			}
		})
	})
	t.Run("an account is told of each change, also of one that is taken back", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, events, change, stop := start(t, `{"accounts": {"a": {"key": "1", "live": true}, "b": {"key": "1"}}}`)
			defer stop()
			events.take()
			first, err := s.Acquire(t.Context(), "line", "a")
			if err != nil {
				t.Fatal(err)
			}
			first.Release()
			for _, key := range []string{"2", "2", "1", "2"} {
				change(conf(`{"accounts": {"a": {"key": "` + key + `", "live": true}, "b": {"key": "1"}}}`))
			}
			if got, want := events.take(), []string{"reload 2", "reload 1", "reload 2"}; !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
			if in, err := s.Acquire(t.Context(), "line", "a"); err != nil || in.Channel != first.Channel {
				t.Errorf("the instance is %v, %v; want %v", in.Channel, err, first.Channel)
			} else {
				in.Release()
			}
			change(`{"accounts": {"a": {"key": "3"}, "b": {"key": "1"}}}`)
			if got, want := events.take(), []string{"end a1", "run a3"}; !slices.Equal(got, want) {
				t.Errorf("a section that it does not apply: %q, want %q", got, want)
			}
		})
	})
	t.Run("two accounts with the same identity change nothing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, events, change, stop := start(t, `{"accounts": {"a": {"bot": "x"}, "b": {"bot": "y"}, "c": {}, "d": {}}}`)
			defer stop()
			events.take()
			_, err := s.Prepare(conf(`{"accounts": {"a": {"bot": "x"}, "b": {"bot": "x"}}}`).section)
			if err == nil || !strings.Contains(err.Error(), "the accounts a and b are the same") || len(events.take()) > 0 {
				t.Errorf("error %v", err)
			}
			change(`{"accounts": {"a": {"bot": "y"}, "b": {"bot": "x"}}}`)
			if n := len(s.States()["line"]); n != 2 {
				t.Errorf("%d accounts after their identities were exchanged", n)
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

func TestAccounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, events, change, stop := start(t, `{"key": "1", "actions": {"react": false}}`)
		defer stop()
		events.broken = make(chan error)
		synctest.Wait()
		show := func() (out []string) {
			for _, a := range s.Accounts() {
				out = append(out, a.String()+" "+string(a.ID)+" "+strings.Join(a.Aliases, ","))
				if a.Usual {
					out[len(out)-1] += " usual"
				}
				if a.Can == nil || a.Limits.Text != 10 || len(a.Section) == 0 {
					t.Errorf("account %s: %+v", a, a)
				}
			}
			return out
		}
		for _, c := range []struct {
			conf conf
			want []string
		}{
			{`{"key": "1", "actions": {"react": false}}`, []string{"line/default default wire usual"}},
			{`{"accounts": {"b": {"key": "1"}}}`, []string{"line/b b wire usual"}},
			{`{"accounts": {"b": {"key": "1"}, "a": {"key": "2"}}}`, []string{"line/a a wire", "line/b b wire"}},
			{`{"accounts": {"b": {"key": "1"}, "a": {"key": "2"}, "default": {"key": "3"}}}`,
				[]string{"line/a a wire", "line/b b wire", "line/default default wire usual"}},
			{`{"defaultAccount": "b", "accounts": {"b": {"key": "1"}, "default": {"key": "3"}}}`,
				[]string{"line/b b wire usual", "line/default default wire"}},
		} {
			change(c.conf)
			if got := show(); !slices.Equal(got, c.want) {
				t.Errorf("CH-16 %s: %q, want %q", c.conf, got, c.want)
			}
		}
		change(`{"key": "1"}`)
		synctest.Wait()
		events.broken <- errors.New("connection lost")
		synctest.Wait()
		if list := s.Accounts(); len(list) != 1 || list[0].Err == nil || list[0].Err.Error() != "connection lost" {
			t.Errorf("an account that ended: %+v", list)
		}
	})
}
