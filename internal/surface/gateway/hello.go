package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// events are the names of the events that clients may receive.
var events = [...]string{
	wire.EventChallenge, wire.EventTick, wire.EventShutdown, wire.EventChat, wire.EventAgent,
	wire.EventSessionMessage, wire.EventSessionTool, wire.EventSessionOperation, wire.EventSessionsChanged,
	wire.EventApprovalRequested, wire.EventApprovalResolved,
	wire.EventPluginApprovalRequested, wire.EventPluginApprovalResolved, wire.EventPresence, wire.EventHealth,
	wire.EventPairRequested, wire.EventPairResolved,
	wire.EventNodePairRequested, wire.EventNodePairResolved, wire.EventModelsSnapshot, wire.EventConfigChanged,
	wire.EventTask, wire.EventCron,
	wire.EventProgressChanged, wire.EventHeartbeat, wire.EventCanvas, wire.EventTalkMode, wire.EventWakeChanged,
}

// maxAttachment is the maximum size of an attachment: one frame holds it in
// base64, with the message.
const maxAttachment = (wire.MaxPayload - 256<<10) / 4 * 3

// hello returns the hello of a connection.
func (s *Server) hello(ctx context.Context, c *conn) (wire.Hello, error) {
	h := wire.Hello{
		Type: wire.HelloOK, Protocol: c.proto,
		Server: wire.Server{Version: s.o.Version, ConnID: c.id, BootID: s.bootID, UIBuild: wire.UIConfigured},
		Features: wire.Features{Methods: s.o.Methods.Names(), Events: events[:],
			Capabilities: []string{"published-model-catalog", wire.CapCursor}},
		Auth: wire.HelloAuth{
			Method:      c.grant.Method,
			Role:        c.role,
			Scopes:      scopes(c.who),
			DeviceToken: c.grant.Token,
			IssuedAt:    wire.At(c.grant.Issued),
		},
		Policy: wire.Policy{
			MaxPayload: wire.MaxPayload, MaxBuffered: int64(s.o.MaxBuffered), TickIntervalMs: wire.TickInterval.Milliseconds(),
			Attachments: &wire.Attachments{MaxBytes: maxAttachment, MaxImageBytes: media.MaxImage},
		},
	}
	if c.proto < wire.Version {
		h.Server.UIBuild, h.Auth.Method, h.Features.Capabilities, h.Policy.Attachments = "", "", nil, nil
	}
	for _, o := range c.grant.RoleTokens {
		h.Auth.DeviceTokens = append(h.Auth.DeviceTokens, wire.DeviceHandoff{
			Token: o.Token, Role: o.Role, Scopes: wireview.Scopes(o.Scopes), IssuedAt: wire.At(o.Issued),
		})
	}
	health := json.RawMessage("{}")
	if s.o.Health != nil {
		v, err := s.o.Health(ctx)
		if err != nil {
			return h, err
		}
		if health, err = wire.Encode(v); err != nil {
			return h, err
		}
	}
	h.Snapshot = wire.Snapshot{
		Presence: s.roster(c.who), Health: health, State: s.state(), UptimeMs: time.Since(s.start).Milliseconds(),
	}
	if s.o.Defaults != nil {
		h.Snapshot.Defaults = s.o.Defaults()
	}
	if u := s.openPages(c); u != "" {
		h.Surfaces = map[string]string{wire.SurfaceCanvas: u}
		if c.proto < wire.Version {
			h.CanvasHost = u
		}
	}
	if c.who.May(chela.ScopeAdmin) {
		h.Snapshot.AuthMode, h.Snapshot.Config, h.Snapshot.StateDir = c.grant.Mode, s.o.ConfigPath, s.o.StateDir
	}
	return h, nil
}

// openPages returns the address of the canvas for a connection; "": it has none.
func (s *Server) openPages(c *conn) string {
	if s.o.Pages == nil || c.base == "" || c.role != wire.RoleNode && !c.who.May(chela.ScopeRead) {
		return ""
	}
	device, _ := pairing.DeviceOf(c.who)
	return s.o.Pages.Open(c.id, device, c.base)
}

// closePages ends what openPages gave.
func (s *Server) closePages(c *conn) {
	if s.o.Pages != nil {
		s.o.Pages.Close(c.id)
	}
}

// scopes returns the scopes of p including the implied ones, because clients
// compare names.
func scopes(p chela.Principal) []string {
	out := []string{}
	for _, s := range []chela.Scope{chela.ScopeAdmin, chela.ScopeRead, chela.ScopeWrite,
		chela.ScopeApprovals, chela.ScopePairing} {
		if p.May(s) {
			out = append(out, string(s))
		}
	}
	for _, s := range p.Scopes {
		if !slices.Contains(out, string(s)) {
			out = append(out, string(s))
		}
	}
	return out
}
