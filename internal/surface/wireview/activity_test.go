package wireview_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

func TestActivity(t *testing.T) {
	t.Parallel()
	got := wireview.Activity([]wire.Message{
		{Role: wire.RoleToolResult, ToolCallID: "c0", Meta: wire.MessageMeta{ID: "m0"}}, // its call is on an earlier page
		{Role: wire.RoleAssistant, Content: wire.Contents{
			{Type: wire.ContentText, Text: "Let me see."},
			{Type: wire.ContentCall, ID: "c1", Name: "read", Arguments: []byte(`{"path":"a"}`)},
			{Type: wire.ContentCall, ID: "c2", Name: "exec", Arguments: []byte(`{"command":"false"}`)},
		}},
		{Role: wire.RoleToolResult, ToolCallID: "c1", Meta: wire.MessageMeta{ID: "m1"}},
		{Role: wire.RoleToolResult, ToolCallID: "c2", IsError: true, Meta: wire.MessageMeta{ID: "m2"}},
	})
	item := func(id, call, name, title, status string) wire.Activity {
		return wire.Activity{MessageID: id, Items: []wire.ActivityItem{{
			ID: "tool:" + call, Phase: "end", Kind: "tool", Title: title, Status: status, Name: name, CallID: call,
		}}}
	}
	want := []wire.Activity{item("m1", "c1", "read", "read a", "completed"),
		item("m2", "c2", "exec", "exec false", "failed")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
