package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/agent"
)

// script is a model that answers with its steps, one per call, and records the
// requests. The last step is repeated.
type script struct {
	steps []step
	reqs  []llm.Request
}

// step is one answer.
type step func(ctx context.Context, yield func(llm.Event, error) bool)

func (s *script) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		req := *r
		req.Messages = slices.Clone(r.Messages)
		s.reqs = append(s.reqs, req)
		s.steps[min(len(s.reqs), len(s.steps))-1](ctx, yield)
	}
}

func say(text string) step {
	return func(_ context.Context, yield func(llm.Event, error) bool) {
		if text != "" && !yield(llm.Event{Kind: llm.TextDelta, Text: text}, nil) {
			return
		}
		m := &llm.Message{Role: llm.RoleAssistant, Stop: llm.StopEnd}
		if text != "" {
			m.Parts = []llm.Part{llm.Text(text)}
		}
		yield(llm.Event{Kind: llm.Done, Message: m, Usage: llm.Usage{Input: 7, Output: 3}}, nil)
	}
}

// use returns a step with calls: each is "tool" or "tool:id".
func use(calls ...string) step {
	return func(_ context.Context, yield func(llm.Event, error) bool) {
		m := &llm.Message{Role: llm.RoleAssistant, Stop: llm.StopTools}
		for _, c := range toolCalls(calls...) {
			m.Parts = append(m.Parts, llm.Part{Kind: llm.PartCall, Call: &c})
		}
		yield(llm.Event{Kind: llm.Done, Message: m}, nil)
	}
}

// cut returns the step with another stop reason.
func cut(why llm.StopReason, s step) step {
	return func(ctx context.Context, yield func(llm.Event, error) bool) {
		s(ctx, func(e llm.Event, err error) bool {
			if e.Kind == llm.Done {
				e.Message.Stop = why
			}
			return yield(e, err)
		})
	}
}

func toolCalls(calls ...string) []llm.ToolCall {
	var cs []llm.ToolCall
	for i, c := range calls {
		name, id, ok := strings.Cut(c, ":")
		if !ok {
			id = fmt.Sprintf("%s-%d", name, i)
		}
		cs = append(cs, llm.ToolCall{ID: id, Name: name, Args: json.RawMessage("{}")})
	}
	return cs
}

func fail(err error) step {
	return func(_ context.Context, yield func(llm.Event, error) bool) { yield(llm.Event{}, err) }
}

// hang returns a step that sends text and then waits until ctx ends.
func hang(text string) step {
	return func(ctx context.Context, yield func(llm.Event, error) bool) {
		if yield(llm.Event{Kind: llm.TextDelta, Text: text}, nil) {
			<-ctx.Done()
			yield(llm.Event{}, ctx.Err())
		}
	}
}

// kit is a set of tools as functions. Tools whose names start with "p" are
// parallel; those whose names contain a "w" do not only read.
type kit struct {
	do map[string]func(ctx context.Context, update func(string)) (tool.Result, error)

	mu      sync.Mutex
	invoked []string
	turns   int
	running int
	most    int // maximum number of parallel calls
}

func (k *kit) Specs(readOnly bool) []llm.ToolSpec {
	var specs []llm.ToolSpec
	for name := range k.do {
		if !readOnly || !strings.Contains(name, "w") {
			specs = append(specs, llm.ToolSpec{Name: name, Schema: json.RawMessage(`{"type":"object"}`)})
		}
	}
	slices.SortFunc(specs, func(a, b llm.ToolSpec) int { return strings.Compare(a.Name, b.Name) })
	return specs
}

func (k *kit) Turn() { k.turns++ }

func (k *kit) Parallel(c llm.ToolCall) bool { return c.Name[0] == 'p' }

func (k *kit) Invoke(ctx context.Context, c llm.ToolCall, update func(string)) (tool.Result, error) {
	k.mu.Lock()
	k.invoked = append(k.invoked, c.Name)
	k.running++
	k.most = max(k.most, k.running)
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		k.running--
		k.mu.Unlock()
	}()
	if f := k.do[c.Name]; f != nil {
		return f(ctx, update)
	}
	return tool.Text("did " + c.ID), nil
}

// tools returns a kit whose tools return immediately.
func tools(names ...string) *kit {
	k := &kit{do: map[string]func(context.Context, func(string)) (tool.Result, error){}}
	for _, n := range names {
		k.do[n] = nil
	}
	return k
}

func request(m llm.Provider, t agent.Tools) *agent.Request {
	return &agent.Request{Model: m, Tools: t, Prompt: llm.Request{Model: "m", Messages: []*llm.Message{llm.User("hello")}}}
}

// run returns all events of a run as short lines.
func run(ctx context.Context, r *agent.Request) (lines []string, end agent.Event) {
	for e := range agent.Run(ctx, r) {
		lines = append(lines, line(e))
		end = e
	}
	return lines, end
}

func line(e agent.Event) string {
	switch e.Kind {
	case agent.TurnStart:
		return fmt.Sprint("turn ", e.Round)
	case agent.Text:
		return "text " + e.Delta
	case agent.Thinking:
		return "thinking " + e.Delta
	case agent.Restarted:
		return "restarted"
	case agent.Assistant:
		s := "assistant " + e.Message.PlainText()
		for _, c := range e.Message.Calls() {
			s += "+" + c.Name
		}
		if e.Partial {
			s += " partial"
		}
		return s
	case agent.Steered:
		return "steered " + e.Messages[0].PlainText()
	case agent.ToolStart:
		return "start " + e.Call.ID
	case agent.ToolUpdate:
		return "update " + e.Call.ID + " " + e.Delta
	case agent.ToolEnd:
		return "end " + e.Call.ID + ": " + e.Result.PlainText()
	}
	return "end of run: " + string(e.Reason)
}

// wire returns the messages of a request as short lines.
func wire(r llm.Request) []string {
	var lines []string
	for _, m := range r.Messages {
		s := string(m.Role) + " " + m.PlainText()
		for _, c := range m.Calls() {
			s += "+" + c.ID
		}
		if m.CallID != "" {
			s += " (" + m.CallID + ")"
		}
		lines = append(lines, s)
	}
	return lines
}

func same[T any](t *testing.T, got, want T, opts ...cmp.Option) {
	t.Helper()
	if d := cmp.Diff(want, got, opts...); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestLoop(t *testing.T) {
	t.Run("LOOP-02 the second request contains the call and its result", func(t *testing.T) {
		m, k := &script{steps: []step{use("a:1"), say("done")}}, tools("a")
		lines, end := run(t.Context(), request(m, k))
		same(t, lines, []string{
			"turn 1", "assistant +a", "start 1", "end 1: did 1",
			"turn 2", "text done", "assistant done", "end of run: done",
		})
		same(t, wire(m.reqs[1]), []string{"user hello", "assistant +1", "toolResult did 1 (1)"})
		same(t, end.Err, nil)
		same(t, k.turns, 2)
	})

	t.Run("LOOP-03 three results keep call order", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			k := tools("p1", "p2", "p3")
			for i, n := range []string{"p1", "p2", "p3"} {
				k.do[n] = func(context.Context, func(string)) (tool.Result, error) {
					time.Sleep(time.Duration(3-i) * time.Second) // the last ends first
					return tool.Text("r" + n), nil
				}
			}
			m := &script{steps: []step{use("p1:1", "p2:2", "p3:3"), say("ok")}}
			lines, _ := run(t.Context(), request(m, k))
			same(t, lines[2:8], []string{"start 1", "start 2", "start 3", "end 1: rp1", "end 2: rp2", "end 3: rp3"})
			same(t, wire(m.reqs[1])[2:], []string{"toolResult rp1 (1)", "toolResult rp2 (2)", "toolResult rp3 (3)"})
		})
	})

	t.Run("LOOP-04 after the last round one model call without tools follows", func(t *testing.T) {
		m := &script{}
		for range 10 {
			m.steps = append(m.steps, use("a"))
		}
		m.steps = append(m.steps, say("that is all"))
		r := request(m, tools("a"))
		r.MaxRounds = 10
		lines, _ := run(t.Context(), r)
		if n := len(m.reqs); n != 11 {
			t.Fatalf("%d model calls, want 11", n)
		}
		if len(m.reqs[9].Tools) != 1 || m.reqs[10].Tools != nil {
			t.Errorf("tools of the last two calls: %v, %v", m.reqs[9].Tools, m.reqs[10].Tools)
		}
		last := m.reqs[10].Messages
		same(t, last[len(last)-1].PlainText(), llm.LimitText)
		same(t, lines[len(lines)-2:], []string{"assistant that is all", "end of run: done"})
	})

	t.Run("LOOP-21 calls beyond the limit have results and are not run", func(t *testing.T) {
		eight := use("a:1", "a:2", "a:3", "a:4", "a:5", "a:6", "a:7", "a:8")
		m := &script{steps: []step{eight, eight, eight, say("enough")}}
		k := tools("a")
		r := request(m, k)
		r.MaxCalls = 20
		lines, _ := run(t.Context(), r)
		same(t, len(k.invoked), 20)
		var over []string
		for _, l := range lines {
			if strings.HasSuffix(l, agent.OverLimitText) {
				over = append(over, l)
			}
		}
		same(t, len(over), 4)
		same(t, strings.HasPrefix(over[0], "end 5-3: "), true)
		same(t, m.reqs[3].Tools, nil)
		same(t, lines[len(lines)-2:], []string{"assistant enough", "end of run: done"})
	})

	t.Run("at the limit of calls the model answers without tools", func(t *testing.T) {
		m := &script{steps: []step{use("a", "a"), say("so far")}}
		r := request(m, tools("a"))
		r.MaxCalls = 2
		_, end := run(t.Context(), r)
		msgs := m.reqs[1].Messages
		same(t, msgs[len(msgs)-1].PlainText(), llm.LimitText)
		same(t, end.Reason, agent.Done)
	})

	t.Run("the rounds and calls before the run was continued count", func(t *testing.T) {
		for _, set := range []func(*agent.Request){
			func(r *agent.Request) { r.MaxRounds, r.EarlierRounds = 2, 2 },
			func(r *agent.Request) { r.MaxCalls, r.EarlierCalls = 2, 2 },
			func(r *agent.Request) { r.MaxCalls, r.EarlierCalls, r.Open = 2, 3, toolCalls("a:1", "a:2") },
		} {
			m, k := &script{steps: []step{say("so far")}}, tools("a")
			r := request(m, k)
			set(r)
			run(t.Context(), r)
			same(t, m.reqs[0].Tools, nil)
			same(t, len(k.invoked), 0)
		}
	})

	t.Run("the run ends if the last model call requests tools", func(t *testing.T) {
		m := &script{steps: []step{use("a:1")}}
		k := tools("a")
		r := request(m, k)
		r.MaxRounds = 1
		lines, end := run(t.Context(), r)
		same(t, len(k.invoked), 1)
		same(t, lines[len(lines)-2], "end 1-2: "+agent.OverLimitText)
		if end.Reason != agent.Failed || !errors.Is(end.Err, agent.ErrEmpty) {
			t.Errorf("ended %v %v, want failed, empty", end.Reason, end.Err)
		}
	})

	t.Run("an empty answer is requested once more", func(t *testing.T) {
		m := &script{steps: []step{say(""), say("now")}}
		lines, _ := run(t.Context(), request(m, nil))
		same(t, lines, []string{"turn 1", "restarted", "text now", "assistant now", "end of run: done"})
		m = &script{steps: []step{say("")}}
		_, end := run(t.Context(), request(m, nil))
		same(t, len(m.reqs), 2)
		m = &script{steps: []step{say(" \n")}}
		run(t.Context(), request(m, nil))
		same(t, len(m.reqs), 2)
		if !errors.Is(end.Err, agent.ErrEmpty) {
			t.Errorf("ended with %v, want %v", end.Err, agent.ErrEmpty)
		}
	})

	t.Run("no call of an answer that was cut is run", func(t *testing.T) {
		for why, text := range map[llm.StopReason]string{llm.StopLength: agent.CutText, llm.StopRefusal: agent.RefusedText} {
			m, k := &script{steps: []step{cut(why, use("a:1", "p:2")), use("a:3"), say("done")}}, tools("a", "p")
			lines, _ := run(t.Context(), request(m, k))
			same(t, k.invoked, []string{"a"})
			same(t, lines[2:4], []string{"end 1: " + text, "end 2: " + text})
			same(t, wire(m.reqs[1])[2:], []string{"toolResult " + text + " (1)", "toolResult " + text + " (2)"})
		}
	})

	t.Run("no call of a cut answer is run when the run is continued", func(t *testing.T) {
		m, k := &script{steps: []step{say("done")}}, tools("a")
		r := request(m, k)
		r.Open = toolCalls("a:1")
		r.Prompt.Messages = append(r.Prompt.Messages, &llm.Message{
			Role: llm.RoleAssistant, Stop: llm.StopLength, Parts: []llm.Part{{Kind: llm.PartCall, Call: &r.Open[0]}},
		})
		lines, _ := run(t.Context(), r)
		same(t, len(k.invoked), 0)
		same(t, lines[0], "end 1: "+agent.CutText)
	})

	t.Run("the run ends if the model is cut three times in a row", func(t *testing.T) {
		long := cut(llm.StopLength, use("a"))
		m, k := &script{steps: []step{long, long, use("a"), long, long, long, say("never")}}, tools("a")
		_, end := run(t.Context(), request(m, k))
		same(t, len(k.invoked), 1)
		same(t, len(m.reqs), 6)
		if end.Reason != agent.Failed || !strings.Contains(fmt.Sprint(end.Err), "output limit 3 times") {
			t.Errorf("ended %v %v", end.Reason, end.Err)
		}
	})

	t.Run("so it does if the service ends the answer because of its content", func(t *testing.T) {
		refused := cut(llm.StopRefusal, use("a"))
		m, k := &script{steps: []step{refused, refused, refused, say("never")}}, tools("a")
		_, end := run(t.Context(), request(m, k))
		same(t, len(k.invoked), 0)
		if end.Reason != agent.Failed || !strings.Contains(fmt.Sprint(end.Err), "because of its content") {
			t.Errorf("ended %v %v", end.Reason, end.Err)
		}
	})

	t.Run("an answer that was cut before its text is not requested again", func(t *testing.T) {
		for why, text := range map[llm.StopReason]string{
			llm.StopLength:  "output limit",
			llm.StopRefusal: "refused to answer",
		} {
			m := &script{steps: []step{cut(why, say("")), say("never")}}
			_, end := run(t.Context(), request(m, nil))
			same(t, len(m.reqs), 1)
			if !strings.Contains(fmt.Sprint(end.Err), text) {
				t.Errorf("%s: ended with %v", why, end.Err)
			}
		}
	})

	t.Run("a restart voids the text so far", func(t *testing.T) {
		m := &script{steps: []step{func(ctx context.Context, yield func(llm.Event, error) bool) {
			yield(llm.Event{Kind: llm.ThinkingDelta, Text: "hm"}, nil)
			yield(llm.Event{Kind: llm.TextDelta, Text: "wro"}, nil)
			yield(llm.Event{Kind: llm.Restart}, nil)
			say("right")(ctx, yield)
		}}}
		lines, _ := run(t.Context(), request(m, nil))
		same(t, lines, []string{"turn 1", "thinking hm", "text wro", "restarted", "text right", "assistant right",
			"end of run: done"})
	})

	t.Run("a failing model ends the run with its error", func(t *testing.T) {
		want := &llm.Error{Class: llm.ClassContext}
		lines, end := run(t.Context(), request(&script{steps: []step{fail(want)}}, nil))
		same(t, lines, []string{"turn 1", "end of run: failed"})
		if end.Reason != agent.Failed || !errors.Is(end.Err, want) {
			t.Errorf("ended %v %v, want failed %v", end.Reason, end.Err, want)
		}
		for name, s := range map[string]step{
			"an answer": func(context.Context, func(llm.Event, error) bool) {},
			"a message": func(_ context.Context, yield func(llm.Event, error) bool) { yield(llm.Event{Kind: llm.Done}, nil) },
		} {
			_, end = run(t.Context(), request(&script{steps: []step{s}}, nil))
			if end.Reason != agent.Failed || end.Err == nil {
				t.Errorf("a stream without %s ended %v %v", name, end.Reason, end.Err)
			}
		}
	})

	t.Run("the answer of another model says so", func(t *testing.T) {
		want := llm.Event{By: &llm.Model{ID: "other"}, Tried: []llm.Attempt{{Model: "m"}}, Note: "no pictures"}
		m := &script{steps: []step{func(_ context.Context, yield func(llm.Event, error) bool) {
			done := want
			done.Kind, done.Message = llm.Done, &llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text("hi")}}
			yield(done, nil)
		}}}
		for e := range agent.Run(t.Context(), request(m, nil)) {
			if e.Kind == agent.Assistant {
				same(t, llm.Event{By: e.By, Tried: e.Tried, Note: e.Note}, want)
			}
		}
	})

	t.Run("messages keep their pointers", func(t *testing.T) {
		m := &script{steps: []step{use("a:1"), say("done")}}
		r := request(m, tools("a"))
		var sent []*llm.Message
		for e := range agent.Run(t.Context(), r) {
			switch e.Kind {
			case agent.Assistant:
				sent = append(sent, e.Message)
			case agent.ToolEnd:
				sent = append(sent, e.Result)
			}
		}
		want := []*llm.Message{r.Prompt.Messages[0], sent[0], sent[1]}
		if !slices.Equal(m.reqs[1].Messages, want) {
			t.Error("the second request does not contain the messages of the events")
		}
		same(t, len(r.Prompt.Messages), 1)
	})
}

func TestTools(t *testing.T) {
	t.Run("TOOL-11 parallel calls overlap and others do not", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			slow := func(context.Context, func(string)) (tool.Result, error) {
				time.Sleep(time.Second)
				return tool.Text("ok"), nil
			}
			for _, c := range []struct {
				name string
				most int
				took time.Duration
			}{{"pread", 2, time.Second}, {"write", 1, 2 * time.Second}} {
				k := tools(c.name)
				k.do[c.name] = slow
				start := time.Now()
				run(t.Context(), request(&script{steps: []step{use(c.name+":1", c.name+":2"), say("ok")}}, k))
				same(t, k.most, c.most)
				same(t, time.Since(start), c.took)
			}
		})
	})

	t.Run("at most eight calls run at once, and groups do not cross a sequential call", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			k := tools("p", "w")
			busy := func(context.Context, func(string)) (tool.Result, error) {
				time.Sleep(time.Second)
				return tool.Text("ok"), nil
			}
			k.do["p"], k.do["w"] = busy, busy
			start := time.Now()
			run(t.Context(),
				request(&script{steps: []step{use("p", "p", "p", "p", "p", "p", "p", "p", "p", "w", "p"), say("ok")}}, k))
			same(t, k.most, 8)
			same(t, time.Since(start), 4*time.Second)
		})
	})

	t.Run("output after the end of its call is dropped", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			k := tools("p1", "p2")
			k.do["p1"] = func(_ context.Context, update func(string)) (tool.Result, error) {
				time.AfterFunc(time.Second, func() { update("late") })
				return tool.Text("ok"), nil
			}
			k.do["p2"] = func(context.Context, func(string)) (tool.Result, error) {
				time.Sleep(2 * time.Second)
				return tool.Text("ok"), nil
			}
			lines, _ := run(t.Context(), request(&script{steps: []step{use("p1:1", "p2:2"), say("ok")}}, k))
			same(t, lines[4:6], []string{"end 1: ok", "end 2: ok"})
		})
	})

	t.Run("updates are yielded between start and end", func(t *testing.T) {
		k := tools("a")
		k.do["a"] = func(_ context.Context, update func(string)) (tool.Result, error) {
			update("half")
			return tool.Result{}, nil
		}
		lines, _ := run(t.Context(), request(&script{steps: []step{use("a:1"), say("ok")}}, k))
		same(t, lines[2:5], []string{"start 1", "update 1 half", "end 1: (no output)"})
	})

	t.Run("the end of a call has its details, its arguments and its duration", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			k := tools("a")
			k.do["a"] = func(context.Context, func(string)) (tool.Result, error) {
				time.Sleep(time.Second)
				return tool.Result{Details: json.RawMessage(`{"n":1}`), Args: json.RawMessage(`{"x":2}`)}, nil
			}
			for e := range agent.Run(t.Context(), request(&script{steps: []step{use("a:1"), say("ok")}}, k)) {
				if e.Kind == agent.ToolEnd {
					same(t, []string{string(e.Details), string(e.Ran), string(e.Call.Args), e.Duration.String()},
						[]string{`{"n":1}`, `{"x":2}`, `{"x":2}`, "1s"})
				}
			}
		})
	})

	t.Run("TOOL-01 a panic of a tool becomes an error result", func(t *testing.T) {
		k := tools("a")
		k.do["a"] = func(context.Context, func(string)) (tool.Result, error) { panic("boom") }
		m := &script{steps: []step{use("a:1"), say("ok")}}
		lines, _ := run(t.Context(), request(m, k))
		same(t, lines[3], "end 1: the tool crashed: boom")
		same(t, m.reqs[1].Messages[2].IsError, true)
	})

	t.Run("an error outside of the contract fails the run", func(t *testing.T) {
		want := errors.New("the ledger is gone")
		k := tools("a")
		k.do["a"] = func(context.Context, func(string)) (tool.Result, error) { return tool.Result{}, want }
		lines, end := run(t.Context(), request(&script{steps: []step{use("a:1", "a:2")}}, k))
		same(t, lines, []string{"turn 1", "assistant +a+a", "start 1", "end of run: failed"})
		same(t, errors.Is(end.Err, want), true)
	})

	t.Run("open calls are executed first and replace their placeholders", func(t *testing.T) {
		m := &script{steps: []step{say("ok")}}
		k := tools("a", "b")
		r := request(m, k)
		asked := &llm.Message{Role: llm.RoleAssistant}
		open := toolCalls("a:1", "b:2", "a:3")
		for i := range open {
			asked.Parts = append(asked.Parts, llm.Part{Kind: llm.PartCall, Call: &open[i]})
		}
		result := func(id, text string) *llm.Message {
			return &llm.Message{Role: llm.RoleTool, CallID: id, Parts: []llm.Part{llm.Text(text)}}
		}
		r.Prompt.Messages = append(r.Prompt.Messages, asked, result("1", "unknown"), result("2", "was done"),
			result("3", "unknown"))
		r.Open = []llm.ToolCall{open[0], open[2]}
		before := slices.Clone(r.Prompt.Messages)
		lines, _ := run(t.Context(), r)
		same(t, lines[:4], []string{"start 1", "end 1: did 1", "start 3", "end 3: did 3"})
		same(t, wire(m.reqs[0])[2:], []string{"toolResult did 1 (1)", "toolResult was done (2)", "toolResult did 3 (3)"})
		if !slices.Equal(before, r.Prompt.Messages) {
			t.Error("the messages of the caller were changed")
		}
	})

	t.Run("a message does not cancel open calls", func(t *testing.T) {
		m := &script{steps: []step{say("ok")}}
		k := tools("a")
		r := request(m, k)
		r.Open = toolCalls("a:1")
		r.Steer = func(context.Context) ([]*llm.Message, error) {
			if len(k.invoked) == 0 {
				return nil, errors.New("called before the open call ran")
			}
			return nil, nil
		}
		_, end := run(t.Context(), r)
		same(t, end.Reason, agent.Done)
	})

	t.Run("calls without tools have results and end the run", func(t *testing.T) {
		lines, end := run(t.Context(), request(&script{steps: []step{use("a:1")}}, nil))
		same(t, lines[2], "end 1: "+agent.NoToolsText)
		same(t, end.Reason, agent.Failed)
	})

	t.Run("ReadOnlyFirst withholds tools from the first model call", func(t *testing.T) {
		m := &script{steps: []step{use("w:1", "r:2"), use("w:3"), say("ok")}}
		k := tools("r", "w")
		r := request(m, k)
		r.ReadOnlyFirst = true
		lines, _ := run(t.Context(), r)
		same(t, len(m.reqs[0].Tools), 1)
		same(t, len(m.reqs[1].Tools), 2)
		same(t, k.invoked, []string{"r", "w"})
		same(t, lines[2], "end 1: "+agent.WithheldText)
		k = tools("p", "pw")
		r = request(&script{steps: []step{use("p:1", "pw:2"), say("ok")}}, k)
		r.ReadOnlyFirst = true
		run(t.Context(), r)
		same(t, k.invoked, []string{"p"})
	})
}

func TestSuspendAndStop(t *testing.T) {
	t.Run("a suspended call suspends the run after its group has ended", func(t *testing.T) {
		k := tools("p", "pask", "w")
		k.do["pask"] = func(context.Context, func(string)) (tool.Result, error) {
			return tool.Result{}, fmt.Errorf("exec: %w", tool.ErrSuspended)
		}
		m := &script{steps: []step{use("pask:1", "p:2", "w:3")}}
		lines, _ := run(t.Context(), request(m, k))
		same(t, lines, []string{"turn 1", "assistant +pask+p+w", "start 1", "start 2", "end 2: did 2",
			"end of run: suspended"})
		same(t, slices.Contains(k.invoked, "w"), false)
	})

	t.Run("a call that stops the run has a result, and so do the others", func(t *testing.T) {
		k := tools("stop", "w")
		why := fmt.Errorf("budget: %w", tool.ErrStop)
		k.do["stop"] = func(context.Context, func(string)) (tool.Result, error) { return tool.Text("no money"), why }
		r := request(&script{steps: []step{use("stop:1", "w:2", "w:3")}}, k)
		r.MaxCalls = 2 // the last call is over the limit
		lines, end := run(t.Context(), r)
		same(t, lines[2:], []string{"start 1", "end 1: no money", "end 2: " + agent.NotRunText, "end 3: " + agent.NotRunText,
			"end of run: stopped"})
		same(t, end.Err, why, cmpErr)
	})
}

func TestStopInGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := tools("p", "pstop")
		k.do["pstop"] = func(context.Context, func(string)) (tool.Result, error) {
			return tool.Text("no money"), tool.ErrStop
		}
		k.do["p"] = func(context.Context, func(string)) (tool.Result, error) {
			time.Sleep(time.Second)
			return tool.Text("ok"), nil
		}
		lines, end := run(t.Context(),
			request(&script{steps: []step{use("pstop:0", "p:1", "p:2", "p:3", "p:4", "p:5", "p:6", "p:7", "p:8", "p:9")}}, k))
		same(t, len(k.invoked), 8)
		same(t, lines[len(lines)-4:], []string{"end 7: ok", "end 8: " + agent.NotRunText, "end 9: " + agent.NotRunText,
			"end of run: stopped"})
		same(t, end.Reason, agent.Stopped)
	})
}

// TestReasons has several calls of a group end the run. The most severe reason
// applies, and of equal ones the first.
func TestReasons(t *testing.T) {
	errs := map[string]error{
		"pask":   tool.ErrSuspended,
		"pstop":  tool.ErrStop,
		"pfail":  errors.New("the ledger is gone"),
		"pfail2": errors.New("still gone"),
	}
	for calls, want := range map[string]agent.Reason{
		"pask pstop":                agent.Stopped,
		"pstop pask":                agent.Stopped,
		"pfail pstop":               agent.Failed,
		"pfail pfail2":              agent.Failed,
		"pfail p p p p p p p plate": agent.Failed,
	} {
		synctest.Test(t, func(t *testing.T) {
			k := tools("p", "pask", "pstop", "pfail", "pfail2")
			for i, name := range strings.Fields(calls) {
				k.do[name] = func(context.Context, func(string)) (tool.Result, error) {
					time.Sleep(time.Duration(i+1) * time.Second)
					return tool.Text("x"), errs[name]
				}
			}
			_, end := run(t.Context(), request(&script{steps: []step{use(strings.Fields(calls)...)}}, k))
			same(t, end.Reason, want)
			if want == agent.Failed {
				same(t, end.Err, errs["pfail"], cmpErr)
			}
			same(t, slices.Contains(k.invoked, "plate"), false)
		})
	}
}

func TestSteer(t *testing.T) {
	// steerAt returns a Steer that returns one message at its nth call.
	steerAt := func(n int) func(context.Context) ([]*llm.Message, error) {
		asked := 0
		return func(context.Context) ([]*llm.Message, error) {
			if asked++; asked == n {
				return []*llm.Message{llm.User("smaller")}, nil
			}
			return nil, nil
		}
	}
	t.Run("STEER-01 a message cancels the calls that have not started", func(t *testing.T) {
		m := &script{steps: []step{use("a:1", "b:2"), say("ok")}}
		r := request(m, tools("a", "b"))
		r.Steer = steerAt(3) // before the model call, before a, before b
		lines, _ := run(t.Context(), r)
		same(t, lines, []string{
			"turn 1", "assistant +a+b", "start 1", "end 1: did 1", "end 2: " + agent.SkippedText, "steered smaller",
			"turn 2", "text ok", "assistant ok", "end of run: done",
		})
		same(t, wire(m.reqs[1])[2:], []string{"toolResult did 1 (1)", "toolResult " + agent.SkippedText + " (2)",
			"user smaller"})
		same(t, m.reqs[1].Messages[3].IsError, true)
	})

	t.Run("an event that cancels calls is not called a message of the person", func(t *testing.T) {
		for text, want := range map[string]string{
			llm.EventPrefix + "The subagent has finished.": agent.OvertakenText,
			"smaller": agent.SkippedText,
		} {
			m := &script{steps: []step{use("a:1", "b:2"), say("ok")}}
			r := request(m, tools("a", "b"))
			asked := 0
			r.Steer = func(context.Context) ([]*llm.Message, error) {
				if asked++; asked == 3 {
					return []*llm.Message{llm.User(text)}, nil
				}
				return nil, nil
			}
			lines, _ := run(t.Context(), r)
			same(t, lines[4], "end 2: "+want)
		}
	})

	t.Run("STEER-02 a running parallel group is not interrupted", func(t *testing.T) {
		m := &script{steps: []step{use("p:1", "p:2"), say("ok")}}
		r := request(m, tools("p"))
		r.Steer = steerAt(3) // before the model call, before the batch, before the next model call
		_, _ = run(t.Context(), r)
		same(t, wire(m.reqs[1])[2:], []string{"toolResult did 1 (1)", "toolResult did 2 (2)", "user smaller"})
	})

	t.Run("an error of Steer fails the run", func(t *testing.T) {
		r := request(&script{steps: []step{say("ok")}}, nil)
		r.Steer = func(context.Context) ([]*llm.Message, error) { return nil, errors.New("no rows") }
		_, end := run(t.Context(), r)
		same(t, end.Reason, agent.Failed)
		ctx, cancel := context.WithCancel(t.Context())
		r.Steer = func(context.Context) ([]*llm.Message, error) { cancel(); return nil, ctx.Err() }
		_, end = run(ctx, r)
		same(t, end.Reason, agent.Aborted)
	})
}

func TestAbort(t *testing.T) {
	stopped := errors.New("stopped by a person")
	// abortAt runs r and cancels it at the first event of the kind.
	abortAt := func(t *testing.T, r *agent.Request, kind agent.Kind) (lines []string, end agent.Event) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		for e := range agent.Run(ctx, r) {
			lines = append(lines, line(e))
			if e.Kind == kind {
				cancel(stopped)
			}
			end = e
		}
		return lines, end
	}

	t.Run("the text that had arrived is yielded", func(t *testing.T) {
		lines, end := abortAt(t, request(&script{steps: []step{hang("half a")}}, nil), agent.Text)
		same(t, lines, []string{"turn 1", "text half a", "assistant half a partial", "end of run: aborted"})
		same(t, end.Err, stopped, cmpErr)
	})

	t.Run("a model that only ends its stream is aborted as well", func(t *testing.T) {
		ends := func(ctx context.Context, yield func(llm.Event, error) bool) {
			yield(llm.Event{Kind: llm.TextDelta, Text: "half a"}, nil)
			<-ctx.Done()
		}
		lines, _ := abortAt(t, request(&script{steps: []step{ends}}, nil), agent.Text)
		same(t, lines[2:], []string{"assistant half a partial", "end of run: aborted"})
	})

	t.Run("text before a restart is not yielded", func(t *testing.T) {
		again := func(ctx context.Context, yield func(llm.Event, error) bool) {
			yield(llm.Event{Kind: llm.TextDelta, Text: "wrong"}, nil)
			yield(llm.Event{Kind: llm.Restart}, nil)
			hang("right")(ctx, yield)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var partial string
		for e := range agent.Run(ctx, request(&script{steps: []step{again}}, nil)) {
			if e.Delta == "right" {
				cancel()
			}
			if e.Partial {
				partial = e.Message.PlainText()
				same(t, e.Message.Stop, llm.StopAborted)
				same(t, e.Message.Model, "m")
			}
		}
		same(t, partial, "right")
	})

	t.Run("TOOL-02 TH-07 an aborted tool has no result", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			k := tools("a")
			k.do["a"] = func(ctx context.Context, _ func(string)) (tool.Result, error) {
				<-ctx.Done()
				return tool.Result{}, ctx.Err()
			}
			lines, _ := abortAt(t, request(&script{steps: []step{use("a:1", "a:2")}}, k), agent.ToolStart)
			same(t, lines, []string{"turn 1", "assistant +a+a", "start 1", "end of run: aborted"})
			same(t, len(k.invoked), 0)
		})
	})

	t.Run("a result in spite of the abort is yielded", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			k := tools("p1", "p2")
			k.do["p1"] = func(ctx context.Context, update func(string)) (tool.Result, error) {
				update("sending")
				<-ctx.Done()
				time.Sleep(time.Second) // cannot be undone
				return tool.Text("mail is sent"), nil
			}
			k.do["p2"] = func(ctx context.Context, _ func(string)) (tool.Result, error) {
				<-ctx.Done()
				return tool.Result{}, ctx.Err()
			}
			lines, _ := abortAt(t, request(&script{steps: []step{use("p1:1", "p2:2")}}, k), agent.ToolUpdate)
			same(t, lines[len(lines)-2:], []string{"end 1: mail is sent", "end of run: aborted"})
		})
	})

	t.Run("a tool that ignores the abort is abandoned after five seconds", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			k := tools("p1", "p2")
			k.do["p1"] = func(_ context.Context, update func(string)) (tool.Result, error) {
				update("x")
				time.Sleep(time.Hour)
				return tool.Text("late"), nil
			}
			k.do["p2"] = func(context.Context, func(string)) (tool.Result, error) { return tool.Text("quick"), nil }
			start := time.Now()
			lines, _ := abortAt(t, request(&script{steps: []step{use("p1:1", "p2:2")}}, k), agent.ToolUpdate)
			same(t, time.Since(start), 5*time.Second)
			same(t, lines[len(lines)-2:], []string{"end 2: quick", "end of run: aborted"})
			time.Sleep(2 * time.Hour) // the goroutine ends and its report is dropped
		})
	})

	t.Run("no model call follows an abort", func(t *testing.T) {
		m := &script{steps: []step{say("ok")}}
		lines, _ := abortAt(t, request(m, nil), agent.TurnStart)
		same(t, lines, []string{"turn 1", "end of run: aborted"})
		same(t, len(m.reqs), 0)
	})

	t.Run("calls that wait for a slot are not started", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			k := tools("p")
			k.do["p"] = func(ctx context.Context, update func(string)) (tool.Result, error) {
				update("x")
				<-ctx.Done()
				return tool.Result{}, ctx.Err()
			}
			lines, _ := abortAt(t, request(&script{steps: []step{use("p", "p", "p", "p", "p", "p", "p", "p", "p:late")}}, k),
				agent.ToolUpdate)
			same(t, slices.Contains(lines, "start late"), false)
			same(t, lines[len(lines)-1], "end of run: aborted")
		})
	})

	t.Run("no call is started after an abort", func(t *testing.T) {
		k, r := tools("a", "b"), request(&script{steps: []step{use("a:1", "b:2")}}, nil)
		r.Tools = k
		r.Steer = func(ctx context.Context) ([]*llm.Message, error) {
			if ctx.Err() != nil {
				t.Error("messages are taken after the abort")
			}
			return nil, nil
		}
		lines, _ := abortAt(t, r, agent.ToolEnd)
		same(t, lines[2:], []string{"start 1", "end 1: did 1", "end of run: aborted"})
		same(t, k.invoked, []string{"a"})
	})

	t.Run("a complete answer is not affected by the abort", func(t *testing.T) {
		lines, _ := abortAt(t, request(&script{steps: []step{say("all of it")}}, nil), agent.Assistant)
		same(t, lines[2:], []string{"assistant all of it", "end of run: done"})
	})
}

// TestLeave breaks out of the range loop at each event in turn. Nothing may be
// yielded afterwards (the runtime panics), and synctest detects goroutines that
// remain.
func TestLeave(t *testing.T) {
	for n := range 12 {
		synctest.Test(t, func(t *testing.T) {
			k := tools("p1", "p2", "w")
			k.do["p1"] = func(ctx context.Context, update func(string)) (tool.Result, error) {
				update("a")
				select {
				case <-ctx.Done():
					return tool.Result{}, ctx.Err()
				case <-time.After(time.Second):
				}
				update("b")
				return tool.Text("ok"), nil
			}
			r := request(&script{steps: []step{use("p1:1", "p2:2", "w:3"), say("ok")}}, k)
			seen, start := 0, time.Now()
			for range agent.Run(t.Context(), r) {
				if seen++; seen > n {
					break
				}
			}
			k.mu.Lock()
			defer k.mu.Unlock()
			same(t, k.running, 0)
			if n < 5 { // the start of the second call was the last event
				same(t, slices.Contains(k.invoked, "w"), false)
				same(t, time.Since(start), time.Duration(0))
			}
		})
	}
}

// TestLeaveAnswer breaks out during an answer of a model that ignores its context.
// The rest of the answer is not read.
func TestLeaveAnswer(t *testing.T) {
	given := 0
	m := &script{steps: []step{func(_ context.Context, yield func(llm.Event, error) bool) {
		for given = 1; yield(llm.Event{Kind: llm.TextDelta, Text: "x"}, nil); given++ {
		}
	}}}
	for e := range agent.Run(t.Context(), request(m, nil)) {
		if e.Kind == agent.Text {
			break
		}
	}
	if given > 2 {
		t.Errorf("%d deltas were read", given)
	}
}

var cmpErr = cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) || errors.Is(b, a) })

// TestSpent checks that the usage of a model call without an answer is yielded
// once.
func TestSpent(t *testing.T) {
	used := llm.Usage{Input: 40, Output: 2}
	other := &llm.Model{Provider: "p", ID: "other"}
	broken := func(text string) step {
		return func(_ context.Context, yield func(llm.Event, error) bool) {
			yield(llm.Event{Kind: llm.TextDelta, Text: text}, nil)
			yield(llm.Event{Usage: used, By: other}, errors.New("broken"))
		}
	}
	stopped := func(text string) step {
		return func(ctx context.Context, yield func(llm.Event, error) bool) {
			if text != "" {
				yield(llm.Event{Kind: llm.TextDelta, Text: text}, nil)
			}
			<-ctx.Done()
			yield(llm.Event{Usage: used, By: other}, ctx.Err())
		}
	}
	second := func(ctx context.Context, yield func(llm.Event, error) bool) {
		yield(llm.Event{Kind: llm.Spent, Usage: used, By: other}, nil)
		say("yes")(ctx, yield)
	}
	for name, tt := range map[string]struct {
		step step
		kind agent.Kind // of the event that tells it
	}{
		"an error":               {broken("some"), agent.Spent},
		"a stop with text":       {stopped("some"), agent.Assistant},
		"a stop before any text": {stopped(""), agent.Spent},
		"others answer after it": {second, agent.Spent},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			events := 0
			for e := range agent.Run(ctx, request(&script{steps: []step{tt.step}}, nil)) {
				if e.Usage == used {
					events++
					if e.Kind != tt.kind || e.By != other {
						t.Errorf("%s: reported by an event of kind %d by %v, want %d", name, e.Kind, e.By, tt.kind)
					}
				}
			}
			if events != 1 {
				t.Errorf("%s: reported %d times", name, events)
			}
		})
	}
}

// A service that repeats the ids of calls gets its calls back with ids of their own,
// before and after it repeats one.
func TestRepeatedIDs(t *testing.T) {
	t.Parallel()
	s := &script{steps: []step{use("read:1", "read:2"), use("read:2", "read:3"), use("read:2"), say("done")}}
	r := request(s, tools("read"))
	run(t.Context(), r)
	last := s.reqs[len(s.reqs)-1].Messages
	var calls, results []string
	for _, m := range last {
		for _, c := range m.Calls() {
			calls = append(calls, c.ID)
		}
		if m.Role == llm.RoleTool {
			results = append(results, m.CallID)
		}
	}
	want := []string{"1", "2", "2-2", "3", "2-3"}
	same(t, calls, want)
	same(t, results, want)
}
