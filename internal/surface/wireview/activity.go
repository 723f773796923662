package wireview

import (
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/wire"
)

// Activity returns a line for each tool result whose call is among the
// messages.
func Activity(messages []wire.Message) []wire.Activity {
	var out []wire.Activity
	calls := map[string]wire.Content{}
	for _, m := range messages {
		for _, c := range m.Content {
			if c.Type == wire.ContentCall {
				calls[c.ID] = c
			}
		}
		call, ok := calls[m.ToolCallID]
		if m.Role != wire.RoleToolResult || !ok {
			continue
		}
		status := "completed"
		if m.IsError || tool.CommandFailed(m.Details) != "" {
			status = "failed"
		}
		out = append(out, wire.Activity{MessageID: m.Meta.ID, Items: []wire.ActivityItem{{
			ID: "tool:" + call.ID, Phase: wire.PhaseEnd, Kind: "tool",
			Title:  chela.CallTitle(call.Name, call.Title, call.Arguments),
			Status: status, Name: call.Name, CallID: call.ID,
		}}})
	}
	return out
}
