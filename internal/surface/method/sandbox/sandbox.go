// Package sandbox implements the methods that show and test where the commands of
// sessions run.
package sandbox

import (
	"cmp"
	"context"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Options configures the methods. All fields are required.
type Options struct {
	Default chela.AgentID
	Agent   func(chela.AgentID) bool // reports whether the agent exists
	// Config returns the configuration of an agent's sandbox.
	Config func(chela.AgentID) sandbox.Config
	// Backends returns the backends of this build, by name, and their names.
	Backends func() (map[string]sandbox.Backend, []string)
	// Explain returns the sandbox of a session, whether it applies, and where the
	// rules about it come from.
	Explain func(ctx context.Context, who chela.Principal, key chela.SessionKey) (Explained, error)
}

// Explained is the sandbox of a session.
type Explained struct {
	*sandbox.Session      // as it is, or as it would be
	Applies          bool // the session is sandboxed
	Mode             sandbox.Mode
	AllowKey         string // where the allowed tools are configured; "": the default
	DenyKey          string
	Gates            []wire.SandboxGate
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	const op = wire.RoleOperator
	return []rpc.Method{
		rpc.New(wire.MethodSandboxStatus, op, chela.ScopeRead, o.status),
		rpc.New(wire.MethodSandboxExplain, op, chela.ScopeRead, o.explain),
		rpc.New(wire.MethodSandboxTest, op, chela.ScopeAdmin, o.test),
		rpc.New(wire.MethodSandboxRecreate, op, chela.ScopeAdmin, o.recreate),
	}
}

// session returns the session that the parameters name.
func (o Options) session(key, agent string) (chela.SessionKey, error) {
	k, err := chela.ParseSessionKey(cmp.Or(key, chela.MainKey), cmp.Or(chela.AgentID(agent), o.Default))
	switch {
	case err != nil:
		return "", rpc.Invalid("%v", err)
	case agent != "" && chela.AgentID(agent) != k.Agent():
		return "", rpc.Invalid("agent id %q does not match session agent %q", agent, k.Agent())
	case !o.Agent(k.Agent()):
		return "", rpc.UnknownAgent(k.Agent())
	}
	return k, nil
}

func (o Options) status(ctx context.Context, _ rpc.Peer, in wire.SandboxGet) (wire.SandboxStatus, error) {
	key, err := o.session(in.SessionKey, in.AgentID)
	if err != nil {
		return wire.SandboxStatus{}, err
	}
	c := o.Config(key.Agent())
	out := wire.SandboxStatus{AgentID: string(key.Agent()), Mode: string(c.Mode), Backend: c.Backend,
		Backends: []wire.SandboxLevel{}}
	all, names := o.Backends()
	for _, name := range names {
		if name == c.Backend || name == sandbox.Native {
			out.Backends = append(out.Backends, level(ctx, all, name))
		}
	}
	if all[c.Backend] == nil {
		out.Backends = append(out.Backends, level(ctx, all, c.Backend))
	}
	return out, nil
}

// level returns how well a backend confines commands.
func level(ctx context.Context, all map[string]sandbox.Backend, name string) wire.SandboxLevel {
	b := all[name]
	if b == nil {
		return wire.SandboxLevel{Backend: name, Level: "none", Reason: "this program was built or started without it"}
	}
	return levelOf(name, b.Level(ctx))
}

func levelOf(name string, l sandbox.Level) wire.SandboxLevel {
	return wire.SandboxLevel{Backend: name, Level: l.Name, Complete: l.Complete, Reason: l.Reason, Hint: l.Hint}
}

func (o Options) explain(ctx context.Context, _ rpc.Peer, in wire.SandboxGet) (wire.SandboxExplained, error) {
	key, err := o.session(in.SessionKey, in.AgentID)
	if err != nil {
		return wire.SandboxExplained{}, err
	}
	e, err := o.Explain(ctx, chela.PrincipalFrom(ctx), key)
	if err != nil {
		return wire.SandboxExplained{}, err
	}
	all, _ := o.Backends()
	out := wire.SandboxExplained{
		SessionKey: string(key),
		AgentID:    string(key.Agent()),
		Sandboxed:  e.Applies,
		Mode:       string(e.Mode),
		Scope:      string(e.Scope),
		Access:     string(e.Access),
		Backend:    e.Backend,
		Level:      level(ctx, all, e.Backend),
		Tools:      wire.SandboxTools{Allow: nonNil(e.Allow), Deny: nonNil(e.Deny)},
		Elevated: wire.SandboxElevated{Level: e.Elevated.Level, Allowed: e.Elevated.Reason == "",
			Reason: e.Elevated.Reason, Gates: e.Gates},
	}
	out.Tools.Sources.Allow, out.Tools.Sources.Deny = cmp.Or(e.AllowKey, "default"), cmp.Or(e.DenyKey, "default")
	if e.Applies {
		out.Workspace, out.Container, out.Workdir = e.Workspace, e.Container, e.Workdir
	}
	return out, nil
}

func nonNil(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func (o Options) test(ctx context.Context, p rpc.Peer, in wire.SandboxGet) (wire.SandboxTest, error) {
	key, err := o.session(in.SessionKey, in.AgentID)
	if err != nil {
		return wire.SandboxTest{}, err
	}
	e, err := o.Explain(ctx, chela.PrincipalFrom(ctx), key)
	if err != nil {
		return wire.SandboxTest{}, err
	}
	p.Yield()
	all, _ := o.Backends()
	b := all[e.Backend]
	if b == nil {
		return wire.SandboxTest{SandboxLevel: level(ctx, all, e.Backend), Effects: []wire.SandboxEffect{}}, nil
	}
	l, effects := b.Try(ctx, e.Session)
	out := wire.SandboxTest{SandboxLevel: levelOf(e.Backend, l), Effects: []wire.SandboxEffect{}}
	for _, f := range effects {
		out.Effects = append(out.Effects, wire.SandboxEffect{Name: f.Name, Held: f.Held})
	}
	return out, nil
}

func (o Options) recreate(ctx context.Context, p rpc.Peer, in wire.SandboxRecreate) (wire.SandboxRecreated, error) {
	match := func(string) bool { return true }
	switch {
	case in.All && in.AgentID == "" && in.SessionKey == "":
	case in.All || in.AgentID == "" && in.SessionKey == "":
		return wire.SandboxRecreated{}, rpc.Invalid("either all, or an agent or a session is required")
	default:
		key, err := o.session(in.SessionKey, in.AgentID)
		if err != nil {
			return wire.SandboxRecreated{}, err
		}
		agent := key.Agent()
		match = func(k string) bool {
			if in.SessionKey != "" {
				return k == string(key)
			}
			return k == "agent:"+string(agent) || chela.SessionKey(k).Agent() == agent
		}
	}
	p.Yield()
	out := wire.SandboxRecreated{Names: []string{}, Busy: []string{}}
	all, names := o.Backends()
	for _, name := range names {
		r, err := all[name].Recreate(ctx, match)
		out.Removed += len(r.Removed)
		out.Names, out.Busy = append(out.Names, r.Removed...), append(out.Busy, r.Busy...)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}
