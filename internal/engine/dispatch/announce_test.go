package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
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

// announce returns the result of a child of the tree with the root.
func announce(root chela.RunID) queue.Item {
	return item("announce", queue.Event, chela.OriginSubagent, func(it *queue.Item) { it.Root = root })
}

// echoes is a model that answers with the last message.
func echoes() *llmtest.Script {
	return llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
		return llmtest.Say("re: " + r.Messages[len(r.Messages)-1].PlainText())
	})
}

// openFunc is the Open of children, which do nothing else.
type openFunc struct {
	runner.NoChildren
	open func(store.Tx, run.Run) (bool, error)
}

func (f openFunc) Open(tx store.Tx, r run.Run) (bool, error) { return f.open(tx, r) }

// untilTaken is the Open of children: a job has one until the announcement was taken.
func untilTaken(tx store.Tx, r run.Run) (bool, error) {
	if r.ID != "job" {
		return false, nil
	}
	it, err := tx.Queue().Get("announce")
	return err != nil || it.Run == "", nil
}

// waits checks that the announcement stays in the queue, and that the run is still
// in the state.
func (h *harness) waits(id chela.RunID, state run.State) {
	h.t.Helper()
	synctest.Wait()
	h.view(func(r store.Reader) error {
		it, err := r.Queue().Get("announce")
		if err != nil {
			return err
		}
		row, err := r.Runs().Get(id)
		if it.State != queue.Waiting || row.State != state {
			h.t.Errorf("the announcement is %s in run %q, run %s is %s", it.State, it.Run, id, row.State)
		}
		return err
	})
}

// TestAnnounce puts the result of a child into sessions in every state.
func TestAnnounce(t *testing.T) {
	t.Parallel()
	on := func(name string, f func(t *testing.T, st store.Store)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { f(t, power.New(t).Open(t)) })
		})
	}
	// end stops an engine before the bubble ends.
	end := func(hs ...*harness) {
		for _, h := range hs {
			h.stop()
		}
	}
	for _, mode := range []queue.Mode{queue.Steer, queue.Collect} {
		on("a live run in mode "+string(mode), func(t *testing.T, st store.Store) {
			model, hold, begun, release := holds()
			h := newHarness(t, model, hold)
			h.q.Mode = mode
			h.startOn(st)
			defer end(h)
			h.send("hold", "hold")
			<-begun
			h.put(announce("hold"))
			h.waits("hold", run.Running)
			release()
			r := h.runOf("announce")
			if (r.ID == "hold") != (mode == queue.Steer) || r.State != run.OK {
				t.Errorf("taken by run %s, which is %s", r.ID, r.State)
			}
		})
	}
	on("an idle session", func(t *testing.T, st store.Store) {
		h := newHarness(t, echoes()).startOn(st)
		defer end(h)
		h.put(announce(""))
		if r := h.runOf("announce"); r.ID != "announce" || r.Text != "re: [System] announce" {
			t.Errorf("run %s: %q", r.ID, r.Text)
		}
	})
	on("a run that waits for an approval", func(t *testing.T, st store.Store) {
		h := newHarness(t, asksOnce("act"), mustAsk("act")).startOn(st)
		defer end(h)
		id := h.send("m1", "use it")
		h.suspended()
		h.put(announce(id))
		h.waits(id, run.Suspended)
		h.decide(h.pending().ID, "allow-once")
		if r := h.wait(id); r.Text != "got: ran act" {
			t.Errorf("the suspended run is %s: %q", r.State, r.Text)
		}
		if r := h.runOf("announce"); r.ID != "announce" {
			t.Errorf("taken by run %s", r.ID)
		}
	})
	on("a run that waits for children resumes and ends once, after a restart", func(t *testing.T, st store.Store) {
		h := newHarness(t, echoes())
		h.observeEnds()
		h.children = openFunc{open: untilTaken}
		h.startOn(st)
		h.put(item("job", queue.Message, chela.OriginCron))
		h.suspended()
		h.put(item("other", queue.Event, chela.OriginProcess))
		h.stop()
		h.startOn(st)
		defer end(h)
		h.put(announce("job"))
		r := h.wait("job")
		if r.State != run.OK || r.Text != "re: [System] announce" || r.Waits != "" {
			t.Errorf("run is %s: %q", r.State, r.Text)
		}
		if got := h.ends("job"); got != "+ok" {
			t.Errorf("ends %q", got)
		}
	})
	on("a message supersedes a run that waits for children", func(t *testing.T, st store.Store) {
		h := newHarness(t, echoes())
		h.observeEnds()
		h.children = openFunc{open: untilTaken}
		h.startOn(st)
		defer end(h)
		h.put(item("job", queue.Message, chela.OriginCron))
		h.suspended()
		h.put(item("beat", queue.Message, chela.OriginHeartbeat))
		synctest.Wait()
		if r := h.ask("m1", "hello"); r.Replaces != "job" {
			t.Errorf("the run replaces %q", r.Replaces)
		}
		if r := h.wait("job"); r.State != run.Superseded || h.ends("job") != "+superseded" {
			t.Errorf("the suspended run is %s, ends %q", r.State, h.ends("job"))
		}
		h.runOf("beat")
	})
	for _, suspended := range []bool{false, true} {
		name := map[bool]string{
			false: "a session that is compacted",
			true:  "a session that is compacted while its run waits for children",
		}[suspended]
		on(name, func(t *testing.T, st store.Store) {
			h := newHarness(t, echoes())
			h.children = openFunc{open: untilTaken}
			var hold atomic.Bool
			compacting, proceed := make(chan struct{}), make(chan struct{})
			h.step = func(point string) {
				if point == "run.end" && hold.CompareAndSwap(true, false) {
					close(compacting)
					<-proceed
				}
			}
			h.startOn(st)
			defer end(h)
			h.ask("m1", "one")
			h.ask("m2", "two")
			if suspended {
				h.put(item("job", queue.Message, chela.OriginCron))
				h.suspended()
			}
			hold.Store(true)
			h.put(item("compact", queue.Compact, chela.OriginPerson))
			<-compacting
			h.put(announce("job"))
			h.waits("compact", run.Running)
			if suspended {
				h.waits("job", run.Suspended)
			}
			close(proceed)
			if r := h.runOf("compact"); r.Kind != run.Compact || r.State != run.OK {
				t.Errorf("run of kind %s is %s: %s", r.Kind, r.State, r.Error)
			}
			want := chela.RunID(map[bool]string{false: "announce", true: "job"}[suspended])
			if r := h.runOf("announce"); r.ID != want || r.State != run.OK || r.Text != "re: [System] announce" {
				t.Errorf("taken by run %s, which is %s: %q %s", r.ID, r.State, r.Text, r.Error)
			}
		})
	}
	on("a run in another process", func(t *testing.T, st store.Store) {
		model, hold, begun, release := holds()
		a := share(t, 1, model, hold).startOn(st)
		b := share(t, 2, echoes())
		b.resolve = func(context.Context, session.Meta, run.Run) { t.Error("the other process resolved a profile") }
		b.startOn(st)
		defer end(a, b)
		a.send("hold", "hold")
		<-begun
		b.put(announce("hold"))
		a.waits("hold", run.Running)
		time.Sleep(3 * ttl) // both processes are alive
		a.waits("hold", run.Running)
		b.stop()
		release()
		if r := a.runOf("announce"); r.ID != "announce" || r.State != run.OK || r.Text != "re: [System] announce" {
			t.Errorf("taken by run %s, which is %s: %q", r.ID, r.State, r.Text)
		}
	})
	on("the child ends in another process, and one process resumes its parent", func(t *testing.T, st store.Store) {
		const child = chela.SessionKey("agent:main:subagent:1")
		model := echoes()
		a, b := share(t, 1, model), share(t, 2, model)
		for _, h := range []*harness{a, b} {
			h.observeEnds()
			h.ended = append(h.ended, func(r run.Run) func(store.Tx) error {
				if r.Session != child {
					return nil
				}
				return func(tx store.Tx) error {
					tx.Wake(store.Topic{Kind: store.TopicQueue, Session: key})
					_, err := tx.Queue().Put(announce(r.Tree()))
					return err
				}
			})
			h.children = openFunc{open: func(tx store.Tx, r run.Run) (bool, error) {
				_, err := tx.Queue().Get("announce") // put in the commit that ends the child
				return r.ID == "job" && err != nil, nil
			}}
		}
		a.startOn(st)
		a.put(item("job", queue.Message, chela.OriginCron))
		a.suspended()
		b.startOn(st)
		defer end(a, b)
		reserved := a.reserved(child) // so that the other process runs the child
		defer reserved.Release(false)
		b.put(item("child", queue.Message, chela.OriginSubagent, func(it *queue.Item) {
			it.Session, it.Parent, it.Root = child, "job", "job"
		}))
		r := b.runOf("job")
		synctest.Wait()
		if r.State != run.OK || r.Text != "re: [System] announce" || a.ends("job") != "+ok" {
			t.Errorf("run is %s: %q, ends %q", r.State, r.Text, a.ends("job"))
		}
		if n := len(model.Requests()); n != 3 { // of the parent, of the child, of the parent again
			t.Errorf("%d model calls", n)
		}
		answers := slices.DeleteFunc(a.lines(), func(l string) bool { return !strings.HasPrefix(l, "assistant: ") })
		if diff := cmp.Diff([]string{"assistant: re: job", "assistant: re: [System] announce"}, answers); diff != "" {
			t.Error(diff)
		}
		if n := len(a.seen(chela.StreamLifecycle, chela.PhaseResume)) +
			len(b.seen(chela.StreamLifecycle, chela.PhaseResume)); n != 1 {
			t.Errorf("resumed %d times", n)
		}
	})
}

// ends returns what observeEnds recorded about a run.
func (h *harness) ends(id chela.RunID) (got string) {
	h.t.Helper()
	h.view(func(r store.Reader) (err error) { got, err = r.Setting("ended:" + string(id)); return err })
	return got
}

// TestBounds starts and continues the runs of a child session in every way. No
// tool outside of its bounds is offered or run.
func TestBounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		do    func(h *harness, look *fakeTool) run.Run
		calls int // of the model
	}{
		{"its first run", func(h *harness, _ *fakeTool) run.Run {
			h.put(item("m1", queue.Message, chela.OriginSubagent))
			return h.runOf("m1")
		}, 3},
		{"a grandchild's announcement", func(h *harness, _ *fakeTool) run.Run {
			h.put(announce(""))
			return h.runOf("announce")
		}, 3},
		{"a message of a person", func(h *harness, _ *fakeTool) run.Run { return h.ask("m1", "hi") }, 3},
		{"a message that steers", func(h *harness, look *fakeTool) run.Run {
			h.q.Mode = queue.Steer
			look.run = func(_ context.Context, c tool.Call) (tool.Result, error) {
				if look.count() == 1 {
					h.send("m2", "and this")
				}
				return tool.Text("looked"), nil
			}
			h.send("m1", "hi")
			return h.wait("m1")
		}, 4},
		{"a restart", func(h *harness, _ *fakeTool) run.Run {
			h.stop()
			h.crashAt("tool.end", 1, func() { h.send("m1", "hi") })
			return h.wait("m1")
		}, 3},
		{"a fresh transcript", func(h *harness, _ *fakeTool) run.Run {
			h.put(item("m1", queue.Message, chela.OriginSubagent, func(it *queue.Item) {
				it.Overrides.Context = run.ContextFresh
			}))
			return h.runOf("m1")
		}, 3},
		{"overrides that allow it", func(h *harness, _ *fakeTool) run.Run {
			h.put(item("m1", queue.Message, chela.OriginSubagent, func(it *queue.Item) {
				it.Overrides.Tools.Allow = []string{"look", "exec"}
			}))
			return h.runOf("m1")
		}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
				switch last := r.Messages[len(r.Messages)-1]; {
				case last.Role != llm.RoleTool:
					return llmtest.Call(fmt.Sprint("c", n), "look", `{}`)
				case last.ToolName == "look":
					return llmtest.Call(fmt.Sprint("c", n), "exec", `{}`)
				}
				return llmtest.Say("done")
			})
			look, exec := newTool("look", tool.Reads, nil), newTool("exec", tool.Acts, nil)
			h := newHarness(t, model, look, exec).open()
			err := h.st.Update(t.Context(), store.Synced, func(tx store.Tx) error {
				return tx.Sessions().Put(session.Meta{Key: key, ID: "t1", Agent: "main",
					Bounds: session.Bounds{}.Narrow("agent:main:parent", run.Tools{Deny: []string{"exec"}})})
			})
			if err != nil {
				t.Fatal(err)
			}
			if r := c.do(h, look); r.State != run.OK || r.Text != "done" {
				t.Errorf("run is %s: %q %s", r.State, r.Text, r.Error)
			}
			for i, r := range model.Requests() {
				if len(r.Tools) != 1 || r.Tools[0].Name != "look" {
					t.Errorf("call %d of the model offers %d tools", i+1, len(r.Tools))
				}
			}
			if n := len(model.Requests()); n != c.calls || exec.count() != 0 {
				t.Errorf("%d calls of the model, want %d; exec ran %d times", n, c.calls, exec.count())
			}
		})
	}
}
