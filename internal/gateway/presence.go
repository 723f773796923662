package gateway

import (
	"bytes"
	"encoding/json"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/wire"
)

// maxRoster bounds the roster that is shown: everybody is told of everybody.
const maxRoster = 64

func (s *Server) state() wire.StateVersion {
	s.mu.Lock()
	defer s.mu.Unlock()
	return wire.StateVersion{Presence: s.version, Health: s.pulse.version.Load() + 1}
}

// roster returns who is connected, the gateway first, for the eyes of who.
func (s *Server) roster(who chela.Principal) []wire.Presence {
	host, _ := os.Hostname() // "" is shown as it is
	out := []wire.Presence{{
		Host: host, Version: s.o.Version, Platform: runtime.GOOS, Mode: "gateway", Reason: "self",
		Text: "Gateway: " + host, Time: wire.At(s.start), Instance: s.bootID,
	}}
	if !who.May(chela.ScopeRead) {
		return out
	}
	conns := s.connected()
	for _, c := range conns[max(0, len(conns)-maxRoster+1):] {
		out = append(out, wire.Presence{
			Host: c.info.DisplayName, Version: c.info.Version, Platform: c.info.Platform, Family: c.info.Family,
			Mode: c.info.Mode, Reason: "connect", Text: c.info.ID, Time: wire.At(c.since), Instance: c.info.Instance,
			Roles: []string{c.role}, Scopes: scopes(c.who),
		})
	}
	return out
}

// Roster returns who is connected: the gateway first.
func (s *Server) Roster() []wire.Presence { return s.roster(chela.Owner("")) }

// presence tells clients who comes and goes.
type presence struct {
	s     *Server
	ready chan struct{} // cap 1
}

func (p *presence) init(s *Server) { p.s, p.ready = s, make(chan struct{}, 1) }

func (p *presence) changed() {
	select {
	case p.ready <- struct{}{}:
	default:
	}
}

// run sends the roster after it changed. Clients that come together are told
// of together: the more there are, the longer it waits.
func (p *presence) run() {
	for {
		select {
		case <-p.s.ctx.Done():
			return
		case <-p.ready:
		}
		select {
		case <-p.s.ctx.Done():
			return
		case <-time.After(100*time.Millisecond + time.Duration(len(p.s.connected()))*10*time.Millisecond):
		}
		select {
		case <-p.ready: // what came meanwhile is in this one
		default:
		}
		if p.s.Clients() > 0 {
			p.s.broadcastState(wire.EventPresence, p.s.state(), wire.PresenceChanged{Presence: p.s.Roster()})
		}
	}
}

// pulse tells clients of the gateway's health when it changed.
type pulse struct {
	version atomic.Int64
	last    []byte
}

// pulseInterval is how often health is looked at while somebody is connected.
const pulseInterval = time.Minute

func (p *pulse) run(s *Server) {
	if s.o.Health == nil {
		return
	}
	t := time.NewTicker(pulseInterval)
	defer t.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-t.C:
		}
		if s.Clients() == 0 {
			continue
		}
		h, err := s.o.Health(s.ctx)
		if err != nil {
			s.o.Log.Warn("health is not known", "err", err)
			continue
		}
		p.see(s, h)
	}
}

// see sends h when it is other than the last one.
func (p *pulse) see(s *Server, h wire.Health) {
	still := h
	still.Time, still.DurationMs = 0, 0
	still.Sessions.Recent, still.Agents = nil, nil // ages change all the time
	b, err := json.Marshal(still)
	if err != nil || bytes.Equal(b, p.last) {
		return
	}
	p.last = b
	p.version.Add(1)
	s.broadcastState(wire.EventHealth, s.state(), h)
}
