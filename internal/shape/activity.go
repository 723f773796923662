package shape

import (
	"encoding/json"
	"strings"

	"github.com/chela-ai/chela/wire"
)

// Activity returns a line for each tool result of a piece of a history that
// also has the call.
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
		if m.IsError {
			status = "failed"
		}
		out = append(out, wire.Activity{MessageID: m.Meta.ID, Items: []wire.ActivityItem{{
			ID: "tool:" + call.ID, Phase: wire.PhaseEnd, Kind: "tool", Title: CallTitle(call.Name, call.Arguments),
			Status: status, Name: call.Name, CallID: call.ID,
		}}})
	}
	return out
}

// maxTitle bounds a title, in characters.
const maxTitle = 120

// CallTitle returns a tool call in one line: its name and what it is about.
func CallTitle(name string, args json.RawMessage) string {
	var fields map[string]any
	if json.Unmarshal(args, &fields) != nil {
		return name
	}
	for _, key := range [...]string{"command", "path", "file_path", "pattern", "query", "url", "name", "text"} {
		text, _ := fields[key].(string)
		text, _, more := strings.Cut(strings.TrimSpace(text), "\n")
		if text == "" {
			continue
		}
		if rs := []rune(text); len(rs) > maxTitle {
			text, more = string(rs[:maxTitle]), true
		}
		if more {
			text += "…"
		}
		return name + " " + text
	}
	return name
}
