package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/failover"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/runner"
	"github.com/chela-ai/chela/internal/test/power"
)

// item returns a waiting item of the main session.
func item(id string, kind queue.Kind, origin chela.OriginKind, change ...func(*queue.Item)) queue.Item {
	it := queue.Item{
		ID: id, Key: id, Session: key, Kind: kind, Origin: chela.Origin{Kind: origin, ID: id}, Principal: chela.Owner("test"),
		State: queue.Waiting, Created: time.Now(),
		Inbound: chela.Inbound{ID: id, Text: id, Time: time.Now(), Address: chela.Address{Channel: chela.LocalChannel}},
	}
	for _, f := range change {
		f(&it)
	}
	return it
}

// put stores items and wakes their session.
func (h *harness) put(items ...queue.Item) {
	h.t.Helper()
	err := h.st.Update(h.t.Context(), store.Synced, func(tx store.Tx) error {
		for _, it := range items {
			if _, err := tx.Queue().Put(it); err != nil {
				return err
			}
			tx.Wake(store.Topic{Kind: store.TopicQueue, Session: it.Session})
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// runOf waits until an item is done, and returns the run that took it.
func (h *harness) runOf(id string) (r run.Run) {
	h.t.Helper()
	h.until(id+" is done", func() bool {
		var it queue.Item
		h.view(func(rd store.Reader) (err error) {
			if it, err = rd.Queue().Get(id); err == nil && it.State == queue.Done {
				r, err = rd.Runs().Get(it.Run)
			}
			return err
		})
		return it.State == queue.Done
	})
	return r
}

// holds is a model that calls the tool "hold" for a message that begins with
// "hold", and the tool, which signals begun and waits for release.
func holds() (model *llmtest.Script, hold *fakeTool, begun chan struct{}, release func()) {
	begun, free := make(chan struct{}, 8), make(chan struct{})
	hold = newTool("hold", tool.Acts, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		begun <- struct{}{}
		select {
		case <-free:
			return tool.Text("held"), nil
		case <-ctx.Done():
			return tool.Result{}, ctx.Err()
		}
	})
	model = llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
		last := r.Messages[len(r.Messages)-1].PlainText()
		if strings.HasPrefix(strings.TrimPrefix(last, "[System] "), "hold") {
			return llmtest.Call("c1", "hold", `{}`)
		}
		return llmtest.Say("re: " + last)
	})
	return model, hold, begun, sync.OnceFunc(func() { close(free) })
}

// TestWhoJoinsARun queues items of all origins during a live run, in every mode.
func TestWhoJoinsARun(t *testing.T) {
	t.Parallel()
	for _, mode := range queue.Modes {
		for _, live := range []chela.OriginKind{chela.OriginPerson, chela.OriginHeartbeat, chela.OriginCron} {
			t.Run(fmt.Sprintf("%s during a run of %s", mode, live), func(t *testing.T) {
				t.Parallel()
				model, hold, begun, release := holds()
				h := newHarness(t, model, hold)
				h.q.Mode = mode
				h.open()
				by := func(id string) func(*queue.Item) {
					return func(it *queue.Item) { it.Principal.ID = id }
				}
				who := map[chela.OriginKind]string{
					chela.OriginPerson:    "ann",
					chela.OriginHeartbeat: "heartbeat",
					chela.OriginCron:      "cron",
				}[live]
				first := item("hold", queue.Message, live, by(who))
				h.put(first)
				<-begun
				items := []queue.Item{
					item("beat", queue.Message, chela.OriginHeartbeat, by("heartbeat")),
					item("announce", queue.Event, chela.OriginSubagent, by("child")),
					item("job", queue.Event, chela.OriginCron, by("cron")),
					item("m1", queue.Message, chela.OriginPerson, by("ann")),
					item("m2", queue.Message, chela.OriginPerson, by("ann"),
						func(it *queue.Item) { it.Overrides.Model = "mock/other" }),
					item("m3", queue.Message, chela.OriginPerson, by("bob")),
				}
				h.put(items...)
				if mode == queue.Interrupt {
					h.until("the run is interrupted", func() bool { return len(h.seen(chela.StreamLifecycle, chela.PhaseEnd)) > 0 })
				}
				release()
				held := h.runOf("hold")
				if want := map[bool]run.State{true: run.Superseded, false: run.OK}[mode == queue.Interrupt]; held.State != want {
					t.Errorf("the live run is %s, want %s", held.State, want)
				}
				replaced := 0
				runs, taken := map[chela.RunID]run.Run{held.ID: held}, map[chela.RunID][]queue.Item{held.ID: {first}}
				for _, it := range items {
					r := h.runOf(it.ID)
					if r.Replaces == held.ID {
						replaced++
					}
					runs[r.ID] = r
					taken[r.ID] = append(taken[r.ID], it)
					if r.State != run.OK {
						t.Errorf("the run of %s is %s: %s", it.ID, r.State, r.Error)
					}
					joined := r.ID == held.ID
					steers := mode == queue.Steer || mode == queue.SteerBacklog
					want := steers && (it.ID == "m1" && live == chela.OriginPerson || it.ID == "announce")
					if joined != want {
						t.Errorf("%s joined the live run: %t, want %t", it.ID, joined, want)
					}
				}
				for id, r := range runs {
					lead := queue.Lead(taken[id])
					for _, it := range append([]queue.Item{lead}, taken[id]...) {
						if it.ID != lead.ID && it.Kind == queue.Event { // it gives text, not rights
							continue
						}
						if r.Origin.Kind != it.Origin.Kind || r.Principal.ID != it.Principal.ID || !r.Overrides.Equal(it.Overrides) {
							t.Errorf("%s was answered by a run of %s for %s with %+v", it.ID, r.Origin.Kind, r.Principal.ID, r.Overrides)
						}
					}
				}
				if mode == queue.Interrupt != (replaced > 0) {
					t.Errorf("%d items were answered by a run that replaces the live one", replaced)
				}
				if mode == queue.SteerBacklog && live == chela.OriginPerson {
					h.runOf("m1:later")
				}
				all := strings.Join(h.lines(), "\n") + "\n"
				for _, it := range items {
					want := 1
					if mode == queue.SteerBacklog && it.ID == "m1" && live == chela.OriginPerson {
						want = 2
					}
					text := "user: " + map[bool]string{true: "[System] "}[it.Kind == queue.Event] + it.ID + "\n"
					if n := strings.Count(all, text); n != want {
						t.Errorf("%s is in the transcript %d times, want %d", it.ID, n, want)
					}
				}
			})
		}
	}
}

// TestOnlyPersonsInterrupt queues items of every other origin during a live run, in
// the mode that interrupts.
func TestOnlyPersonsInterrupt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model, hold, begun, release := holds()
		h := newHarness(t, model, hold)
		h.q.Mode = queue.Interrupt
		h.startOn(power.New(t).Open(t))
		defer h.stop()
		h.put(item("hold", queue.Message, chela.OriginPerson))
		<-begun
		time.Sleep(time.Second)
		items := []queue.Item{
			item("beat", queue.Message, chela.OriginHeartbeat), item("job", queue.Message, chela.OriginCron),
			item("announce", queue.Event, chela.OriginSubagent),
		}
		h.put(items...)
		synctest.Wait()
		release()
		if r := h.runOf("hold"); r.State != run.OK {
			t.Errorf("the live run is %s: %s", r.State, r.Error)
		}
		for _, it := range items {
			if r := h.runOf(it.ID); r.ID == "hold" || r.State != run.OK {
				t.Errorf("%s was taken by %s, which is %s", it.ID, r.ID, r.State)
			}
		}
	})
}

// TestNext queues more events than may wait, such as those of a job that waits for the
// next heartbeat. They start nothing, and the next run of any origin has them.
func TestNext(t *testing.T) {
	t.Parallel()
	for _, origin := range []chela.OriginKind{chela.OriginPerson, chela.OriginHeartbeat, chela.OriginCron,
		chela.OriginSubagent} {
		t.Run(string(origin), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				model := echoes()
				h := newHarness(t, model).startOn(power.New(t).Open(t))
				defer h.stop()
				for i := range 25 {
					h.put(item(fmt.Sprintf("event %02d.", i), queue.Event, chela.OriginCron, func(it *queue.Item) { it.Next = true }))
				}
				synctest.Wait()
				if n := len(model.Requests()); n != 0 || len(h.waiting()) != queue.MaxNext {
					t.Errorf("%d model calls, %d events wait", n, len(h.waiting()))
				}
				kind := map[bool]queue.Kind{true: queue.Event, false: queue.Message}[origin == chela.OriginSubagent]
				h.put(item("go", kind, origin))
				if r := h.runOf("go"); r.State != run.OK || r.Origin.Kind != origin {
					t.Errorf("run of %s is %s: %s", r.Origin.Kind, r.State, r.Error)
				}
				got := h.lines()[0]
				if !strings.Contains(got, "(5 earlier events were dropped)") || strings.Contains(got, "event 04.") ||
					strings.Count(got, "- event ") != queue.MaxNext {
					t.Errorf("the run has %q", got)
				}
			})
		})
	}
}

// TestOverrides starts runs with overrides of the session's settings.
func TestOverrides(t *testing.T) {
	t.Parallel()
	override := func(f func(*run.Overrides)) func(*queue.Item) { return func(it *queue.Item) { f(&it.Overrides) } }
	t.Run("tools, within the session's bounds", func(t *testing.T) {
		t.Parallel()
		var mu sync.Mutex
		var offered []string
		model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
			mu.Lock()
			defer mu.Unlock()
			var names []string
			for _, s := range r.Tools {
				names = append(names, s.Name)
			}
			offered = append(offered, strings.Join(names, " "))
			return llmtest.Say("ok")
		})
		h := newHarness(t, model, newTool("a", tool.Reads, nil), newTool("b", tool.Reads, nil),
			newTool("c", tool.Reads, nil)).open()
		h.ask("m1", "all")
		h.change(func(m *session.Meta) { m.Bounds.Tools = []run.Tools{{Deny: []string{"c"}}} })
		h.ask("m2", "bounds")
		h.put(item("m3", queue.Message, chela.OriginCron,
			override(func(o *run.Overrides) { o.Tools.Allow = []string{"b", "c"} })))
		h.runOf("m3")
		if want := []string{"a b c", "a b", "b"}; !slices.Equal(offered, want) {
			t.Errorf("tools %q, want %q", offered, want)
		}
	})
	t.Run("the time limit and the address", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, llmtest.NewScript(llmtest.Step{Fault: llmtest.Fault{Hang: llmtest.HangHeaders}}))
		h.p.Timeout = time.Minute
		h.open()
		to := chela.Address{Channel: "telegram", Peer: chela.Peer{Kind: chela.Direct, ID: "7"}}
		h.put(item("m1", queue.Message, chela.OriginCron, override(func(o *run.Overrides) {
			o.Timeout, o.Deliver = 20*time.Millisecond, run.Delivery{Mode: run.DeliverTo, Address: to}
		})))
		if r := h.runOf("m1"); r.State != run.TimedOut || !strings.Contains(r.Error, "20ms") || r.Address != to {
			t.Errorf("run is %s: %q, to %+v", r.State, r.Error, r.Address)
		}
	})
	t.Run("a fresh transcript", func(t *testing.T) {
		t.Parallel()
		h := newHarness(t, asksOnce("none")).open()
		h.ask("m1", "before")
		h.put(item("m2", queue.Message, chela.OriginCron, override(func(o *run.Overrides) { o.Context = run.ContextFresh })))
		h.runOf("m2")
		if diff := cmp.Diff([]string{"user: m2", "assistant: heard: m2"}, h.lines()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a fallback keeps them", func(t *testing.T) {
		t.Parallel()
		var mu sync.Mutex
		var got []string
		ask := func(name string, n int, step llmtest.Step) llm.Provider {
			return llmtest.ScriptFunc(func(i int, r *llm.Request) llmtest.Step {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, fmt.Sprintf("%s %s %d tools, %d messages", name, r.Thinking, len(r.Tools), len(r.Messages)))
				if i < n {
					return llmtest.Call("c1", "look", `{}`)
				}
				return step
			})
		}
		levels := []llm.Level{llm.Low, llm.High}
		resolved := 0
		h := newHarness(t, nil, newTool("look", tool.Reads, nil), newTool("act", tool.Acts, nil))
		h.p.Model.Levels = levels
		h.p.Provider = failover.New(failover.NewHealth(nil, nil),
			failover.Candidate{Model: h.p.Model,
				Keys: []failover.Key{{ID: "a", Provider: ask("m", 1, llmtest.Status(402, "no credit"))}}},
			failover.Candidate{Model: llm.Model{Provider: "other", ID: "n", Levels: levels},
				Keys: []failover.Key{{ID: "b", Provider: ask("n", 0, llmtest.Say("done"))}}})
		h.resolve = func(context.Context, session.Meta, run.Run) { resolved++ }
		h.open()
		h.put(item("m1", queue.Message, chela.OriginCron, override(func(o *run.Overrides) {
			o.Think, o.Tools.Allow = "high", []string{"look"}
		})))
		if r := h.runOf("m1"); r.Text != "done" || r.Model != "other/n" || resolved != 1 {
			t.Errorf("run is %s by %s, resolved %d times: %s", r.State, r.Model, resolved, r.Error)
		}
		want := []string{"m high 1 tools, 1 messages", "m high 1 tools, 3 messages", "n high 1 tools, 3 messages"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// TestHeartbeatOK compares the model's view before and after a silent heartbeat.
func TestHeartbeatOK(t *testing.T) {
	t.Parallel()
	model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
		if r.Messages[len(r.Messages)-1].PlainText() == "beat" {
			return llmtest.Say("HEARTBEAT_OK all quiet")
		}
		return llmtest.Say("ok")
	})
	h := newHarness(t, model).open()
	h.ask("m1", "hi")
	var before, after session.Meta
	h.view(func(r store.Reader) (err error) { before, err = r.Sessions().Get(key); return err })
	h.put(item("beat", queue.Message, chela.OriginHeartbeat))
	if r := h.runOf("beat"); !r.Silent || r.Text != "" {
		t.Errorf("silent %t, text %q", r.Silent, r.Text)
	}
	h.view(func(r store.Reader) (err error) { after, err = r.Sessions().Get(key); return err })
	if !after.Updated.Equal(before.Updated) {
		t.Errorf("updated at %s, before the heartbeat %s", after.Updated, before.Updated)
	}
	h.ask("m2", "again")
	var got []string
	for _, m := range model.Requests()[2].Messages {
		got = append(got, m.PlainText())
	}
	if diff := cmp.Diff([]string{"hi", "ok", "again"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestCompactRun compacts the transcript of a session with a suspended run.
func TestCompactRun(t *testing.T) {
	t.Parallel()
	h := newHarness(t, asksOnce("act"), mustAsk("act")).open()
	for i := range 4 {
		h.ask(fmt.Sprint("m1-", i), strings.Repeat("hello ", 400))
	}
	h.ask("m2", "hello")
	id := h.send("m3", "use it")
	q := h.pending()
	h.suspended()
	h.put(item("compact", queue.Compact, chela.OriginPerson))
	if r := h.runOf("compact"); r.Kind != run.Compact || r.State != run.OK {
		t.Errorf("run of kind %s is %s: %s", r.Kind, r.State, r.Error)
	}
	if ls := h.lines(); !slices.ContainsFunc(ls, func(l string) bool { return strings.HasPrefix(l, "cut") }) {
		t.Errorf("transcript %q", ls)
	}
	h.decide(q.ID, "allow-once")
	if r := h.wait(id); r.State != run.OK || r.Text != "got: ran act" {
		t.Errorf("the suspended run is %s: %q", r.State, r.Text)
	}
}

// TestDraft computes runs from items.
func TestDraft(t *testing.T) {
	t.Parallel()
	at := chela.Address{Channel: "telegram", Peer: chela.Peer{Kind: chela.Direct, ID: "7"}}
	last := chela.Address{Channel: "discord"}
	m := session.Meta{Key: key, ID: "s1", Agent: "main", Address: last, Bounds: session.Bounds{Lane: "subagent"}}
	message := item("m1", queue.Message, chela.OriginPerson, func(it *queue.Item) { it.Inbound.Address = at })
	event := item("e1", queue.Event, chela.OriginProcess,
		func(it *queue.Item) { it.Inbound.Address, it.Root = chela.Address{}, "r0" })
	deliver := func(d run.Delivery) queue.Item {
		it := message
		it.Overrides = run.Overrides{Deliver: d, Lane: "cron"}
		return it
	}
	base := run.Run{
		Session: key, SessionID: "s1", Agent: "main", Kind: run.Turn, Lane: "subagent", State: run.Running,
		Principal: chela.Owner("test"), Attempts: 1,
	}
	for _, c := range []struct {
		name  string
		items []queue.Item
		want  func(*run.Run)
	}{
		{"a message", []queue.Item{message}, func(r *run.Run) { r.ID, r.Origin, r.Address = "m1", message.Origin, at }},
		{"an event and a message", []queue.Item{event, message},
			func(r *run.Run) { r.ID, r.Origin, r.Address = "m1", message.Origin, at }},
		{"an event", []queue.Item{event},
			func(r *run.Run) { r.ID, r.Origin, r.Root, r.Address = "e1", event.Origin, "r0", last }},
		{"an event with an address",
			[]queue.Item{item("e2", queue.Event, chela.OriginProcess, func(it *queue.Item) { it.Inbound.Address = at })},
			func(r *run.Run) {
				r.ID, r.Origin, r.Address = "e2", chela.Origin{Kind: chela.OriginProcess, ID: "e2"}, at
			}},
		{"compaction", []queue.Item{item("c1", queue.Compact, chela.OriginPerson)}, func(r *run.Run) {
			r.ID, r.Kind, r.Origin, r.Address = "c1", run.Compact, chela.Origin{Kind: chela.OriginPerson, ID: "c1"},
				chela.Address{Channel: chela.LocalChannel}
		}},
		{"delivery to the last address", []queue.Item{deliver(run.Delivery{Mode: run.DeliverTo, Last: true})},
			func(r *run.Run) {
				r.ID, r.Origin, r.Address, r.Lane = "m1", message.Origin, last, "cron"
				r.Overrides = run.Overrides{Deliver: run.Delivery{Mode: run.DeliverTo, Last: true}, Lane: "cron"}
			}},
		{"no delivery", []queue.Item{deliver(run.Delivery{Mode: run.DeliverNowhere})}, func(r *run.Run) {
			r.ID, r.Origin, r.Lane = "m1", message.Origin, "cron"
			r.Overrides = run.Overrides{Deliver: run.Delivery{Mode: run.DeliverNowhere}, Lane: "cron"}
		}},
	} {
		want := base
		c.want(&want)
		if diff := cmp.Diff(want, runner.Draft(m, c.items, session.SendAlways)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
