package channels

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/leaseholder"
	"github.com/chela-ai/chela/internal/engine/notice"
	"github.com/chela-ai/chela/internal/test/power"
)

// shaky is a channel whose runs the test controls.
type shaky struct {
	line
	run func(ctx context.Context, report func(error)) error
	env channel.Env
}

func (s shaky) Run(ctx context.Context, _ channel.Sink) error {
	s.events.add("run " + s.name)
	return s.run(ctx, s.env.Report)
}

// patient is a process with the channels shaky and line. The owner wrote last on line.
type patient struct {
	t      *testing.T
	st     store.Store
	events *eventLog
	run    func(ctx context.Context, report func(error)) error
	*Supervisor
}

func newPatient(t *testing.T) *patient {
	p := &patient{t: t, st: power.New(t).Open(t), events: new(eventLog)}
	p.run = func(ctx context.Context, _ func(error)) error { <-ctx.Done(); return ctx.Err() }
	err := p.st.Update(t.Context(), store.Synced, func(tx store.Tx) error {
		for key, name := range map[chela.SessionKey]string{"agent:main:main": "shaky", "agent:main:other": "line"} {
			m := session.Meta{
				ID: string(key), Key: key, Agent: key.Agent(), Created: time.Now(), Updated: time.Now(), Active: time.Now(),
				Address: chela.Address{Channel: name, Account: "default", Peer: chela.Peer{Kind: chela.Direct, ID: "1"}},
			}
			if err := tx.Sessions().Put(m); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// boot starts a process, and returns a function that ends it.
func (p *patient) boot(id string) (stop func()) {
	p.t.Helper()
	h, err := leaseholder.New(p.t.Context(), leaseholder.Options{Store: p.st, ID: id})
	if err != nil {
		p.t.Fatal(err)
	}
	p.Supervisor = New(Options{
		Log: slog.New(slog.DiscardHandler), Store: p.st, Owner: h, Bus: bus.New(slog.New(slog.DiscardHandler)),
		Notices: notice.New(notice.Options{OwnerChat: func(a chela.Address) bool { return true }}),
		Factories: []channel.Factory{
			{Name: "shaky", New: func(env channel.Env, id string, _ json.RawMessage) (channel.Channel, error) {
				return shaky{line{"shaky", "", p.events},
					func(ctx context.Context, report func(error)) error { return p.run(ctx, report) }, env}, nil
			}},
			{Name: "line", New: func(channel.Env, string, json.RawMessage) (channel.Channel, error) {
				return line{"line", "", p.events}, nil
			}},
		},
	})
	plan, err := p.Prepare(func(string) json.RawMessage { return json.RawMessage(`{}`) })
	if err != nil {
		p.t.Fatal(err)
	}
	p.Apply(plan)
	ctx, cancel := context.WithCancel(p.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = p.Run(ctx, nil) }()
	synctest.Wait()
	return func() {
		cancel()
		<-done
		_ = p.st.Update(p.t.Context(), store.Synced, func(tx store.Tx) error { return tx.Leases().Beat(id, 0) })
	}
}

// runs returns how often the channel was started since the last call.
func (p *patient) runs() int {
	return len(slices.DeleteFunc(p.events.take(), func(s string) bool { return s != "run shaky" }))
}

// told returns what the owner was told since the beginning, by channel.
func (p *patient) told() (out []string) {
	p.t.Helper()
	rows, err := store.Get(p.t.Context(), p.st, func(r store.Reader) ([]outbox.Row, error) { return r.Outbox().Open(0) })
	if err != nil {
		p.t.Fatal(err)
	}
	for _, r := range rows {
		out = append(out, r.Address.Channel+": "+r.Text)
	}
	return out
}

func sick(t *testing.T, name string, f func(*testing.T, *patient)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, newPatient(t)) })
	})
}

func TestHealth(t *testing.T) {
	sick(t, "HL-04 a channel that crashes is started again with growing pauses, ten times",
		func(t *testing.T, p *patient) {
			p.run = func(context.Context, func(error)) error { panic("boom") }
			stop := p.boot("one")
			defer stop()
			if err := p.States()["shaky"]["default"]; err == nil || !strings.Contains(err.Error(), "boom") {
				t.Errorf("CH-14 the state is %v", err)
			}
			if p.States()["line"]["default"] != nil {
				t.Error("another channel has an error")
			}
			time.Sleep(20 * time.Second)
			if n := p.runs(); n < 2 || n > 4 {
				t.Errorf("%d runs in 20 seconds", n)
			}
			time.Sleep(2 * time.Hour)
			if n := p.runs(); n > 9 {
				t.Errorf("%d further runs", n)
			}
			if err := p.States()["shaky"]["default"]; err == nil || !strings.Contains(err.Error(), "started 11 times") {
				t.Errorf("the state is %v", err)
			}
			got := p.told()
			if len(got) == 0 || !strings.HasPrefix(got[0], "line: 📡 shaky/default has ") {
				t.Errorf("the owner was told %q", got)
			}
		})
	sick(t, "what no new start mends is told at once, and once", func(t *testing.T, p *patient) {
		p.run = func(context.Context, func(error)) error {
			return &channel.Error{Permanent: true, Err: errors.New("the token is not valid")}
		}
		stop := p.boot("one")
		time.Sleep(time.Hour)
		want := []string{"line: 📡 shaky/default has stopped: the token is not valid (chela channels status)"}
		if got := p.told(); !slices.Equal(got, want) || p.runs() != 1 {
			t.Errorf("the owner was told %q", got)
		}
		stop()
		stop = p.boot("two")
		time.Sleep(time.Hour)
		if got := p.told(); !slices.Equal(got, want) {
			t.Errorf("after a restart the owner was told %q", got)
		}
		stop()
		p.run = func(ctx context.Context, report func(error)) error { report(nil); <-ctx.Done(); return nil }
		stop = p.boot("three")
		defer stop()
		time.Sleep(time.Minute)
		if got := p.told(); !slices.Equal(got, append(want, "line: 📡 shaky/default works again.")) {
			t.Errorf("when it works again the owner was told %q", got)
		}
	})
	sick(t, "a connection that is lost for long", func(t *testing.T, p *patient) {
		up := make(chan error)
		p.run = func(ctx context.Context, report func(error)) error {
			for {
				select {
				case err := <-up:
					report(err)
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}
		stop := p.boot("one")
		defer stop()
		up <- nil
		for range 5 { // short ones are not worth a word
			up <- errors.New("no route to host")
			time.Sleep(5 * time.Minute)
			up <- nil
		}
		if got := p.told(); len(got) > 0 {
			t.Errorf("the owner was told %q", got)
		}
		up <- errors.New("no route to host")
		time.Sleep(11 * time.Minute)
		up <- errors.New("still none")
		time.Sleep(time.Hour)
		want := []string{"line: 📡 shaky/default has not been connected for 10 minutes: no route to host. I keep trying."}
		if got := p.told(); !slices.Equal(got, want) {
			t.Errorf("the owner was told %q", got)
		}
		up <- nil
		synctest.Wait()
		if got := p.told(); !slices.Equal(got, append(want, "line: 📡 shaky/default works again.")) {
			t.Errorf("at the end the owner was told %q", got)
		}
	})
	sick(t, "a channel that works after two starts and does not report its connection", func(t *testing.T, p *patient) {
		n := 0
		p.run = func(ctx context.Context, _ func(error)) error {
			if n++; n < 3 {
				return errors.New("not yet")
			}
			<-ctx.Done()
			return ctx.Err()
		}
		stop := p.boot("one")
		defer stop()
		time.Sleep(time.Hour)
		if got, err := p.told(), p.States()["shaky"]["default"]; len(got) > 0 || err != nil || p.runs() != 3 {
			t.Errorf("the owner was told %q; state %v", got, err)
		}
	})
}
