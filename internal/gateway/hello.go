package gateway

import (
	"context"
	"encoding/json"
	"os"
	"runtime"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/wire"
)

// events are the names of the events that clients may get.
var events = [...]string{
	wire.EventChallenge, wire.EventTick, wire.EventShutdown, wire.EventChat, wire.EventAgent,
	wire.EventSessionMessage, wire.EventSessionTool, wire.EventSessionsChanged,
	wire.EventApprovalRequested, wire.EventApprovalResolved,
}

// hello returns what a connection is told when it is let in.
func (s *Server) hello(ctx context.Context, c *conn) (wire.Hello, error) {
	h := wire.Hello{
		Type: wire.HelloOK, Protocol: wire.Version,
		Server:   wire.Server{Name: "chela", Version: s.o.Version, ConnID: c.id, BootID: s.bootID},
		Features: wire.Features{Methods: s.o.Methods.Names(), Events: events[:], Capabilities: []string{"published-model-catalog"}},
		Auth:     wire.HelloAuth{Method: c.who.Credential, Role: c.role, Scopes: scopes(c.who)},
		Policy: wire.Policy{
			MaxPayload: wire.MaxPayload, MaxBuffered: int64(s.o.MaxBuffered), TickIntervalMs: wire.TickInterval.Milliseconds(),
		},
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
		Presence: s.roster(), Health: health, State: s.state(), UptimeMs: time.Since(s.start).Milliseconds(),
	}
	if s.o.Defaults != nil {
		h.Snapshot.Defaults = s.o.Defaults()
	}
	if c.who.May(chela.ScopeAdmin) {
		h.Snapshot.AuthMode, h.Snapshot.Config, h.Snapshot.StateDir = c.who.Credential, s.o.ConfigPath, s.o.StateDir
	}
	return h, nil
}

// scopes returns the scopes of p with those that they imply, as clients look
// for each by its name.
func scopes(p chela.Principal) []string {
	out := []string{}
	for _, s := range []chela.Scope{chela.ScopeAdmin, chela.ScopeRead, chela.ScopeWrite, chela.ScopeApprovals, chela.ScopePairing} {
		if p.May(s) {
			out = append(out, string(s))
		}
	}
	return out
}

func (s *Server) state() wire.StateVersion {
	s.mu.Lock()
	defer s.mu.Unlock()
	return wire.StateVersion{Presence: s.version, Health: 1}
}

// roster returns who is connected: the gateway first.
func (s *Server) roster() []wire.Presence {
	host, _ := os.Hostname() // "" is shown as it is
	out := []wire.Presence{{
		Host: host, Version: s.o.Version, Platform: runtime.GOOS, Mode: "gateway", Reason: "self",
		Text: "Gateway: " + host, Time: wire.At(s.start), Instance: s.bootID,
	}}
	for _, c := range s.connected() {
		out = append(out, wire.Presence{
			Host: c.info.DisplayName, Version: c.info.Version, Platform: c.info.Platform, Family: c.info.Family,
			Mode: c.info.Mode, Reason: "connect", Text: c.info.ID, Time: wire.At(c.since), Instance: c.info.Instance,
			Roles: []string{c.role}, Scopes: scopes(c.who),
		})
	}
	return out
}

// Roster returns who is connected: the gateway first.
func (s *Server) Roster() []wire.Presence { return s.roster() }
