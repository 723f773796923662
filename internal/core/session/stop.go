package session

import (
	"slices"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
)

// LastStop returns why the model ended the last answer of a run, given the last entries of
// its transcript; "": they have no answer of the run.
func LastStop(entries []Entry, id chela.RunID) llm.StopReason {
	for _, e := range slices.Backward(entries) {
		if e.Kind == KindMessage && e.Run == id && e.Message.Role == llm.RoleAssistant {
			return e.Message.Stop
		}
	}
	return ""
}
