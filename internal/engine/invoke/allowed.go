package invoke

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/schema"
	"github.com/chela-ai/chela/internal/core/tool"
)

// Allowed returns the tools of the set that a run of the principal may use, and
// what the policy removed.
func Allowed(set tool.Set, p policy.Pipeline, who chela.Principal) (tool.Set, policy.Outcome) {
	if who.ID == "" {
		return tool.Set{}, policy.Outcome{}
	}
	p = Rules(set, p, who)
	o := p.Apply(set.Specs())
	return set.Filter(func(sp tool.Spec) bool { return slices.Contains(o.Allowed, sp.Name) }), o
}

// Rules returns the pipeline for the principal: the configured one, and for all
// but the owner a rule that removes the tools that only the owner may use.
func Rules(set tool.Set, p policy.Pipeline, who chela.Principal) policy.Pipeline {
	if who.May(chela.ScopeOwnerTools) {
		return p
	}
	var own []string
	for _, s := range set.Specs() {
		if s.OwnerOnly {
			own = append(own, s.Name)
		}
	}
	if own == nil {
		return p
	}
	return append(slices.Clip(p), policy.OwnerOnly(own...))
}

// allowed returns the tools of a run. It logs what the policy removed if that
// differs from the agent's previous run.
func (x *Executor) allowed(s Scope) tool.Set {
	set, o := Allowed(s.Tools, s.Policy, s.Principal)
	text := ""
	if len(o.Removed)+len(o.Warnings) > 0 {
		text = fmt.Sprint(o.Removed, o.Warnings)
	}
	x.mu.Lock()
	changed := x.logged[s.Agent] != text
	x.logged[s.Agent] = text
	x.mu.Unlock()
	if !changed {
		return set
	}
	for _, w := range o.Warnings {
		x.log.Warn("tool policy", "agent", string(s.Agent), "warning", w)
	}
	for _, r := range o.Removed {
		x.log.Info("tools not allowed", "agent", string(s.Agent), "rule", r.Label, "key", r.Key,
			"tools", strings.Join(r.Names, ","))
	}
	return set
}

// specCache is the descriptions of a list of tools for the model. It is usually
// the same in the next run.
type specCache struct {
	tools []tool.Spec
	specs []llm.ToolSpec
}

// modelSpecs returns the descriptions of the tools for the model.
func (x *Executor) modelSpecs(tools []tool.Spec) []llm.ToolSpec {
	if c := x.specs.Load(); c != nil && slices.EqualFunc(c.tools, tools, sameForModel) {
		return c.specs
	}
	c := &specCache{tools: tools}
	for _, sp := range tools {
		if text, ok := x.schemas.forModel(sp, x.log); ok {
			if sp.Plugin == "" { // calls are validated, and our descriptions say what matters
				text = schema.Brief(text)
			}
			c.specs = append(c.specs, llm.ToolSpec{Name: sp.Name, Description: sp.Description, Schema: text})
		}
	}
	x.specs.Store(c)
	return c.specs
}

// sameForModel reports whether both tools are described to a model in the same
// way.
func sameForModel(a, b tool.Spec) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
}
