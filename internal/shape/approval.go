package shape

import (
	"net/url"
	"strings"

	"github.com/chela-ai/chela/internal/approval"
	"github.com/chela-ai/chela/wire"
)

// ApprovalSnapshot returns a request, and what became of it.
func ApprovalSnapshot(r approval.Request) wire.ApprovalSnapshot {
	s := wire.ApprovalSnapshot{
		ID: r.ID, Path: "/approve/" + url.PathEscape(r.ID), Created: wire.At(r.Created), Expires: wire.At(r.Expires),
		Status: wire.ApprovalPending, Session: string(r.Session),
		Shown: wire.ApprovalPresented{
			Kind: wire.ApprovalExec, Command: r.Text, Warning: r.Reason, AgentID: string(r.Session.Agent()),
			Allowed: AllowedDecisions(r),
		},
	}
	if r.Decision == approval.Pending {
		return s
	}
	s.Session, s.Resolved = "", wire.At(r.Decided)
	s.Source = &wire.ApprovalSource{AgentID: string(r.Session.Agent()), Session: string(r.Session)}
	switch r.Decision {
	case approval.Expired:
		s.Status, s.Reason = wire.ApprovalExpired, "timeout"
	case approval.Withdrawn:
		s.Status, s.Reason = wire.ApprovalCancelled, "run-aborted"
	case approval.Revoked: // it was decided so
		s.Status, s.Reason, s.Decision = wire.ApprovalAllowed, "user", wire.AllowAlways
		s.Resolver = resolver(r)
	default:
		s.Status, s.Reason, s.Decision = wire.ApprovalAllowed, "user", string(r.Decision)
		if r.Decision == approval.Deny {
			s.Status = wire.ApprovalDenied
		}
		s.Resolver = resolver(r)
	}
	return s
}

// AllowedDecisions returns the decisions that are offered.
func AllowedDecisions(r approval.Request) []string {
	if r.Once {
		return []string{wire.AllowOnce, wire.Deny}
	}
	return []string{wire.AllowOnce, wire.AllowAlways, wire.Deny}
}

// resolver says what a principal that decided is.
func resolver(r approval.Request) *wire.ApprovalResolver {
	if device, ok := strings.CutPrefix(r.Via, "device:"); ok {
		return &wire.ApprovalResolver{Kind: "device", ID: device}
	}
	if strings.Contains(r.By, ":") {
		return &wire.ApprovalResolver{Kind: "channel", ID: r.By}
	}
	return &wire.ApprovalResolver{Kind: "device", ID: r.By}
}
