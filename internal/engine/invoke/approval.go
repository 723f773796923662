package invoke

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/tool"
)

// checkApproval plans a call whose tool is a Planner, and checks that the plan may
// run. It suspends the call if a person must decide.
func (k *call) checkApproval(ctx context.Context) *verdict {
	k.effect = k.spec.Effect
	if p, ok := k.tool.(tool.Planner); ok {
		if v := k.makePlan(ctx, p); v != nil {
			return v
		}
	}
	if k.v.s.ReadOnly && k.effect != tool.Reads {
		return k.refuse(session.DecisionDenied, "bounds", "this subagent only reads, and the call could change something")
	}
	k.addHookAsks()
	switch {
	case k.plan == nil || !k.plan.Ask:
		return nil
	case k.v.s.Ledger == nil:
		return k.unattended()
	}
	return k.checkDecision(ctx)
}

// makePlan gets the plan of the call with its present rights.
func (k *call) makePlan(ctx context.Context, p tool.Planner) *verdict {
	plan, err := k.callPlanner(ctx, p)
	switch {
	case err != nil && ctx.Err() != nil:
		return &verdict{err: ctx.Err()}
	case err != nil:
		return k.refuse(session.DecisionRefused, "plan", err.Error())
	case plan.Deny != "" && !(k.v.s.ReadOnly && plan.Effect != tool.Reads):
		return k.refuse(session.DecisionDenied, "plan", plan.Deny)
	}
	plan.Hash = cmp.Or(plan.Hash, k.key())
	if plan.Rights = k.rights; len(k.rights) > 0 {
		plan.Ask = true
	}
	k.plan, k.effect = &plan, plan.Effect
	return nil
}

// callPlanner calls the tool's Plan.
func (k *call) callPlanner(ctx context.Context, p tool.Planner) (plan tool.Plan, err error) {
	defer k.recovered(&err)
	return p.Plan(ctx, k.toolCall())
}

// requestRights requests an approval for a call that was blocked while it ran. A
// nil verdict means that the rights are always allowed and the call may run again
// now.
func (k *call) requestRights(ctx context.Context, b *tool.Blocked) *verdict {
	p, ok := k.tool.(tool.Planner)
	rights := slices.Compact(slices.Sorted(slices.Values(slices.Concat(k.rights, b.Rights))))
	if !ok || !b.Again || k.v.s.Ledger == nil || slices.Equal(rights, k.rights) {
		return k.refuse(session.DecisionBlocked, "rights", b.Error())
	}
	before := k.plan.Hash
	k.rights = rights
	if v := k.makePlan(ctx, p); v != nil {
		return v
	}
	if k.plan.Hash == before {
		return k.refuse(session.DecisionBlocked, "rights", b.Error()+", and its plan does not depend on them")
	}
	k.plan.Reason = cmp.Or(k.plan.Reason, b.Error())
	k.addHookAsks()
	return k.requestApproval(ctx)
}

// checkDecision lets an approved call pass, refuses a denied one, and suspends a
// call that has no decision.
func (k *call) checkDecision(ctx context.Context) *verdict {
	req, err := k.v.s.Ledger.Decision(ctx, k.wire)
	if err != nil {
		return &verdict{err: fmt.Errorf("approval of %s: %w", k.spec.Name, err)}
	}
	k.ran = req.Ran
	switch {
	case req.ID == "":
		return k.requestApproval(ctx)
	case req.Decision == approval.Pending:
		return k.suspended()
	case !req.Decision.Allows():
		return k.refuse(session.DecisionDenied, "approval", deniedText(req))
	case req.Hash != k.plan.Hash:
		return k.refuse(session.DecisionDenied, "approval",
			"not run: its plan has changed since it was approved. Call the tool again to request a new approval")
	}
	k.rule = "approval"
	return nil
}

// requestApproval suspends the call, unless its plan is always allowed.
func (k *call) requestApproval(ctx context.Context) *verdict {
	l := k.v.s.Ledger
	if !k.plan.Once {
		always, err := l.Always(ctx, k.spec.Name, k.plan.Hash)
		if err != nil {
			return &verdict{err: fmt.Errorf("approval of %s: %w", k.spec.Name, err)}
		}
		if always {
			k.rule = "allowed-always"
			return nil
		}
	}
	if k.v.s.Unattended {
		return k.unattended()
	}
	plan, err := k.approvalText()
	if err != nil {
		return k.refuse(session.DecisionRefused, "approval", "no approval was requested: "+err.Error()+
			". Make the call shorter, or write long content to a file first")
	}
	if err := l.Suspend(ctx, k.wire, plan); err != nil {
		return &verdict{err: fmt.Errorf("approval of %s: %w", k.spec.Name, err)}
	}
	return k.suspended()
}

// suspended ends a call that waits for a decision.
func (k *call) suspended() *verdict {
	k.decision, k.rule = session.DecisionSuspended, "approval"
	return &verdict{err: tool.ErrSuspended}
}

// unattended denies a call that needs an approval where nobody can be asked,
// unless its plan permits that.
func (k *call) unattended() *verdict {
	if k.plan.Unattended {
		k.rule = "ask-fallback"
		return nil
	}
	return k.refuse(session.DecisionDenied, "approval",
		"this needs an approval, and nobody can be asked here: "+k.plan.Reason)
}

// approvalText returns the plan with its texts as they are stored and shown to
// people: redacted and escaped.
func (k *call) approvalText() (plan tool.Plan, err error) {
	plan = *k.plan
	plan.Ran = k.ran
	if plan.Text, err = approval.Escape(k.v.x.redact(plan.Text)); err != nil {
		return plan, err
	}
	plan.Reason, err = approval.Escape(k.v.x.redact(plan.Reason))
	return plan, err
}

// deniedText tells the model why a call was denied.
func deniedText(r approval.Request) string {
	switch r.Decision {
	case approval.Expired:
		return "not run: the approval request expired without an answer. Ask the person whether the call is still wanted, then call the tool again to make a new request"
	case approval.Withdrawn:
		return "not run: the approval request was withdrawn because the run was stopped. Call the tool again if it is still wanted"
	}
	if r.By == approval.Nobody {
		return "not run: it needs an approval, and nobody could be asked. Do not try to achieve it in another way"
	}
	return "not run: denied by " + cmp.Or(r.By, "the person") +
		". Do not try to achieve it in another way; call the tool again only if the person asks for it"
}
