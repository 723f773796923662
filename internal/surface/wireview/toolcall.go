package wireview

import (
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/wire"
)

// Output returns the output of a tool.
func Output(r tool.Result) *wire.ToolOutput {
	return &wire.ToolOutput{Content: contents(r.Content), Details: r.Details}
}

// Called returns the record of a tool call.
func Called(c session.Call) wire.ToolCalled {
	o := c.Outcome
	return wire.ToolCalled{
		Seq:        c.Seq,
		ID:         c.ID,
		Time:       wire.At(c.Updated),
		Principal:  o.Who,
		AgentID:    string(c.Session.Agent()),
		SessionKey: string(c.Session),
		RunID:      string(c.Run),
		Tool:       c.Wire.Name,
		Args:       o.Ran,
		State:      string(c.State),
		Effect:     c.Effect,
		Decision:   string(o.Decision),
		Rule:       o.Rule,
		Outcome:    string(o.Result),
		DurationMs: o.Took.Milliseconds(),

		ApprovalID: c.Approval,
	}
}
