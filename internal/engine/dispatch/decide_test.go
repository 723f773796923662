package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/test/power"
	"github.com/chela-ai/chela/wire"
)

// device returns the principal of a paired device that may decide.
func device(id string) chela.Principal {
	return chela.Principal{ID: "owner", Credential: pairing.Credential(id),
		Scopes: []chela.Scope{chela.ScopeApprovals, chela.ScopeWrite}}
}

// request returns a stored request.
func (h *harness) request(id string) (q approval.Request) {
	h.t.Helper()
	h.view(func(r store.Reader) (err error) { q, err = r.Approvals().Get(id); return err })
	return q
}

// pair stores a device with a grant.
func (h *harness) pair(id string, revoked bool, scopes ...chela.Scope) {
	h.t.Helper()
	g := pairing.Grant{Role: wire.RoleOperator, Scopes: scopes}
	if revoked {
		g.Revoked = time.Now()
	}
	err := h.st.Update(h.t.Context(), store.Synced, func(tx store.Tx) error {
		return tx.Devices().PutDevice(pairing.Device{ID: id, Grants: []pairing.Grant{g}})
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// asks returns a harness with a suspended run.
func asks(t *testing.T) (*harness, asking, chela.RunID, approval.Request) {
	t.Helper()
	act := mustAsk("act")
	h := newHarness(t, asksOnce("act"), act).open()
	id := h.send("m1", "use it")
	q := h.pending()
	h.suspended()
	return h, act, id, q
}

// TestAnswers decides in ways that must be refused.
func TestAnswers(t *testing.T) {
	t.Parallel()
	t.Run("AP-12 a principal without the scope is refused, and the request stays pending", func(t *testing.T) {
		h, act, id, q := asks(t)
		h.pair("cut", false, chela.ScopeWrite)
		h.pair("gone", true, chela.ScopeAdmin)
		for name, who := range map[string]chela.Principal{
			"no principal": {},
			"a sender who may only write": {ID: "telegram:a:7", Credential: "channel",
				Scopes: []chela.Scope{chela.ScopeWrite}},
			"a device that was revoked meanwhile":    device("gone"),
			"a device that lost the scope meanwhile": device("cut"),
			"a device that was never paired":         device("none"),
		} {
			_, err := h.con.Decide(chela.WithPrincipal(t.Context(), who), q.ID, "allow-always")
			if chela.CodeOf(err) != chela.CodeForbidden || h.request(q.ID).Decision != approval.Pending || act.count() != 0 {
				t.Errorf("%s: %v, then %+v", name, err, h.request(q.ID))
			}
		}
		h.pair("good", false, chela.ScopeApprovals)
		if _, err := h.con.Decide(chela.WithPrincipal(t.Context(), device("good")), q.ID, "allow-once"); err != nil {
			t.Fatal(err)
		}
		if r := h.wait(id); r.Text != "got: ran act" || act.count() != 1 {
			t.Errorf("answer %q, ran %d times", r.Text, act.count())
		}
	})
	t.Run("AP-13 of concurrent decisions one counts, and the others report it", func(t *testing.T) {
		h, act, id, q := asks(t)
		h.pair("one", false, chela.ScopeApprovals)
		h.pair("two", false, chela.ScopeApprovals)
		var won atomic.Int64
		var wg sync.WaitGroup
		var mu sync.Mutex
		var told []error
		for i := range 16 {
			who, word := device("one"), "allow-once"
			if i%2 == 1 {
				who, word = device("two"), "deny"
			}
			wg.Go(func() {
				if _, err := h.con.Decide(chela.WithPrincipal(t.Context(), who), q.ID, word); err != nil {
					mu.Lock()
					told = append(told, err)
					mu.Unlock()
					return
				}
				won.Add(1)
			})
		}
		wg.Wait()
		got := h.request(q.ID)
		want := fmt.Sprintf("owner (device %s) decided %s at ", strings.TrimPrefix(got.Via, "device:"), got.Decision)
		for _, err := range told {
			if chela.CodeOf(err) != chela.CodeConflict || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		}
		h.wait(id)
		ran := map[bool]int{true: 1}[got.Decision == approval.AllowOnce]
		if won.Load() != 1 || act.count() != ran {
			t.Errorf("%d decisions counted, stored %s; it ran %d times", won.Load(), got.Decision, act.count())
		}
	})
	t.Run("a plan that changed", func(t *testing.T) {
		h, act, id, q := asks(t)
		plan := act.plan
		act.plan = func(c tool.Call) tool.Plan { p := plan(c); p.Hash = "of something else"; return p }
		h.decide(q.ID, "allow-always")
		if r := h.wait(id); !strings.Contains(r.Text, "plan has changed") || act.count() != 0 {
			t.Errorf("answer %q, ran %d times", r.Text, act.count())
		}
	})
	t.Run("after the session was deleted", func(t *testing.T) {
		h, act, _, q := asks(t)
		if err := h.st.Update(t.Context(), store.Synced, func(tx store.Tx) error { return tx.Sessions().Delete(key) }); err !=
			nil {
			t.Fatal(err)
		}
		if _, err := h.con.Decide(owner(t.Context()), q.ID, "allow-once"); !errors.Is(err, chela.ErrNotFound) {
			t.Errorf("a request of a deleted session: %v", err)
		}
		if r := h.ask("m2", "hello"); r.Text != "heard: hello" || act.count() != 0 {
			t.Errorf("answer %q, ran %d times", r.Text, act.count())
		}
	})
	t.Run("after the requester was revoked", func(t *testing.T) {
		act := mustAsk("act")
		h := newHarness(t, asksOnce("act"), act).open()
		h.pair("phone", false, chela.ScopeWrite)
		rec, err := h.gate.Admit(chela.WithPrincipal(t.Context(), device("phone")), chela.Inbound{
			ID:      "m1",
			Session: key,
			Text:    "use it",
			Address: chela.Address{Channel: chela.LocalChannel},
			Sender:  chela.Sender{ID: "owner"},
		})
		if err != nil {
			t.Fatal(err)
		}
		q := h.pending()
		h.suspended()
		h.pair("phone", true, chela.ScopeWrite)
		if err := h.con.Revoke(t.Context(), pairing.Credential("phone")); err != nil {
			t.Fatal(err)
		}
		if _, err := h.con.Decide(owner(t.Context()), q.ID, "allow-once"); chela.CodeOf(err) != chela.CodeConflict ||
			!strings.Contains(err.Error(), "withdrawn") {
			t.Errorf("decided: %v", err)
		}
		if r := h.wait(rec.Run); r.State != run.Aborted || act.count() != 0 {
			t.Errorf("run is %s, ran %d times", r.State, act.count())
		}
	})
}

// TestGrantWhileSuspended changes the grant of the device that started a run while
// the run waits for an approval of the owner. A call that only the owner may make
// must not run with the rights that the device had before.
func TestGrantWhileSuspended(t *testing.T) {
	t.Parallel()
	all := []chela.Scope{chela.ScopeAdmin}
	for name, tt := range map[string]struct {
		scopes     []chela.Scope // afterwards
		revoked    bool
		ownerOnly  bool
		superseded bool // another message ended the run; the call is still decided
		runs       int
	}{
		"unchanged":                              {all, false, true, false, 1},
		"unchanged, superseded":                  {all, false, true, true, 1},
		"fewer scopes":                           {[]chela.Scope{chela.ScopeWrite}, false, true, false, 0},
		"fewer scopes, superseded":               {[]chela.Scope{chela.ScopeWrite}, false, true, true, 0},
		"fewer scopes, a call that anyone makes": {[]chela.Scope{chela.ScopeWrite}, false, false, false, 1},
		"revoked, a call that anyone makes":      {all, true, false, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			act := mustAsk("act")
			act.spec.OwnerOnly = tt.ownerOnly
			h := newHarness(t, asksOnce("act"), act)
			h.p.Policy = func(chela.Principal) policy.Pipeline { return nil }
			h.open()
			h.pair("phone", false, all...)
			phone := device("phone")
			phone.Scopes = all
			rec, err := h.gate.Admit(chela.WithPrincipal(t.Context(), phone), chela.Inbound{
				ID:      "m1",
				Session: key,
				Text:    "use it",
				Address: chela.Address{Channel: chela.LocalChannel},
				Sender:  chela.Sender{ID: "owner"},
			})
			if err != nil {
				t.Fatal(err)
			}
			q := h.pending()
			h.suspended()
			if tt.superseded {
				h.ask("m2", "hello")
			}
			h.pair("phone", tt.revoked, tt.scopes...)
			h.decide(q.ID, "allow-once")
			if tt.superseded {
				h.until("the outcome is reported",
					func() bool { return strings.Contains(strings.Join(h.lines(), "\n"), "The call act") })
			} else if r := h.wait(rec.Run); (r.State == run.Aborted) != tt.revoked {
				t.Errorf("run is %s: %q", r.State, r.Text)
			}
			if act.count() != tt.runs {
				t.Errorf("ran %d times, want %d\n%s", act.count(), tt.runs, strings.Join(h.lines(), "\n"))
			}
		})
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	late := func(t *testing.T, h *harness, act asking, q approval.Request) {
		t.Helper()
		_, err := h.con.Decide(owner(t.Context()), q.ID, "allow-once")
		if chela.CodeOf(err) != chela.CodeConflict || !strings.Contains(err.Error(), "expired at") || act.count() != 0 {
			t.Errorf("decided: %v, ran %d times", err, act.count())
		}
	}
	for name, f := range map[string]func(*testing.T, *harness, asking, chela.RunID, approval.Request){
		"AP-10 an expired request resumes the run, and a later decision is refused": func(t *testing.T, h *harness,
			act asking, id chela.RunID, q approval.Request) {
			time.Sleep(approval.Lifetime - time.Second)
			if r := h.request(q.ID); r.Decision != approval.Pending {
				t.Fatalf("a second before its time: %+v", r)
			}
			time.Sleep(2 * time.Minute)
			if r := h.wait(id); r.State != run.OK ||
				!strings.Contains(r.Text, "the approval request expired without an answer") {
				t.Errorf("run is %s: %q", r.State, r.Text)
			}
			if r := h.request(q.ID); r.Decision != approval.Expired || r.By != "expiry" {
				t.Errorf("it is %+v", r)
			}
			if e := h.seen(chela.StreamApproval, chela.PhaseResolved); len(e) != 1 ||
				e[0].Data.(approval.Request).Decision != approval.Expired {
				t.Errorf("published %+v", e)
			}
			late(t, h, act, q)
		},
		"AP-10 a decision after the time is refused before the expiry ran": func(t *testing.T, h *harness, act asking,
			id chela.RunID, q approval.Request) {
			time.Sleep(time.Until(q.Expires))
			late(t, h, act, q)
			if r := h.wait(id); !strings.Contains(r.Text, "expired without an answer") || act.count() != 0 {
				t.Errorf("answer %q, ran %d times", r.Text, act.count())
			}
		},
		"AP-10 a session whose run was superseded gets a message": func(t *testing.T, h *harness, act asking,
			_ chela.RunID, q approval.Request) {
			h.ask("m2", "hello")
			time.Sleep(approval.Lifetime + time.Minute)
			h.until("it is reported", func() bool {
				ls := h.lines()
				return strings.Contains(ls[len(ls)-1], "was not allowed (expired)")
			})
			late(t, h, act, q)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				act := mustAsk("act")
				h := newHarness(t, asksOnce("act"), act)
				h.start(power.New(t).Open(t), slog.New(slog.DiscardHandler), func() error { return nil })
				defer h.stop()
				id := h.send("m1", "use it")
				q := h.pending()
				h.suspended()
				f(t, h, act, id, q)
			})
		})
	}
}

// TestExpiredMeanwhile starts the engine after a request expired.
func TestExpiredMeanwhile(t *testing.T) {
	t.Parallel()
	h, act, id, q := asks(t)
	h.stop()
	h.wrap = func(s store.Store) store.Store {
		err := s.Update(context.Background(), store.Synced, func(tx store.Tx) error {
			q.Expires = time.Now().Add(-time.Second)
			return tx.Approvals().Put(q)
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	h.open()
	if r := h.wait(id); !strings.Contains(r.Text, "expired without an answer") || act.count() != 0 {
		t.Errorf("answer %q, ran %d times", r.Text, act.count())
	}
}

// TestDecideWhileItDrains decides during the drain.
func TestDecideWhileItDrains(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		busy, free := make(chan struct{}), make(chan struct{})
		slow := newTool("slow", tool.Acts, func(context.Context, tool.Call) (tool.Result, error) {
			close(busy)
			<-free
			return tool.Text("slept"), nil
		})
		act, disk := mustAsk("act"), power.New(t)
		h := newHarness(t, asksOnce("act"), act, slow)
		h.drain = time.Minute
		start := func() {
			db := disk.Open(t)
			h.start(db, slog.New(slog.DiscardHandler), db.Close)
		}
		start()
		id := h.send("m1", "use it")
		q := h.pending()
		h.suspended()
		h.p.Provider = asksOnce("slow")
		h.send("m2", "use it", func(in *chela.Inbound) { in.Session = "agent:main:other" })
		<-busy
		stopped := make(chan struct{})
		go func() { defer close(stopped); h.stop() }()
		synctest.Wait()
		h.decide(q.ID, "allow-once")
		close(free)
		<-stopped
		if act.count() != 0 {
			t.Errorf("the call started during the drain")
		}
		h.p.Provider = asksOnce("act")
		start()
		defer h.stop()
		if r := h.wait(id); r.Text != "got: ran act" || act.count() != 1 {
			t.Errorf("answer %q (%s), ran %d times", r.Text, r.Error, act.count())
		}
	})
}
