package profile

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/chela-ai/chela/internal/core/acp"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/plan"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/prompt"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/core/window"
	"github.com/chela-ai/chela/internal/engine/invoke"
	"github.com/chela-ai/chela/internal/engine/runner"
	acptool "github.com/chela-ai/chela/internal/plugin/tool/acp"
)

// newCoders returns the programs of coding agents.
func (f *Factory) newCoders() *acptool.Pool {
	return acptool.New(acptool.Options{
		Log:     f.o.Log,
		Broker:  f.broker,
		Environ: f.Environ(),
		Version: f.o.Version,
		Redact:  f.o.Redact,
		Image:   f.o.Files.Scaled,
		State:   f.external,
		Record: func(ctx context.Context, key chela.SessionKey, change func(*session.External)) error {
			return f.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
				m, err := tx.Sessions().Get(key)
				if err != nil {
					return err
				}
				if m.External == nil {
					return errNotExternal
				}
				x := *m.External
				change(&x)
				m.External = &x
				return tx.Sessions().Put(m)
			})
		},
		Plan: f.setPlan,
	})
}

var errNotExternal = chela.Errorf(chela.CodeConflict, "no coding agent answers in this session any more")

// external returns what a session has to do with its coding agent.
func (f *Factory) external(ctx context.Context, key chela.SessionKey) (session.External, error) {
	m, err := store.Get(ctx, f.o.Store,
		func(r store.Reader) (session.Meta, error) { return session.Lookup(r.Sessions(), key) })
	if err != nil {
		return session.External{}, err
	}
	if m.External == nil {
		return session.External{}, errNotExternal
	}
	return *m.External, nil
}

// setPlan stores the plan of a coding agent. The answer does not depend on it, so that an error
// is only logged.
func (f *Factory) setPlan(ctx context.Context, key chela.SessionKey, id chela.RunID, p plan.Plan) {
	changed := false
	err := f.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		m, err := tx.Sessions().Get(key)
		if err != nil {
			return err
		}
		changed, err = session.SetPlan(tx.Sessions(), m, p)
		return err
	})
	if err != nil {
		f.o.Log.Warn("plan of a coding agent", "session", key, "err", err)
	}
	if changed {
		f.o.Bus.Publish(chela.Event{Run: id, Session: key, Stream: chela.StreamPlan, Data: p})
	}
}

// observeCoders tells the programs of coding agents of runs and sessions that end.
func (f *Factory) observeCoders(e chela.Event) {
	switch {
	case e.Stream == chela.StreamSession && e.Phase == chela.PhaseDeleted:
		f.coders.Stop(e.Session, "its session was deleted")
	case e.Stream == chela.StreamSession && e.Phase == chela.PhaseReset:
		f.coders.Stop(e.Session, "its session was reset")
	case e.Stream == chela.StreamLifecycle && e.End != nil:
		f.coders.Ended(e.Session, e.Run)
	}
}

// closeCoders ends the programs of coding agents.
func (f *Factory) closeCoders() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := f.coders.Close(ctx); err != nil {
		f.o.Log.Warn("stop coding agents", "err", err)
	}
}

// findCoders reads the section acp.
func (g *Generation) findCoders(c Config) error {
	if raw := c.Sections.Section("acp"); len(raw) > 0 {
		if err := json.Unmarshal(raw, &g.Coders); err != nil {
			return fmt.Errorf("configuration, acp: %w", err)
		}
	}
	if err := g.Coders.Check(); err != nil {
		return fmt.Errorf("configuration, %w", err)
	}
	for name, p := range g.Coders.Agents {
		p.Env = map[string]string{}
		for variable, ref := range p.Vars {
			value, err := ref.Resolve(c.Env)
			if err != nil {
				return fmt.Errorf("configuration, acp.agents.%s.env.%s: %w", name, variable, err)
			}
			p.Env[variable] = value.Reveal()
		}
		g.Coders.Agents[name] = p
	}
	return nil
}

// resolveExternal makes the profile of a run that a coding agent carries out. The coding agent
// has its own prompt, tools, files and history, so that ours are taken out of the profile, and
// with them the limits that count our rounds. Only what the run itself needs stays.
func (g *Generation) resolveExternal(m session.Meta, r run.Run) (*runner.Profile, error) {
	x := m.External
	if x.By != "" && r.Principal.ID != x.By && !r.Principal.May(chela.ScopeAdmin) {
		return nil, chela.Errorf(chela.CodeForbidden, "the coding agent %s answers here only to the person who started it",
			x.Agent)
	}
	if r.Kind == run.Compact {
		return nil, chela.Errorf(chela.CodeInvalid,
			"a coding agent keeps its own conversation, which is not compacted here; /new begins another one")
	}
	name, prog, err := g.Coders.Find(x.Agent)
	if err != nil {
		return nil, err
	}
	p := g.profile(m, r, acptool.Model(name), g.coders.Provider(m.Key, r.ID, name, prog), nil)
	own := tool.NewSet(g.coders.Tool())
	p.Tools, p.Catalog = own, policy.NewCatalog(own)
	p.Policy, p.Sandbox, p.Env, p.ForkPolicy, p.Cheaper = nil, nil, nil, nil, nil
	p.Files, p.Types, p.Skills, p.Chat, p.Hints, p.Startup = nil, nil, nil, nil, nil, prompt.Startup{}
	p.Budget, p.Ladder, p.Loop = usage.Budget{}, nil, invoke.LoopOptions{Enabled: new(bool)}
	// The program takes no message while it works.
	p.Deaf = true
	p.MaxRounds, p.MaxCalls, p.MaxHistory, p.Pruning, p.Caches = 0, 0, 0, window.Pruning{}, false
	return p, nil
}

// Coder implements spawn.Config and inbound.Coders: it returns the coding agent with a
// name, which works in a folder. Both may be empty.
func (c *Current) Coder(id chela.AgentID, name, dir string) (session.External, error) {
	g := c.Load()
	name, prog, err := g.Coders.Find(name)
	if err != nil {
		return session.External{}, err
	}
	if err := acptool.Missing(g.Environ(), name, prog); err != nil {
		return session.External{}, err
	}
	x := session.External{Agent: name, Dir: acp.Folder(cmp.Or(dir, prog.Dir), g.home, g.Workspace(id))}
	switch info, err := os.Stat(x.Dir); {
	case errors.Is(err, os.ErrNotExist) || err == nil && !info.IsDir():
		return x, chela.Errorf(chela.CodeInvalid, "the folder %s does not exist", x.Dir)
	case err != nil:
		return x, chela.Errorf(chela.CodeInvalid, "the folder %s cannot be used: %w", x.Dir, err)
	}
	return x, nil
}

// Coders returns the agents that may be used, each with why it cannot be, and why all are
// switched off.
func (c *Current) Coders() (agents []acp.Check, on error) {
	g := c.Load()
	for _, name := range g.Coders.Names() {
		all := g.Coders
		all.Enabled = true
		_, prog, err := all.Find(name)
		if err == nil {
			err = acptool.Missing(g.Environ(), name, prog)
		}
		agents = append(agents, acp.Check{Name: name, Command: prog.Line(), Err: err, Default: name == g.Coders.Default})
	}
	return agents, g.Coders.On()
}

// StopCoder ends the program of the coding agent of a session.
func (f *Factory) StopCoder(key chela.SessionKey) { f.coders.Stop(key, "it was closed") }

// CoderState returns the state of the program of the coding agent of a session.
func (f *Factory) CoderState(key chela.SessionKey) acp.State { return f.coders.StateOf(key) }

// SetCoderMode sets the mode of the coding agent of a session.
func (f *Factory) SetCoderMode(ctx context.Context, key chela.SessionKey, mode string) error {
	return f.coders.SetMode(ctx, key, mode)
}

// readyCoders returns the coding agents that tasks can be handed over to.
func (g *Generation) readyCoders() (names []string) {
	for _, name := range g.Coders.Names() {
		if _, prog, err := g.Coders.Find(name); err == nil && acptool.Missing(g.Environ(), name, prog) == nil {
			names = append(names, name)
		}
	}
	return names
}
