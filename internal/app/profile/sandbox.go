package profile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/session"
	methods "github.com/chela-ai/chela/internal/surface/method/sandbox"
	"github.com/chela-ai/chela/wire"
)

// Sandbox returns the sandbox of a session; nil: the session is not sandboxed.
func (g *Generation) Sandbox(m session.Meta) *sandbox.Session {
	c, _ := g.Settings.Sandbox(m.Agent, g.home)
	if m.Key = sandboxKey(m, c); !c.Applies(m.Key) {
		return nil
	}
	return g.sandboxOf(m, c)
}

// sandboxKey returns the key of the session whose sandbox a session uses. A session
// that was forked from a sandboxed one uses the sandbox of that one.
func sandboxKey(m session.Meta, c sandbox.Config) chela.SessionKey {
	if home := m.Home(); c.Applies(home) {
		return home
	}
	return m.Key
}

// sandboxOf returns the sandbox of a session with a configuration.
func (g *Generation) sandboxOf(m session.Meta, c sandbox.Config) *sandbox.Session {
	s := sandbox.New(c, m.Key, g.Workspace(m.Agent), filepath.Join(g.o.State, "sandboxes"))
	if b := g.backends[s.Backend]; b != nil {
		_ = b.Prepare(s) // checkSandboxes found no error
	}
	rules := g.pipeline(m.Agent, policy.Conversation{Sandboxed: true})
	for _, step := range rules {
		if step.Label == policy.Sandbox {
			s.Allow, s.Deny = append(s.Allow, step.Allow...), append(s.Deny, step.Deny...)
		}
	}
	return s
}

// elevate returns a function that returns a session's sandbox as it is for a principal, which is
// known only when the run calls a tool.
func (g *Generation) elevate(m session.Meta, s *sandbox.Session) func(chela.Principal) *sandbox.Session {
	if s == nil {
		return nil
	}
	return func(who chela.Principal) *sandbox.Session {
		box := *s
		box.Elevated = g.Settings.ElevatedFor(m.Agent, who, m.Elevated)
		return &box
	}
}

// checkSandboxes returns the errors in the settings of sandboxes that are used.
func (g *Generation) checkSandboxes() error {
	var errs []error
	for _, id := range g.Settings.Roster() {
		c, at := g.Settings.Sandbox(id, g.home)
		b := g.backends[c.Backend]
		if b == nil || c.Mode == sandbox.Off {
			continue
		}
		s := sandbox.New(c, chela.MainSession(id), g.Workspace(id), filepath.Join(g.o.State, "sandboxes"))
		if err := b.Prepare(s); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", at, err))
		} else if checker, ok := b.(sandbox.Checker); ok {
			if err := checker.Check(s); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", at, err))
			}
		}
	}
	return errors.Join(errs...)
}

// hasFolder reports whether the private folder of a sandbox was made.
func (f *Factory) hasFolder(s *sandbox.Session) bool {
	if s == nil {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.folders[s.Private]
}

// makeFolder makes the private folder of a sandbox.
func (f *Factory) makeFolder(s *sandbox.Session) error {
	if f.hasFolder(s) {
		return nil
	}
	if err := os.MkdirAll(s.Private, 0o700); err != nil {
		f.o.Log.Error("make the folder of a sandbox", "err", err)
		if pe, ok := errors.AsType[*fs.PathError](err); ok {
			err = pe.Err // without the path, which is none of a chat's business
		}
		return &chela.Error{Code: chela.CodeUnavailable, Message: "the folder of the sandbox cannot be made",
			Hint: "chela doctor", Err: err}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.folders[s.Private] = true
	return nil
}

// note is what the prompt of a sandboxed session says about the sandbox.
func note(s *sandbox.Session) string {
	if s == nil {
		return ""
	}
	text := "Commands and file tools work in a sandbox (" + s.Backend +
		"): other files of the host and most of the network are not there."
	if s.Container != "" {
		text += " Commands see the working directory as " + s.Workdir + "."
	}
	if !s.Writable() {
		text += " The working directory is read-only."
	}
	if s.Scratch != "" {
		text += " Commands start in " + s.Scratch + ", which they can change."
	}
	return text
}

// ExplainSandbox returns the sandbox of a session as it is for a principal, or as it
// would be if the session were sandboxed.
func (g *Generation) ExplainSandbox(ctx context.Context, who chela.Principal,
	key chela.SessionKey) (methods.Explained, error) {
	m, err := g.meta(ctx, key)
	if err != nil {
		return methods.Explained{}, err
	}
	c, _ := g.Settings.Sandbox(m.Agent, g.home)
	m.Key = sandboxKey(m, c)
	s := g.sandboxOf(m, c)
	e := methods.Explained{Session: g.elevate(m, s)(who), Applies: c.Applies(m.Key), Mode: c.Mode}
	e.AllowKey, e.DenyKey = g.Settings.SandboxToolKeys(m.Agent)
	for _, gate := range g.Settings.ElevatedGates(m.Agent) {
		e.Gates = append(e.Gates, wire.SandboxGate{Key: gate.Key, Value: gate.Value})
	}
	return e, nil
}

// SandboxConfig returns the configuration of an agent's sandbox.
func (g *Generation) SandboxConfig(id chela.AgentID) sandbox.Config {
	c, _ := g.Settings.Sandbox(id, g.home)
	return c
}

// Backends returns the backends that confine commands, by name, and their names.
func (f *Factory) Backends() (all map[string]sandbox.Backend, names []string) {
	return f.backends, slices.Sorted(maps.Keys(f.backends))
}

// prune removes containers that were not used for long, until ctx ends.
func (f *Factory) prune(ctx context.Context) {
	t := time.NewTicker(time.Hour)
	defer t.Stop()
	for {
		for name, b := range f.backends {
			p, ok := b.(sandbox.Pruner)
			if !ok {
				continue
			}
			if _, err := p.Prune(ctx, time.Now()); err != nil && ctx.Err() == nil {
				f.o.Log.Warn("remove unused containers", "backend", name, "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}
