package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/mcp"
)

// The states of a server.
const (
	Stopped  = "stopped"
	Starting = "starting"
	Running  = "running"
	Failed   = "failed" // the last start failed, or the program ended by itself
	Paused   = "paused" // it failed several times, and is not started for a while

	NeedsAuth = "needs-auth" // somebody has to log in
)

// Status is the state of a server.
type Status struct {
	Name        string    `json:"name"`
	Plugin      string    `json:"plugin"`
	State       string    `json:"state"`
	PID         int       `json:"pid,omitempty"`
	Tools       []string  `json:"tools"`           // that Chela offers, by their names for models
	Known       bool      `json:"known"`           // its tools were listed
	Error       string    `json:"error,omitempty"` // of the last start or the last end
	Diagnostics []string  `json:"diagnostics,omitempty"`
	Used        time.Time `json:"used,omitzero"` // end of the last call
	Login       Login     `json:"login"`
}

// Status returns the states of the servers in force, sorted by name.
func (p *Pool) Status() []Status {
	p.mu.Lock()
	servers := slices.Collect(maps.Values(p.servers))
	p.mu.Unlock()
	slices.SortFunc(servers, func(a, b *server) int { return cmp.Compare(a.name, b.name) })
	out := make([]Status, 0, len(servers))
	for _, s := range servers {
		cat, known := p.catalog(s.key)
		p.mu.Lock()
		config := s.config
		p.mu.Unlock()
		login := p.LoginOf(s.name, config)
		st := p.status(s, cat, known)
		st.Login = login
		if missing := login.State != LoginIn && (login.State == LoginLost || config.Auth == mcp.OAuthLogin); missing &&
			st.State != Running {
			st.State, st.Error = NeedsAuth, needsLogin(s.name, login.Problem).Error()
		}
		out = append(out, st)
	}
	return out
}

func (p *Pool) status(s *server, cat Catalog, known bool) Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := Status{Name: s.name, Plugin: cmp.Or(s.config.Plugin, Bundle), State: Stopped, Known: known, Used: s.called}
	_, names, problems := usable(s.name, s.config, cat)
	if known {
		clashes := p.clashes[s.name]
		st.Tools = slices.DeleteFunc(names, func(n string) bool { return clashes[strings.ToLower(n)] != "" })
		st.Diagnostics = append(problems, slices.Sorted(maps.Values(clashes))...)
	}
	if s.err != nil {
		st.State, st.Error = Failed, s.err.Error()
		if errors.Is(s.err, ErrNeedsAuth) {
			st.State = NeedsAuth
		}
	}
	if _, dropped := s.config.Variables(); len(dropped) > 0 {
		st.Diagnostics = append(st.Diagnostics, "not set, because they change which code runs: "+strings.Join(dropped, ", "))
	}
	switch {
	case s.conn != nil && !s.conn.broken():
		st.State = Running
		if s.conn.process != nil {
			st.PID = s.conn.process.PID()
		}
	case s.starting != nil:
		st.State = Starting
	case st.State != NeedsAuth && s.failures >= maxFailures && time.Now().Before(s.next):
		st.State = Paused
	}
	return st
}

// Exposed returns the names for models of the tools of a catalog by their names at the
// server. A tool that is not offered has none.
func Exposed(name string, s mcp.Server, cat Catalog) map[string]string {
	out := map[string]string{}
	entries, names, _ := usable(name, s, cat)
	for i, e := range entries {
		out[e.Name] = names[i]
	}
	return out
}

// Probe starts a server, which need not be in force, lists its tools and stops it.
func (p *Pool) Probe(ctx context.Context, name string, s mcp.Server) (Catalog, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return Catalog{}, fmt.Errorf("MCP server %s: %w", name, errClosed)
	}
	p.wg.Add(1)
	p.mu.Unlock()
	defer p.wg.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.ctx, func() { cancel(errClosed) })()
	c, cat, err := p.open(ctx, name, s)
	if err != nil {
		return Catalog{}, err
	}
	c.stop()
	p.learn(key(name, s), cat)
	return cat, nil
}
