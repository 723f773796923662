package chat_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/surface/method/methodtest"
	"github.com/chela-ai/chela/wire"
)

const key = chela.SessionKey("agent:main:main")

func TestSend(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chela.db")
	msg := wire.ChatSend{SessionKey: "main", Message: "hello", IdempotencyKey: "k1"}
	t.Run("accepted, answered, and repeated", func(t *testing.T) {
		h := methodtest.Open(t, path, llmtest.NewScript(llmtest.Say("Hello yourself")))
		sent := methodtest.Do[wire.ChatSent](t, h, wire.MethodChatSend, msg)
		if diff := cmp.Diff(wire.ChatSent{RunID: "k1", Status: wire.StatusStarted}, sent); diff != "" {
			t.Error(diff)
		}
		end := h.End("k1")
		if end.State != wire.StateFinal || end.Message.Text() != "Hello yourself" {
			t.Errorf("ended with %+v", end)
		}
		again := methodtest.Do[wire.ChatSent](t, h, wire.MethodChatSend, msg)
		if diff := cmp.Diff(wire.ChatSent{RunID: "k1", Status: wire.StatusOK}, again); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("repeated after a restart", func(t *testing.T) {
		h := methodtest.Open(t, path, llmtest.NewScript())
		again := methodtest.Do[wire.ChatSent](t, h, wire.MethodChatSend, msg)
		if diff := cmp.Diff(wire.ChatSent{RunID: "k1", Status: wire.StatusOK}, again); diff != "" {
			t.Error(diff)
		}
	})
}

func TestSendWhileItRuns(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript(
		llmtest.Step{Parts: []llm.Part{llm.Text("A long answer")}, Fault: llmtest.Fault{Hang: llmtest.HangMiddle}, Chunk: 4},
		llmtest.Say("woken"),
	))
	msg := wire.ChatSend{SessionKey: "main", Message: "hello", IdempotencyKey: "k1"}
	methodtest.Do[wire.ChatSent](t, h, wire.MethodChatSend, msg)
	for e := range h.Events() { // until the first text
		if e.Name == wire.EventChat {
			break
		}
	}
	again := methodtest.Do[wire.ChatSent](t, h, wire.MethodChatSend, msg)
	if again.Status != wire.StatusInFlight {
		t.Errorf("status %q, want %q", again.Status, wire.StatusInFlight)
	}
	waiting := methodtest.Do[wire.ChatSent](t, h, wire.MethodChatSend,
		wire.ChatSend{SessionKey: "main", Message: "later", IdempotencyKey: "k2", QueueMode: "followup"})
	if waiting.Status != wire.StatusStarted {
		t.Errorf("a queued message: status %q, want %q", waiting.Status, wire.StatusStarted)
	}

	methodtest.Do[wire.OK](t, h, wire.MethodWake,
		wire.Wake{Mode: wire.WakeNow, Text: "an event, which is not a queued message"})

	hist := methodtest.Do[wire.History](t, h, wire.MethodChatHistory, wire.ChatHistory{SessionKey: "main"})
	if hist.InFlight == nil || hist.InFlight.RunID != "k1" || !strings.HasPrefix("A long answer", hist.InFlight.Text) {
		t.Errorf("in flight: %+v", hist.InFlight)
	}
	if hist.Pending.Total != 1 || hist.Pending.Items[0].RunID != "k2" || hist.Pending.Items[0].Message.Text() != "later" {
		t.Errorf("pending: %+v", hist.Pending)
	}
	if row := hist.Info; row == nil || !row.Active || fmt.Sprint(row.Runs) != "[k1]" || row.Queued != 1 {
		t.Errorf("session: %+v", row)
	}

	got := methodtest.Do[wire.ChatAborted](t, h, wire.MethodChatAbort, wire.ChatAbort{SessionKey: "main"})
	if !got.Aborted || len(got.RunIDs) != 2 {
		t.Errorf("abort: %+v, want both", got)
	}
	states := map[string]string{}
	for len(states) < 3 {
		e := <-h.Events()
		var c wire.Chat
		if e.Name == wire.EventChat && e.Decode(&c) == nil && c.State != wire.StateDelta {
			name, _, _ := strings.Cut(c.RunID, ":")
			states[name] = c.State
		}
	}
	if diff := cmp.Diff(map[string]string{"k1": wire.StateAborted, "k2": wire.StateFinal, "heartbeat": wire.StateFinal},
		states); diff != "" {
		t.Error(diff)
	}
	idle := methodtest.Do[wire.ChatAborted](t, h, wire.MethodChatAbort, wire.ChatAbort{SessionKey: "main"})
	if diff := cmp.Diff(wire.ChatAborted{OK: true, RunIDs: []string{}}, idle); diff != "" {
		t.Errorf("abort without a run:\n%s", diff)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	for _, tc := range []struct {
		method string
		params any
		want   string
	}{
		{wire.MethodChatSend, wire.ChatSend{SessionKey: "main", Message: "x"},
			"invalid chat.send params: at /idempotencyKey: must NOT have fewer than 1 characters"},
		{wire.MethodChatSend, wire.ChatSend{SessionKey: "agent:nope:main", Message: "x", IdempotencyKey: "k"},
			`invalid chat.send params: unknown agent id "nope"`},
		{wire.MethodChatSend, wire.ChatSend{SessionKey: "a b", Message: "x", IdempotencyKey: "k"},
			`invalid chat.send params: session key "a b": blanks and control characters are not allowed`},
		{wire.MethodChatSend, wire.ChatSend{SessionKey: "main", Message: "  ", IdempotencyKey: "k"},
			"message: neither text nor attachment"},
		{wire.MethodAgent, wire.AgentRun{AgentID: "nope", Message: "x", IdempotencyKey: "k"},
			`invalid agent params: unknown agent id "nope"`},
		{wire.MethodChatSend, wire.ChatSend{SessionKey: "main", Message: "x", IdempotencyKey: "k", Thinking: "xhigh"},
			`invalid chat.send params: at /thinking: "xhigh" is not a level of mock/m1; use one of off, high`},
		{wire.MethodAgent, wire.AgentRun{Message: "x", IdempotencyKey: "k", Thinking: "xhigh"},
			`invalid agent params: at /thinking: "xhigh" is not a level of mock/m1; use one of off, high`},
		{wire.MethodAgent, wire.AgentRun{Message: "x", IdempotencyKey: "k", Thinking: "loud"},
			`invalid agent params: at /thinking: "loud" is not a level of mock/m1; use one of off, high`},
		{wire.MethodAgent, map[string]any{"message": "x", "idempotencyKey": "k", "timeout": -1},
			"invalid agent params: at /timeout: must be >= 0"},
		{wire.MethodChatHistory, map[string]any{"sessionKey": "main", "maxChars": 0},
			"invalid chat.history params: at /maxChars: must be >= 1"},
		{wire.MethodChatHistory, map[string]any{"sessionKey": "main", "offset": nil},
			"invalid chat.history params: at /offset: must be integer"},
		{wire.MethodChatHistory, map[string]any{"sessionKey": "main", "limit": -1},
			"invalid chat.history params: at /limit: must be >= 1"},
	} {
		err := h.Call(t.Context(), tc.method, tc.params, nil)
		we, ok := errors.AsType[*wire.Error](err)
		if !ok || we.Code != wire.InvalidRequest || we.Message != tc.want {
			t.Errorf("%s %+v: %v, want %s", tc.method, tc.params, err, tc.want)
		}
	}
}

// TestStopReasonOfLimit asks for a run that had reached a limit before.
func TestStopReasonOfLimit(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	err := h.Store.Update(t.Context(), store.Ordered, func(tx store.Tx) error {
		return tx.Runs().Put(run.Run{ID: "a3", State: run.Failed, Failure: run.Limit, Error: "too many calls"})
	})
	if err != nil {
		t.Fatal(err)
	}
	limited := methodtest.Do[wire.AgentWaited](t, h, wire.MethodAgentWait, wire.AgentWait{RunID: "a3"})
	if limited.Status != wire.StatusError || limited.Stop != wire.StopLimit {
		t.Errorf("agent.wait for a run that reached a limit: %+v", limited)
	}
}

// TestStopReason asks for a run after others have added to its transcript.
func TestStopReason(t *testing.T) {
	t.Parallel()
	steps := []llmtest.Step{{Parts: []llm.Part{llm.Text("half a")}, Stop: llm.StopLength}}
	for range 12 {
		steps = append(steps, llmtest.Say("fine"))
	}
	h := methodtest.New(t, llmtest.NewScript(steps...))
	for i := range steps {
		id := fmt.Sprint("k", i)
		methodtest.Do[wire.ChatSent](t, h, wire.MethodChatSend,
			wire.ChatSend{SessionKey: "main", Message: id, IdempotencyKey: id})
		h.End(id)
	}
	for id, want := range map[string]string{"k0": "length", "k1": "stop", "k12": "stop"} {
		if got := methodtest.Do[wire.AgentWaited](t, h, wire.MethodAgentWait, wire.AgentWait{RunID: id}); got.Status !=
			wire.StatusOK || got.Stop != want {
			t.Errorf("agent.wait of %s: %s with stopReason %q, want %q", id, got.Status, got.Stop, want)
		}
	}
	var again wire.AgentResult
	if err := h.Call(t.Context(), wire.MethodAgent, wire.AgentRun{Message: "k0", IdempotencyKey: "k0"}, &again); err !=
		nil || again.Result.Meta.Stop != "length" {
		t.Errorf("the repeated request: %+v, %v; want the stopReason length", again, err)
	}
}

func TestAgent(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript(
		llmtest.Say("Hello yourself"),
		llmtest.Status(400, "no such thing"),
	))
	run := wire.AgentRun{Message: "hello", IdempotencyKey: "a1"}
	var accepted wire.Accepted
	var res wire.AgentResult
	if err := h.Await(t.Context(), wire.MethodAgent, run, func(a wire.Accepted) { accepted = a }, &res); err != nil {
		t.Fatal(err)
	}
	if accepted.RunID != "a1" || accepted.SessionKey != string(key) || accepted.AgentID != "main" {
		t.Errorf("accepted %+v", accepted)
	}
	if res.Status != wire.StatusOK || len(res.Result.Payloads) != 1 || res.Result.Payloads[0].Text != "Hello yourself" {
		t.Errorf("result %+v", res)
	}
	meta := res.Result.Meta.Agent
	if meta.Provider != "mock" || meta.Model != "m1" || meta.Usage.Output == 0 ||
		meta.Usage.Cost == nil || meta.SessionID == "" {
		t.Errorf("the result's model is %+v", meta)
	}

	var again wire.AgentResult
	if err := h.Call(t.Context(), wire.MethodAgent, run, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(res, again); diff != "" {
		t.Errorf("the same key gets another result:\n%s", diff)
	}

	waited := methodtest.Do[wire.AgentWaited](t, h, wire.MethodAgentWait,
		wire.AgentWait{RunID: "a1", TimeoutMs: waittest.Limit.Milliseconds()})
	if waited.Status != wire.StatusOK || waited.Reply == nil || waited.Reply.Text != "Hello yourself" ||
		waited.EndedAt == 0 {
		t.Errorf("agent.wait: %+v", waited)
	}
	unknown := methodtest.Do[wire.AgentWaited](t, h, wire.MethodAgentWait, wire.AgentWait{RunID: "nope", TimeoutMs: 10})
	if unknown.Status != wire.StatusTimeout {
		t.Errorf("agent.wait for an unknown run: %+v", unknown)
	}

	err := h.Await(t.Context(), wire.MethodAgent, wire.AgentRun{Message: "again", IdempotencyKey: "a2"}, nil, &res)
	if we, ok := errors.AsType[*wire.Error](err); !ok || we.Code != wire.Unavailable ||
		!strings.Contains(we.Message, "no such thing") {
		t.Errorf("agent with a failed run: %v", err)
	}
	failed := methodtest.Do[wire.AgentWaited](t, h, wire.MethodAgentWait,
		wire.AgentWait{RunID: "a2", TimeoutMs: waittest.Limit.Milliseconds()})
	if failed.Status != wire.StatusError || failed.Error == "" || failed.Stop != "" {
		t.Errorf("agent.wait for a failed run: %+v", failed)
	}
}

// late is a model that answers when told to.
func late(answer <-chan struct{}) llm.Provider {
	return llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step {
		<-answer
		return llmtest.Say("Late")
	})
}

func TestAgentWaits(t *testing.T) {
	t.Parallel()
	t.Run("LOOP-05 accepted before the model answers, ok afterwards", func(t *testing.T) {
		t.Parallel()
		answer := make(chan struct{})
		h := methodtest.New(t, late(answer))
		var res wire.AgentResult
		accepted := func(a wire.Accepted) {
			if a.RunID != "a1" || a.AcceptedAt == 0 {
				t.Errorf("accepted %+v", a)
			}
			w := methodtest.Do[wire.AgentWaited](t, h, wire.MethodAgentWait, wire.AgentWait{RunID: "a1", TimeoutMs: 1})
			if w.Status != wire.StatusTimeout {
				t.Errorf("before the model answers: %+v", w)
			}
			close(answer)
		}
		if err := h.Await(t.Context(), wire.MethodAgent, wire.AgentRun{Message: "hello", IdempotencyKey: "a1"},
			accepted, &res); err != nil {
			t.Fatal(err)
		}
		if w := methodtest.Do[wire.AgentWaited](t, h, wire.MethodAgentWait,
			wire.AgentWait{RunID: "a1", TimeoutMs: waittest.Limit.Milliseconds()}); w.Status != wire.StatusOK {
			t.Errorf("afterwards: %+v", w)
		}
	})
	t.Run("LOOP-06 a timeout does not affect the run", func(t *testing.T) {
		t.Parallel()
		answer := make(chan struct{})
		h := methodtest.New(t, late(answer))
		methodtest.Do[wire.ChatSent](t, h, wire.MethodChatSend,
			wire.ChatSend{SessionKey: "main", Message: "hello", IdempotencyKey: "a1"})
		if w := methodtest.Do[wire.AgentWaited](t, h, wire.MethodAgentWait,
			wire.AgentWait{RunID: "a1", TimeoutMs: 50}); w.Status != wire.StatusTimeout {
			t.Errorf("during the run: %+v", w)
		}
		close(answer)
		if end := h.End("a1"); end.State != wire.StateFinal || end.Message.Text() != "Late" {
			t.Errorf("the run ended with %+v", end)
		}
	})
}

func TestReconnect(t *testing.T) {
	t.Parallel()
	t.Run("SEED-06 the history contains the answer so far", func(t *testing.T) {
		t.Parallel()
		const answer = "A long answer that takes its time, because every word of it has to be thought of first."
		h := methodtest.New(t,
			llmtest.NewScript(llmtest.Step{Parts: []llm.Part{llm.Text(answer)}, Chunk: 4, Gap: 20 * time.Millisecond}))
		methodtest.Do[wire.ChatSent](t, h, wire.MethodChatSend,
			wire.ChatSend{SessionKey: "main", Message: "hello", IdempotencyKey: "k1"})
		for e := range h.Events() {
			if e.Name == wire.EventChat { // the first delta
				break
			}
		}
		c := h.Dial(client.Options{})
		defer c.Close()
		hist, err := c.History(t.Context(), "main", 0)
		if err != nil {
			t.Fatal(err)
		}
		f := hist.InFlight
		if f == nil || f.RunID != "k1" || f.Text == "" || !strings.HasPrefix(answer, f.Text) ||
			f.StartedAt == 0 || !hist.Info.Active {
			t.Fatalf("in flight: %+v of %+v", f, hist.Info)
		}
		text := f.Text
		for e := range c.Events() {
			var ev wire.Chat
			if e.Name != wire.EventChat || e.Decode(&ev) != nil || ev.Seq <= f.Seq {
				continue
			}
			if ev.State == wire.StateFinal {
				text = ev.Message.Text()
				break
			}
			if got := ev.Message.Text(); !strings.HasPrefix(got, text) {
				t.Errorf("%q is followed by %q", text, got)
			}
			text = ev.Message.Text()
		}
		if text != answer {
			t.Errorf("got %q, want %q", text, answer)
		}
	})
}

// TestSilentInFlight reads the history while the model says that it says nothing.
func TestSilentInFlight(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript(
		llmtest.Step{Parts: []llm.Part{llm.Text("NO_REPLY" + strings.Repeat(" ", 100))}, Chunk: 8,
			Fault: llmtest.Fault{Hang: llmtest.HangMiddle}}))
	methodtest.Do[wire.ChatSent](t, h, wire.MethodChatSend,
		wire.ChatSend{SessionKey: "main", Message: "hello", IdempotencyKey: "k1"})
	for live := h.Bus.Live(key); len(live) == 0 || !strings.HasPrefix(live[0].Text, "NO_REPLY"); live = h.Bus.Live(key) {
		runtime.Gosched()
	}
	f := methodtest.Do[wire.History](t, h, wire.MethodChatHistory, wire.ChatHistory{SessionKey: "main"}).InFlight
	if f == nil || f.RunID != "k1" || f.Text != "" {
		t.Errorf("in flight: %+v", f)
	}
}

func TestAgentTimeout(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript(llmtest.Step{Fault: llmtest.Fault{Hang: llmtest.HangHeaders}}))
	var res wire.AgentResult
	err := h.Await(t.Context(), wire.MethodAgent, wire.AgentRun{Message: "hello", IdempotencyKey: "a1", Timeout: 1}, nil,
		&res)
	if err != nil || res.Status != wire.StatusTimeout {
		t.Errorf("agent: %+v, %v; want status timeout", res, err)
	}
	begin := time.Now()
	waited := methodtest.Do[wire.AgentWaited](t, h, wire.MethodAgentWait, wire.AgentWait{RunID: "a1", TimeoutMs: 50})
	if waited.Status != wire.StatusTimeout || waited.StartedAt == 0 || time.Since(begin) < 50*time.Millisecond {
		t.Errorf("agent.wait: %+v after %v", waited, time.Since(begin))
	}
}

// fill creates a transcript of n messages.
func fill(h *methodtest.Fixture, n int, each func(i int, e *session.Entry)) {
	h.Put(func(tx store.Tx) error {
		now := time.Now()
		m := session.Meta{Key: key, ID: "t1", Agent: "main", Created: now, Started: now, Updated: now, Title: "talk"}
		if err := tx.Sessions().Put(m); err != nil {
			return err
		}
		for i := range n {
			e := &session.Entry{
				ID: fmt.Sprint("e", i), Kind: session.KindMessage, Time: now, Message: llm.User(fmt.Sprint("m", i)), NanoUSD: -1,
			}
			if each != nil {
				each(i, e)
			}
			if err := tx.Sessions().Append("t1", e); err != nil {
				return err
			}
		}
		return nil
	})
}

func texts(ms []wire.Message) (out []string) {
	for _, m := range ms {
		out = append(out, m.Text())
	}
	return out
}

func TestHistoryPages(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	fill(h, 10, nil)
	for _, tc := range []struct {
		limit, offset int
		want          string
		next          int // 0: last page
	}{
		{0, 0, "[m0 m1 m2 m3 m4 m5 m6 m7 m8 m9]", 0},
		{4, 0, "[m6 m7 m8 m9]", 4},
		{4, 4, "[m2 m3 m4 m5]", 8},
		{4, 8, "[m0 m1]", 0},
		{4, 10, "[]", 0},
		{4, 99, "[]", 0},
	} {
		got := methodtest.Do[wire.History](t, h, wire.MethodChatHistory,
			wire.ChatHistory{SessionKey: "main", Limit: tc.limit, Offset: tc.offset})
		if s := fmt.Sprint(texts(got.Messages)); s != tc.want || got.NextOffset != tc.next ||
			got.HasMore != (tc.next > 0) || got.Total != 10 {
			t.Errorf("limit %d, offset %d: %s, next %d, more %v, of %d; want %s, next %d, of 10",
				tc.limit, tc.offset, s, got.NextOffset, got.HasMore, got.Total, tc.want, tc.next)
		}
	}
}

func TestGet(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	fill(h, 10, nil)
	for _, tt := range []struct {
		in   wire.SessionsGet
		want string
	}{
		{wire.SessionsGet{Key: "main"}, "[m0 m1 m2 m3 m4 m5 m6 m7 m8 m9]"},
		{wire.SessionsGet{SessionKey: "agent:main:main", Limit: 2}, "[m8 m9]"},
		{wire.SessionsGet{Key: "main", AgentID: "main", Limit: -1}, "[m9]"},
		{wire.SessionsGet{Key: "never"}, "[]"},
	} {
		got := methodtest.Do[wire.SessionMessages](t, h, wire.MethodSessionsGet, tt.in)
		if s := fmt.Sprint(texts(got.Messages)); s != tt.want || got.Messages == nil {
			t.Errorf("%+v: %s, want %s", tt.in, s, tt.want)
		}
	}
	if err := h.Call(t.Context(), wire.MethodSessionsGet, wire.SessionsGet{}, nil); err == nil {
		t.Error("accepted without a session")
	}
}

func TestHistoryEmpty(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	got := methodtest.Do[wire.History](t, h, wire.MethodChatHistory, wire.ChatHistory{SessionKey: "new"})
	want := wire.History{
		SessionKey: "agent:main:new", Messages: []wire.Message{}, Pending: wire.PendingInputs{Items: []wire.PendingInput{}},
		Defaults: &wire.SessionModel{Provider: "mock", Model: "m1", ContextWindow: 100_000, Options: []string{"off", "high"}},
		Info: &wire.Session{
			Key: "agent:main:new", Kind: "direct", ChatType: "direct", AgentID: "main", Provider: "mock", Model: "m1",
			ContextWindow: 100_000, Options: []string{"off", "high"}, Runs: []string{},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestHistoryShapes(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	call := &llm.ToolCall{ID: "c1", Name: "read", Args: []byte(`{"path":"a"}`)}
	entries := []session.Entry{
		{Kind: session.KindMessage, Message: llm.User("read a"), ItemID: "k1", Run: "k1"},
		{
			Kind: session.KindMessage, Run: "k1", Usage: &llm.Usage{Input: 3, Output: 4}, NanoUSD: 11_000,
			Message: &llm.Message{
				Role: llm.RoleAssistant, Provider: "mock", Model: "m1", Stop: llm.StopTools,
				Parts: []llm.Part{{Kind: llm.PartThinking, Text: "hm"}, llm.Text("Let me see."), {Kind: llm.PartCall, Call: call}},
			},
		},
		{
			Kind: session.KindMessage, Run: "k1", Details: []byte(`{"lines":1}`),
			Message: &llm.Message{
				Role:     llm.RoleTool,
				CallID:   "c1",
				ToolName: "read",
				IsError:  true,
				Parts:    []llm.Part{llm.Text("no such file")},
			},
		},
		{Kind: session.KindMessage, Run: "k1",
			Message: &llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text(" no_reply\n")}}},
		{Kind: session.KindNotice, Text: "the history was cut"},
		{Kind: session.KindCut, First: 2},
		{Kind: session.KindMessage, Run: "k1", Partial: true,
			Message: &llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text("Half")}}},
	}
	fill(h, len(entries), func(i int, e *session.Entry) {
		id, at := e.ID, e.Time
		*e = entries[i]
		e.ID, e.Time = id, at
		if e.Usage == nil {
			e.NanoUSD = -1
		}
	})
	got := methodtest.Do[wire.History](t, h, wire.MethodChatHistory, wire.ChatHistory{SessionKey: "main"})
	for i := range got.Messages {
		got.Messages[i].Timestamp = 0
	}
	want := []wire.Message{
		{
			Role: wire.RoleUser, Content: wire.TextContent("read a"), IdempotencyKey: "k1:user",
			Meta: wire.MessageMeta{ID: "e0", Seq: 1, RunID: "k1", IdempotencyKey: "k1:user"},
		},
		{
			Role: wire.RoleAssistant, Provider: "mock", Model: "m1", StopReason: "toolUse",
			Content: wire.Contents{
				{Type: wire.ContentThinking, Thinking: "hm"}, {Type: wire.ContentText, Text: "Let me see."},
				{Type: wire.ContentCall, ID: "c1", Name: "read", Arguments: []byte(`{"path":"a"}`)},
			},
			Usage: &wire.Usage{Input: 3, Output: 4, Total: 7, Cost: &wire.Cost{Total: 0.000011}},
			Meta:  wire.MessageMeta{ID: "e1", Seq: 2, RunID: "k1"},
		},
		{
			Role: wire.RoleToolResult, Content: wire.TextContent("no such file"), ToolCallID: "c1",
			ToolName: "read", IsError: true,
			Details: []byte(`{"lines":1}`), Meta: wire.MessageMeta{ID: "e2", Seq: 3, RunID: "k1"},
		},
		{Role: wire.RoleSystem, Content: wire.TextContent("the history was cut"),
			Meta: wire.MessageMeta{ID: "e4", Seq: 5, Kind: "notice"}},
		{
			Role: wire.RoleAssistant, Content: wire.TextContent("Half"),
			Abort: &wire.Abort{Aborted: true, Origin: "rpc", RunID: "k1"},
			Meta:  wire.MessageMeta{ID: "e6", Seq: 7, RunID: "k1"},
		},
	}
	if diff := cmp.Diff(want, got.Messages); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestHistorySize(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	fill(h, 10, func(i int, e *session.Entry) { e.Message = llm.User(strings.Repeat("x", 1<<20)) })
	got := methodtest.Do[wire.History](t, h, wire.MethodChatHistory, wire.ChatHistory{SessionKey: "main"})
	if n := len(got.Messages); n != 5 || !got.HasMore || got.NextOffset != 5 {
		t.Errorf("%d messages of 1 MiB, next %d; want 5, next 5", n, got.NextOffset)
	}
	few := methodtest.Do[wire.History](t, h, wire.MethodChatHistory, wire.ChatHistory{SessionKey: "main", MaxBytes: 1000})
	if n := len(few.Messages); n != 1 || few.NextOffset != 1 {
		t.Errorf("%d messages, next %d; want the newest, however large", n, few.NextOffset)
	}
}

func TestHistoryImages(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	fill(h, 1, func(_ int, e *session.Entry) {
		e.Message = &llm.Message{Role: llm.RoleUser, Parts: []llm.Part{
			llm.Image("image/png", []byte("small")), llm.Image("image/png", make([]byte, 1<<20)),
		}}
	})
	got := methodtest.Do[wire.History](t, h, wire.MethodChatHistory, wire.ChatHistory{SessionKey: "main"})
	want := wire.Contents{
		{Type: wire.ContentImage, MIME: "image/png", Data: []byte("small")},
		{Type: wire.ContentImage, MIME: "image/png", Bytes: 1 << 20},
	}
	if diff := cmp.Diff(want, got.Messages[0].Content); diff != "" {
		t.Error(diff)
	}
}

func TestHistoryCursor(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	fill(h, 3, nil)
	first := methodtest.Do[wire.History](t, h, wire.MethodChatHistory, wire.ChatHistory{SessionKey: "main"})
	since := func(cursor string, limit int) wire.HistoryDelta {
		return methodtest.Do[wire.HistoryDelta](t, h, wire.MethodChatHistory,
			wire.ChatHistory{SessionKey: "main", Cursor: cursor, Limit: limit})
	}
	if d := since(first.Cursor, 0); d.Kind != wire.KindDelta || d.Messages == nil || len(d.Messages) != 0 ||
		d.Cursor != first.Cursor {
		t.Errorf("nothing new: %+v", d)
	}
	h.Put(func(tx store.Tx) error {
		return tx.Sessions().Append("t1",
			&session.Entry{ID: "n1", Kind: session.KindMessage, Time: time.Now(), Message: llm.User("new 1"), NanoUSD: -1},
			&session.Entry{ID: "n2", Kind: session.KindMessage, Time: time.Now(), Message: llm.User("new 2"), NanoUSD: -1})
	})
	d := since(first.Cursor, 0)
	if d.Kind != wire.KindDelta || len(d.Messages) != 2 || d.Messages[1].MessageID != "n2" ||
		d.Messages[1].SessionID != "t1" || d.Messages[1].SessionKey != string(key) || d.Messages[1].AgentID != "main" ||
		d.Messages[1].Seq != 5 || d.Cursor != "t1:5" {
		t.Errorf("two new: %+v", d)
	}
	for _, cursor := range []string{"t1:99", "t0:3", "x", ":", "t1:-1", "t1:x"} {
		if d := since(cursor, 0); d.Kind != wire.KindReset {
			t.Errorf("cursor %q: %+v, want a reset", cursor, d)
		}
	}
	for _, cursor := range []string{"x", ":"} {
		d := methodtest.Do[wire.HistoryDelta](t, h, wire.MethodChatHistory,
			wire.ChatHistory{SessionKey: "new", Cursor: cursor})
		if d.Kind != wire.KindReset {
			t.Errorf("cursor %q of a new session: %+v, want a reset", cursor, d)
		}
	}
	if d := since(first.Cursor, 1); d.Kind != wire.KindReset {
		t.Errorf("more changes than the limit: %+v, want a reset", d)
	}
}

func TestStartup(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	fill(h, 3, nil)
	h.Put(func(tx store.Tx) error {
		now := time.Now()
		return tx.Sessions().Put(session.Meta{
			Key:     "agent:main:dashboard:0f8fad5b-d9cb-469f-a165-70867728950e",
			ID:      "t2",
			Agent:   "main",
			Created: now,
			Started: now,
			Updated: now,
		})
	})
	got := methodtest.Do[wire.History](t, h, wire.MethodChatStartup, wire.ChatHistory{SessionKey: "main"})
	if fmt.Sprint(texts(got.Messages)) != "[m0 m1 m2]" || got.Metadata == nil || len(got.Metadata.Models) != 1 ||
		got.Info.Leaf != "e2" {
		t.Errorf("startup: %+v", got)
	}
	short := methodtest.Do[wire.History](t, h, wire.MethodChatStartup,
		wire.ChatHistory{ShortID: "0f8fad5bd9", AgentID: "main"})
	if short.SessionID != "t2" {
		t.Errorf("with a short id: %+v", short)
	}
	for _, id := range []string{"0f8fad5bd8", "0f8fad5", "xyzxyzxyz"} {
		if err := h.Call(t.Context(), wire.MethodChatStartup, wire.ChatHistory{ShortID: id}, nil); err == nil {
			t.Errorf("short id %s: found", id)
		}
	}
	if err := h.Call(t.Context(), wire.MethodChatHistory, wire.ChatHistory{}, nil); err == nil {
		t.Error("history of an unknown session")
	}
}

func TestHistoryOfParts(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	fill(h, 10, func(i int, e *session.Entry) { e.ItemID = fmt.Sprint("k", i) })
	h.Put(func(tx store.Tx) error {
		if _, err := session.Reset(tx.Sessions(), key, "new", time.Now()); err != nil {
			return err
		}
		return tx.Sessions().Archive("agent:main:other", session.Past{ID: "foreign", Reason: "new"})
	})
	read := func(in wire.ChatHistory) wire.History {
		in.SessionKey = "main"
		return methodtest.Do[wire.History](t, h, wire.MethodChatHistory, in)
	}
	for _, tc := range []struct {
		name string
		in   wire.ChatHistory
		want string
	}{
		{"the current transcript", wire.ChatHistory{}, "[]"},
		{"an earlier transcript", wire.ChatHistory{SessionID: "t1", Limit: 2}, "[m8 m9]"},
		{"a transcript of another session", wire.ChatHistory{SessionID: "foreign"}, "[]"},
		{"around a message", wire.ChatHistory{SessionID: "t1", MessageID: "e4", Limit: 4}, "[m3 m4 m5 m6]"},
		{"around the last message", wire.ChatHistory{SessionID: "t1", MessageID: "e9", Limit: 2}, "[m8 m9]"},
		{"short", wire.ChatHistory{SessionID: "t1", MaxChars: 1, Limit: 1}, "[m\n… (truncated)]"},
	} {
		if got := fmt.Sprint(texts(read(tc.in).Messages)); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
	got := read(wire.ChatHistory{SessionID: "t1", Inputs: []string{"k3", "nope"}})
	if diff := cmp.Diff([]wire.Receipt{{RunID: "k3", State: wire.InputConsumed, Consumed: "e3"}},
		got.Receipts); diff != "" {
		t.Error(diff)
	}
	msg := func(id string) wire.ChatMessage {
		return methodtest.Do[wire.ChatMessage](t, h, wire.MethodChatMessageGet,
			wire.ChatMessageGet{SessionKey: "main", MessageID: id})
	}
	if m := msg("e1"); m.OK || m.Why != "not_found" {
		t.Errorf("a message of an earlier transcript: %+v", m)
	}
	note := methodtest.Do[wire.ChatInjected](t, h, wire.MethodChatInject,
		wire.ChatInject{SessionKey: "main", Message: "the lamp is on", Label: "house"})
	if s := methodtest.Do[wire.SessionDescribed](t, h, wire.MethodSessionsDescribe,
		wire.SessionKey{Key: "main"}).Session; s.UpdatedAt != msg(note.MessageID).Message.Timestamp {
		t.Errorf("the session changed at %v, the note is of %v", s.UpdatedAt, msg(note.MessageID).Message.Timestamp)
	}
	if m := msg(note.MessageID); !m.OK || m.Message.Text() != "[house]\n\nthe lamp is on" ||
		m.Message.Role != wire.RoleSystem {
		t.Errorf("a note: %+v", m)
	}
	if err := h.Call(t.Context(), wire.MethodChatInject, wire.ChatInject{SessionKey: "nope", Message: "x"},
		nil); err == nil {
		t.Error("a note in an unknown session")
	}
}

func TestPendingPages(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript(llmtest.Step{Fault: llmtest.Fault{Hang: llmtest.HangHeaders}}))
	for i := range 31 {
		methodtest.Do[wire.ChatSent](t, h, wire.MethodChatSend, wire.ChatSend{
			SessionKey: "main", Message: fmt.Sprint("m", i), IdempotencyKey: fmt.Sprint("k", i), QueueMode: "followup",
		})
	}
	var seen []string
	for before, n := int64(0), 0; ; n++ {
		got := methodtest.Do[wire.History](t, h, wire.MethodChatHistory,
			wire.ChatHistory{SessionKey: "main", Before: before, Inputs: []string{"k30"}}).Pending
		if len(got.Items) > wire.MaxPending || n > 3 {
			t.Fatalf("page %d: %d items", n, len(got.Items))
		}
		var page []string
		for _, it := range got.Items {
			page = append(page, it.RunID)
		}
		seen = append(page, seen...)
		if before = got.Next; before == 0 {
			break
		}
	}
	if len(seen) != len(slices.Compact(slices.Clone(seen))) || !slices.Contains(seen, "k30") ||
		len(seen) < wire.MaxPending {
		t.Errorf("pending: %v", seen)
	}
}

// TestPending reads the messages that wait in a session without a transcript.
func TestPending(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	put := func(from, to int) wire.History {
		h.Put(func(tx store.Tx) error { // without a wake: they are not taken
			for i := from; i < to; i++ {
				if _, err := tx.Queue().Put(queue.Item{ID: fmt.Sprint("k", i), Session: "agent:main:new",
					Kind: queue.Message}); err != nil {
					return err
				}
			}
			return nil
		})
		return methodtest.Do[wire.History](t, h, wire.MethodChatHistory,
			wire.ChatHistory{SessionKey: "new", Inputs: []string{"k1", "none"}})
	}
	got := put(0, wire.MaxPending)
	if len(got.Pending.Items) != wire.MaxPending || got.Pending.Next != 0 || got.Pending.Total != wire.MaxPending {
		t.Errorf("%d on one page, next %d, total %d", len(got.Pending.Items), got.Pending.Next, got.Pending.Total)
	}
	if diff := cmp.Diff([]wire.Receipt{{RunID: "k1", State: wire.InputPending}}, got.Receipts); diff != "" {
		t.Error(diff)
	}
	got = put(wire.MaxPending, wire.MaxPending+1)
	if len(got.Pending.Items) != wire.MaxPending || got.Pending.Items[0].ID != "k1" || got.Pending.Next == 0 {
		t.Errorf("one more: %d, next %d", len(got.Pending.Items), got.Pending.Next)
	}
}

func TestExpectedLeaf(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step { return llmtest.Say("ok") }))
	fill(h, 3, nil)
	for i, tc := range []struct {
		leaf    any // nil: null
		absent  bool
		session string
		mode    string
		refused bool
	}{
		{leaf: "e1", refused: true},
		{leaf: "e1", mode: "steer"},
		{leaf: "e1", session: "t1"},
		{leaf: "e9", session: "t1", refused: true},
		{leaf: nil, refused: true},
		{leaf: nil, session: "t1", refused: true},
		{absent: true, session: "t1"},
		{absent: true, session: "t0", refused: true},
	} {
		id := fmt.Sprint("k", i)
		p := map[string]any{"sessionKey": "main", "message": "x", "idempotencyKey": id}
		if !tc.absent {
			p["expectedLeafEntryId"] = tc.leaf
		}
		if tc.session != "" {
			p["sessionId"] = tc.session
		}
		if tc.mode != "" {
			p["queueMode"] = tc.mode
		}
		err := h.Call(t.Context(), wire.MethodChatSend, p, nil)
		we, _ := errors.AsType[*wire.Error](err)
		if refused := we != nil && strings.Contains(string(we.Details), "active-leaf-changed"); refused != tc.refused ||
			err != nil && !refused {
			t.Errorf("%+v: %v", tc, err)
		}
		if err == nil {
			h.End(id)
			if err := h.Call(t.Context(), wire.MethodChatSend, p, nil); err != nil {
				t.Errorf("%+v, sent again: %v", tc, err)
			}
		}
	}
}

func TestAttachmentForms(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript(llmtest.Say("a dot"), llmtest.Say("a dot")))
	for i, content := range []string{"AAECAw==", "data:image/png;base64,AAECAw=="} {
		id := fmt.Sprint("k", i)
		methodtest.Do[wire.ChatSent](t, h, wire.MethodChatSend, map[string]any{
			"sessionKey": "main", "message": "what is it", "idempotencyKey": id,
			"attachments": []any{map[string]any{
				"type":      "image",
				"mimeType":  "image/png",
				"fileName":  "dot.png",
				"content":   content,
				"sizeBytes": 4,
			}},
		})
		h.End(id)
		hist := methodtest.Do[wire.History](t, h, wire.MethodChatHistory, wire.ChatHistory{SessionKey: "main"})
		msg := hist.Messages[2*i]
		if n := len(msg.Content); n != 2 || string(msg.Content[0].Data) != "\x00\x01\x02\x03" {
			t.Errorf("%s: %+v", content, msg.Content)
		}
	}
}

// TestSendForms sends by each method to a busy session, and stops its runs.
func TestSendForms(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.ScriptFunc(func(int, *llm.Request) llmtest.Step {
		return llmtest.Step{Fault: llmtest.Fault{Hang: llmtest.HangHeaders}}
	}))
	methodtest.Do[wire.ChatSent](t, h, wire.MethodChatSend,
		wire.ChatSend{SessionKey: "main", Message: "hello", IdempotencyKey: "k0"})
	for i, c := range []struct{ method, key, mode, want string }{
		{wire.MethodChatSend, "sessionKey", "followup", "followup"}, {wire.MethodSessionsSend, "key", "", ""},
		{wire.MethodSessionsSteer, "key", "", "steer"}, {wire.MethodAgent, "sessionKey", "", ""},
	} {
		id := fmt.Sprint("k", i+1)
		params := map[string]any{
			c.key: "main", "message": "look", "idempotencyKey": id, "thinking": "high",
			"attachments": []any{map[string]any{
				"type":     "image",
				"mimeType": "image/png",
				"fileName": "dot.png",
				"content":  "AAECAw==",
			}},
		}
		if c.mode != "" {
			params["queueMode"] = c.mode
		}
		ctx, cancel := context.WithCancel(t.Context())
		if c.method == wire.MethodAgent {
			_ = h.Await(ctx, c.method, params, func(wire.Accepted) { cancel() }, nil) // do not wait for the run
		} else if sent := methodtest.Do[wire.ChatSent](t, h, c.method, params); sent.RunID != id {
			t.Errorf("%s: %+v", c.method, sent)
		}
		cancel()
		h.Put(func(tx store.Tx) error {
			it, err := tx.Queue().Get(id)
			if it.Overrides.Think != "high" || it.Inbound.Mode != c.want || len(it.Inbound.Media) != 1 ||
				it.Inbound.Text != "look" || it.Session != key {
				t.Errorf("%s: %+v", c.method, it)
			}
			return err
		})
	}
	if got := methodtest.Do[wire.ChatAborted](t, h, wire.MethodSessionsAbort,
		wire.SessionsAbort{RunID: "none"}); !got.OK || got.Aborted {
		t.Errorf("abort of an unknown run: %+v", got)
	}
	got := methodtest.Do[wire.ChatAborted](t, h, wire.MethodSessionsAbort, wire.SessionsAbort{RunID: "k2"})
	if diff := cmp.Diff(wire.ChatAborted{OK: true, Aborted: true, RunIDs: []string{"k2"}}, got); diff != "" {
		t.Errorf("abort of a waiting message (-want +got):\n%s", diff)
	}
	got = methodtest.Do[wire.ChatAborted](t, h, wire.MethodSessionsAbort,
		wire.SessionsAbort{Key: "main", ClearQueued: true})
	if !slices.Contains(got.RunIDs, "k0") || slices.Contains(got.RunIDs, "k2") {
		t.Errorf("abort of the session: %+v", got)
	}
}

// TestAbortRun stops the run of a session, and leaves the message that waits.
func TestAbortRun(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	h := methodtest.New(t, llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
		if strings.Contains(r.Messages[len(r.Messages)-1].PlainText(), "first") {
			close(begun)
			return llmtest.Step{Fault: llmtest.Fault{Hang: llmtest.HangHeaders}}
		}
		return llmtest.Say("answered")
	}))
	for _, id := range []string{"first", "second"} {
		methodtest.Do[wire.ChatSent](t, h, wire.MethodChatSend,
			wire.ChatSend{SessionKey: "main", Message: id, IdempotencyKey: id, QueueMode: "followup"})
	}
	<-begun // before that, the message only waits, and is left
	got := methodtest.Do[wire.ChatAborted](t, h, wire.MethodSessionsAbort, wire.SessionsAbort{Key: "main"})
	if diff := cmp.Diff(wire.ChatAborted{OK: true, Aborted: true, RunIDs: []string{"first"}}, got); diff != "" {
		t.Errorf("abort of the run (-want +got):\n%s", diff)
	}
	if end := h.End("second"); end.State != wire.StateFinal || end.Message.Text() != "answered" {
		t.Errorf("the message that waited: %+v", end)
	}
}

func TestCommandInHistory(t *testing.T) {
	t.Parallel()
	h := methodtest.New(t, llmtest.NewScript())
	methodtest.Do[wire.ChatSent](t, h, wire.MethodChatSend,
		wire.ChatSend{SessionKey: "main", Message: "/help", IdempotencyKey: "k1"})
	end := h.End("k1")
	hist := methodtest.Do[wire.History](t, h, wire.MethodChatHistory, wire.ChatHistory{SessionKey: "main"})
	if len(hist.Messages) != 2 {
		t.Fatalf("messages: %+v", hist.Messages)
	}
	asked, answer := hist.Messages[0], hist.Messages[1]
	if asked.Role != wire.RoleUser || asked.Text() != "/help" || asked.IdempotencyKey != "k1:user" {
		t.Errorf("the command: %+v", asked)
	}
	if answer.Role != wire.RoleAssistant || answer.Text() != end.Message.Text() || answer.Text() == "" ||
		answer.Meta.ID == asked.Meta.ID {
		t.Errorf("its answer: %+v", answer)
	}
}

func BenchmarkHistory200(b *testing.B) {
	h := methodtest.New(b, llmtest.NewScript())
	fill(h, 200, func(i int, e *session.Entry) { e.Message = llm.User(strings.Repeat("word ", 100)) })
	b.ResetTimer()
	for range b.N {
		var got wire.History
		if err := h.Call(context.Background(), wire.MethodChatHistory, wire.ChatHistory{SessionKey: "main"},
			&got); err != nil {
			b.Fatal(err)
		}
	}
}
