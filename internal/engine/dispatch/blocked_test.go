package dispatch_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/test/power"
)

// caged returns a tool that is blocked until it has the right "net".
func caged(name string, done func(tool.Call)) asking {
	f := newTool(name, tool.Acts, func(_ context.Context, c tool.Call) (tool.Result, error) {
		if !slices.Contains(c.Rights, "net") {
			return tool.Result{}, &tool.Blocked{Rights: []string{"net"}, Again: true}
		}
		done(c)
		return tool.Text("fetched"), nil
	})
	f.plan = func(c tool.Call) tool.Plan {
		return tool.Plan{Effect: tool.Acts, Text: name + " with " + fmt.Sprint(c.Rights), Hash: "h:" +
			strings.Join(c.Rights, ",")}
	}
	return asking{f}
}

func TestBlocked(t *testing.T) {
	t.Run("a blocked call runs again once its rights are approved", func(t *testing.T) {
		ids := map[string]bool{}
		fetch := caged("fetch", func(c tool.Call) { ids[c.ID] = true })
		h := newHarness(t, asksOnce("fetch"), fetch).open()
		id := h.send("m1", "use it")
		h.suspended()
		q := h.pending()
		if q.Text != "fetch with [net]" || q.Hash != "h:net" || !strings.Contains(q.Reason, "net") ||
			!slices.Equal(q.Rights, []string{"net"}) || q.Asked != "" {
			t.Errorf("requested %+v", q)
		}
		h.view(func(r store.Reader) error {
			k, err := r.Calls().Call(q.Call)
			if k.State != session.Waiting || !slices.Equal(k.Rights, []string{"net"}) {
				t.Errorf("call %s with %q", k.State, k.Rights)
			}
			return err
		})
		h.stop() // the decision is made in another process
		h.open()
		h.decide(q.ID, "allow-once")
		if r := h.wait(id); r.Text != "got: fetched" || fetch.count() != 2 || len(ids) != 1 || !ids[q.Call] {
			t.Errorf("answer %q (%s), run %d times as %v", r.Text, r.Error, fetch.count(), ids)
		}
	})
	t.Run("the chat of the root run is asked for a child", func(t *testing.T) {
		fetch := caged("fetch", func(tool.Call) {})
		h := newHarness(t, asksOnce("fetch"), fetch).open()
		root, child := chela.SessionKey("agent:main:root"), chela.RunID("child")
		err := h.db.Update(t.Context(), store.Synced, func(tx store.Tx) error {
			if err := tx.Runs().Put(run.Run{
				ID:        "root",
				Session:   root,
				SessionID: "t",
				State:     run.OK,
				Started:   time.Now(),
			}); err != nil {
				return err
			}
			tx.Wake(store.Topic{Kind: store.TopicQueue, Session: key})
			_, err := tx.Queue().Put(queue.Item{
				ID: string(child), Key: "child", Session: key, Kind: queue.Event, Origin: chela.Origin{Kind: chela.OriginSubagent},
				Principal: chela.Owner("test"), Inbound: chela.Inbound{Text: "use it"}, Parent: "root", Root: "root",
				State: queue.Waiting, Created: time.Now(),
			})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		h.until("an approval is requested",
			func() bool { return len(h.seen(chela.StreamApproval, chela.PhaseRequested)) > 0 })
		if q := h.pending(); q.Asked != root || q.Session != key || q.Run != child {
			t.Errorf("requested %+v", q)
		}
	})
	t.Run("denied, it does not run again", func(t *testing.T) {
		fetch := caged("fetch", func(tool.Call) {})
		h := newHarness(t, asksOnce("fetch"), fetch).open()
		id := h.send("m1", "use it")
		h.suspended()
		h.decide(h.pending().ID, "deny")
		if r := h.wait(id); !strings.Contains(r.Text, "denied") || fetch.count() != 1 {
			t.Errorf("answer %q, run %d times", r.Text, fetch.count())
		}
	})
	t.Run("killed before the request is stored, it is not repeated", func(t *testing.T) {
		fetch := caged("fetch", func(tool.Call) {})
		h := newHarness(t, asksOnce("fetch"), fetch)
		h.crashAt("approval.ask", 1, func() { h.send("m1", "use it") })
		if r := h.wait("m1"); !strings.Contains(r.Text, "outcome is unknown") || fetch.count() != 1 {
			t.Errorf("answer %q (%s), run %d times", r.Text, r.Error, fetch.count())
		}
	})
	t.Run("killed during a keyed call, it is repeated with the same id", func(t *testing.T) {
		var ids []string
		spawn := newTool("spawn", tool.Writes, func(_ context.Context, c tool.Call) (tool.Result, error) {
			ids = append(ids, c.ID)
			return tool.Text("spawned"), nil
		})
		spawn.spec.Keyed = true
		h := newHarness(t, asksOnce("spawn"), spawn)
		h.crashAt("tool.end", 1, func() { h.send("m1", "use it") })
		if r := h.wait("m1"); r.Text != "got: spawned" || len(ids) != 2 || ids[0] != ids[1] || ids[0] == "" {
			t.Errorf("answer %q (%s), run as %q", r.Text, r.Error, ids)
		}
	})
}

// TestPowerBlocked cuts the power after every commit of a turn with a tool that
// writes and of one with a blocked call, and compares what the outside knows with
// what is on disk. Each synced commit, made ordered, must break a promise.
func TestPowerBlocked(t *testing.T) {
	power.Sweep(t, func(t testing.TB, s store.Store, report func(power.Fact)) {
		write := newTool("write", tool.Writes, func(context.Context, tool.Call) (tool.Result, error) {
			report(callIs("write", session.Started, session.Closed))
			return tool.Text("written"), nil
		})
		fetch := caged("fetch", func(tool.Call) { report(callIs("fetch", session.Started, session.Closed)) })
		blocked := fetch.run
		fetch.run = func(ctx context.Context, c tool.Call) (tool.Result, error) {
			if len(c.Rights) == 0 {
				report(callIs("fetch", session.Started, session.Waiting, session.Approved, session.Closed))
			}
			return blocked(ctx, c)
		}
		accept := make(chan struct{}) // closed by the test once it has recorded the acceptance
		model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
			last := r.Messages[len(r.Messages)-1]
			if last.Role == llm.RoleTool {
				return llmtest.Say("done")
			}
			<-accept
			return llmtest.Call("c-"+last.PlainText(), last.PlainText(), `{}`)
		})
		h := newHarness(t, model, write, fetch)
		h.start(s, slog.New(slog.DiscardHandler), func() error { return nil })
		turn := func(id, text string, meanwhile func()) {
			h.send(id, text)
			report(accepted(id))
			h.pass("the model is asked about "+text, accept)
			meanwhile()
			r := h.wait(chela.RunID(id))
			report(ended(r.ID, r.Text))
		}
		turn("m1", "write", func() {})
		turn("m2", "fetch", func() {
			h.until("an approval is requested",
				func() bool { return len(h.seen(chela.StreamApproval, chela.PhaseRequested)) > 0 })
			q := h.pending()
			report(asked(q.ID))
			h.suspended()
			h.decide(q.ID, "allow-once")
			report(decided(q.ID))
		})
		h.stop()
	})
}
