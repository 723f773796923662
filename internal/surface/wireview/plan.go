package wireview

import (
	"fmt"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/plan"
	"github.com/chela-ai/chela/wire"
)

// PlanOf returns a plan as clients see it.
func PlanOf(p plan.Plan) wire.Plan {
	out := wire.Plan{Phase: wire.PhaseUpdate, Title: fmt.Sprintf("plan %d/%d", p.Done(), len(p.Steps)),
		Steps: []wire.PlanStep{}, UpdatedAt: wire.At(p.Updated)}
	for _, s := range p.Steps {
		out.Steps = append(out.Steps, wire.PlanStep{ID: s.ID, Step: s.Title, Status: string(s.State), After: s.After})
	}
	return out
}

// Revision returns the number of a plan, which grows with each change; 0: there is none.
func Revision(p plan.Plan) int64 {
	if len(p.Steps) == 0 {
		return 0
	}
	return max(p.Updated.UnixMilli(), 1)
}

// ProgressCard returns the plan of a session as a progress card; nil if it has none. Such
// a card has no states for a step that failed or was given up: its title says so.
func ProgressCard(key chela.SessionKey, p plan.Plan) *wire.ProgressCard {
	if len(p.Steps) == 0 {
		return nil
	}
	c := &wire.ProgressCard{SessionKey: string(key), Revision: Revision(p), UpdatedAt: wire.At(p.Updated)}
	for _, s := range p.Steps {
		step := wire.ProgressStep{Step: s.Title, Status: string(s.State)}
		if s.State == plan.Failed || s.State == plan.Cancelled {
			step.Step, step.Status = s.Title+" ("+string(s.State)+")", wire.PlanCompleted
		}
		c.Steps = append(c.Steps, step)
	}
	return c
}

// Plan is [PlanOf] for a plan that a session may have; nil if it has none.
func Plan(p plan.Plan) *wire.Plan {
	if len(p.Steps) == 0 {
		return nil
	}
	out := PlanOf(p)
	return &out
}
