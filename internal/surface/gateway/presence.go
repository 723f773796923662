package gateway

import (
	"bytes"
	"encoding/json"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/wire"
)

// maxRoster limits the presence list, because each client receives it.
const maxRoster = 64

func (s *Server) state() wire.StateVersion {
	s.mu.Lock()
	defer s.mu.Unlock()
	return wire.StateVersion{Presence: s.version, Health: s.health.version.Load() + 1}
}

// roster returns the presence list as visible to who, the gateway first.
func (s *Server) roster(who chela.Principal) []wire.Presence {
	host, _ := os.Hostname() // may be empty
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

// Roster returns the presence list, the gateway first.
func (s *Server) Roster() []wire.Presence { return s.roster(chela.Owner("")) }

// presence broadcasts the presence list.
type presence struct {
	s     *Server
	ready chan struct{} // capacity 1
}

func (p *presence) init(s *Server) { p.s, p.ready = s, make(chan struct{}, 1) }

func (p *presence) changed() {
	select {
	case p.ready <- struct{}{}:
	default:
	}
}

// run broadcasts the list after a change. It merges changes over a delay that
// grows with the number of clients.
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
		case <-p.ready: // included in this broadcast
		default:
		}
		if p.s.Clients() > 0 {
			p.s.broadcastState(wire.EventPresence, p.s.state(), wire.PresenceChanged{Presence: p.s.Roster()})
		}
	}
}

// healthMonitor broadcasts the gateway's health when it changes.
type healthMonitor struct {
	version atomic.Int64
	last    []byte
}

// healthInterval is how often health is checked while clients are connected.
const healthInterval = time.Minute

func (p *healthMonitor) run(s *Server) {
	if s.o.Health == nil {
		return
	}
	t := time.NewTicker(healthInterval)
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
			s.o.Log.Warn("check health", "err", err)
			continue
		}
		p.update(s, h)
	}
}

// update broadcasts h if it differs from the last one.
func (p *healthMonitor) update(s *Server, h wire.Health) {
	still := h
	still.Time, still.DurationMs = 0, 0
	still.Sessions.Recent, still.Agents = nil, nil // ages always differ
	b, err := json.Marshal(still)
	if err != nil || bytes.Equal(b, p.last) {
		return
	}
	p.last = b
	p.version.Add(1)
	s.broadcastState(wire.EventHealth, s.state(), h)
}
