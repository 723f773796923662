// Package approvals is the methods by which a person decides what a tool may
// do.
package approvals

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/allowlist"
	"github.com/chela-ai/chela/internal/approval"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/shape"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/wire"
)

// Options is what the methods work with. All of it is required.
type Options struct {
	Store   store.Store
	Default chela.AgentID
	Agent   func(chela.AgentID) bool // whether there is such an agent
	// Publish and Subscribe are those of the bus.
	Publish   func(chela.Event)
	Subscribe func(func(chela.Event)) (stop func())
	// Decide decides a request as the principal of ctx.
	Decide func(ctx context.Context, id, decision string) (approval.Request, error)
	// Rules returns the rules about commands as they are now.
	Rules func() *allowlist.Source
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	m := methods{o}
	return append(m.anyKind(), []rpc.Method{
		rpc.New(wire.MethodApprovalList, wire.RoleOperator, chela.ScopeApprovals, m.list),
		rpc.New(wire.MethodApprovalGet, wire.RoleOperator, chela.ScopeApprovals, m.get),
		rpc.New(wire.MethodApprovalResolve, wire.RoleOperator, chela.ScopeApprovals, m.resolve).Works(),
		rpc.New(wire.MethodExecPolicy, wire.RoleOperator, chela.ScopeAdmin, m.policy),
		rpc.New(wire.MethodExecPolicySet, wire.RoleOperator, chela.ScopeAdmin, m.setPolicy),
		rpc.New(wire.MethodApprovalAsk, wire.RoleOperator, chela.ScopeApprovals, m.ask).
			Accepting("security", "ask", "resolvedPath", "sessionId", "runId", "toolCallId", "turnSourceChannel", "turnSourceTo",
				"turnSourceAccountId", "turnSourceThreadId", "commandSpans", "suppressDelivery", "deliverToApprovalClientsOnly"),
		rpc.New(wire.MethodApprovalWait, wire.RoleOperator, chela.ScopeApprovals, m.wait).Accepting("timeoutMs"),
		rpc.New(wire.MethodQuestionList, wire.RoleOperator, chela.ScopeQuestions, m.questions),
	}...)
}

type methods struct{ o Options }

func (m methods) list(ctx context.Context, _ rpc.Peer, _ wire.None) ([]wire.Approval, error) {
	out := []wire.Approval{}
	err := m.o.Store.View(ctx, func(r store.Reader) error {
		out = out[:0]
		reqs, err := r.Approvals().Pending("")
		for _, q := range reqs {
			out = append(out, shape.Approval(q))
		}
		return err
	})
	return out, err
}

// questions says that a model asked nothing: a decision is all that it can ask
// a person for. Clients that look for questions do so again and again until
// they are answered.
func (m methods) questions(context.Context, rpc.Peer, wire.None) (wire.Questions, error) {
	return wire.Questions{Questions: []json.RawMessage{}}, nil
}

// get returns a request that still waits: of a decided one, the decision is
// asked for.
func (m methods) get(ctx context.Context, _ rpc.Peer, in wire.ApprovalID) (wire.ApprovalShown, error) {
	q, err := m.request(ctx, in.ID)
	if err == nil && (q.Decision != approval.Pending || !time.Now().Before(q.Expires)) {
		err = chela.ErrNotFound
	}
	if err != nil {
		return wire.ApprovalShown{}, unknown(in.ID, err)
	}
	return wire.ApprovalShown{
		Approval: shape.Approval(q), Command: q.Text, AgentID: string(q.Session.Agent()),
		Allowed: shape.AllowedDecisions(q),
	}, nil
}

func (m methods) resolve(ctx context.Context, _ rpc.Peer, in wire.ApprovalResolve) (wire.OK, error) {
	if err := valid(wire.MethodApprovalResolve, in.Decision); err != nil {
		return wire.OK{}, err
	}
	q, err := m.o.Decide(ctx, in.ID, in.Decision)
	if chela.CodeOf(err) == chela.CodeConflict && q.Decision != approval.Pending {
		return wire.OK{}, late(q, err)
	}
	return wire.OK{OK: err == nil}, unknown(in.ID, err)
}

// late says of a request that was decided before by whom and how, also in the
// words that clients look for.
func late(q approval.Request, err error) error {
	if s := shape.ApprovalSnapshot(q); s.Decision != "" {
		return wire.Errorf(wire.InvalidRequest, "%v", err).
			With(map[string]any{"reason": wire.ApprovalAlreadyResolved, "decision": s.Decision, "resolvedBy": q.Decider()})
	}
	return wire.Errorf(wire.InvalidRequest, "%v", err).With(map[string]any{"reason": wire.ApprovalNotFound})
}

// valid reports that a decision is none.
func valid(method, decision string) error {
	if slices.Contains([]string{wire.AllowOnce, wire.AllowAlways, wire.Deny}, decision) {
		return nil
	}
	return rpc.Invalid(method, "at /decision: must be one of %s, %s, %s", wire.AllowOnce, wire.AllowAlways, wire.Deny)
}

// absent gives a request of any kind that does not exist the words that clients
// look for.
func absent(id string, err error) error {
	if errors.Is(err, chela.ErrNotFound) {
		return wire.Errorf(wire.ApprovalNotFound, "approval not found: %s", id)
	}
	return err
}

// unknown gives a request that does not exist the code that clients know.
func unknown(id string, err error) error {
	if errors.Is(err, chela.ErrNotFound) {
		return wire.Errorf(wire.ApprovalNotFound, "no pending approval %s", id)
	}
	return err
}
