package tools

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/invoke"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/wire"
)

// explain says which tools a run would get, and why.
func (o Options) explain(ctx context.Context, _ rpc.Peer, in wire.ToolsExplainGet) (wire.ToolsExplained, error) {
	key, err := o.session(cmp.Or(in.SessionKey, chela.MainKey), in.AgentID)
	if err != nil {
		return wire.ToolsExplained{}, err
	}
	c, err := conversation(in)
	if err != nil {
		return wire.ToolsExplained{}, rpc.Invalid("%v", err)
	}
	set, who := o.Tools(key.Agent()), chela.PrincipalFrom(ctx)
	names := set.Names()
	if in.Name != "" {
		t, ok := set.Find(in.Name)
		if !ok {
			return wire.ToolsExplained{}, rpc.Invalid("%s", unknown(set, in.Name))
		}
		names = []string{t.Spec().Name}
	}
	rules, model, err := o.Rules(ctx, who, key, c)
	if err != nil {
		return wire.ToolsExplained{}, err
	}
	rules = invoke.Rules(set, rules, who)
	var kind subagent.Type
	if in.Type != "" {
		if kind, err = o.Type(key.Agent(), in.Type); err != nil {
			return wire.ToolsExplained{}, rpc.Invalid("%v", err)
		}
		if !kind.Tools.IsZero() {
			rules = append(rules, policy.NewCatalog(set).Limit("type "+kind.Name, kind.Tools.Allow, kind.Tools.Deny))
		}
	}
	all := set.Specs()
	out := wire.ToolsExplained{
		ReadOnly: kind.ReadOnly,
		AgentID:  string(key.Agent()), Model: model.String(), Profile: rules.Profile(), Tools: []wire.ToolExplained{},
		Warnings: rules.Apply(all).Warnings,
	}
	for _, n := range names {
		t, _ := set.Get(n)
		out.Tools = append(out.Tools, explained(rules.Explain(n, all), humanize.Sentence(t.Spec().Description, maxSummary)))
	}
	return out, nil
}

// conversation returns the conversation that the parameters describe.
func conversation(in wire.ToolsExplainGet) (policy.Conversation, error) {
	if in.Depth < 0 || in.Depth > 100 || in.MaxDepth < 0 || in.MaxDepth > 100 {
		return policy.Conversation{}, fmt.Errorf("subagent and maxSpawnDepth must be between 0 and 100")
	}
	if in.Type != "" { // only subagents have a type
		in.Depth = max(in.Depth, 1)
	}
	c := policy.Conversation{Sandboxed: in.Sandboxed, Depth: in.Depth, MaxDepth: in.MaxDepth}
	if in.Model != "" {
		ref, err := llm.ParseRef(in.Model)
		if err != nil {
			return c, err
		}
		c.Provider, c.Model = ref.Provider, ref.Model
	}
	c.Sender.ID = in.Sender
	if channel, id, ok := strings.Cut(in.Sender, ":"); ok {
		c.Sender.Channel, c.Sender.ID = channel, id
	}
	return c, nil
}

func explained(e policy.Explanation, summary string) wire.ToolExplained {
	out := wire.ToolExplained{Name: e.Name, Summary: summary, Allowed: e.Allowed, By: e.By, Steps: []wire.ToolRule{}}
	for _, d := range e.Steps {
		out.Steps = append(out.Steps, wire.ToolRule{Label: d.Label, Key: d.Key, Allows: d.Allows, Pattern: d.Pattern})
		if !d.Allows {
			out.Key = d.Key
		}
	}
	return out
}

// unknown returns the error for an unknown tool, with a suggestion.
func unknown(set tool.Set, name string) string {
	text := fmt.Sprintf("unknown tool %q", name)
	if near := set.Nearest(name); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return text
}
