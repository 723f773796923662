package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
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
	"github.com/chela-ai/chela/internal/core/usage"
)

func TestTurn(t *testing.T) {
	t.Run("LOOP-01 one message, one model call, one reply", func(t *testing.T) {
		model := llmtest.NewScript(llmtest.Say("hello"))
		h := newHarness(t, model).open()
		r := h.ask("m1", "hi")
		if r.State != run.OK || r.Text != "hello" {
			t.Errorf("run ended %s with %q (%s)", r.State, r.Text, r.Error)
		}
		if n := len(model.Requests()); n != 1 {
			t.Errorf("%d model calls", n)
		}
		if diff := cmp.Diff([]string{"user: hi", "assistant: hello"}, h.lines()); diff != "" {
			t.Errorf("transcript: %s", diff)
		}
		if ends := h.seen(chela.StreamLifecycle, chela.PhaseEnd); len(ends) != 1 || ends[0].End.Text != "hello" {
			t.Errorf("ends: %+v", ends)
		}
	})
	t.Run("LOOP-11 NO_REPLY is not delivered and stays in the transcript", func(t *testing.T) {
		h := newHarness(t, llmtest.NewScript(llmtest.Say("no_reply"))).open()
		if r := h.ask("m1", "hi"); r.State != run.OK || r.Text != "" || !r.Silent {
			t.Errorf("run %s, text %q, silent %v", r.State, r.Text, r.Silent)
		}
		if diff := cmp.Diff([]string{"user: hi", "assistant: no_reply"}, h.lines()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("LOOP-20 NO_REPLY inside a sentence is delivered", func(t *testing.T) {
		h := newHarness(t, llmtest.NewScript(llmtest.Say("say NO_REPLY to be silent"))).open()
		if r := h.ask("m1", "hi"); r.Text != "say NO_REPLY to be silent" || r.Silent {
			t.Errorf("text %q, silent %v", r.Text, r.Silent)
		}
	})
	for out, want := range map[string]string{
		"disk on fire\nand more":                         "⚠️ The model gave no answer after bad failed: disk on fire and more",
		`{"error":"disk on fire","status":"error"}`:      "⚠️ The model gave no answer after bad failed: disk on fire",
		`{"error":{"code":5,"message":"disk\non fire"}}`: "⚠️ The model gave no answer after bad failed: disk on fire",
		`{"status":"error"}`:                             "⚠️ The model gave no answer after bad failed",
		"[exit 1] disk on fire":                          "⚠️ The model gave no answer after bad failed: [exit 1] disk on fire",
	} {
		t.Run("LOOP-12 a tool fails and the model says nothing: one short line without JSON for "+out, func(t *testing.T) {
			bad := newTool("bad", tool.Reads, func(context.Context, tool.Call) (tool.Result, error) {
				return tool.Result{Content: []llm.Part{llm.Text(out)}, IsError: true}, nil
			})
			model := llmtest.NewScript(llmtest.Call("c1", "bad", `{}`), llmtest.Step{}, llmtest.Step{}, llmtest.Say("ok"))
			h := newHarness(t, model, bad).open()
			if r := h.ask("m1", "hi"); r.Text != want {
				t.Errorf("text %q (%s %s)", r.Text, r.State, r.Error)
			}
			h.ask("m2", "again")
			if ms := model.Requests()[3].Messages; !session.IsFailed(ms[len(ms)-2]) {
				t.Errorf("the next request does not say that the first one was not completed: %q", ms[len(ms)-2].PlainText())
			}
		})
	}
	t.Run("a model that says nothing is reported without the name of an error", func(t *testing.T) {
		h := newHarness(t, llmtest.NewScript(llmtest.Step{}, llmtest.Step{})).open()
		if r := h.ask("m1", "hi"); r.State != run.Failed || r.Error != "the model answered with nothing" {
			t.Errorf("%s %q", r.State, r.Error)
		}
	})
	t.Run("the details of a result are cut at their limit, and say so", func(t *testing.T) {
		for size, cut := range map[int]bool{session.MaxDetails - 100: false, session.MaxDetails + 100: true} {
			big := newTool("big", tool.Reads, func(context.Context, tool.Call) (tool.Result, error) {
				return tool.Detailed("ok", map[string]string{"x": strings.Repeat("y", size)}), nil
			})
			h := newHarness(t, asksOnce("big"), big).open()
			h.ask("m1", "use it")
			for _, e := range h.entries() {
				if e.Message == nil || e.Message.Role != llm.RoleTool {
					continue
				}
				if e.Cut != cut || len(e.Details) > session.MaxDetails || len(e.Details) < 100 {
					t.Errorf("%d bytes: %d stored, cut %v, want %v", size, len(e.Details), e.Cut, cut)
				}
			}
		}
	})
	t.Run("USAGE-02 cost in the entry, the session and the sum; USAGE-05 context is the last prompt; USAGE-07 footer",
		func(t *testing.T) {
			u := llm.Usage{Input: 1000, Output: 100}
			last := llm.Usage{Input: 500, Output: 10, CacheRead: 700}
			call := llmtest.Call("c1", "look", `{}`)
			call.Usage = &u
			say := llmtest.Say("done")
			say.Usage = &last
			h := newHarness(t, llmtest.NewScript(call, say), newTool("look", tool.Reads, nil))
			h.p.Model.Price = &llm.Price{Input: 3, Output: 15}
			h.p.Usage = "tokens"
			h.open()
			r := h.ask("m1", "hi")
			h.view(func(rd store.Reader) error {
				m, err := rd.Sessions().Get(key)
				if err != nil {
					return err
				}
				if m.Context != last.Prompt() {
					t.Errorf("context %d, want %d", m.Context, last.Prompt())
				}
				es, err := rd.Sessions().Entries(m.ID, 0, 0)
				if err != nil {
					return err
				}
				if got := es[1].NanoUSD; got != 4_500_000 {
					t.Errorf("first call cost %d nano-dollars, want 0.0045 $", got)
				}
				sums, err := rd.Usage().Sums(usage.Query{Session: key})
				if total := usage.Total(sums...); total.NanoUSD != m.NanoUSD || total.Tokens != u.Add(last) {
					t.Errorf("sum %+v, session %d", total, m.NanoUSD)
				}
				return err
			})
			if r.Footer == "" || strings.Contains(r.Footer, "\n") || r.Footer != usage.Footer("tokens", u.Add(last), 0, false) &&
				!strings.Contains(r.Footer, usage.Tokens(u.Add(last))) {
				t.Errorf("footer %q", r.Footer)
			}
		})
	for _, tt := range []struct {
		name          string
		before, after *llm.Price
		nano          int64
		priced        bool
	}{
		{"both have a price", &llm.Price{Input: 3, Output: 15}, &llm.Price{Input: 1, Output: 2}, 4_500_000 + 520_000, true},
		{"only the first has a price", &llm.Price{Input: 3, Output: 15}, nil, 4_500_000, false},
		{"only the second has a price", nil, &llm.Price{Input: 1, Output: 2}, 520_000, false},
	} {
		t.Run("USAGE-07 of a call before a restart and one after it "+tt.name, func(t *testing.T) {
			first, second := llm.Usage{Input: 1000, Output: 100}, llm.Usage{Input: 500, Output: 10}
			call, say := llmtest.Call("c1", "act", `{}`), llmtest.Say("done")
			call.Usage, say.Usage = &first, &second
			h := newHarness(t, llmtest.NewScript(call, say), mustAsk("act"))
			h.p.Usage, h.p.Model.Price = "full", tt.before
			h.open()
			id := h.send("m1", "use it")
			q := h.pending()
			h.suspended()
			h.stop()
			h.p.Model.Price = tt.after
			h.open()
			h.decide(q.ID, "allow-once")
			if r, want := h.wait(id), usage.Footer("full", first.Add(second), tt.nano, tt.priced); r.Footer != want {
				t.Errorf("footer %q, want %q", r.Footer, want)
			}
			h.until("the end of the run", func() bool { return len(h.seen(chela.StreamLifecycle, chela.PhaseEnd)) > 0 })
			if e := h.seen(chela.StreamLifecycle, chela.PhaseEnd)[0].End; e.NanoUSD != tt.nano || e.HasPrice != tt.priced ||
				e.Input != 1500 || e.Output != 110 || e.Footer == "" {
				t.Errorf("end %+v", e)
			}
			h.view(func(rd store.Reader) error {
				m, err := rd.Sessions().Get(key)
				if m.NanoUSD != tt.nano || m.Priced != tt.priced || m.Calls != 2 || m.Tokens != first.Add(second) {
					t.Errorf("session: %d nano-dollars, priced %v, %d calls, %+v", m.NanoUSD, m.Priced, m.Calls, m.Tokens)
				}
				return err
			})
		})
	}
	t.Run("USAGE-03 no price, no dollar sign", func(t *testing.T) {
		h := newHarness(t, llmtest.NewScript(llmtest.Say("ok")))
		h.p.Usage = "full"
		h.open()
		if r := h.ask("m1", "hi"); r.Footer == "" || strings.Contains(r.Footer, "$") {
			t.Errorf("footer %q", r.Footer)
		}
	})
	t.Run("USAGE-04 off in the session overrides the default", func(t *testing.T) {
		h := newHarness(t, llmtest.NewScript(llmtest.Say("ok"), llmtest.Say("ok")))
		h.p.Usage = "full"
		h.open()
		h.ask("m1", "hi")
		h.change(func(m *session.Meta) { m.Usage = "off" })
		if r := h.ask("m2", "hi"); r.Footer != "" {
			t.Errorf("footer %q", r.Footer)
		}
	})
	t.Run("SESS-09 the last 20 of 25 system events reach the next prompt, once", func(t *testing.T) {
		model := llmtest.NewScript(llmtest.Say("ok"), llmtest.Say("ok"))
		h := newHarness(t, model).open()
		for i := range 25 {
			h.notify(fmt.Sprintf("event %02d.", i))
		}
		h.ask("m1", "hi")
		h.ask("m2", "again")
		first := model.Requests()[0].Messages[0].PlainText()
		if strings.Contains(first, "event 04.") || !strings.Contains(first, "event 05.") ||
			!strings.Contains(first, "event 24.") {
			t.Errorf("prompt %q", first)
		}
		if n := strings.Count(strings.Join(h.lines(), "\n"), "event 24."); n != 1 {
			t.Errorf("the event is in the transcript %d times", n)
		}
	})
}

// change changes the main session's record.
func (h *harness) change(f func(*session.Meta)) {
	h.t.Helper()
	err := h.st.Update(h.t.Context(), store.Ordered, func(tx store.Tx) error {
		m, err := tx.Sessions().Get(key)
		if err != nil {
			return err
		}
		f(&m)
		return tx.Sessions().Put(m)
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

func TestStop(t *testing.T) {
	t.Run("LOOP-07 a stop closes the stream, starts no further tool, and leaves no dangling call", func(t *testing.T) {
		begun := make(chan struct{})
		slow := newTool("slow", tool.Acts, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			close(begun)
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		})
		after := newTool("after", tool.Acts, nil)
		model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			if n == 0 {
				return llmtest.Calls(llmtest.ToolCall("c1", "slow", `{}`), llmtest.ToolCall("c2", "after", `{}`))
			}
			return llmtest.Say("fine")
		})
		h := newHarness(t, model, slow, after).open()
		id := h.send("m1", "go")
		<-begun
		if ids, err := h.con.Abort(t.Context(), key, ""); err != nil || !slices.Contains(ids, id) {
			t.Fatalf("abort: %v %v", ids, err)
		}
		r := h.wait(id)
		if r.State != run.Aborted {
			t.Errorf("run is %s", r.State)
		}
		if after.count() != 0 {
			t.Error("a tool was started after the stop")
		}
		ends := len(h.seen(chela.StreamLifecycle, chela.PhaseEnd)) + len(h.seen(chela.StreamLifecycle, chela.PhaseError))
		if ends != 1 {
			t.Errorf("%d ends", ends)
		}
		// The script's provider refuses lists with a dangling call.
		if r := h.ask("m2", "and now?"); r.Text != "fine" {
			t.Errorf("next turn: %q %s", r.Text, r.Error)
		}
	})
	for after, want := range map[string]run.State{"60": run.OK, "61": run.Failed, "31536000": run.Failed} {
		t.Run("a provider that asks for a pause of "+after+" s", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limited := llmtest.Status(429, "slow down")
				limited.Fault.RetryAfter = after
				model := llmtest.NewScript(limited, llmtest.Say("ok"))
				h := newHarness(t, model).open()
				begun := time.Now()
				id := h.send("m1", "hi")
				time.Sleep(2 * time.Minute) // it ends within that
				r := h.wait(id)
				if r.State != want || (want == run.OK) != (r.Ended.Sub(begun) >= time.Minute) ||
					want == run.Failed && !strings.Contains(r.Error, "try again in") {
					t.Errorf("run is %s after %v: %q", r.State, r.Ended.Sub(begun), r.Error)
				}
				h.stop()
			})
		})
	}
	t.Run("LOOP-08 a silent model, a time limit: the run ends with a message and the lane is free", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			model := llmtest.NewScript(llmtest.Step{Fault: llmtest.Fault{Hang: llmtest.HangHeaders}}, llmtest.Say("ok"))
			h := newHarness(t, model)
			h.p.Timeout = time.Second
			h.open()
			r := h.ask("m1", "hi")
			if r.State != run.TimedOut || !strings.Contains(r.Error, "1s") {
				t.Errorf("run is %s: %q", r.State, r.Error)
			}
			if r := h.ask("m2", "hi"); r.Text != "ok" {
				t.Errorf("next turn: %s %q", r.State, r.Error)
			}
			h.stop()
		})
	})
	t.Run("a partial answer is stored after a stop", func(t *testing.T) {
		model := llmtest.NewScript(llmtest.Step{
			Parts: []llm.Part{llm.Text("one two three four five six seven eight nine ten")}, Chunk: 8, Gap: time.Hour,
		})
		h := newHarness(t, model).open()
		id := h.send("m1", "count")
		h.until("the first words", func() bool { return len(h.seen(chela.StreamAssistant, "")) > 0 })
		if _, err := h.con.Abort(t.Context(), key, id); err != nil {
			t.Fatal(err)
		}
		h.wait(id)
		if ls := h.lines(); len(ls) < 2 || !strings.HasPrefix(ls[1], "assistant: one two") {
			t.Errorf("transcript %q", ls)
		}
	})
	t.Run("LOOP-19 a stop with the id of a queued message removes only that one", func(t *testing.T) {
		asked, free := make(chan struct{}), make(chan struct{})
		model := llmtest.ScriptFunc(func(n int, _ *llm.Request) llmtest.Step {
			if n == 0 {
				close(asked)
				<-free
			}
			return llmtest.Say("answer")
		})
		h := newHarness(t, model).open()
		first := h.send("m1", "one", mode("followup"))
		<-asked
		h.send("m2", "two", mode("followup"))
		third := h.send("m3", "three", mode("followup"))
		if ids, err := h.con.Abort(t.Context(), key, "m2"); err != nil || !slices.Equal(ids, []chela.RunID{"m2"}) {
			t.Errorf("abort: %v %v", ids, err)
		}
		close(free)
		if r := h.wait(first); r.State != run.OK {
			t.Errorf("first is %s", r.State)
		}
		h.wait(third)
		if all := strings.Join(h.lines(), "\n"); strings.Contains(all, "two") || !strings.Contains(all, "three") {
			t.Errorf("transcript %s", all)
		}
	})
}

func TestFailures(t *testing.T) {
	t.Run("an overloaded service is asked again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			model := llmtest.NewScript(llmtest.Status(529, "overloaded"), llmtest.Status(500, "oops"), llmtest.Say("ok"))
			h := newHarness(t, model).open()
			if r := h.ask("m1", "hi"); r.Text != "ok" {
				t.Errorf("%s: %q", r.State, r.Error)
			}
			h.stop()
		})
	})
	t.Run("a service that stays overloaded is asked as often as the run may", func(t *testing.T) {
		for limit, want := range map[int]int{0: 4, 1: 1, 3: 3, 9: 4} {
			synctest.Test(t, func(t *testing.T) {
				model := llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step { return llmtest.Status(529, "overloaded") })
				h := newHarness(t, model)
				h.p.MaxAttempts = limit
				h.open()
				if r := h.ask("m1", "hi"); len(model.Requests()) != want || r.State != run.Failed ||
					!strings.Contains(r.Error, "overloaded; try again") {
					t.Errorf("at most %d attempts: asked %d times, want %d: %s %q", limit, len(model.Requests()),
						want, r.State, r.Error)
				}
				h.stop()
			})
		}
	})
	t.Run("a refused key gives one error with a command to type", func(t *testing.T) {
		h := newHarness(t, llmtest.NewScript(llmtest.Status(401, "invalid x-api-key"))).open()
		r := h.ask("m1", "hi")
		if r.State != run.Failed || !strings.Contains(r.Error, "chela config set") {
			t.Errorf("%s: %q", r.State, r.Error)
		}
		if n := len(h.seen(chela.StreamLifecycle, chela.PhaseError)); n != 1 {
			t.Errorf("%d errors", n)
		}
	})
	t.Run("an error is one line that shows what it says", func(t *testing.T) {
		// the last ones change the direction of the text
		const hidden = "\t\x01\x7f\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u2069"
		h := newHarness(t, llmtest.NewScript(llmtest.Status(400, "no\nsuch"+hidden+" field “ünï” – 字"))).open()
		if r, want := h.ask("m1", "hi"), "refused the request: no such field “ünï” – 字"; r.State != run.Failed ||
			!strings.HasSuffix(r.Error, want) {
			t.Errorf("%s: %q, want %q at the end", r.State, r.Error, want)
		}
	})
	t.Run("an overflow cuts whole turns, publishes a notice, and asks again", func(t *testing.T) {
		model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			if len(r.Messages) > 5 {
				return llmtest.Status(400, "prompt is too long")
			}
			return llmtest.Say("fits")
		})
		h := newHarness(t, model).open()
		for i := range 6 {
			if r := h.ask(fmt.Sprint("m", i), fmt.Sprint("message ", i)); r.Text != "fits" {
				t.Fatalf("turn %d: %s %q", i, r.State, r.Error)
			}
		}
		if n := len(h.seen(chela.StreamNotice, "")); n == 0 {
			t.Error("no notice")
		}
		all := strings.Join(h.lines(), "\n")
		for i := range 6 {
			if strings.Count(all, fmt.Sprint("user: message ", i)) != 1 {
				t.Errorf("message %d is not in the transcript once:\n%s", i, all)
			}
		}
	})
	t.Run("a panic in the model ends the run, not the process", func(t *testing.T) {
		h := newHarness(t, llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			if n == 0 {
				panic("boom")
			}
			return llmtest.Say("ok")
		})).open()
		if r := h.ask("m1", "hi"); r.State != run.Failed {
			t.Errorf("run is %s", r.State)
		}
		if r := h.ask("m2", "hi"); r.Text != "ok" {
			t.Errorf("next turn: %s %q", r.State, r.Error)
		}
	})
}

func TestBusy(t *testing.T) {
	// busy starts a run that waits in the tool "hold" until release is called.
	busy := func(t *testing.T, m string) (h *harness, release func()) {
		t.Helper()
		begun, free := make(chan struct{}, 8), make(chan struct{})
		hold := newTool("hold", tool.Acts, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			begun <- struct{}{}
			select {
			case <-free:
				return tool.Text("held"), nil
			case <-ctx.Done():
				return tool.Result{}, ctx.Err()
			}
		})
		model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
			last := r.Messages[len(r.Messages)-1]
			if last.PlainText() == "begin" {
				return llmtest.Calls(llmtest.ToolCall("c1", "hold", `{}`), llmtest.ToolCall("c2", "next", `{}`))
			}
			return llmtest.Say("re: " + last.PlainText())
		})
		h = newHarness(t, model, hold, newTool("next", tool.Acts, nil))
		h.q = queue.Policy{Mode: queue.Mode(m)}
		h.open()
		h.send("m0", "begin")
		<-begun
		return h, func() { close(free) }
	}
	idle := func(h *harness) {
		h.until("everything is answered", func() bool { return !h.con.Live(key) && len(h.waiting()) == 0 })
	}
	t.Run("STEER-01 a steer between two sequential calls", func(t *testing.T) {
		h, release := busy(t, "steer")
		h.send("m1", "smaller please")
		release()
		h.wait("m0")
		var got []string
		es := h.entries()
		for _, m := range session.Compile(es) {
			got = append(got, line(session.Entry{Kind: session.KindMessage, Message: m}))
		}
		want := []string{
			"user: begin", "assistant: <hold><next>", "toolResult: held",
			"toolResult: Skipped due to queued user message.", "user: smaller please", "assistant: re: smaller please",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("LANE-03 collect: three messages are one further turn, in order", func(t *testing.T) {
		h, release := busy(t, "collect")
		for i := 1; i <= 3; i++ {
			h.send(fmt.Sprint("m", i), fmt.Sprint("more ", i))
		}
		release()
		h.wait("m3")
		idle(h)
		ls := h.lines()
		want := []string{"user: more 1", "user: more 2", "user: more 3", "assistant: re: more 3"}
		if diff := cmp.Diff(want, ls[len(ls)-4:]); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("LANE-04 followup: three turns", func(t *testing.T) {
		h, release := busy(t, "followup")
		for i := 1; i <= 3; i++ {
			h.send(fmt.Sprint("m", i), fmt.Sprint("more ", i))
		}
		release()
		for i := 1; i <= 3; i++ {
			if r := h.wait(chela.RunID(fmt.Sprint("m", i))); r.Text != fmt.Sprint("re: more ", i) {
				t.Errorf("turn %d: %q", i, r.Text)
			}
		}
	})
	t.Run("LANE-05 interrupt: the running turn ends, the newest runs", func(t *testing.T) {
		h, _ := busy(t, "interrupt")
		h.send("m1", "forget it")
		if r := h.wait("m1"); r.Text != "re: forget it" {
			t.Errorf("answer %q %s", r.Text, r.Error)
		}
		if r := h.wait("m0"); r.State != run.Superseded {
			t.Errorf("the first run is %s", r.State)
		}
	})
	t.Run("LANE-06 cap 2, five messages, summarize: a turn of 2 and a list of 3", func(t *testing.T) {
		h, release := busy(t, "collect")
		h.change(func(m *session.Meta) { m.Queue.Cap, m.Queue.Drop = 2, "summarize" })
		for i := 1; i <= 5; i++ {
			h.send(fmt.Sprint("m", i), fmt.Sprint("more ", i))
		}
		release()
		h.wait("m5")
		idle(h)
		ls := h.lines()
		tail := ls[len(ls)-4:]
		if !slices.Equal(tail[1:3], []string{"user: more 4", "user: more 5"}) ||
			!strings.Contains(tail[0], "more 1") || !strings.Contains(tail[0], "more 3") {
			t.Errorf("tail %q", tail)
		}
	})
	t.Run("LANE-07 the same message twice is one turn", func(t *testing.T) {
		h, release := busy(t, "followup")
		release()
		h.wait("m0")
		h.send("m1", "again")
		h.send("m1", "again")
		h.wait("m1")
		idle(h)
		h.send("m1", "again")
		idle(h)
		if n := strings.Count(strings.Join(h.lines(), "\n"), "user: again"); n != 1 {
			t.Errorf("%d times in the transcript", n)
		}
	})
	t.Run("STEER-05 a steer during the last model call becomes the next turn", func(t *testing.T) {
		asked, free := make(chan struct{}), make(chan struct{})
		model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			if n == 0 {
				close(asked)
				<-free
			}
			return llmtest.Say("re: " + r.Messages[len(r.Messages)-1].PlainText())
		})
		h := newHarness(t, model)
		h.q.Mode = queue.Steer
		h.open()
		h.send("m0", "begin")
		<-asked
		h.send("m1", "one more thing")
		close(free)
		if r := h.wait("m1"); r.Text != "re: one more thing" || r.ID != "m1" {
			t.Errorf("run %s: %q", r.ID, r.Text)
		}
	})
	t.Run("LANE-02 never two runs of a session at once", func(t *testing.T) {
		live := make(chan struct{}, 1)
		model := llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step {
			select {
			case live <- struct{}{}:
			default:
				t.Error("two runs at once")
			}
			time.Sleep(time.Millisecond / 4)
			<-live
			return llmtest.Say("ok")
		})
		h := newHarness(t, model)
		h.q.Cap = 1000
		h.open()
		for i := range 100 {
			h.send(fmt.Sprint("m", i), fmt.Sprint("message ", i), mode([]string{"followup", "collect", "steer"}[i%3]))
		}
		idle(h)
		all := strings.Join(h.lines(), "\n") + "\n"
		for i := range 100 {
			if n := strings.Count(all, fmt.Sprintf("user: message %d\n", i)); n != 1 {
				t.Errorf("message %d is in the transcript %d times", i, n)
			}
		}
	})
}

func TestEvents(t *testing.T) {
	h := newHarness(t, llmtest.NewScript(llmtest.Call("c1", "look", `{}`), llmtest.Say("done")),
		newTool("look", tool.Reads, nil)).open()
	h.ask("m1", "hi")
	h.mu.Lock()
	defer h.mu.Unlock()
	t.Run("EVT-01 numbers rise by one", func(t *testing.T) {
		want := int64(1)
		for _, e := range h.events {
			if e.Seq == 0 {
				continue
			}
			if e.Seq != want {
				t.Errorf("%s %s has number %d, want %d", e.Stream, e.Phase, e.Seq, want)
			}
			want++
		}
	})
	t.Run("EVT-04 EVT-05 one start and one end around the tool's start and result", func(t *testing.T) {
		var got []string
		for _, e := range h.events {
			if e.Stream == chela.StreamLifecycle || e.Stream == chela.StreamTool {
				s := string(e.Stream) + " " + string(e.Phase)
				if e.Tool != nil {
					s += " " + e.Tool.ID
				}
				got = append(got, s)
			}
		}
		want := []string{"lifecycle start", "lifecycle model", "tool start c1", "tool result c1",
			"lifecycle model", "lifecycle end"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// TestWakeAtTheEnd sends a message after the commit that ends a run, when the
// session has nothing left to do and is about to be released.
func TestWakeAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, asksOnce("act"))
		h.at("run.ended", func() {
			h.send("m2", "again")
			synctest.Wait() // the wake has arrived
		})
		h.open()
		defer h.stop()
		begin := time.Now()
		h.ask("m1", "hello")
		if r := h.ask("m2", "again"); r.Text != "heard: again" || time.Since(begin) > time.Second {
			t.Errorf("answer %q (%s) after %v", r.Text, r.Error, time.Since(begin))
		}
	})
}
