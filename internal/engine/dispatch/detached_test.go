package dispatch_test

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/chela-ai/chela/internal/engine/dispatch"
)

// starts returns a harness, not opened, whose model starts a background command and then answers
// with what it was told last. resolve ends the command. last is called in the model
// call of the answer.
func starts(t *testing.T, answer string, last func()) (h *harness, resolve func(text string)) {
	t.Helper()
	var end func(context.Context, string, queue.Result) error
	command := newTool("command", tool.Acts, func(ctx context.Context, c tool.Call) (_ tool.Result, err error) {
		end, err = dispatch.Defer(h.st, "boot1", strings.TrimSpace, func(queue.Item) {})(ctx, c, "the process died")
		return tool.Text("started"), err
	})
	h = newHarness(t, llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
		switch text := r.Messages[len(r.Messages)-1].PlainText(); {
		case n == 0:
			return llmtest.Call("c1", "command", `{}`)
		case text == "started":
			last()
			return llmtest.Say(answer)
		default:
			return llmtest.Say("re: " + text)
		}
	}), command)
	h.observeEnds()
	return h, func(text string) {
		t.Helper()
		if err := end(t.Context(), text, queue.Result{Outcome: chela.OutcomeOK, Ended: time.Now()}); err != nil {
			t.Error(err)
		}
	}
}

// TestWaitsForCommands ends runs that started a background command.
func TestWaitsForCommands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		origin chela.OriginKind
		answer string
		during string // how the command ends during the last model call; "": it does not
		then   func(h *harness, resolve func(string))
		want   string // the result of the run
		calls  int    // of the model
	}{
		{"it ends", chela.OriginCron, "first", "", func(h *harness, resolve func(string)) {
			h.suspended()
			resolve("done")
		}, "re: [System] done", 3},
		{"it ends without an event", chela.OriginWebhook, "first", "", func(h *harness, resolve func(string)) {
			h.suspended()
			resolve("")
		}, "first", 2},
		{"it ends without an event, after notices and a message that is not of the run", chela.OriginCron, "first", "",
			func(h *harness, resolve func(string)) {
				h.suspended()
				others := []*session.Entry{{Kind: session.KindMessage, Message: &llm.Message{Role: llm.RoleAssistant,
					Parts: []llm.Part{llm.Text("the lamp is on")}}}}
				for range 20 {
					others = append(others, &session.Entry{Kind: session.KindNotice, Text: "a notice"})
				}
				err := h.st.Update(h.t.Context(), store.Synced, func(tx store.Tx) error {
					m, err := tx.Sessions().Get(key)
					for i, e := range others {
						e.ID = fmt.Sprint("other", i)
					}
					return errors.Join(err, tx.Sessions().Append(m.ID, others...))
				})
				if err != nil {
					h.t.Error(err)
				}
				resolve("")
			}, "first", 3},
		{"it ends without an event after a silent answer", chela.OriginCron, run.NoReply, "",
			func(h *harness, resolve func(string)) {
				h.suspended()
				resolve("")
			}, "", 2},
		{"it ends while nobody listens", chela.OriginCron, "first", "", func(h *harness, resolve func(string)) {
			h.suspended()
			h.stop()
			h.open()
		}, "re: [System] the process died", 3},
		{"it ends before the run", chela.OriginCron, "first", "done", func(*harness, func(string)) {},
			"re: [System] done", 3},
		{"a person's run does not wait", chela.OriginPerson, "first", "", func(*harness, func(string)) {}, "first", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var h *harness
			var resolve func(string)
			h, resolve = starts(t, c.answer, func() {
				if c.during != "" {
					resolve(c.during)
				}
			})
			h.open()
			job := item("job", queue.Message, c.origin)
			if c.origin == chela.OriginWebhook { // otherwise nobody is owed the result
				job.Overrides.Deliver.Mode = run.DeliverMain
			}
			h.put(job)
			c.then(h, resolve)
			r := h.wait("job")
			if r.State != run.OK || r.Text != c.want || r.Waits != "" || r.Silent != (c.answer == run.NoReply) {
				t.Errorf("run is %s: %q, silent %t", r.State, r.Text, r.Silent)
			}
			if got, _ := store.Get(t.Context(), h.st,
				func(rd store.Reader) (string, error) { return rd.Setting("ended:job") }); got != "+ok" {
				t.Errorf("ends %q", got)
			}
			if n := strings.Count(strings.Join(h.lines(), "\n"), "assistant: "); n != c.calls {
				t.Errorf("%d answers of the model, want %d:\n%s", n, c.calls, strings.Join(h.lines(), "\n"))
			}
			h.until("nothing waits", func() bool { return len(h.waiting()) == 0 && !h.con.Live(key) })
		})
	}
	t.Run("the process is killed before it stores that the run waits", func(t *testing.T) {
		t.Parallel()
		h, _ := starts(t, "first", func() {})
		h.crashAt("run.end", 1, func() { h.put(item("job", queue.Message, chela.OriginCron)) })
		if r := h.wait("job"); r.State != run.OK || r.Text != "re: [System] the process died" {
			t.Errorf("run is %s: %q", r.State, r.Text)
		}
	})
	t.Run("a stopped run is not resumed", func(t *testing.T) {
		t.Parallel()
		h, resolve := starts(t, "first", func() {})
		h.open()
		h.put(item("job", queue.Message, chela.OriginCron))
		h.suspended()
		if _, err := h.con.Abort(t.Context(), key, "job"); err != nil {
			t.Fatal(err)
		}
		resolve("")
		if r := h.wait("job"); r.State != run.Aborted {
			t.Errorf("run is %s: %q", r.State, r.Text)
		}
		if len(h.waiting()) != 0 {
			t.Errorf("waiting: %+v", h.waiting())
		}
	})
}
