// Package tools is the methods that say which tools there are, and which of
// them a session's next run is given.
package tools

import (
	"cmp"
	"context"
	"strings"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/shape"
	"github.com/chela-ai/chela/internal/tool"
	"github.com/chela-ai/chela/wire"
)

// Options is what the methods work with. All fields are required.
type Options struct {
	Default chela.AgentID
	Agent   func(chela.AgentID) bool // whether there is such an agent
	// Tools returns the tools that the agent may be given.
	Tools func(chela.AgentID) tool.Set
	// Effective returns the tools of a run that who starts in the session.
	Effective func(ctx context.Context, who chela.Principal, key chela.SessionKey) (tool.Set, error)
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	return []rpc.Method{
		rpc.New(wire.MethodToolsCatalog, wire.RoleOperator, chela.ScopeRead, o.catalog).Accepting("includePlugins"),
		rpc.New(wire.MethodToolsEffective, wire.RoleOperator, chela.ScopeRead, o.effective),
	}
}

// full is the one set of tools to begin with: all of them.
const full = "full"

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
		AgentID: string(id), Profiles: []wire.ToolProfile{{ID: full, Label: "Full"}}, Groups: []wire.ToolGroup{},
	}
	for _, g := range groups {
		group := wire.ToolGroup{ID: g.effect.String(), Label: g.label, Source: "core"}
		for _, n := range set.Names() {
			t, _ := set.Get(n)
			if s := t.Spec(); s.Effect == g.effect {
				group.Tools = append(group.Tools, wire.ToolInfo{
					ID: s.Name, Label: cmp.Or(s.Label, s.Name), Description: summary(s.Description), Source: "core",
					Risk: g.risk, Profiles: []string{full},
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
	key, err := chela.ParseSessionKey(in.SessionKey, cmp.Or(chela.AgentID(in.AgentID), o.Default))
	if err != nil {
		return wire.ToolsEffective{}, rpc.Invalid(method, "%v", err)
	}
	switch id := key.Agent(); {
	case !o.Agent(id):
		return wire.ToolsEffective{}, shape.UnknownAgent(id)
	case in.AgentID != "" && chela.AgentID(in.AgentID) != id:
		return wire.ToolsEffective{}, rpc.Invalid(method, "agent id %q does not match session key agent %q", in.AgentID, id)
	}
	set, err := o.Effective(ctx, chela.PrincipalFrom(ctx), key)
	if err != nil {
		return wire.ToolsEffective{}, err
	}
	out := wire.ToolsEffective{AgentID: string(key.Agent()), Profile: full, Groups: []wire.EffectiveGroup{}}
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
