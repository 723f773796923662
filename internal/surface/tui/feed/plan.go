package feed

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/chela-ai/chela/wire"
)

// PlanStepDone reports whether nothing more is to be done for a step of a plan.
func PlanStepDone(s wire.PlanStep) bool {
	return s.Status == wire.PlanCompleted || s.Status == wire.PlanFailed || s.Status == wire.PlanCancelled
}

// PlanOpen reports whether a plan has a step that is not done.
func PlanOpen(p wire.Plan) bool { return planDone(p) < len(p.Steps) }

func planDone(p wire.Plan) (n int) {
	for _, s := range p.Steps {
		if PlanStepDone(s) {
			n++
		}
	}
	return n
}

// PlanCount returns how many steps of a plan are done, such as "plan 1/3".
func PlanCount(p wire.Plan) string { return fmt.Sprintf("plan %d/%d", planDone(p), len(p.Steps)) }

// PlanNow returns the titles of the steps in progress, or "" if there are none.
func PlanNow(p wire.Plan) string {
	var now []string
	for _, s := range p.Steps {
		if s.Status == wire.PlanInProgress {
			now = append(now, s.Step)
		}
	}
	return strings.Join(now, ", ")
}

// PlanStepText returns the title of a step and what it depends on. The ids of the steps
// are only part of it if a step depends on another one.
func PlanStepText(p wire.Plan, s wire.PlanStep) (title, after string) {
	title = s.Step
	for _, x := range p.Steps {
		if len(x.After) > 0 {
			title = s.ID + ": " + s.Step
			break
		}
	}
	if len(s.After) > 0 {
		after = "after " + strings.Join(s.After, ", ")
	}
	return title, after
}

// PlanTool is the name of the tool with which the model writes its plan.
const PlanTool = "plan"

// PlanOfCall returns the plan that a call of PlanTool wrote.
func PlanOfCall(args json.RawMessage) (p wire.Plan) {
	var call struct {
		Steps []struct {
			ID, Title, State string
			After            []string
		}
	}
	if json.Unmarshal(args, &call) != nil {
		return p
	}
	for i, s := range call.Steps {
		p.Steps = append(p.Steps, wire.PlanStep{
			ID: cmp.Or(s.ID, strconv.Itoa(i+1)), Step: s.Title, Status: cmp.Or(s.State, wire.PlanPending), After: s.After,
		})
	}
	return p
}
