package approvals

import (
	"cmp"
	"context"

	"github.com/chela-ai/chela/internal/approval"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/shape"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/wire"
)

// anyKind returns the methods of clients that decide about requests of any
// kind, and look at the lists of all kinds together.
func (m methods) anyKind() []rpc.Method {
	return []rpc.Method{
		rpc.New(wire.MethodAnyApprovalGet, wire.RoleOperator, chela.ScopeApprovals, m.find),
		rpc.New(wire.MethodAnyApprovalResolve, wire.RoleOperator, chela.ScopeApprovals, m.settle).Works(),
		rpc.New(wire.MethodApprovalHistory, wire.RoleOperator, chela.ScopeApprovals, m.history),
		rpc.New(wire.MethodPluginApprovals, wire.RoleOperator, chela.ScopeApprovals, none),
		rpc.New(wire.MethodSystemApprovals, wire.RoleOperator, chela.ScopeApprovals, none),
	}
}

// none is the list of a kind of which there are no requests here.
func none(context.Context, rpc.Peer, wire.None) ([]wire.Approval, error) {
	return []wire.Approval{}, nil
}

// find returns a request, also one that was decided.
func (m methods) find(ctx context.Context, _ rpc.Peer, in wire.ApprovalID) (wire.ApprovalFound, error) {
	q, err := m.request(ctx, in.ID)
	if err != nil {
		return wire.ApprovalFound{}, absent(in.ID, err)
	}
	return wire.ApprovalFound{Approval: shape.ApprovalSnapshot(q)}, nil
}

// settle decides a request. Of one that was decided before, it says how.
func (m methods) settle(ctx context.Context, _ rpc.Peer, in wire.AnyApprovalResolve) (wire.ApprovalSettled, error) {
	if err := valid(wire.MethodAnyApprovalResolve, in.Decision); err != nil {
		return wire.ApprovalSettled{}, err
	}
	if in.Kind != wire.ApprovalExec {
		return wire.ApprovalSettled{}, absent(in.ID, chela.ErrNotFound)
	}
	q, err := m.o.Decide(ctx, in.ID, in.Decision)
	if err == nil {
		return wire.ApprovalSettled{Applied: true, Approval: shape.ApprovalSnapshot(q)}, nil
	}
	if q.ID == "" || q.Decision == approval.Pending {
		return wire.ApprovalSettled{}, absent(in.ID, err)
	}
	return wire.ApprovalSettled{Approval: shape.ApprovalSnapshot(q)}, nil
}

// maxHistory bounds a page of requests.
const maxHistory = 100

// history returns requests that do not wait any more, the latest first.
func (m methods) history(ctx context.Context, _ rpc.Peer, in wire.ApprovalHistoryGet) (wire.ApprovalHistory, error) {
	out := wire.ApprovalHistory{Items: []wire.ApprovalSnapshot{}}
	switch {
	case in.Limit < 0 || in.Limit > maxHistory:
		return out, rpc.Invalid(wire.MethodApprovalHistory, "at /limit: must be 1 to %d", maxHistory)
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
			out.Items = append(out.Items, shape.ApprovalSnapshot(q))
		}
		return err
	})
	return out, err
}
