package feed

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/wire"
)

const key = "agent:main:main"

func event(t *testing.T, name string, v any) wire.Event {
	t.Helper()
	b, err := wire.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return wire.Event{Type: wire.TypeEvent, Name: name, Payload: b}
}

func agent(t *testing.T, run string, seq int64, stream string, data any) wire.Event {
	t.Helper()
	b, err := wire.Encode(data)
	if err != nil {
		t.Fatal(err)
	}
	return event(t, wire.EventAgent, wire.Agent{RunID: run, SessionKey: key, Seq: seq, Stream: stream, Data: b})
}

func chat(t *testing.T, run string, seq int64, state, text string) wire.Event {
	t.Helper()
	c := wire.Chat{RunID: run, SessionKey: key, Seq: seq, State: state}
	if text != "" {
		c.Message = &wire.Message{Role: wire.RoleAssistant, Content: wire.TextContent(text)}
	}
	return event(t, wire.EventChat, c)
}

func TestFeed(t *testing.T) {
	t.Parallel()
	output := func(s string) *wire.ToolOutput { return &wire.ToolOutput{Content: wire.TextContent(s)} }
	read := Tool{ID: "c", Name: "read", Label: "read a.go"}
	failed := read
	failed.Output, failed.Failed, failed.Took = "no", true, 20*time.Millisecond
	other := wire.ApprovalRequest{Command: "c", SessionKey: "agent:main:other", RunID: "o"}
	for _, tt := range []struct {
		name   string
		before func(*Feed)
		events []wire.Event
		want   []Step
	}{
		{"a turn with a tool", nil, []wire.Event{
			agent(t, "r", 1, wire.StreamLifecycle, wire.Lifecycle{Phase: wire.PhaseStart}),
			agent(t, "r", 2, wire.StreamThinking, wire.Assistant{Text: "hm"}),
			chat(t, "r", 3, wire.StateDelta, "I look"),
			agent(t, "r", 4, wire.StreamTool,
				wire.ToolStep{Phase: wire.PhaseStart, Name: "read", CallID: "c", Args: json.RawMessage(`{"path":"a.go"}`)}),
			agent(t, "r", 5, wire.StreamTool,
				wire.ToolStep{Phase: wire.PhaseUpdate, Name: "read", CallID: "c", Partial: output("x")}),
			agent(t, "r", 6, wire.StreamTool, wire.ToolStep{
				Phase:   wire.PhaseResult,
				Name:    "read",
				CallID:  "c",
				IsError: true,
				Ms:      20,
				Result:  output("no"),
			}),
			agent(t, "r", 7, wire.StreamLifecycle, wire.Lifecycle{Phase: wire.PhaseModel}),
			chat(t, "r", 8, wire.StateDelta, "So"),
			chat(t, "r", 9, wire.StateFinal, "So it is"),
		}, []Step{
			{Kind: RunStarted, Run: "r"}, {Kind: Thinking, Run: "r", Text: "hm"}, {Kind: Text, Run: "r", Text: "I look"},
			{Kind: TextEnded, Run: "r"}, {Kind: ToolStarted, Run: "r", Tool: read},
			{Kind: ToolOutput, Run: "r", Tool: read, Text: "x"},
			{Kind: ToolEnded, Run: "r", Tool: failed}, {Kind: Text, Run: "r", Text: "So"},
			{Kind: RunEnded, Run: "r", End: End{State: wire.StateFinal, Text: "So it is"}},
		}},
		{"the end of a run carries what to show below the answer", nil, []wire.Event{
			event(t, wire.EventChat, wire.Chat{
				RunID:      "r",
				SessionKey: key,
				State:      wire.StateFinal,
				Stop:       wire.StopLimit,
				Message: &wire.Message{
					Content: wire.TextContent("a"), Meta: wire.MessageMeta{Footer: "12 tokens"},
				},
			}),
			event(t, wire.EventChat, wire.Chat{
				RunID:        "f",
				SessionKey:   key,
				State:        wire.StateError,
				ErrorMessage: "no",
				ErrorDetail:  &wire.ErrorDetail{Provider: "p", Model: "m"},
			}),
			event(t, wire.EventChat,
				wire.Chat{RunID: "g", SessionKey: key, State: wire.StateError, ErrorDetail: &wire.ErrorDetail{Model: "m"}}),
		}, []Step{
			{Kind: RunEnded, Run: "r", End: End{State: wire.StateFinal, Text: "a", Stop: wire.StopLimit, Footer: "12 tokens"}},
			{Kind: RunEnded, Run: "f", End: End{State: wire.StateError, Error: "no", Model: "p/m"}},
			{Kind: RunEnded, Run: "g", End: End{State: wire.StateError, Model: "m"}},
		}},
		{"approvals of every session, a notice, the end of the gateway", nil, []wire.Event{
			event(t, wire.EventApprovalRequested, wire.Approval{ID: "a", Request: other}),
			event(t, wire.EventApprovalResolved, wire.ApprovalResolved{ID: "a", Decision: wire.Deny, By: "x", Request: other}),
			agent(t, "r", 1, wire.StreamNotice, wire.Notice{Text: "n"}),
			event(t, wire.EventShutdown, wire.Shutdown{Reason: "update"}),
		}, []Step{
			{Kind: ApprovalRequested, Run: "o", Approval: wire.Approval{ID: "a", Request: other}},
			{Kind: ApprovalResolved, Run: "o", Text: wire.Deny, Approval: wire.Approval{ID: "a", Request: other}},
			{Kind: Notice, Run: "r", Text: "n"},
			{Kind: Stopping, Text: "update"},
		}},
		{"a change of this session", nil, []wire.Event{
			event(t, wire.EventSessionsChanged,
				wire.SessionsChanged{SessionKey: "agent:main:other", Row: &wire.Session{Label: "o"}}),
			event(t, wire.EventSessionsChanged, wire.SessionsChanged{SessionKey: key}), // it is gone
			event(t, wire.EventSessionsChanged, wire.SessionsChanged{SessionKey: key, Row: &wire.Session{Label: "l"}}),
		}, []Step{{Kind: SessionChanged, Session: &wire.Session{Label: "l"}}}},
		{"a subagent of this session", nil, []wire.Event{
			event(t, wire.EventTask,
				wire.TaskChanged{Task: wire.Task{ID: "a", Kind: "subagent", SessionKey: "agent:main:other"}}),
			event(t, wire.EventTask, wire.TaskChanged{Task: wire.Task{ID: "b", Kind: "command", SessionKey: key}}),
			event(t, wire.EventTask, wire.TaskChanged{Task: wire.Task{ID: "c", Kind: "subagent", SessionKey: key}}),
		}, []Step{{Kind: SubagentChanged, Task: wire.Task{ID: "c", Kind: "subagent", SessionKey: key}}}},
		{"the plan of this session was removed", nil, []wire.Event{
			event(t, wire.EventProgressChanged, wire.ProgressChanged{SessionKey: "agent:main:other"}),
			event(t, wire.EventProgressChanged, wire.ProgressChanged{SessionKey: key, Revision: new(int64)}),
			event(t, wire.EventProgressChanged, wire.ProgressChanged{SessionKey: key}),
		}, []Step{{Kind: PlanChanged}}},
		{"a run ends once", nil, []wire.Event{
			chat(t, "r", 1, wire.StateError, ""), chat(t, "r", 1, wire.StateError, ""), chat(t, "r", 2, wire.StateDelta, "late"),
			agent(t, "r", 3, wire.StreamNotice, wire.Notice{Text: "late"}),
		}, []Step{{Kind: RunEnded, Run: "r", End: End{State: wire.StateError}}}},
		{"events in the history are skipped", func(f *Feed) { f.Resume("r", 5, true) }, []wire.Event{
			agent(t, "r", 5, wire.StreamLifecycle, wire.Lifecycle{Phase: wire.PhaseModel}),
			chat(t, "r", 5, wire.StateDelta, "old"),
			chat(t, "r", 6, wire.StateDelta, "old and new"),
			agent(t, "r", 7, wire.StreamLifecycle, wire.Lifecycle{Phase: wire.PhaseSuspended}),
		}, []Step{{Kind: Text, Run: "r", Text: "old and new"}, {Kind: TextEnded, Run: "r"}, {Kind: Suspended, Run: "r"}}},
		{"an empty text is only shown in place of another one", nil, []wire.Event{
			chat(t, "r", 1, wire.StateDelta, ""), chat(t, "r", 2, wire.StateDelta, "a"), chat(t, "r", 3, wire.StateDelta, ""),
		}, []Step{{Kind: Text, Run: "r", Text: "a"}, {Kind: Text, Run: "r"}}},
		{"a message that is in progress in the history ends",
			func(f *Feed) { f.Resume("r", 5, true); f.Resume("s", 5, false) }, []wire.Event{
				agent(t, "r", 6, wire.StreamLifecycle, wire.Lifecycle{Phase: wire.PhaseModel}),
				agent(t, "s", 6, wire.StreamLifecycle, wire.Lifecycle{Phase: wire.PhaseModel}),
			}, []Step{{Kind: TextEnded, Run: "r"}}},
		{"a run that the history contains completely", func(f *Feed) { f.MarkEnded("r") },
			[]wire.Event{chat(t, "r", 1, wire.StateFinal, "a")}, nil},
		{"after a reset, nothing is in progress, and events are numbered from the beginning", func(f *Feed) {
			f.Resume("r", 5, true)
			f.Resume("s", 5, true)
			f.Steps(agent(t, "r", 6, wire.StreamTool, wire.ToolStep{Phase: wire.PhaseStart, Name: "read", CallID: "c",
				Meta: "read b.go"}))
			f.Reset()
		}, []wire.Event{
			chat(t, "r", 1, wire.StateDelta, "a"),
			agent(t, "s", 1, wire.StreamTool,
				wire.ToolStep{Phase: wire.PhaseStart, Name: "read", CallID: "c", Meta: "read a.go"}),
		}, []Step{{Kind: Text, Run: "r", Text: "a"}, {Kind: ToolStarted, Run: "s", Tool: read}}},
		{"a suspended call starts once", nil, []wire.Event{
			agent(t, "r", 1, wire.StreamTool,
				wire.ToolStep{Phase: wire.PhaseStart, Name: "read", CallID: "c", Meta: "read a.go"}),
			agent(t, "r", 2, wire.StreamLifecycle, wire.Lifecycle{Phase: wire.PhaseResume}),
			agent(t, "r", 3, wire.StreamTool,
				wire.ToolStep{Phase: wire.PhaseStart, Name: "read", CallID: "c", Meta: "read a.go"}),
		}, []Step{{Kind: ToolStarted, Run: "r", Tool: read}, {Kind: RunStarted, Run: "r"}}},
		{"a later call may have the same id", nil, []wire.Event{
			agent(t, "r", 1, wire.StreamTool,
				wire.ToolStep{Phase: wire.PhaseStart, Name: "read", CallID: "c", Meta: "read a.go"}),
			// without output
			agent(t, "r", 2, wire.StreamTool, wire.ToolStep{Phase: wire.PhaseResult, Name: "read", CallID: "c"}),
			agent(t, "r", 3, wire.StreamTool,
				wire.ToolStep{Phase: wire.PhaseStart, Name: "read", CallID: "c", Meta: "read a.go"}),
		}, []Step{{Kind: ToolStarted, Run: "r", Tool: read}, {Kind: ToolEnded, Run: "r", Tool: read},
			{Kind: ToolStarted, Run: "r", Tool: read}}},
		{"events of other sessions are ignored", nil, []wire.Event{
			event(t, wire.EventChat, wire.Chat{RunID: "x", SessionKey: "agent:main:other", State: wire.StateFinal}),
			event(t, wire.EventSessionMessage,
				wire.SessionMessage{SessionKey: "agent:main:other", Message: wire.Message{Role: wire.RoleUser}}),
			event(t, wire.EventAgent, wire.Agent{
				RunID:      "x",
				SessionKey: "agent:main:other",
				Seq:        1,
				Stream:     wire.StreamLifecycle,
				Data:       json.RawMessage(`{"phase": "start"}`),
			}),
		}, nil},
		{"own messages are not repeated", func(f *Feed) { f.Own("mine") }, []wire.Event{
			event(t, wire.EventSessionMessage,
				wire.SessionMessage{SessionKey: key, Message: wire.Message{Role: wire.RoleUser, IdempotencyKey: "mine:user"}}),
			event(t, wire.EventSessionMessage, wire.SessionMessage{SessionKey: key, Message: wire.Message{Role: wire.RoleUser,
				IdempotencyKey: "x:user", Content: wire.TextContent("hi")}}),
			event(t, wire.EventSessionMessage, wire.SessionMessage{SessionKey: key,
				Message: wire.Message{Role: wire.RoleAssistant, Content: wire.TextContent("an answer")}}),
		}, []Step{{Kind: UserMessage, Run: "x", Text: "hi"}}},
		{"invalid events are ignored", nil, []wire.Event{
			{Name: wire.EventChat, Payload: json.RawMessage(`{"state": 1}`)},
			{Name: "later.version", Payload: json.RawMessage(`{}`)},
			agent(t, "r", 1, wire.StreamTool, "?"),
		}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := New(key)
			if tt.before != nil {
				tt.before(f)
			}
			var got []Step
			for _, e := range tt.events {
				got = append(got, f.Steps(e)...)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

func TestPosition(t *testing.T) {
	t.Parallel()
	f := New(key)
	f.Steps(event(t, wire.EventSessionMessage, wire.SessionMessage{SessionKey: key, SessionID: "s", Seq: 7}))
	if f.ID != "s" || f.Seq != 7 {
		t.Errorf("after message 7 of session s: %d of %q", f.Seq, f.ID)
	}
}

func TestReason(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"status":"error","error":"it is gone\nreally"}`: "it is gone really", "\n plain\nmore": "plain more",
		"": "failed", "{}": "failed",
	} {
		if got := (Tool{Output: in}).Reason(); got != want {
			t.Errorf("Why of %q = %q, want %q", in, got, want)
		}
	}
}

func TestAfter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ shown, answer, want string }{
		{"one, two", "one, two\n\n⚠️ incomplete", "⚠️ incomplete"}, {"one, two\n", "one, two\n\nmore", "more"},
		{"", "all", "all"}, {"one", "one and two", "one and two"}, {"else", "all", "all"},
	} {
		if got := After(tt.shown, tt.answer); got != tt.want {
			t.Errorf("after %q of %q: %q, want %q", tt.shown, tt.answer, got, tt.want)
		}
	}
}
