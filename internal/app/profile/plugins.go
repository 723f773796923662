package profile

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/app/settings"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/egress"
	"github.com/chela-ai/chela/internal/core/hookdir"
	"github.com/chela-ai/chela/internal/core/mcp"
	"github.com/chela-ai/chela/internal/core/plugindir"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/untrusted"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/plugin/channel/external"
	mcptool "github.com/chela-ai/chela/internal/plugin/tool/mcp"
	"github.com/chela-ai/chela/internal/plugin/tool/web"
)

// newPool returns the connections to MCP servers.
func (f *Factory) newPool(c settings.Sections) (*mcptool.Pool, error) {
	var err error
	if f.broker, err = f.o.Registry.NewBroker(standard.SandboxEnv{State: f.o.State}, c.Section); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	o := mcptool.Options{
		Log:       f.o.Log,
		Broker:    f.broker,
		Environ:   f.o.Environ,
		State:     f.o.State,
		HTTP:      f.serverClient,
		Redact:    f.o.Redact,
		Label:     untrusted.New(),
		Version:   f.o.Version,
		Changed:   f.o.ToolsChanged,
		LoginHTTP: f.loginClient,
		Hide:      f.o.Hide,
		Lapsed:    f.o.Tell,
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if b := f.Cage(); b != nil { // a nil Backend in o.Cage would not be nil
		o.Cage = b
	}
	return mcptool.New(o), nil
}

// Cage returns what confines programs; nil: nothing does.
func (f *Factory) Cage() sandbox.Backend { return f.backends[sandbox.Native] }

// serverClient returns a client that reaches the host of a server only. The person chose
// the servers of the configuration, so that they may be anywhere; those of plug-ins are
// at public addresses, unless the plug-in may connect to the host.
func (f *Factory) serverClient(s mcp.Server) *http.Client {
	u, err := url.Parse(s.URL)
	if err != nil { // it was checked
		u = &url.URL{}
	}
	own := func(allowed string) bool { return allowed == u.Hostname() || allowed == standard.HostPort(u) }
	if s.Rights != nil && !slices.ContainsFunc(s.Rights.Hosts, own) {
		return egress.Client(egress.Options{})
	}
	return standard.HostClient(u)
}

// loginClient returns a client that reaches the hosts at which one logs in at a server,
// which the server names: those at public addresses. For a server on this machine or in
// the private network, by its address, they may be there too.
func (f *Factory) loginClient(s mcp.Server) *http.Client {
	u, err := url.Parse(s.URL)
	if err != nil { // it was checked
		u = &url.URL{}
	}
	var p egress.Policy
	if s.Rights == nil || slices.Contains(s.Rights.Hosts, u.Hostname()) ||
		slices.Contains(s.Rights.Hosts, standard.HostPort(u)) {
		ip, err := netip.ParseAddr(u.Hostname())
		p.Hosts = []string{standard.HostPort(u)}
		p.Private = strings.EqualFold(u.Hostname(), "localhost") || err == nil && (ip.IsLoopback() || ip.IsPrivate())
	}
	return egress.Client(egress.Options{Policy: p})
}

// lookForPlugins finds the plug-ins.
func (g *Generation) lookForPlugins(c Config) ([]plugindir.Plugin, error) {
	var own plugindir.Config
	if raw := c.Sections.Section("plugins"); len(raw) > 0 {
		if err := json.Unmarshal(raw, &own); err != nil {
			return nil, fmt.Errorf("configuration, plugins: %w", err)
		}
	}
	return plugindir.Find(plugindir.Options{
		Config: own, State: g.o.State, Agents: g.HookAgents(), Home: g.home, Known: web.Providers(), Getenv: c.Env,
	}), nil
}

// HookAgents returns the agents with their workspaces, where hooks and plug-ins may be.
func (g *Generation) HookAgents() (out []hookdir.Agent) {
	for _, id := range g.Settings.Roster() {
		out = append(out, hookdir.Agent{ID: string(id), Workspace: g.Workspace(id)})
	}
	return out
}

// PluginsChanged reports whether other plug-ins would be found now.
func (g *Generation) PluginsChanged(c Config) bool {
	now, err := g.lookForPlugins(c)
	return err != nil || !plugindir.Equal(now, g.foundPlugins)
}

// findPlugins finds the plug-ins and the MCP servers.
func (g *Generation) findPlugins(c Config) (err error) {
	if g.foundPlugins, err = g.lookForPlugins(c); err != nil {
		return err
	}
	g.Plugins = slices.Clone(g.foundPlugins)
	for i := range g.Plugins {
		p := &g.Plugins[i]
		if p.Loadable() {
			types := p.AgentTypes()
			p.Warnings = slices.Concat(p.Warnings, subagent.Problems(types))
			for _, t := range types {
				if t.Problem == "" {
					g.pluginTypes = append(g.pluginTypes, t)
				}
			}
		}
		for _, w := range p.Warnings {
			g.warnPlugin(p.ID, w)
		}
		if p.Enabled && len(p.Reasons) > 0 {
			g.warnPlugin(p.ID, "it is not used: "+p.Reasons[0])
		}
	}
	g.findChannels()
	return g.findServers(c)
}

// findChannels collects the channels of plug-ins. One that cannot be used is a warning.
func (g *Generation) findChannels() {
	for i := range g.Plugins {
		p := &g.Plugins[i]
		f, ok, err := g.channelOf(p)
		if err != nil {
			p.Warnings = append(slices.Clip(p.Warnings), err.Error())
			g.warnPlugin(p.ID, err.Error())
		}
		if ok {
			g.Channels = append(g.Channels, f)
		}
	}
}

// channelOf returns the channel of a plug-in, and reports false if it has none.
func (g *Generation) channelOf(p *plugindir.Plugin) (channel.Factory, bool, error) {
	data := g.PluginData(p.ID)
	s, ok, err := p.ChannelProgram(data)
	if !ok {
		return channel.Factory{}, false, err
	}
	if g.channel(p.Channel.Name) != nil {
		return channel.Factory{}, false, fmt.Errorf("its channel %s is ignored, because there is a channel with this name",
			p.Channel.Name)
	}
	o := external.Options{
		Name: p.Channel.Name, Abilities: p.Channel.Abilities, Hints: p.Channel.Hints,
		Limits:  channel.Limits{Text: p.Channel.Text, Edit: time.Duration(p.Channel.EditMS) * time.Millisecond},
		Command: s.Command, Args: s.Args, Dir: s.Dir, Env: s.Env, Rights: s.Rights,
		Check: func() error {
			if err := s.Check(); err != nil {
				return err
			}
			return os.MkdirAll(data, 0o700)
		},
		Broker: g.broker, Environ: g.Environ(), Redact: g.o.Redact, Version: g.o.Version,
	}
	if s.Rights != nil {
		o.Broker = nil // an interface of its own: a nil Backend is not a nil Broker
		if cage := g.Cage(); cage != nil {
			o.Broker = cage
		}
	}
	// The program is started again when one of these has changed.
	identity, err := json.Marshal([]any{p.Hash, p.Version, p.Channel, s.Command, s.Args, s.Dir, s.Env, s.Rights})
	if err != nil {
		return channel.Factory{}, false, fmt.Errorf("its channel: %w", err)
	}
	o.Revision = fmt.Sprintf("%x", sha256.Sum256(identity))
	f, err := external.Factory(o)
	if err != nil {
		return f, false, fmt.Errorf("its channel %s is not available: %w", o.Name, err)
	}
	return f, true, nil
}

// warnPlugin logs a problem of a plug-in once.
func (f *Factory) warnPlugin(id, problem string) { f.warnOnce("plug-in", "plugin", id, problem) }

// warnOnce logs a problem of a thing once.
func (f *Factory) warnOnce(what, kind, name, problem string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if key := what + "\x00" + name + "\x00" + problem; !f.warned[key] && len(f.warned) < maxWarned {
		f.warned[key] = true
		f.o.Log.Warn(what, kind, name, "problem", problem)
	}
}

// maxWarned is the number of problems that are logged.
const maxWarned = 10_000

// PluginData returns the folder in which the programs of a plug-in keep files.
func (f *Factory) PluginData(id string) string { return filepath.Join(f.o.State, "plugin-data", id) }

// findServers collects the MCP servers of the configuration and of plug-ins, whose
// servers it replaces or switches off.
func (g *Generation) findServers(c Config) error {
	var own struct {
		mcp.Config
		Servers map[string]struct {
			mcp.Server
			Headers map[string]secret.Ref `json:"headers"`
			OAuth   struct {
				mcp.OAuth
				Secret secret.Ref `json:"clientSecret"`
			} `json:"oauth"`
		} `json:"servers"`
	}
	if raw := c.Sections.Section("mcp"); len(raw) > 0 {
		if err := json.Unmarshal(raw, &own); err != nil {
			return fmt.Errorf("configuration, mcp: %w", err)
		}
	}
	g.Servers, g.idle = map[string]mcp.Server{}, own.Idle()
	for name, v := range own.Servers {
		s := v.Server
		// without either, it switches that of a plug-in off
		if err := s.Validate(); err != nil && (s.On() || s.Command+s.URL != "") {
			return fmt.Errorf("configuration, mcp.servers.%s: %w", name, err)
		}
		for header, ref := range v.Headers {
			value, err := ref.Resolve(c.Env)
			if err != nil {
				return fmt.Errorf("configuration, mcp.servers.%s.headers.%s: %w", name, header, err)
			}
			if s.Headers == nil {
				s.Headers = map[string]string{}
			}
			s.Headers[header] = value.Reveal()
		}
		s.OAuth = v.OAuth.OAuth
		clientSecret, err := v.OAuth.Secret.Resolve(c.Env)
		if err != nil {
			return fmt.Errorf("configuration, mcp.servers.%s.oauth.clientSecret: %w", name, err)
		}
		s.OAuth.ClientSecret = clientSecret.Reveal()
		if s.Command != "" {
			s.Dir, s.WorkDir = s.Folder(g.o.State), ""
		}
		g.Servers[name] = s
	}
	for i := range g.Plugins {
		p := &g.Plugins[i]
		data := g.PluginData(p.ID)
		servers, err := p.MCPServers(data)
		if err != nil {
			p.Warnings = append(slices.Clip(p.Warnings), err.Error())
		}
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			if other, taken := g.Servers[name]; taken {
				if other.Plugin != "" {
					p.Warnings = append(slices.Clip(p.Warnings),
						fmt.Sprintf("its server %s is ignored, because the plug-in %s has one with this name", name, other.Plugin))
				}
				continue
			}
			s := servers[name]
			check := s.Check
			s.Check = func() error {
				if err := check(); err != nil {
					return err
				}
				return os.MkdirAll(data, 0o700)
			}
			g.Servers[name] = s
		}
	}
	return nil
}

// joinTools joins the tools that all agents share with those of each agent. A tool of a
// plug-in never replaces another tool.
func (g *Generation) joinTools(shared []tool.Tool, own []tool.Tool) tool.Set {
	foreign := func(t tool.Tool) bool { return t.Spec().Plugin != "" }
	set := tool.NewSet(slices.DeleteFunc(slices.Concat(shared, own), foreign)...)
	for _, t := range shared {
		if !foreign(t) {
			continue
		}
		s := t.Spec()
		if _, taken := set.Find(s.Name); taken {
			g.refuse(s.Plugin, fmt.Sprintf("its tool %s is ignored, because there is a tool with this name", s.Name))
			continue
		}
		set = set.With(t)
	}
	return set
}

// refuse notes a tool of a plug-in that is not offered.
func (g *Generation) refuse(plugin, why string) {
	if !slices.Contains(g.refused[plugin], why) {
		g.refused[plugin] = append(g.refused[plugin], why)
		g.warnPlugin(plugin, why)
	}
}

// Refused returns why tools of a plug-in are not offered. The id of the servers of the
// configuration is [policy.MCP].
func (g *Generation) Refused(plugin string) []string { return g.refused[plugin] }

// UseServers puts the MCP servers and the browsers in force.
func (g *Generation) UseServers() {
	g.useBrowsers()
	if g.mcp != nil {
		g.mcp.Use(g.Servers, g.idle)
		g.coders.Use(g.Coders)
	}
}

// DiscoverServers has the tools of MCP servers listed that are not known.
func (f *Factory) DiscoverServers() { f.mcp.Discover() }

// ServerStates returns the states of the MCP servers in force.
func (f *Factory) ServerStates() []mcptool.Status { return f.mcp.Status() }

// Probe starts an MCP server once and returns what it offers, with the names of its
// tools for models.
func (g *Generation) Probe(ctx context.Context, name string) (mcptool.Catalog, map[string]string, error) {
	s := g.Servers[name]
	cat, err := g.mcp.Probe(ctx, name, s)
	return cat, mcptool.Exposed(name, s, cat), err
}

// BeginLogin begins a login at an MCP server.
func (g *Generation) BeginLogin(ctx context.Context, name, redirect string) (mcptool.Begun, error) {
	return g.mcp.BeginLogin(ctx, name, g.Servers[name], redirect)
}

// FinishLogin ends a login at an MCP server with what its service answered.
func (g *Generation) FinishLogin(ctx context.Context, name, answer string) (mcptool.Login, error) {
	return g.mcp.FinishLogin(ctx, name, g.Servers[name], answer)
}

// Logout removes the login of an MCP server, which need not be configured any more.
func (g *Generation) Logout(ctx context.Context, name string) (removed bool, untold, err error) {
	return g.mcp.Logout(ctx, name, g.Servers[name])
}

// closeTime is how long MCP servers and coding agents may take to end with the gateway.
const closeTime = 5 * time.Second

// closeServers stops the MCP servers.
func (f *Factory) closeServers() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if err := f.mcp.Close(ctx); err != nil {
		f.o.Log.Warn("stop MCP servers", "err", err)
	}
}
