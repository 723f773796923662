package prompt

import "strings"

// Note returns what the model is told, behind the last message, about what is open in
// the session: its plan (see plan.Plan.Prompt) and its subagents (see subagent.Prompt).
// It is "" if nothing is open. It is not in the system prompt because it changes often,
// and the system prompt precedes the messages in the provider's cache.
func Note(plan, children string) string {
	var b strings.Builder
	section(&b, "Plan", plan)
	section(&b, "Subagents", children)
	if b.Len() == 0 {
		return ""
	}
	return "<session-state>\nAdded by Chela to this request. The person did not write it and does not see it.\n" +
		b.String() + "</session-state>"
}
