package methods

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/plugindir"
	"github.com/chela-ai/chela/internal/core/policy"
	mcptool "github.com/chela-ai/chela/internal/plugin/tool/mcp"
	"github.com/chela-ai/chela/internal/surface/method/plugins"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

func (o *Options) pluginMethods() []rpc.Method {
	return plugins.Methods(plugins.Options{
		Plugins: func() []plugindir.Plugin { return o.Current.Load().Plugins },
		Refused: func(id string) []string { return o.Current.Load().Refused(id) },
		Hooks: func(id string) (points []string) {
			for _, h := range o.Hooks() {
				if h.Plugin == id {
					points = append(points, h.Events...)
				}
			}
			slices.Sort(points)
			return slices.Compact(points)
		},
		Servers:     o.servers,
		Probe:       o.probe,
		BeginLogin:  o.beginLogin,
		FinishLogin: o.finishLogin,
		Logout:      o.logout,
		Install:     o.InstallPlugin,
		Remove:      o.RemovePlugin,
		Refresh:     o.RefreshPlugins,
		Set:         o.setPlugin,
	})
}

// setPlugin changes settings of a plug-in; nil: all are removed.
func (o *Options) setPlugin(ctx context.Context, id string, values map[string]any) error {
	at := []string{"plugins", "entries", id}
	var edits []config.Edit
	for name, v := range values {
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		edits = append(edits, config.Edit{Path: config.FormatPath(append(slices.Clip(at), name)), Value: b})
	}
	return o.Config.Edit(ctx, func(now *config.Tree) (*config.Draft, error) {
		if values == nil {
			return now.Draft(config.Edit{Path: config.FormatPath(at)})
		}
		return now.Draft(edits...)
	})
}

// servers returns the MCP servers, sorted by name.
func (o *Options) servers() []wire.MCPServer {
	g := o.Current.Load()
	states := map[string]mcptool.Status{}
	for _, s := range g.ServerStates() {
		states[s.Name] = s
	}
	var out []wire.MCPServer
	for _, name := range slices.Sorted(maps.Keys(g.Servers)) {
		s, st := g.Servers[name], states[name]
		v := wire.MCPServer{
			Name: name, Plugin: s.Plugin, Transport: s.Kind(), Enabled: s.On(), State: mcptool.Stopped, Tools: []string{},
		}
		if st.Name != "" {
			v.State, v.PID, v.Error, v.Problems = st.State, st.PID, st.Error, st.Diagnostics
			v.Tools = append(v.Tools, st.Tools...)
			if st.Login.State != mcptool.LoginNone || st.Login.Problem != "" {
				v.Login = new(loginView(st.Login))
			}
		}
		if !st.Used.IsZero() {
			v.LastUsed = int64(wire.At(st.Used))
		}
		if s.Plugin == "" {
			v.Problems = slices.Concat(v.Problems, g.Refused(policy.MCP))
		}
		out = append(out, v)
	}
	return out
}

// loginView describes the login of an MCP server for clients.
func loginView(l mcptool.Login) wire.MCPLogin {
	return wire.MCPLogin{
		State:   l.State,
		Issuer:  l.Issuer,
		Scopes:  l.Scopes,
		Expires: wire.At(l.Expires),
		Renews:  l.Renews,
		Problem: l.Problem,
	}
}

// invalidLogin returns an error as one of the request: what a service said about a login is
// for the person who logs in.
func invalidLogin(err error) error {
	if err == nil {
		return nil
	}
	return chela.Errorf(chela.CodeInvalid, "%w", err)
}

// beginLogin begins a login at an MCP server.
func (o *Options) beginLogin(ctx context.Context, name, redirect string) (wire.MCPLoginStarted, error) {
	b, err := o.Current.Load().BeginLogin(ctx, name, redirect)
	return wire.MCPLoginStarted{
		Name:     name,
		URL:      b.URL,
		Redirect: b.Redirect,
		Issuer:   b.Issuer,
		Scopes:   append([]string{}, b.Scopes...),
		Expires:  wire.At(b.Until),
	}, invalidLogin(err)
}

// finishLogin ends a login at an MCP server.
func (o *Options) finishLogin(ctx context.Context, name, answer string) (wire.MCPLogin, error) {
	l, err := o.Current.Load().FinishLogin(ctx, name, answer)
	return loginView(l), invalidLogin(err)
}

// logout removes the login of an MCP server.
func (o *Options) logout(ctx context.Context, name string) (wire.MCPLoggedOut, error) {
	removed, untold, err := o.Current.Load().Logout(ctx, name)
	out := wire.MCPLoggedOut{Name: name, Removed: removed}
	if untold != nil {
		out.Problem = untold.Error()
	}
	return out, err
}

// probe starts an MCP server once and returns what it offers.
func (o *Options) probe(ctx context.Context, name string) (wire.MCPProbed, error) {
	began := time.Now()
	cat, names, err := o.Current.Load().Probe(ctx, name)
	if errors.Is(err, mcptool.ErrNeedsAuth) {
		return wire.MCPProbed{}, wire.Errorf(wire.Unavailable, "%s", err).With(map[string]any{"code": wire.DetailNeedsLogin})
	}
	if err != nil {
		return wire.MCPProbed{}, err
	}
	out := wire.MCPProbed{
		Name:     name,
		Server:   cat.Server,
		Tools:    []wire.MCPTool{},
		Problems: cat.Refused,
		TookMS:   time.Since(began).Milliseconds(),
	}
	for _, t := range cat.Tools {
		out.Tools = append(out.Tools, wire.MCPTool{Name: t.Name, Exposed: names[t.Name], Description: t.Description})
	}
	return out, nil
}
