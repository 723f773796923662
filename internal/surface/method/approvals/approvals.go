// Package approvals implements the methods by which a person decides what tools
// may do.
package approvals

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// Options configures the methods. All fields are required.
type Options struct {
	Store   store.Store
	Default chela.AgentID
	Agent   func(chela.AgentID) bool // reports whether the agent exists
	// Publish and Subscribe are the methods of the bus.
	Publish   func(chela.Event)
	Subscribe func(func(chela.Event)) (stop func())
	// Decide resolves an approval as the principal in ctx.
	Decide func(ctx context.Context, id, decision string) (approval.Request, error)
	// Commands returns the name of the tool that runs commands: its approvals become
	// command rules when they are allowed always.
	Commands func() string
	// Rules returns the current command rules.
	Rules func() *allowlist.Source
	// Redact removes known secrets from a text.
	Redact func(string) string
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	m := methods{o}
	return append(m.anyKind(), []rpc.Method{
		rpc.New(wire.MethodApprovalList, wire.RoleOperator, chela.ScopeApprovals, m.list).Reads(),
		rpc.New(wire.MethodApprovalGet, wire.RoleOperator, chela.ScopeApprovals, m.get).Reads(),
		rpc.New(wire.MethodApprovalResolve, wire.RoleOperator, chela.ScopeApprovals,
			m.resolve).StartsWork().Ignoring("reviewer").Refusing("grantExpiresInDays"),
		rpc.New(wire.MethodExecPolicy, wire.RoleOperator, chela.ScopeAdmin, m.policy).Reads(),
		rpc.New(wire.MethodExecPolicySet, wire.RoleOperator, chela.ScopeAdmin, m.setPolicy),
		rpc.New(wire.MethodApprovalAsk, wire.RoleOperator, chela.ScopeApprovals, m.ask).
			Ignoring("security", "ask", "resolvedPath", "sessionId", "runId", "toolCallId", "turnSourceChannel", "turnSourceTo",
				"turnSourceAccountId", "turnSourceThreadId", "commandSpans").
			Refusing("approvalReviewerDeviceIds", "deliverToApprovalClientsOnly", "requireDeliveryRoute",
				"scope", "suppressDelivery",
				"systemRunPlan", "unavailableDecisions"),
		rpc.New(wire.MethodApprovalWait, wire.RoleOperator, chela.ScopeApprovals, m.wait).Reads(),
		rpc.New(wire.MethodQuestionList, wire.RoleOperator, chela.ScopeQuestions, m.questions).Reads(),
	}...)
}

type methods struct{ o Options }

func (m methods) list(ctx context.Context, _ rpc.Peer, _ wire.None) ([]wire.Approval, error) {
	out := []wire.Approval{}
	err := m.o.Store.View(ctx, func(r store.Reader) error {
		out = out[:0]
		reqs, err := r.Approvals().Pending("")
		for _, q := range reqs {
			out = append(out, wireview.Approval(q))
		}
		return err
	})
	return out, err
}

// questions returns no questions: approvals are all that a model can ask.
// Clients poll this method and retry until it is answered.
func (m methods) questions(context.Context, rpc.Peer, wire.None) (wire.Questions, error) {
	return wire.Questions{Questions: []json.RawMessage{}}, nil
}

// get returns a pending approval. For a resolved one clients request the
// decision.
func (m methods) get(ctx context.Context, _ rpc.Peer, in wire.ApprovalID) (wire.ApprovalShown, error) {
	q, err := m.request(ctx, in.ID)
	if err == nil && (q.Decision != approval.Pending || !time.Now().Before(q.Expires)) {
		err = chela.ErrNotFound
	}
	if err != nil {
		return wire.ApprovalShown{}, unknown(in.ID, err)
	}
	return wire.ApprovalShown{
		Approval: wireview.Approval(q), Command: q.Text, AgentID: string(q.Session.Agent()),
		Allowed: wireview.AllowedDecisions(q),
	}, nil
}

func (m methods) resolve(ctx context.Context, _ rpc.Peer, in wire.ApprovalResolve) (wire.OK, error) {
	if err := valid(in.Decision); err != nil {
		return wire.OK{}, err
	}
	q, err := m.o.Decide(ctx, in.ID, in.Decision)
	if chela.CodeOf(err) == chela.CodeConflict && q.Decision != approval.Pending {
		return wire.OK{}, alreadyResolved(q, err)
	}
	return wire.OK{OK: err == nil}, unknown(in.ID, err)
}

// alreadyResolved returns the error for an approval that was already resolved.
// It contains the reason code that clients check.
func alreadyResolved(q approval.Request, err error) error {
	if s := wireview.ApprovalSnapshot(q); s.Decision != "" {
		return wire.Errorf(wire.InvalidRequest, "%v", err).
			With(map[string]any{"reason": wire.ApprovalAlreadyResolved, "decision": s.Decision, "resolvedBy": q.Decider()})
	}
	return wire.Errorf(wire.InvalidRequest, "%v", err).With(map[string]any{"reason": wire.ApprovalNotFound})
}

// valid returns an error for an unknown decision.
func valid(decision string) error {
	if slices.Contains([]string{wire.AllowOnce, wire.AllowSession, wire.AllowAlways, wire.Deny, wire.DenyUnasked},
		decision) {
		return nil
	}
	return rpc.Invalid("at /decision: must be one of %s, %s, %s", wire.AllowOnce, wire.AllowAlways, wire.Deny)
}

// absent returns the error for an approval of any kind that does not exist,
// with the text that clients check.
func absent(id string, err error) error {
	if errors.Is(err, chela.ErrNotFound) {
		return wire.Errorf(wire.ApprovalNotFound, "approval not found: %s", id)
	}
	return err
}

// unknown returns the error for an approval that does not exist, with the code
// that clients check.
func unknown(id string, err error) error {
	if errors.Is(err, chela.ErrNotFound) {
		return wire.Errorf(wire.ApprovalNotFound, "no pending approval %s", id)
	}
	return err
}
