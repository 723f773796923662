package wireview

import (
	"fmt"

	"github.com/chela-ai/chela/internal/core/plan"
	"github.com/chela-ai/chela/wire"
)

// PlanOf returns a plan as clients see it.
func PlanOf(p plan.Plan) wire.Plan {
	out := wire.Plan{Phase: wire.PhaseUpdate, Title: fmt.Sprintf("plan %d/%d", p.Done(), len(p.Steps)), Steps: []wire.PlanStep{}, UpdatedAt: wire.At(p.Updated)}
	for _, s := range p.Steps {
		out.Steps = append(out.Steps, wire.PlanStep{ID: s.ID, Step: s.Title, Status: string(s.State), After: s.After})
	}
	return out
}

// Plan is [PlanOf] for a plan that a session may have; nil if it has none.
func Plan(p plan.Plan) *wire.Plan {
	if len(p.Steps) == 0 {
		return nil
	}
	out := PlanOf(p)
	return &out
}
