// Package tools is the methods that say which tools there are, which of them a
// session's next run is given, and which were called; and the one by which a
// client calls one itself.
package tools

import (
	"cmp"
	"context"
	"strings"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/invoke"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/policy"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/shape"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/tool"
	"github.com/chela-ai/chela/wire"
)

// Options is what the methods work with. All fields are required.
type Options struct {
	Default chela.AgentID
	Agent   func(chela.AgentID) bool // whether there is such an agent
	// Tools returns the tools that the agent may be given.
	Tools func(chela.AgentID) tool.Set
	// Rules returns the rules for a run that who starts in the session, and the
	// model that answers. What c says goes before what the session says.
	Rules func(ctx context.Context, who chela.Principal, key chela.SessionKey, c policy.Conversation) (policy.Pipeline, llm.Ref, error)
	// Invoke carries out a call that a client makes itself.
	Invoke func(context.Context, chela.Principal, invoke.Errand) (invoke.Answer, error)
	Store  store.Store // of the calls
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	return []rpc.Method{
		rpc.New(wire.MethodToolsCatalog, wire.RoleOperator, chela.ScopeRead, o.catalog).Accepting("includePlugins"),
		rpc.New(wire.MethodToolsEffective, wire.RoleOperator, chela.ScopeRead, o.effective),
		rpc.New(wire.MethodToolsExplain, wire.RoleOperator, chela.ScopeRead, o.explain),
		rpc.New(wire.MethodToolsInvoke, wire.RoleOperator, chela.ScopeWrite, o.invoke).Works().Accepting("confirm", "conversationReadOrigin"),
		rpc.New(wire.MethodToolsCalls, wire.RoleOperator, chela.ScopeRead, o.calls),
	}
}

// groups are the tools by what they can do, in the order of danger.
var groups = [...]struct {
	effect tool.Effect
	label  string
	risk   string
}{{tool.Reads, "Read", "low"}, {tool.Writes, "Change files and state", "medium"}, {tool.Acts, "Act", "high"}}

// risk says how dangerous an effect is.
func risk(e tool.Effect) string { return groups[min(max(e, 0), tool.Acts)].risk }

func (o Options) catalog(_ context.Context, _ rpc.Peer, in wire.ToolsGet) (wire.ToolsCatalog, error) {
	id := cmp.Or(chela.AgentID(in.AgentID), o.Default)
	if !o.Agent(id) {
		return wire.ToolsCatalog{}, shape.UnknownAgent(id)
	}
	set := o.Tools(id)
	out := wire.ToolsCatalog{
		AgentID: string(id), Groups: []wire.ToolGroup{},
	}
	for _, p := range policy.Profiles() {
		out.Profiles = append(out.Profiles, wire.ToolProfile{ID: p, Label: strings.ToUpper(p[:1]) + p[1:]})
	}
	for _, g := range groups {
		group := wire.ToolGroup{ID: g.effect.String(), Label: g.label, Source: "core"}
		for _, n := range set.Names() {
			t, _ := set.Get(n)
			if s := t.Spec(); s.Effect == g.effect {
				group.Tools = append(group.Tools, wire.ToolInfo{
					ID: s.Name, Label: cmp.Or(s.Label, s.Name), Description: summary(s.Description), Source: "core",
					Risk: g.risk, Profiles: policy.ProfilesOf(s.Name),
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
	const method = wire.MethodToolsEffective
	key, err := o.session(method, in.SessionKey, in.AgentID)
	if err != nil {
		return wire.ToolsEffective{}, err
	}
	who := chela.PrincipalFrom(ctx)
	rules, _, err := o.Rules(ctx, who, key, policy.Conversation{})
	if err != nil {
		return wire.ToolsEffective{}, err
	}
	set, _ := invoke.Offered(o.Tools(key.Agent()), rules, who)
	out := wire.ToolsEffective{AgentID: string(key.Agent()), Profile: rules.Profile(), Groups: []wire.EffectiveGroup{}}
	group := wire.EffectiveGroup{ID: "core", Label: "Built-in tools", Source: "core"}
	for _, n := range set.Names() {
		t, _ := set.Get(n)
		s := t.Spec()
		group.Tools = append(group.Tools, wire.EffectiveTool{
			ID: s.Name, Label: cmp.Or(s.Label, s.Name), Description: summary(s.Description), Raw: s.Description, Source: "core", Risk: risk(s.Effect),
		})
	}
	if group.Tools != nil {
		out.Groups = append(out.Groups, group)
	}
	return out, nil
}

// session returns the session that the parameters name, of an agent that
// there is.
func (o Options) session(method, key, agent string) (chela.SessionKey, error) {
	k, err := chela.ParseSessionKey(key, cmp.Or(chela.AgentID(agent), o.Default))
	if err != nil {
		return "", rpc.Invalid(method, "%v", err)
	}
	switch id := k.Agent(); {
	case !o.Agent(id):
		return "", shape.UnknownAgent(id)
	case agent != "" && chela.AgentID(agent) != id:
		return "", rpc.Invalid(method, "agent id %q does not match session key agent %q", agent, id)
	}
	return k, nil
}

// maxSummary bounds a summary, in characters.
const maxSummary = 200

// summary returns the first sentence of what the model is told.
func summary(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	if i := strings.Index(s, ". "); i >= 0 {
		s = s[:i+1]
	}
	if r := []rune(s); len(r) > maxSummary {
		s = string(r[:maxSummary]) + "…"
	}
	return s
}
