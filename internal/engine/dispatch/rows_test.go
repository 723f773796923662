package dispatch_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/lease"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
)

// row returns a stored run.
func (h *harness) row(id chela.RunID) (r run.Run) {
	h.t.Helper()
	h.view(func(rd store.Reader) (err error) { r, err = rd.Runs().Get(id); return err })
	return r
}

// meta returns the main session's record.
func (h *harness) meta() (m session.Meta) {
	h.t.Helper()
	h.view(func(rd store.Reader) (err error) { m, err = rd.Sessions().Get(key); return err })
	return m
}

// TestEntriesOfItems checks what the transcript says about the items that a run
// answers.
func TestEntriesOfItems(t *testing.T) {
	t.Parallel()
	h := newHarness(t, asksOnce("none")).open()
	at := chela.Address{Channel: "telegram", Peer: chela.Peer{Kind: chela.Direct, ID: "7"}}
	sent := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	process := chela.Origin{Kind: chela.OriginProcess, ID: "p1", Address: chela.Address{Channel: "discord"}}
	h.put(
		item("e1", queue.Event, "", func(it *queue.Item) {
			it.Origin, it.Inbound.Text, it.Inbound.Address, it.Skipped = process, "it ended", at, 3
		}),
		item("e2", queue.Event, "", func(it *queue.Item) { it.Origin = chela.Origin{} }),
		item("m1", queue.Message, chela.OriginPerson, func(it *queue.Item) {
			it.Inbound.Address, it.Inbound.Sender, it.Inbound.Time = at, chela.Sender{ID: "7", Name: "Ann"}, sent
		}),
		item("m2", queue.Message, chela.OriginPerson),
	)
	h.runOf("m1")
	h.runOf("m2")
	type entry struct {
		Text, Item string
		Origin     chela.Origin
		Sender     chela.Sender
	}
	got := map[string]entry{}
	for _, e := range h.entries() {
		if e.Message != nil && e.Message.Role == "user" {
			got[e.Message.PlainText()] = entry{e.Message.PlainText(), e.ItemID, e.Origin, e.Sender}
			if e.ItemID == "m1" && !e.Time.Equal(sent) {
				t.Errorf("the message is of %v, want %v", e.Time, sent)
			}
		}
	}
	want := map[string]entry{}
	for _, e := range []entry{
		{"[System] (3 events before this were dropped.) it ended", "", process, chela.Sender{}},
		{"[System] e2", "", chela.Origin{Kind: chela.OriginSystem}, chela.Sender{}},
		{"m1", "m1", chela.Origin{Kind: chela.OriginPerson, ID: "m1", Address: at}, chela.Sender{ID: "7", Name: "Ann"}},
		{"m2", "m2", chela.Origin{Kind: chela.OriginPerson, ID: "m2"}, chela.Sender{}},
	} {
		want[e.Text] = e
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSuspendedRows checks the rows of runs that wait: they hold no lease and no
// answer.
func TestSuspendedRows(t *testing.T) {
	t.Parallel()
	check := func(h *harness, id chela.RunID, waits run.Waits) {
		h.t.Helper()
		h.suspended()
		r := h.row(id)
		if r.State != run.Suspended || r.Waits != waits || r.Text+r.Footer != "" || r.Silent || !r.Ended.IsZero() {
			h.t.Errorf("run: %+v", r)
		}
		h.view(func(rd store.Reader) error {
			l, err := rd.Leases().Get(lease.Session(key))
			if l.Owner != "" {
				h.t.Errorf("the lease belongs to %q", l.Owner)
			}
			return err
		})
	}
	t.Run("for an approval", func(t *testing.T) {
		t.Parallel()
		h, _, id, _ := asks(t)
		check(h, id, run.WaitsApproval)
	})
	for _, answer := range []string{"first", run.NoReply} {
		t.Run("for a command after "+answer, func(t *testing.T) {
			t.Parallel()
			h, _ := starts(t, answer, func() {})
			h.p.Usage = "tokens"
			h.open()
			h.put(item("job", queue.Message, chela.OriginCron))
			check(h, "job", run.WaitsChildren)
		})
	}
	t.Run("a failed run does not wait for its command", func(t *testing.T) {
		t.Parallel()
		h, _ := starts(t, "first", func() { panic("boom") })
		h.open()
		h.put(item("job", queue.Message, chela.OriginCron))
		if r := h.wait("job"); r.State != run.Failed {
			t.Errorf("run is %s: %q", r.State, r.Text)
		}
	})
}

// TestReplacedCalls has a message replace a run with a call that waits for a
// decision and one that has not started.
func TestReplacedCalls(t *testing.T) {
	t.Parallel()
	h := newHarness(t, llmtest.NewScript(
		llmtest.Calls(llmtest.ToolCall("c1", "act", `{}`), llmtest.ToolCall("c2", "other", `{}`)), llmtest.Say("hi"),
	), mustAsk("act"), newTool("other", tool.Acts, nil)).open()
	h.send("m1", "use it")
	h.pending()
	h.suspended()
	h.ask("m2", "hello")
	failed := map[string]bool{}
	for _, e := range h.entries() {
		if e.Message != nil && e.Message.CallID != "" {
			failed[e.Message.CallID] = e.Message.IsError
		}
	}
	if diff := cmp.Diff(map[string]bool{"c1": false, "c2": true}, failed); diff != "" {
		t.Errorf("results that are errors (-want +got):\n%s", diff)
	}
	h.view(func(rd store.Reader) error {
		open, err := rd.Calls().Open("m1")
		if len(open) != 1 || open[0].Wire.ID != "c1" || !open[0].Detached {
			t.Errorf("open calls: %+v", open)
		}
		return err
	})
}

// TestSessionAtEnd checks what the end of a run leaves in its session.
func TestSessionAtEnd(t *testing.T) {
	t.Parallel()
	h := newHarness(t, asksOnce("none")).open()
	h.ask("m1", "hi")
	h.change(func(m *session.Meta) { m.Aborted, m.Interrupted, m.Answered = true, "m0", time.Time{} })
	h.put(item("job", queue.Message, chela.OriginCron))
	if r := h.wait("job"); r.Replaces != "" {
		t.Errorf("a job replaces the interrupted run %s", r.Replaces)
	}
	if m := h.meta(); m.Aborted || m.Answered.IsZero() || m.Interrupted != "m0" {
		t.Errorf("session after a job: %+v", m)
	}
	h.put(item("cut", queue.Compact, chela.OriginPerson))
	if r := h.wait("cut"); r.Replaces != "" {
		t.Errorf("a compaction replaces the interrupted run %s", r.Replaces)
	}
	if r := h.ask("m2", "hi"); r.Replaces != "m0" || h.meta().Interrupted != "" {
		t.Errorf("a message replaces %q, and %q is left", r.Replaces, h.meta().Interrupted)
	}
}

// TestModelErrorAfterTool has a model fail after a tool failed: its error is told.
func TestModelErrorAfterTool(t *testing.T) {
	t.Parallel()
	h := newHarness(t, llmtest.NewScript(llmtest.Call("c1", "none", `{}`),
		llmtest.Status(401, "invalid x-api-key"))).open()
	if r := h.ask("m1", "hi"); r.State != run.Failed || !strings.Contains(r.Error, "refused the key") || r.Text != "" {
		t.Errorf("run is %s: %q %s", r.State, r.Text, r.Error)
	}
}

// TestStoppedCall stops a run while its tool acts: what it did is not known.
func TestStoppedCall(t *testing.T) {
	t.Parallel()
	model, hold, begun, release := holds()
	defer release()
	h := newHarness(t, model, hold).open()
	h.send("m1", "hold")
	<-begun
	h.stopAll()
	h.wait("m1")
	if lines := strings.Join(h.lines(), "\n"); !strings.Contains(lines, "outcome is unknown") {
		t.Error(lines)
	}
}
