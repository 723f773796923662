// Package hooks implements the methods about hooks of the person.
package hooks

import (
	"cmp"
	"context"
	"path/filepath"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/hookdir"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Options configures the methods. All fields are required.
type Options struct {
	Default   chela.AgentID
	Agent     func(chela.AgentID) bool // reports whether the agent exists
	Workspace func(chela.AgentID) string
	Managed   string                // folder of the hooks that the person installed
	Hooks     func() []hookdir.Hook // as they are in force
	// Install copies a folder to the hooks that the person installed.
	Install func(ctx context.Context, path string, replace bool) (hookdir.Hook, error)
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	return []rpc.Method{
		rpc.New(wire.MethodHooksStatus, wire.RoleOperator, chela.ScopeRead, o.status),
		rpc.New(wire.MethodHooksInstall, wire.RoleOperator, chela.ScopeAdmin, o.install),
	}
}

func (o Options) status(_ context.Context, _ rpc.Peer, in wire.HooksGet) (wire.HooksStatus, error) {
	agent := cmp.Or(chela.AgentID(in.AgentID), o.Default)
	if !o.Agent(agent) {
		return wire.HooksStatus{}, rpc.UnknownAgent(agent)
	}
	out := wire.HooksStatus{Workspace: o.Workspace(agent), Managed: o.Managed, Hooks: []wire.Hook{}}
	for _, h := range o.Hooks() {
		if in.AgentID == "" || h.Agent == "" || h.Agent == in.AgentID {
			out.Hooks = append(out.Hooks, view(h))
		}
	}
	return out, nil
}

func (o Options) install(ctx context.Context, _ rpc.Peer, in wire.HooksInstall) (wire.HookInstalled, error) {
	if !filepath.IsAbs(in.Path) {
		return wire.HookInstalled{}, rpc.Invalid("at /path: must be an absolute path")
	}
	h, err := o.Install(ctx, in.Path, in.Replace)
	return wire.HookInstalled{Name: h.Name, Dir: h.Dir}, err
}

// view returns a hook as clients see it.
func view(h hookdir.Hook) wire.Hook {
	out := wire.Hook{
		Name:        h.Name,
		Description: h.Description,
		Source:      string(h.Source),
		File:        h.File,
		Dir:         h.Dir,
		Handler:     h.Handler,
		Key:         h.Key,
		Emoji:       h.Emoji,
		Homepage:    h.Homepage,
		Events:      nonNil(h.Events),
		Always:      h.Always,
		AgentID:     h.Agent,
		Enabled:     h.Enabled,

		Satisfied: h.Satisfied(),
		Loadable:  h.Loadable(),
		Warnings:  h.Warnings,
		Hash:      h.Hash,
		Managed:   h.Plugin != "",
		Requires:  requirements(h.Requires),

		Missing: requirements(h.Missing),
	}
	switch {
	case len(h.Reasons) > 0:
		out.Blocked = h.Reasons[0]
	case !h.Enabled:
		out.Blocked = "disabled"
	}
	return out
}

func requirements(r hookdir.Requires) wire.HookRequirements {
	return wire.HookRequirements{
		Bins:    nonNil(r.Bins),
		AnyBins: nonNil(r.AnyBins),
		Env:     nonNil(r.Env),
		Config:  nonNil(r.Config),
		OS:      nonNil(r.OS),
	}
}

func nonNil(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}
