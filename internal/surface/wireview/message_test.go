package wireview_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

func TestSilent(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text              string
		mayBecome, silent bool
	}{
		{"", true, false},
		{" \n", true, false},
		{"N", true, false},
		{"\nno_R", true, false},
		{"NO_REPLY", true, true},
		{" no_reply \n", true, true},
		{"NO_REPLY.", false, false},
		{"NO_REPLY is what I would say", false, false},
		{"Now", false, false},
		{"ＮO_REPLY", false, false},
	} {
		if got := wireview.Silent(tc.text, "", false); got != tc.mayBecome {
			t.Errorf("Silent(%q, in part) = %v", tc.text, got)
		}
		if got := wireview.Silent(tc.text, "", true); got != tc.silent {
			t.Errorf("Silent(%q, whole) = %v", tc.text, got)
		}
	}
}

func TestRow(t *testing.T) {
	t.Parallel()
	rows := wireview.Rows{Model: func(session.Meta) wire.SessionModel {
		return wire.SessionModel{Provider: "mock", Model: "m1"}
	}}
	m := session.Meta{
		Key:     "agent:main:telegram:group:-1",
		ID:      "t1",
		Updated: time.UnixMilli(7),
		NanoUSD: 5e8,
		Priced:  true,
	}
	for i, tc := range []struct {
		active []run.Run
		status string
		ids    []string
	}{
		{nil, "", []string{}},
		{[]run.Run{{ID: "s", State: run.Suspended}}, "", []string{}},
		{[]run.Run{{ID: "s", State: run.Suspended}, {ID: "r", State: run.Running}}, "running", []string{"r"}},
		{[]run.Run{{ID: "r", State: run.Running}, {ID: "s", State: run.Suspended}}, "running", []string{"r"}},
	} {
		got := rows.Row(m, tc.active, 2)
		cost := 0.5
		want := wire.Session{
			Key: string(m.Key), Kind: "group", AgentID: "main", SessionID: "t1", UpdatedAt: 7, Provider: "mock", Model: "m1",
			Cost: &cost, Active: len(tc.ids) > 0, Runs: tc.ids, Status: tc.status, Queued: 2, ChatType: "group", Waiting: i > 0,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("with runs %v (-want +got):\n%s", tc.active, diff)
		}
	}
}

func TestKind(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		key  chela.SessionKey
		a    chela.Address
		want string
	}{
		{"agent:main:main", chela.Address{}, "direct"},
		{"agent:main:main", chela.Address{Peer: chela.Peer{Kind: chela.Direct, ID: "1"}}, "direct"},
		{"agent:main:x", chela.Address{Peer: chela.Peer{Kind: chela.Room, ID: "1"}}, "group"},
		{"agent:main:telegram:group:1", chela.Address{}, "group"},
	} {
		if got := wireview.Kind(tc.key, tc.a); got != tc.want {
			t.Errorf("Kind(%s, %+v) = %s, want %s", tc.key, tc.a, got, tc.want)
		}
	}
}

func TestEnd(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[chela.Outcome]string{
		"ok":         wire.StatusOK,
		"timeout":    wire.StatusTimeout,
		"error":      wire.StatusError,
		"aborted":    wire.StatusError,
		"superseded": wire.StatusError,
	} {
		if got := wireview.Status(outcome); got != want {
			t.Errorf("Status(%s) = %s, want %s", outcome, got, want)
		}
	}
	for _, tc := range []struct {
		text   string
		silent bool
		want   wire.Reply
	}{
		{"hi", false, wire.Reply{Disposition: "visible", Text: "hi"}},
		{"", false, wire.Reply{Disposition: "empty"}},
		{"NO_REPLY", true, wire.Reply{Disposition: "silent"}},
	} {
		if got := wireview.Reply(tc.text, tc.silent); *got != tc.want {
			t.Errorf("Reply(%q, %v) = %+v, want %+v", tc.text, tc.silent, *got, tc.want)
		}
	}
}

// TestEvents checks what a person is shown of events, whose texts tell a model what to do.
func TestEvents(t *testing.T) {
	t.Parallel()
	weekday := job.Job{Name: "weekday"}
	for _, tt := range []struct {
		from       chela.OriginKind
		text, want string
	}{
		{chela.OriginCron, weekday.ResultText(nil, "all is well\nreally"), `The scheduled job "weekday" has ended.`},
		{chela.OriginCron, weekday.ResultText(errors.New("nobody is there"), "all is well"),
			`The scheduled job "weekday" has ended. It was to be sent elsewhere, but nobody is there.`},
		{chela.OriginCron, "another text\nand more", "another text"},
	} {
		m, ok := wireview.Message(session.Entry{Kind: session.KindMessage, Origin: chela.Origin{Kind: tt.from},
			Message: llm.User(llm.EventPrefix + tt.text)})
		if !ok || len(m.Content) != 1 || m.Content[0].Text != tt.want {
			t.Errorf("%q is shown as %+v, want %q", tt.text, m.Content, tt.want)
		}
	}
}

func TestOrigin(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		e    session.Entry
		want string
	}{
		{"the result of a subagent", session.Entry{Origin: chela.Origin{Kind: chela.OriginSubagent}}, wire.RoleSystem},
		{"a person", session.Entry{ItemID: "i", Origin: chela.Origin{Kind: chela.OriginPerson}}, wire.RoleUser},
		{"a person, without an item", session.Entry{Origin: chela.Origin{Kind: chela.OriginPerson}}, wire.RoleUser},
		{"unknown", session.Entry{}, wire.RoleUser},
		{"a background command", session.Entry{Origin: chela.Origin{Kind: chela.OriginProcess, ID: "c"}}, wire.RoleSystem},
		{"system events", session.Entry{Origin: chela.Origin{Kind: chela.OriginSystem}}, wire.RoleSystem},
	} {
		tt.e.Kind, tt.e.Message = session.KindMessage, llm.User(llm.EventPrefix+"first\nand more")
		m, ok := wireview.Message(tt.e)
		if isNotice := m.Meta.Kind == string(session.KindNotice); !ok || m.Role != tt.want ||
			isNotice != (tt.want == wire.RoleSystem) {
			t.Errorf("%s: role %s, kind %s", tt.name, m.Role, m.Meta.Kind)
		}
		text := llm.EventPrefix + "first\nand more"
		switch {
		case tt.e.Origin.Kind == chela.OriginSubagent: // the model tells the result
			text = "first"
		case tt.want == wire.RoleSystem:
			text = "first\nand more"
		}
		if m.Text() != text {
			t.Errorf("%s: text %q, want %q", tt.name, m.Text(), text)
		}
	}
}
