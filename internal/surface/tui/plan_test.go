package tui

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/internal/surface/tui/feed"
	"github.com/chela-ai/chela/wire"
)

// planStep returns a step that changes the plan to one with the states.
func planStep(states ...string) feed.Step {
	p := wire.Plan{Steps: []wire.PlanStep{
		{ID: "read", Step: "read the \x1b[2Jcode"},
		{ID: "fix", Step: "fix the bug of the parser in the module", After: []string{"read"}},
		{ID: "test", Step: "run the tests", After: []string{"fix", "read"}},
	}}
	for i := range p.Steps {
		p.Steps[i].Status = states[i]
	}
	return feed.Step{Kind: feed.PlanChanged, Run: "r", Plan: p}
}

// above returns the drawn lines above the line of the session.
func (s *screen) above() string {
	text, _, _ := strings.Cut(ansi.Clean(s.draw().Content), "──")
	return strings.TrimLeft(text, "\n")
}

func TestPlanFolding(t *testing.T) {
	s := alone(t)
	s.step(feed.Step{Kind: feed.RunStarted, Run: "r"})
	s.active = "" // without the line about the progress
	shows := func(when, want string) {
		t.Helper()
		if d := cmp.Diff(want, s.above()); d != "" {
			t.Errorf("%s (-want +got)\n%s", when, d)
		}
	}
	shows("without a plan", "")
	s.step(planStep("in_progress", "pending", "pending"))
	shows("folded", "▸ plan 0/3 · read the code\n")
	s.step(planStep("completed", "in_progress", "pending"))
	shows("updated in place", "▸ plan 1/3 · fix the bug of the parser in the module\n")
	press(s, "ctrl+o")
	shows("unfolded", "▾ plan 1/3\n  ✓ read: read the code\n  ● fix: fix the bug of the parser in the module (after read)\n  ○ test: run the tests (after fix, read)\n")
	s.resize(40, 24)
	shows("narrow", "▾ plan 1/3\n  ✓ read: read the code\n  ● fix: fix the bug of the parser in\n    the module (after read)\n  ○ test: run the tests (after fix,\n    read)\n")
	s.resize(40, 15)
	shows("narrow and low", "▾ plan 1/3\n  ● fix: fix the bug of the parser in\n    the module (after read)\n  … 2 more\n")
	s.resize(40, 3)
	shows("without room", "")
	s.resize(80, 24)
	press(s, "ctrl+o")
	shows("folded again", "▸ plan 1/3 · fix the bug of the parser in the module\n")
	s.step(feed.Step{Kind: feed.ToolStarted, Run: "r", Tool: feed.Tool{ID: "c", Name: "plan", Label: "plan 3/3"}})
	s.step(planStep("completed", "failed", "cancelled"))
	s.step(feed.Step{Kind: feed.ToolEnded, Run: "r", Tool: feed.Tool{ID: "c", Name: "plan", Label: "plan 3/3"}})
	shows("finished", "")
	if got := strings.Join(s.scroll.lines, "\n"); got != "▸ plan 3/3" {
		t.Errorf("printed: %s", got)
	}
	s.step(feed.Step{Kind: feed.ToolEnded, Run: "r", Tool: feed.Tool{
		ID:     "d",
		Name:   "plan",
		Label:  "plan 0/1",
		Failed: true,
		Output: `{"error":"a cycle"}`,
	}})
	if got := s.allText(); !strings.Contains(got, "✗ plan 0/1: a cycle") {
		t.Errorf("a refused plan: %s", got)
	}
	press(s, "ctrl+o")
	s.scroll.lines = nil
	s.step(planStep("completed", "failed", "cancelled"))
	if got := ansi.Clean(strings.Join(s.scroll.lines, "\n")); !strings.HasSuffix(got, "▾ plan 3/3\n  ✓ read: read the code\n  ✗ fix: fix the bug of the parser in the module (after read)\n  – test: run the tests") {
		t.Errorf("printed unfolded:\n%s", got)
	}
	s.step(planStep("completed", "in_progress", "pending"))
	for _, st := range s.feed.Steps(event(t, wire.EventSessionsChanged, wire.SessionsChanged{SessionKey: own,
		Reason: wire.ChangeReset, Row: &wire.Session{}})) {
		s.step(st)
	}
	shows("after a reset", "")
}

// event returns an event with the payload.
func event(t *testing.T, name string, payload any) wire.Event {
	t.Helper()
	b, err := wire.Encode(payload)
	if err != nil {
		t.Fatal(err)
	}
	return wire.Event{Type: wire.TypeEvent, Name: name, Payload: b}
}

func TestPlanInHistory(t *testing.T) {
	s := alone(t)
	p := planStep("completed", "in_progress", "pending").Plan
	call := wire.Content{Type: wire.ContentCall, ID: "c", Name: "plan",
		Arguments: []byte(`{"steps":[{"title":"a","state":"completed"}]}`)}
	s.showHistory(wire.History{SessionID: "s", Plan: &p, Messages: []wire.Message{
		stored(1, wire.RoleUser, "r", "go"), stored(2, wire.RoleAssistant, "r", "", call),
		{Role: wire.RoleToolResult, ToolCallID: "c", Content: wire.TextContent("ok"), Meta: wire.MessageMeta{Seq: 3}},
	}})
	if got := strings.Join(s.scroll.lines, "\n"); got != "❯ go\n\n▸ plan 1/1" {
		t.Errorf("printed: %q", got)
	}
	if got := s.above(); !strings.HasSuffix(got, "▸ plan 1/3 · fix the bug of the parser in the module\n") {
		t.Errorf("drawn: %q", got)
	}
	s.showHistory(wire.History{SessionID: "s"})
	if got := s.above(); strings.Contains(got, "plan") {
		t.Errorf("drawn without a plan: %q", got)
	}
}
