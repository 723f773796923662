package chelatest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

func TestLoop(t *testing.T) {
	t.Run("LOOP-01 one message, one model call, one reply", func(t *testing.T) {
		model := llmtest.NewScript(llmtest.Say("hello"))
		c := Start(t, Options{Model: model}).Client()
		end := c.Ask("main", "hi")
		if end.State != wire.StateFinal || end.Text != "hello" {
			t.Errorf("%s %q %s", end.State, end.Text, end.Error)
		}
		if n := len(model.Requests()); n != 1 {
			t.Errorf("%d model calls", n)
		}
		if diff := cmp.Diff([]string{"user: hi", "assistant: hello"}, c.lines("main")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("LOOP-02 the second request contains the call and its result with the same id", func(t *testing.T) {
		model := llmtest.NewScript(llmtest.Call("c1", "write", `{"path":"a.txt","content":"alpha"}`), llmtest.Say("written"))
		c := Start(t, Options{Model: model}).Client()
		if end := c.Ask("main", "write"); end.Text != "written" {
			t.Fatalf("%s %q %s", end.State, end.Text, end.Error)
		}
		ms := model.Requests()[1].Messages
		call, res := ms[len(ms)-2].Calls(), ms[len(ms)-1]
		if len(call) != 1 || call[0].ID != "c1" || string(call[0].Args) != `{"path":"a.txt","content":"alpha"}` {
			t.Errorf("calls %+v", call)
		}
		if res.Role != llm.RoleTool || res.CallID != "c1" || res.IsError {
			t.Errorf("result %+v", res)
		}
	})
	t.Run("LOOP-03 three results keep the order of their calls", func(t *testing.T) {
		model := llmtest.NewScript(llmtest.Calls(
			llmtest.ToolCall("c1", "exec", `{"command":"sleep 0.1; echo one"}`),
			llmtest.ToolCall("c2", "ls", `{}`),
			llmtest.ToolCall("c3", "read", `{"path":"none"}`),
		), llmtest.Say("done"))
		c := Start(t, Options{Model: model, Config: full()}).Client()
		if end := c.Ask("main", "go"); end.Text != "done" {
			t.Fatalf("%s %q %s", end.State, end.Text, end.Error)
		}
		var ids []string
		for _, m := range model.Requests()[1].Messages {
			if m.Role == llm.RoleTool {
				ids = append(ids, m.CallID)
			}
		}
		if diff := cmp.Diff([]string{"c1", "c2", "c3"}, ids); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("LOOP-04 after ten rounds a call without tools ends the run", func(t *testing.T) {
		model := llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
			if len(r.Tools) == 0 {
				return llmtest.Say("that is all")
			}
			return llmtest.Call(fmt.Sprint("c", n), "grep", fmt.Sprintf(`{"pattern":"p%d"}`, n))
		})
		c := Start(t, Options{Model: model, Config: section("agents.defaults", `{"maxToolRounds": 10}`)}).Client()
		end := c.Ask("main", "for ever")
		if end.Text != "that is all" || len(model.Requests()) != 11 {
			t.Errorf("%q after %d calls: %s", end.Text, len(model.Requests()), end.Error)
		}
	})
	t.Run("LOOP-07 a stop by command closes the stream and leaves no call without a result", loop07)
	t.Run("LOOP-08 a silent service and a time limit: an error message, and the lane is free", loop08)
	t.Run("LOOP-11 NO_REPLY is an empty final event and no client sees the token", func(t *testing.T) {
		s := llmtest.Say("NO_REPLY")
		s.Chunk = 3
		c := Start(t, Options{Model: llmtest.NewScript(s)}).Client()
		end := c.Ask("main", "psst")
		if end.State != wire.StateFinal || final(t, end).Message != nil {
			t.Errorf("%s with %q", end.State, end.Text)
		}
		for _, ev := range end.Seen {
			if b := string(ev.Payload); strings.Contains(b, "NO") && strings.Contains(b, `"text":"NO`) ||
				strings.Contains(b, `"deltaText"`) {
				t.Errorf("event %s: %s", ev.Name, b)
			}
		}
		if ls := c.lines("main"); len(ls) != 1 {
			t.Errorf("a client shows %q", ls)
		}
		var kept wire.SessionExported
		c.must(wire.MethodSessionsExport, wire.SessionKey{Key: "main"}, &kept)
		if !strings.Contains(kept.JSONL, `"NO_REPLY"`) {
			t.Errorf("the transcript does not contain it:\n%s", kept.JSONL)
		}
	})
	t.Run("LOOP-20 NO_REPLY inside a sentence is ordinary text", func(t *testing.T) {
		const words = "say NO_REPLY to be silent"
		c := Start(t, Options{Model: llmtest.NewScript(llmtest.Say(words))}).Client()
		end := c.Ask("main", "how?")
		if deltas, all := text(end.Seen, end.Run); deltas != words || all != words {
			t.Errorf("deltas %q, final %q", deltas, all)
		}
	})
}

func loop07(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		talk := llmtest.Step{Parts: []llm.Part{llm.Text("one two three four five six")}, Chunk: 4, Gap: time.Minute}
		model := llmtest.NewScript(llmtest.Calls(
			llmtest.ToolCall("c1", "ls", `{}`), llmtest.ToolCall("c2", "write", `{"path":"x","content":"x"}`),
		), talk, llmtest.Say("fine"))
		g := Start(t, Options{Model: model})
		c := g.Client()
		run := c.Send("main", "talk")
		time.Sleep(2 * time.Minute)
		at := time.Now()
		stop := c.Ask("main", "/stop")
		if !isCommand(final(t, stop)) || !strings.Contains(stop.Text, "Stopped") {
			t.Errorf("answer %q", stop.Text)
		}
		end := c.Await(run)
		if end.State != wire.StateAborted || time.Since(at) > time.Second {
			t.Errorf("%s after %s", end.State, time.Since(at))
		}
		if !strings.HasPrefix(end.Text, "one") {
			t.Errorf("the streamed text is lost: %q", end.Text)
		}
		s := traceOf(t, append(stop.Seen, end.Seen...), run)
		next := c.Ask("main", "and now?") // the script rejects calls without a result
		s.lifecycle = append(s.lifecycle, traceOf(t, next.Seen, run).lifecycle...)
		if next.Text != "fine" || s.ends() != 1 {
			t.Errorf("next %q %s, %d ends", next.Text, next.Error, s.ends())
		}
		c.Close()
		g.Stop()
	})
}

func loop08(t *testing.T) {
	for _, w := range []llmtest.Wire{llmtest.Anthropic, llmtest.OpenAI} {
		synctest.Test(t, func(t *testing.T) {
			srv := llmtest.NewServer(t, w, llmtest.Step{Fault: llmtest.Fault{Hang: llmtest.HangHeaders}}, llmtest.Say("ok"))
			url, hc := srv.Pipe()
			conf := modelConfig(w, url)
			conf["agents.defaults"] = json.RawMessage(`{"model": "mock/m", "timeoutSeconds": 1}`)
			g := Start(t, Options{HTTP: hc, Config: conf})
			c := g.Client()
			at := time.Now()
			end := c.Ask("main", "hi")
			if took := time.Since(at); end.State != wire.StateError || took < time.Second || took > 2*time.Second {
				t.Errorf("%s: %s after %s", w, end.State, took)
			}
			if chat := final(t, end); chat.ErrorKind != "timeout" || !strings.Contains(chat.ErrorMessage, "1s") {
				t.Errorf("%s: %q of kind %q", w, chat.ErrorMessage, chat.ErrorKind)
			}
			if end := c.Ask("main", "again"); end.Text != "ok" {
				t.Errorf("%s: next %s %q", w, end.State, end.Error)
			}
			c.Close()
			g.Stop()
			srv.Close()
		})
	}
}

func TestEvents(t *testing.T) {
	t.Run("EVT-01 sequence numbers increase in two concurrent runs, and a connection misses none", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			model := llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
				if last := r.Messages[len(r.Messages)-1]; last.Role == llm.RoleTool {
					return llmtest.Step{Parts: []llm.Part{llm.Text("word by word by word")}, Chunk: 5, Gap: 100 * time.Millisecond}
				}
				s := llmtest.Call("c1", "ls", `{}`)
				s.Delay = 50 * time.Millisecond
				return s
			})
			g := Start(t, Options{Model: model})
			c := g.Client()
			a, b := c.Send("a", "talk"), c.Send("b", "talk")
			interleaved(t, c.awaitAll(a, b), a, b)
			c.Close()
			g.Stop()
		})
	})
	t.Run("EVT-04 start, update and result of a call arrive in order, with the same id", func(t *testing.T) {
		model := llmtest.NewScript(llmtest.Call("c9", "exec", `{"command":"echo first; sleep 0.3; echo second"}`),
			llmtest.Say("ok"))
		c := Start(t, Options{Model: model, Config: full()}).Client()
		end := c.Ask("main", "go")
		got := traceOf(t, end.Seen, end.Run).tools
		if len(got) < 3 || got[0].Phase != wire.PhaseStart || got[len(got)-1].Phase != wire.PhaseResult {
			t.Fatalf("steps %+v", got)
		}
		var shown string
		for i, s := range got {
			if s.CallID != "c9" || s.Name != "exec" {
				t.Errorf("step %d is of %s %s", i, s.Name, s.CallID)
			}
			if i > 0 && i < len(got)-1 {
				if s.Phase != wire.PhaseUpdate || s.Partial == nil {
					t.Errorf("step %d: %+v", i, s)
					continue
				}
				shown += wire.Message{Content: s.Partial.Content}.Text()
			}
		}
		last := got[len(got)-1]
		if !strings.HasPrefix(shown, "first") || last.IsError ||
			!strings.Contains(wire.Message{Content: last.Result.Content}.Text(), "second") {
			t.Errorf("shown %q, result %+v", shown, last)
		}
	})
	t.Run("EVT-05 one start and one end in all cases", func(t *testing.T) {
		model := llmtest.NewScript(llmtest.Call("c1", "ls", `{}`), llmtest.Say("ok"), llmtest.Status(401, "no"))
		c := Start(t, Options{Model: model}).Client()
		for _, want := range []string{wire.PhaseEnd, wire.PhaseError} {
			end := c.Ask("main", "go")
			got := traceOf(t, end.Seen, end.Run)
			starts := 0
			for _, l := range got.lifecycle {
				if l.Phase == wire.PhaseStart {
					starts++
				}
			}
			if last := got.lifecycle[len(got.lifecycle)-1]; starts != 1 || got.ends() != 1 || last.Phase != want {
				t.Errorf("%d starts, %d ends, last %s, want %s", starts, got.ends(), last.Phase, want)
			}
		}
	})
}

// interleaved checks the sequence numbers of two concurrent runs.
func interleaved(t *testing.T, seen []wire.Event, a, b string) {
	t.Helper()
	last := map[string]int64{}
	var order []string
	var frame int64
	for _, ev := range seen {
		if ev.Seq > 0 {
			if frame > 0 && ev.Seq != frame+1 {
				t.Errorf("frame %d follows %d", ev.Seq, frame)
			}
			frame = ev.Seq
		}
		var e struct {
			RunID string `json:"runId"`
			Seq   int64  `json:"seq"`
			State string `json:"state"`
		}
		if ev.Name != wire.EventAgent && ev.Name != wire.EventChat || ev.Decode(&e) != nil {
			continue
		}
		if last[e.RunID] == 0 && e.Seq != 1 {
			t.Errorf("run %s starts with %d", e.RunID, e.Seq)
		}
		// A chat event has the number of the step that it shows.
		if e.Seq < last[e.RunID] || e.Seq == last[e.RunID] && ev.Name == wire.EventAgent {
			t.Errorf("run %s: %s %d after %d", e.RunID, ev.Name, e.Seq, last[e.RunID])
		}
		last[e.RunID] = e.Seq
		if n := len(order); n == 0 || order[n-1] != e.RunID {
			order = append(order, e.RunID)
		}
	}
	if last[a] < 5 || last[b] < 5 || len(order) < 4 {
		t.Errorf("the runs were not concurrent: up to %d and %d, %d changes", last[a], last[b], len(order))
	}
}
