package heartbeat

import (
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/core/run"
)

// DefaultPrompt is the message of a tick if the configuration has none.
const DefaultPrompt = "This is the periodic check. Do what HEARTBEAT.md in your workspace says, if there is such a file, and nothing else: " +
	"do not continue or repeat work of earlier messages. If nothing needs the person's attention, answer only " +
	run.HeartbeatOK + "."

// Message returns the message of a heartbeat. A tick has the prompt of the settings and the
// tasks that are due. events says that events wait for a wake: they are above the message.
func (s Settings) Message(w Wake, due []Task, events bool) string {
	caused := w.Reason != ReasonInterval && w.Reason != ReasonManual && w.Reason != ReasonRetry
	var b strings.Builder
	if !w.Tick.IsZero() || !caused && !events {
		b.WriteString(s.Prompt)
	}
	if len(due) > 0 {
		b.WriteString("\n\nTasks that are due now:")
		for _, t := range due {
			fmt.Fprintf(&b, "\n- %s: %s", t.Name, strings.ReplaceAll(t.Prompt, "\n", "\n  "))
		}
	}
	if b.Len() > 0 && (caused || events) {
		b.WriteString("\n\n")
	}
	switch {
	case events:
		fmt.Fprintf(&b, "The events above woke you (%s). Handle them now. If one is a reminder or a result, tell the person in your own words. "+
			"If none of them needs the person's attention, answer only %s.", w.Reason, run.HeartbeatOK)
	case caused: // another run took them
		fmt.Fprintf(&b, "An event woke you (%s). It is in this conversation already. If the person has not been told what it means for them, tell them now. "+
			"Else answer only %s.", w.Reason, run.HeartbeatOK)
	}
	return b.String()
}
