// Package plugins implements the methods about plug-ins and MCP servers.
package plugins

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/plugindir"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Options configures the methods. All fields are required.
type Options struct {
	Plugins func() []plugindir.Plugin // as they are in force
	// Refused returns why tools of a plug-in are not offered.
	Refused func(plugin string) []string
	// Hooks returns the points at which a plug-in has hooks.
	Hooks func(plugin string) []string
	// Servers returns the MCP servers of the configuration and of plug-ins, sorted by
	// name.
	Servers func() []wire.MCPServer
	// Probe starts an MCP server once and returns what it offers.
	Probe func(ctx context.Context, name string) (wire.MCPProbed, error)
	// BeginLogin begins a login at an MCP server.
	BeginLogin func(ctx context.Context, name, redirect string) (wire.MCPLoginStarted, error)
	// FinishLogin ends a login at an MCP server with what its service answered.
	FinishLogin func(ctx context.Context, name, answer string) (wire.MCPLogin, error)
	// Logout removes the login of an MCP server, which need not be configured any more.
	Logout func(ctx context.Context, name string) (wire.MCPLoggedOut, error)
	// Install copies a plug-in to those that the person installed.
	Install func(ctx context.Context, path string, replace bool) (plugindir.Plugin, error)
	// Remove removes an installed plug-in with its files.
	Remove func(id string) error
	// Refresh looks for plug-ins that were added, changed or removed.
	Refresh func()
	// Set changes settings of a plug-in in the configuration; nil: all are removed.
	Set func(ctx context.Context, id string, values map[string]any) error
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	const op = wire.RoleOperator
	return []rpc.Method{
		rpc.New(wire.MethodPluginsList, op, chela.ScopeRead, o.list),
		rpc.New(wire.MethodPluginsInspect, op, chela.ScopeRead, o.inspect),
		rpc.New(wire.MethodPluginsInfo, op, chela.ScopeRead, o.info),
		rpc.New(wire.MethodPluginsAdd, op, chela.ScopeAdmin, o.add),
		rpc.New(wire.MethodPluginsSetEnabled, op, chela.ScopeAdmin, o.setEnabled).Ignoring("allowlistPolicy"),
		rpc.New(wire.MethodPluginsRemove, op, chela.ScopeAdmin, o.remove),
		rpc.New(wire.MethodPluginsRefresh, op, chela.ScopeAdmin, o.refresh),
		rpc.New(wire.MethodMCPStatus, op, chela.ScopeRead, o.status),
		rpc.New(wire.MethodMCPProbe, op, chela.ScopeAdmin, o.probe).StartsWork(),
		rpc.New(wire.MethodMCPLoginStart, op, chela.ScopeAdmin, o.beginLogin),
		rpc.New(wire.MethodMCPLoginEnd, op, chela.ScopeAdmin, o.finishLogin),
		rpc.New(wire.MethodMCPLogout, op, chela.ScopeAdmin, o.logout),
	}
}

// The states of a plug-in.
const (
	stateEnabled  = "enabled"
	stateDisabled = "disabled"
	stateError    = "error"
)

// entry returns a plug-in for a list.
func entry(p *plugindir.Plugin) wire.PluginEntry {
	e := wire.PluginEntry{
		ID:          p.ID,
		Name:        p.Name,
		Description: p.Description,
		Version:     p.Version,
		Origin:      string(p.Source),
		Installed:   p.Source != plugindir.Missing,
		Enabled:     p.Enabled,
		State:       stateDisabled,
		Removable:   p.Source == plugindir.Installed,
	}
	if e.Name == "" {
		e.Name = p.ID
	}
	switch {
	case p.Loadable():
		e.State = stateEnabled
	case p.Enabled && len(p.Reasons) > 0:
		e.State, e.Error = stateError, p.Reasons[0]
	}
	return e
}

func (o Options) list(context.Context, rpc.Peer, wire.None) (wire.PluginsList, error) {
	out := wire.PluginsList{Plugins: []wire.PluginEntry{}, Diagnostics: []wire.PluginDiagnostic{}, Mutable: true}
	add := func(level, id string, texts []string) {
		for _, t := range texts {
			out.Diagnostics = append(out.Diagnostics, wire.PluginDiagnostic{Level: level, PluginID: id, Message: t})
		}
	}
	plugins := o.Plugins()
	for i := range plugins {
		p := &plugins[i]
		if p.Source != plugindir.Missing {
			out.Plugins = append(out.Plugins, entry(p))
		}
		level := "warn"
		if p.Enabled {
			level = "error"
		}
		add(level, p.ID, p.Reasons)
		add("warn", p.ID, p.Warnings)
		add("warn", p.ID, o.Refused(p.ID))
		if p.Loadable() {
			for _, s := range o.servers(p.ID) {
				add("error", p.ID, texts(s.Error))
				add("warn", p.ID, s.Problems)
			}
		}
	}
	return out, nil
}

// texts returns the texts that are not empty.
func texts(all ...string) []string {
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// servers returns the MCP servers of a plug-in.
func (o Options) servers(plugin string) []wire.MCPServer {
	out := []wire.MCPServer{}
	for _, s := range o.Servers() {
		if s.Plugin == plugin {
			out = append(out, s)
		}
	}
	return out
}

// find returns a plug-in.
func (o Options) find(id string) (*plugindir.Plugin, error) {
	all := o.Plugins()
	i := slices.IndexFunc(all, func(p plugindir.Plugin) bool { return p.ID == id && p.Source != plugindir.Missing })
	if i < 0 {
		return nil, chela.Errorf(chela.CodeNotFound, "there is no plug-in %q", id)
	}
	return &all[i], nil
}

func (o Options) info(_ context.Context, _ rpc.Peer, in wire.PluginGet) (wire.PluginInfo, error) {
	p, err := o.find(in.ID)
	if err != nil {
		return wire.PluginInfo{}, err
	}
	return wire.PluginInfo{
		PluginEntry: entry(p),
		Format:      string(p.Format),
		Homepage:    p.Homepage,
		Dir:         p.Dir,
		File:        p.File,
		Agent:       p.Agent,
		Hash:        p.Hash,
		Abilities:   list(p.Abilities()),
		Tools:       tools(p),
		Skills:      list(p.Skills),
		Unsupported: list(p.Unsupported),

		Reasons:  list(p.Reasons),
		Warnings: append(list(p.Warnings), o.Refused(p.ID)...),
		Servers:  o.servers(p.ID),
	}, nil
}

// list returns a list that is not nil.
func list(s []string) []string { return append([]string{}, s...) }

// tools returns the tools that a plug-in declares.
func tools(p *plugindir.Plugin) []string {
	out := []string{}
	for _, t := range p.Tools {
		out = append(out, t.Name)
	}
	return out
}

func (o Options) inspect(_ context.Context, _ rpc.Peer, in wire.PluginGet) (wire.PluginInspected, error) {
	p, err := o.find(in.ID)
	if err != nil {
		return wire.PluginInspected{}, err
	}
	e := entry(p)
	out := wire.PluginInspected{OK: true, ReviewToken: token(p), Declared: wire.PluginDeclared{
		Channels:    []string{},
		Providers:   []string{},
		Tools:       tools(p),
		Contracts:   []string{},
		Hooks:       list(o.Hooks(p.ID)),
		Servers:     []string{},
		Commands:    []string{},
		CLIBackends: []string{},
		Skills:      []string{},
		Dangerous:   []string{},
	}}
	out.Plugin.ID, out.Plugin.Name, out.Plugin.Version, out.Plugin.Description = e.ID, e.Name, e.Version, e.Description
	out.Plugin.Origin, out.Plugin.Installed, out.Plugin.Enabled = e.Origin, e.Installed, e.Enabled
	for _, dir := range p.Skills {
		out.Declared.Skills = append(out.Declared.Skills, filepath.Base(dir))
	}
	for name := range p.Servers {
		out.Declared.Servers = append(out.Declared.Servers, name)
	}
	slices.Sort(out.Declared.Servers)
	conversation, prompt := p.Entry.Allowed()
	grants := &out.Grants.Hooks
	grants.Conversation = wire.PluginGrant{Effective: conversation, Configured: p.Entry.Hooks.Conversation}
	grants.Prompt = wire.PluginGrant{Effective: prompt, Configured: p.Entry.Hooks.Prompt}
	return out, nil
}

// token identifies the state of a plug-in that a person has read.
func token(p *plugindir.Plugin) string {
	if p.Hash == "" {
		return "path"
	}
	return p.Hash
}

func (o Options) add(ctx context.Context, _ rpc.Peer, in wire.PluginsAdd) (wire.PluginChanged, error) {
	if !filepath.IsAbs(in.Path) {
		return wire.PluginChanged{}, rpc.Invalid("at /path: must be an absolute path")
	}
	p, err := o.Install(ctx, in.Path, in.Replace)
	if err != nil {
		return wire.PluginChanged{}, err
	}
	if found, err := o.find(p.ID); err == nil {
		p = *found
	}
	return wire.PluginChanged{OK: true, Plugin: entry(&p), Warnings: p.Warnings}, nil
}

func (o Options) setEnabled(ctx context.Context, _ rpc.Peer, in wire.PluginsSetEnabled) (wire.PluginChanged, error) {
	p, err := o.find(in.ID)
	if err != nil {
		return wire.PluginChanged{}, err
	}
	set := map[string]any{"enabled": in.Enabled}
	if in.Enabled {
		if a := in.Acknowledge; a != nil && a.Token != token(p) {
			return wire.PluginChanged{}, chela.Errorf(chela.CodeConflict, "the plug-in %s was changed since it was read", p.ID)
		}
		if p.Changed() {
			return wire.PluginChanged{}, chela.Errorf(chela.CodeConflict, "the plug-in %s is being changed; try again", p.ID)
		}
		if p.Hash != "" {
			set["sha256"] = p.Hash
		}
	}
	if err := o.Set(ctx, p.ID, set); err != nil {
		return wire.PluginChanged{}, err
	}
	if p, err = o.find(in.ID); err != nil {
		return wire.PluginChanged{}, err
	}
	return wire.PluginChanged{OK: true, Plugin: entry(p), Warnings: slices.Concat(p.Reasons, p.Warnings)}, nil
}

// remove removes a plug-in. Its settings are removed first, so that a plug-in with
// the same id does not take them over.
func (o Options) remove(ctx context.Context, _ rpc.Peer, in wire.PluginGet) (wire.PluginRemoved, error) {
	p, err := o.find(in.ID)
	if err != nil {
		return wire.PluginRemoved{}, err
	}
	if p.Source != plugindir.Installed {
		return wire.PluginRemoved{},
			chela.Errorf(chela.CodeInvalid, "the plug-in %s is in %s, which the person keeps", p.ID, p.Dir)
	}
	if err := o.Set(ctx, p.ID, nil); err != nil {
		return wire.PluginRemoved{}, err
	}
	if err := o.Remove(p.ID); err != nil {
		return wire.PluginRemoved{}, err
	}
	return wire.PluginRemoved{OK: true, ID: p.ID, Removed: []string{p.Dir}}, nil
}

func (o Options) refresh(context.Context, rpc.Peer, wire.None) (wire.OK, error) {
	o.Refresh()
	return wire.OK{OK: true}, nil
}

func (o Options) status(context.Context, rpc.Peer, wire.None) (wire.MCPStatus, error) {
	return wire.MCPStatus{Servers: append([]wire.MCPServer{}, o.Servers()...)}, nil
}

func (o Options) probe(ctx context.Context, _ rpc.Peer, in wire.MCPProbe) (wire.MCPProbed, error) {
	if err := o.known(in.Name); err != nil {
		return wire.MCPProbed{}, err
	}
	return o.Probe(ctx, in.Name)
}

// known returns the error about a name that no MCP server has.
func (o Options) known(name string) error {
	if !slices.ContainsFunc(o.Servers(), func(s wire.MCPServer) bool { return s.Name == name }) {
		return chela.Errorf(chela.CodeNotFound, "there is no MCP server %q", name)
	}
	return nil
}

func (o Options) beginLogin(ctx context.Context, _ rpc.Peer, in wire.MCPLoginStart) (wire.MCPLoginStarted, error) {
	if err := o.known(in.Name); err != nil {
		return wire.MCPLoginStarted{}, err
	}
	return o.BeginLogin(ctx, in.Name, in.Redirect)
}

func (o Options) finishLogin(ctx context.Context, _ rpc.Peer, in wire.MCPLoginFinish) (wire.MCPLoginFinished, error) {
	if err := o.known(in.Name); err != nil {
		return wire.MCPLoginFinished{}, err
	}
	l, err := o.FinishLogin(ctx, in.Name, in.Answer)
	return wire.MCPLoginFinished{Name: in.Name, Login: l}, err
}

func (o Options) logout(ctx context.Context, _ rpc.Peer, in wire.MCPLogout) (wire.MCPLoggedOut, error) {
	return o.Logout(ctx, in.Name)
}
