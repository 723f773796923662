package approvals

import (
	"cmp"
	"context"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// anyKind returns the methods for approvals of any kind.
func (m methods) anyKind() []rpc.Method {
	return []rpc.Method{
		rpc.New(wire.MethodAnyApprovalGet, wire.RoleOperator, chela.ScopeApprovals, m.find).Reads(),
		rpc.New(wire.MethodAnyApprovalResolve, wire.RoleOperator, chela.ScopeApprovals,
			m.resolveAny).StartsWork().Ignoring("reviewer").Refusing("grantExpiresInDays"),
		rpc.New(wire.MethodApprovalHistory, wire.RoleOperator, chela.ScopeApprovals, m.history).Reads(),
		rpc.New(wire.MethodPluginApprovals, wire.RoleOperator, chela.ScopeApprovals, m.listPlugin).Reads(),
		rpc.New(wire.MethodPluginApprovalResolve, wire.RoleOperator, chela.ScopeApprovals,
			m.resolve).StartsWork().Ignoring("reviewer"),
		rpc.New(wire.MethodSystemApprovals, wire.RoleOperator, chela.ScopeApprovals, none).Reads(),
	}
}

// none returns the empty list of a kind that this gateway does not have.
func none(context.Context, rpc.Peer, wire.None) ([]wire.Approval, error) {
	return []wire.Approval{}, nil
}

// listPlugin returns the pending approvals for a client that shows no others than those
// of plug-ins. Other clients get none, because they have them from exec.approval.list.
func (m methods) listPlugin(ctx context.Context, p rpc.Peer, _ wire.None) ([]wire.PluginApproval, error) {
	out := []wire.PluginApproval{}
	if c, ok := p.(rpc.Capable); !ok || !c.Capable(wire.CapPluginApprovals) {
		return out, nil
	}
	err := m.o.Store.View(ctx, func(r store.Reader) error {
		out = out[:0]
		list, err := r.Approvals().Pending("")
		for _, q := range list {
			out = append(out, wireview.PluginApproval(q))
		}
		return err
	})
	return out, err
}

// find returns an approval, resolved or not.
func (m methods) find(ctx context.Context, _ rpc.Peer, in wire.ApprovalID) (wire.ApprovalFound, error) {
	q, err := m.request(ctx, in.ID)
	if err != nil {
		return wire.ApprovalFound{}, absent(in.ID, err)
	}
	return wire.ApprovalFound{Approval: wireview.ApprovalSnapshot(q)}, nil
}

// resolveAny resolves an approval. If it was already resolved, it returns the
// outcome.
func (m methods) resolveAny(ctx context.Context, _ rpc.Peer,
	in wire.AnyApprovalResolve) (wire.ApprovalResolution, error) {
	if err := valid(in.Decision); err != nil {
		return wire.ApprovalResolution{}, err
	}
	if in.Kind != wire.ApprovalExec {
		return wire.ApprovalResolution{}, absent(in.ID, chela.ErrNotFound)
	}
	q, err := m.o.Decide(ctx, in.ID, in.Decision)
	if err == nil {
		return wire.ApprovalResolution{Applied: true, Approval: wireview.ApprovalSnapshot(q)}, nil
	}
	if q.ID == "" || q.Decision == approval.Pending {
		return wire.ApprovalResolution{}, absent(in.ID, err)
	}
	return wire.ApprovalResolution{Approval: wireview.ApprovalSnapshot(q)}, nil
}

// maxHistory is the maximum number of approvals in a page.
const maxHistory = 100

// history returns resolved approvals, latest first.
func (m methods) history(ctx context.Context, _ rpc.Peer, in wire.ApprovalHistoryGet) (wire.ApprovalHistory, error) {
	out := wire.ApprovalHistory{Items: []wire.ApprovalSnapshot{}}
	switch {
	case in.Limit < 0 || in.Limit > maxHistory:
		return out, rpc.Invalid("at /limit: must be 1 to %d", maxHistory)
	case in.Kind != "" && in.Kind != wire.ApprovalExec:
		return out, nil
	}
	limit := cmp.Or(in.Limit, maxHistory/2)
	err := m.o.Store.View(ctx, func(r store.Reader) error {
		list, err := r.Approvals().Decided(in.Cursor, limit+1)
		out.Items, out.Next = out.Items[:0], ""
		if len(list) > limit {
			list = list[:limit]
			out.Next = list[limit-1].ID
		}
		for _, q := range list {
			out.Items = append(out.Items, wireview.ApprovalSnapshot(q))
		}
		return err
	})
	return out, err
}
