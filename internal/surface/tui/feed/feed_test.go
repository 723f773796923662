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
			agent(t, "r", 4, wire.StreamTool, wire.ToolStep{Phase: wire.PhaseStart, Name: "read", CallID: "c", Args: json.RawMessage(`{"path":"a.go"}`)}),
			agent(t, "r", 5, wire.StreamTool, wire.ToolStep{Phase: wire.PhaseUpdate, Name: "read", CallID: "c", Partial: output("x")}),
			agent(t, "r", 6, wire.StreamTool, wire.ToolStep{Phase: wire.PhaseResult, Name: "read", CallID: "c", IsError: true, Ms: 20, Result: output("no")}),
			agent(t, "r", 7, wire.StreamLifecycle, wire.Lifecycle{Phase: wire.PhaseModel}),
			chat(t, "r", 8, wire.StateDelta, "So"),
			chat(t, "r", 9, wire.StateFinal, "So it is"),
		}, []Step{
			{Kind: RunStarted, Run: "r"}, {Kind: Thinking, Run: "r", Text: "hm"}, {Kind: Text, Run: "r", Text: "I look"},
			{Kind: TextEnded, Run: "r"}, {Kind: ToolStarted, Run: "r", Tool: read}, {Kind: ToolOutput, Run: "r", Tool: read, Text: "x"},
			{Kind: ToolEnded, Run: "r", Tool: failed}, {Kind: Text, Run: "r", Text: "So"},
			{Kind: RunEnded, Run: "r", End: End{State: wire.StateFinal, Text: "So it is"}},
		}},
		{"a run ends once", nil, []wire.Event{
			chat(t, "r", 1, wire.StateError, ""), chat(t, "r", 1, wire.StateError, ""), chat(t, "r", 2, wire.StateDelta, "late"),
			agent(t, "r", 3, wire.StreamNotice, wire.Notice{Text: "late"}),
		}, []Step{{Kind: RunEnded, Run: "r", End: End{State: wire.StateError}}}},
		{"events in the history are skipped", func(f *Feed) { f.Resume("r", 5, true) }, []wire.Event{
			agent(t, "r", 2, wire.StreamLifecycle, wire.Lifecycle{Phase: wire.PhaseModel}), chat(t, "r", 5, wire.StateDelta, "old"),
			chat(t, "r", 6, wire.StateDelta, "old and new"), agent(t, "r", 7, wire.StreamLifecycle, wire.Lifecycle{Phase: wire.PhaseSuspended}),
		}, []Step{{Kind: Text, Run: "r", Text: "old and new"}, {Kind: TextEnded, Run: "r"}, {Kind: Suspended, Run: "r"}}},
		{"after a reset, events are numbered from the beginning", func(f *Feed) { f.Resume("r", 5, false); f.Reset() }, []wire.Event{
			chat(t, "r", 1, wire.StateDelta, "a"),
		}, []Step{{Kind: Text, Run: "r", Text: "a"}}},
		{"a suspended call starts once", nil, []wire.Event{
			agent(t, "r", 1, wire.StreamTool, wire.ToolStep{Phase: wire.PhaseStart, Name: "read", CallID: "c", Meta: "read a.go"}),
			agent(t, "r", 2, wire.StreamLifecycle, wire.Lifecycle{Phase: wire.PhaseResume}),
			agent(t, "r", 3, wire.StreamTool, wire.ToolStep{Phase: wire.PhaseStart, Name: "read", CallID: "c", Meta: "read a.go"}),
		}, []Step{{Kind: ToolStarted, Run: "r", Tool: read}, {Kind: RunStarted, Run: "r"}}},
		{"events of other sessions are ignored", nil, []wire.Event{
			event(t, wire.EventChat, wire.Chat{RunID: "x", SessionKey: "agent:main:other", State: wire.StateFinal}),
			event(t, wire.EventSessionMessage, wire.SessionMessage{SessionKey: "agent:main:other", Message: wire.Message{Role: wire.RoleUser}}),
		}, nil},
		{"own messages are not repeated", func(f *Feed) { f.Own("mine") }, []wire.Event{
			event(t, wire.EventSessionMessage, wire.SessionMessage{SessionKey: key, Message: wire.Message{Role: wire.RoleUser, IdempotencyKey: "mine:user"}}),
			event(t, wire.EventSessionMessage, wire.SessionMessage{SessionKey: key, Message: wire.Message{Role: wire.RoleUser, IdempotencyKey: "x:user", Content: wire.TextContent("hi")}}),
		}, []Step{{Kind: UserMessage, Run: "x", Text: "hi"}}},
		{"invalid events are ignored", nil, []wire.Event{
			{Name: wire.EventChat, Payload: json.RawMessage(`{"state": 1}`)}, {Name: "later.version", Payload: json.RawMessage(`{}`)},
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

func TestReason(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"status":"error","error":"it is gone\nreally"}`: "it is gone", "plain\nmore": "plain", "": "", "{}": "{}",
	} {
		if got := (Tool{Output: in}).Reason(); got != want {
			t.Errorf("Why of %q = %q, want %q", in, got, want)
		}
	}
}
