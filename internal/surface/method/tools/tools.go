// Package tools implements the methods that list the tools, explain the tool
// policy, list recorded calls and call a tool.
package tools

import (
	"cmp"
	"context"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/invoke"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// Options configures the methods. All fields are required.
type Options struct {
	Default chela.AgentID
	Agent   func(chela.AgentID) bool // reports whether the agent exists
	// Tools returns the tools available to the agent.
	Tools func(chela.AgentID) tool.Set
	// Rules returns the tool policy of a run that who starts in the
	// session, and its model. The properties of c take precedence over the
	// session's.
	Rules func(ctx context.Context, who chela.Principal, key chela.SessionKey,
		c policy.Conversation) (policy.Pipeline, llm.Ref, error)
	// Type returns a type of subagents of an agent.
	Type func(id chela.AgentID, name string) (subagent.Type, error)
	// Invoke executes a tool call made by a client.
	Invoke func(context.Context, chela.Principal, invoke.DirectCall) (invoke.Answer, error)
	Store  store.Store // contains the calls
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	return []rpc.Method{
		rpc.New(wire.MethodToolsCatalog, wire.RoleOperator, chela.ScopeRead, o.catalog),
		rpc.New(wire.MethodToolsEffective, wire.RoleOperator, chela.ScopeRead, o.effective),
		rpc.New(wire.MethodToolsExplain, wire.RoleOperator, chela.ScopeRead, o.explain),
		rpc.New(wire.MethodToolsInvoke, wire.RoleOperator, chela.ScopeWrite, o.invoke).StartsWork().Ignoring("confirm"),
		rpc.New(wire.MethodToolsCalls, wire.RoleOperator, chela.ScopeRead, o.calls),
	}
}

// groups are the tool groups by effect, in order of risk.
var groups = [...]struct {
	effect tool.Effect
	label  string
	risk   string
}{{tool.Reads, "Read", "low"}, {tool.Writes, "Change files and state", "medium"}, {tool.Acts, "Act", "high"}}

// risk returns the risk of an effect.
func risk(e tool.Effect) string { return groups[min(max(e, 0), tool.Acts)].risk }

func (o Options) catalog(_ context.Context, _ rpc.Peer, in wire.ToolsGet) (wire.ToolsCatalog, error) {
	id := cmp.Or(chela.AgentID(in.AgentID), o.Default)
	if !o.Agent(id) {
		return wire.ToolsCatalog{}, rpc.UnknownAgent(id)
	}
	set := o.Tools(id)
	out := wire.ToolsCatalog{
		AgentID: string(id), Groups: []wire.ToolGroup{},
	}
	for _, p := range policy.Profiles() {
		out.Profiles = append(out.Profiles, wire.ToolProfile{ID: p, Label: strings.ToUpper(p[:1]) + p[1:]})
	}
	catalog := policy.NewCatalog(set)
	for _, g := range groups {
		group := wire.ToolGroup{ID: g.effect.String(), Label: g.label, Source: "core"}
		for _, s := range set.Specs() {
			if s.Effect == g.effect {
				group.Tools = append(group.Tools, wire.ToolInfo{
					ID:          s.Name,
					Label:       cmp.Or(s.Label, s.Name),
					Description: humanize.Sentence(s.Description, maxSummary),
					Source:      catalogSource(s),
					PluginID:    s.Plugin,
					Optional:    s.Optional,
					Risk:        g.risk,
					Profiles:    catalog.ProfilesOf(&s),
				})
			}
		}
		if group.Tools != nil {
			out.Groups = append(out.Groups, group)
		}
	}
	return out, nil
}

func (o Options) effective(ctx context.Context, _ rpc.Peer, in wire.ToolsEffectiveGet) (wire.ToolsEffective, error) {
	key, err := o.session(in.SessionKey, in.AgentID)
	if err != nil {
		return wire.ToolsEffective{}, err
	}
	who := chela.PrincipalFrom(ctx)
	rules, _, err := o.Rules(ctx, who, key, policy.Conversation{})
	if err != nil {
		return wire.ToolsEffective{}, err
	}
	set, _ := invoke.Allowed(o.Tools(key.Agent()), rules, who)
	out := wire.ToolsEffective{AgentID: string(key.Agent()), Profile: rules.Profile(), Groups: []wire.EffectiveGroup{}}
	for _, source := range sources {
		group := wire.EffectiveGroup{ID: source.id, Label: source.label, Source: source.id}
		for _, s := range set.Specs() {
			if sourceOf(s) == source.id {
				group.Tools = append(group.Tools, wire.EffectiveTool{
					ID:          s.Name,
					Label:       cmp.Or(s.Label, s.Name),
					Description: humanize.Sentence(s.Description, maxSummary),
					Raw:         s.Description,
					Source:      source.id,
					PluginID:    s.Plugin,
					Risk:        risk(s.Effect),
				})
			}
		}
		if group.Tools != nil {
			out.Groups = append(out.Groups, group)
		}
	}
	return out, nil
}

// sources are where tools come from.
var sources = [...]struct{ id, label string }{{"core", "Built-in tools"}, {"plugin", "Tools of plug-ins"},
	{"mcp", "Tools of MCP servers"}}

// sourceOf returns the id of where a tool comes from.
func sourceOf(s tool.Spec) string {
	switch s.Plugin {
	case "":
		return "core"
	case policy.MCP:
		return "mcp"
	}
	return "plugin"
}

// catalogSource is sourceOf for the catalog, which knows no servers.
func catalogSource(s tool.Spec) string {
	if s.Plugin == "" {
		return "core"
	}
	return "plugin"
}

// session returns the session named in a request, of an existing agent.
func (o Options) session(key, agent string) (chela.SessionKey, error) {
	k, err := rpc.SessionKey(key, agent, o.Default)
	if err != nil {
		return "", err
	}
	switch id := k.Agent(); {
	case !o.Agent(id):
		return "", rpc.UnknownAgent(id)
	case agent != "" && chela.AgentID(agent) != id:
		return "", rpc.Invalid("agent id %q does not match session key agent %q", agent, id)
	}
	return k, nil
}

// maxSummary limits a summary, in characters.
const maxSummary = 200
