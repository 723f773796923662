package heartbeat

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// wakes is a table of wakes in memory.
type wakes struct {
	Table
	rows map[chela.SessionKey]Wake
}

func (w wakes) Wakes() (out []Wake, err error) {
	for _, row := range w.rows {
		out = append(out, row)
	}
	return out, nil
}

func (w wakes) Wake(key chela.SessionKey) (Wake, error) {
	row, ok := w.rows[key]
	if !ok {
		return row, chela.ErrNotFound
	}
	return row, nil
}

func (w wakes) PutWake(row Wake) error { w.rows[row.Session] = row; return nil }

func TestRequest(t *testing.T) {
	t.Parallel()
	owner, writer := chela.Owner("cron"), chela.Principal{ID: "7", Scopes: []chela.Scope{chela.ScopeWrite}}
	ask := func(reason string, m Mode, ms int) Wake {
		return Wake{Agent: "ops", Reason: reason, Mode: m, Principal: owner, At: t0.Add(time.Duration(ms) * time.Millisecond)}
	}
	asWriter := func(w Wake) Wake { w.Principal = writer; return w }
	busy := func(w Wake) Wake { w.Session, w.Due, w.Tries = "agent:ops:main", t0.Add(time.Minute), 5; return w }
	for _, c := range []struct {
		name    string
		pending []Wake
		ask     []Wake
		want    string // reason mode due+ms tries who
	}{
		{"one", nil, []Wake{ask("cron:1", Now, 0)}, "cron:1 now 250 0 owner"},
		{"two with one reason", nil, []Wake{ask("cron:1", Now, 0), ask("cron:1", Now, 100)}, "cron:1 now 250 0 owner"},
		{"the latest of equal priority", nil, []Wake{ask("cron:1", Now, 0), ask("wake", Now, 100)}, "wake now 250 0 owner"},
		{"an interval does not replace a cause", nil, []Wake{ask("cron:1", Now, 0), ask("interval", Now, 100)},
			"cron:1 now 250 0 owner"},
		{"a cause replaces an interval", nil, []Wake{ask("interval", Now, 0), ask("cron:1", Now, 100)},
			"cron:1 now 250 0 owner"},
		{"a command replaces a job", nil, []Wake{ask("cron:1", Now, 0), ask("exec-event", Now, 100), ask("cron:2", Now, 120)},
			"exec-event now 250 0 owner"},
		{"a hook replaces a job", nil, []Wake{ask("hook:gmail", Now, 0), ask("cron:2", Now, 120)},
			"hook:gmail now 250 0 owner"},
		{"a retry is the least", nil, []Wake{ask("retry", Now, 0), ask("interval", Now, 120)}, "interval now 250 0 owner"},
		{"now after the next tick", nil, []Wake{ask("a", NextTick, 0), ask("b", Now, 5000)}, "b now 5250 0 owner"},
		{"the next tick after now", nil, []Wake{ask("a", Now, 0), ask("b", NextTick, 100)}, "b now 250 0 owner"},
		{"a deferred one stays deferred", []Wake{busy(ask("a", Now, 0))}, []Wake{ask("a", Now, 100)}, "a now 60000 5 owner"},
		{"fewer rights", nil, []Wake{ask("a", Now, 0), asWriter(ask("a", Now, 1))}, "a now 250 0 7"},
		{"fewer rights first", nil, []Wake{asWriter(ask("a", Now, 0)), ask("a", Now, 1)}, "a now 250 0 7"},
	} {
		table := wakes{rows: map[chela.SessionKey]Wake{}}
		for _, w := range c.pending {
			table.rows[w.Session] = w
		}
		for _, w := range c.ask {
			if err := Request(table, w); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		w := table.rows["agent:ops:main"]
		got := fmt.Sprintf("%s %s %d %d %s", w.Reason, w.Mode, w.Due.Sub(t0).Milliseconds(), w.Tries, w.Principal.ID)
		if diff := cmp.Diff(c.want, got); diff != "" || len(table.rows) != 1 {
			t.Errorf("%s: %d wakes (-want +got):\n%s", c.name, len(table.rows), diff)
		}
	}
	t.Run("rights that neither principal has alone are gone", func(t *testing.T) {
		a := chela.Principal{ID: "a", Scopes: []chela.Scope{chela.ScopeWrite, chela.ScopeApprovals}}
		b := chela.Principal{ID: "b", Scopes: []chela.Scope{chela.ScopeRead, chela.ScopePairing}}
		if diff := cmp.Diff([]chela.Scope{chela.ScopeRead}, narrower(a, b).Scopes); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("refused", func(t *testing.T) {
		table := wakes{rows: map[chela.SessionKey]Wake{}}
		for _, w := range []Wake{
			{Mode: Now, Principal: owner}, {Reason: "a", Principal: owner}, {Reason: "a", Mode: "later", Principal: owner},
			{Reason: "a", Mode: Now},
		} {
			if err := Request(table, w); err == nil {
				t.Errorf("accepted %+v", w)
			}
		}
		for i := range MaxWakes {
			key := chela.SessionKey(fmt.Sprintf("agent:main:%d", i))
			table.rows[key] = Wake{Session: key}
		}
		if err := Request(table, ask("a", Now, 0)); chela.CodeOf(err) != chela.CodeUnavailable {
			t.Errorf("above the limit: %v", err)
		}
		w := ask("a", Now, 0)
		w.Session = "agent:main:7"
		if err := Request(table, w); err != nil {
			t.Errorf("a pending one at the limit: %v", err)
		}
	})
}

func TestDefer(t *testing.T) {
	t.Parallel()
	w, last := Wake{}, time.Duration(0)
	for range 5 {
		w = w.Defer(t0)
		if d := w.Due.Sub(t0); d <= last {
			t.Errorf("try %d: %v after %v", w.Tries, d, last)
		} else {
			last = d
		}
	}
	w.Tries = 1000
	if d := w.Defer(t0).Due.Sub(t0); d != 30*time.Second {
		t.Errorf("longest delay: %v", d)
	}
}
