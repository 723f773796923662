package wireview

import (
	"cmp"
	"net/url"

	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/wire"
)

// ApprovalSnapshot returns an approval and its outcome.
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
	case approval.Revoked, approval.AllowSession: // the protocol has no word for these decisions
		s.Status, s.Reason, s.Decision, s.Extent = wire.ApprovalAllowed, "user", wire.AllowAlways, wire.ExtentSession
		if r.Decision == approval.Revoked {
			s.Extent = wire.ExtentRevoked
		}
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

// PluginApproval returns a pending approval for clients with
// [wire.CapPluginApprovals].
func PluginApproval(r approval.Request) wire.PluginApproval {
	key := cmp.Or(r.Asked, r.Session)
	title := "a call needs approval"
	if r.Reason != "" {
		title += ": " + r.Reason
	}
	return wire.PluginApproval{
		ID: r.ID, Created: wire.At(r.Created), Expires: wire.At(r.Expires),
		Request: wire.PluginApprovalRequest{
			Title: title, Description: r.Text, Severity: "warning", Tool: r.Tool, Allowed: AllowedDecisions(r),
			AgentID: string(key.Agent()), SessionKey: string(key),
		},
	}
}

// AllowedDecisions returns the decisions a person can choose from.
func AllowedDecisions(r approval.Request) []string {
	if r.Once {
		return []string{wire.AllowOnce, wire.Deny}
	}
	return []string{wire.AllowOnce, wire.AllowAlways, wire.Deny}
}

// resolver describes who decided.
func resolver(r approval.Request) *wire.ApprovalResolver {
	if r.By == approval.Nobody {
		return &wire.ApprovalResolver{Kind: "system", ID: r.By}
	}
	if device, ok := pairing.DeviceOf(chela.Principal{ID: r.By, Credential: r.Via}); ok {
		return &wire.ApprovalResolver{Kind: "device", ID: device}
	}
	if r.Via == "channel" {
		return &wire.ApprovalResolver{Kind: "channel", ID: r.By}
	}
	return &wire.ApprovalResolver{Kind: "device", ID: r.By}
}
