package invoke

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/policy"
	"github.com/chela-ai/chela/internal/tool"
)

// Offered returns the tools of the set that a run of who is given, and what
// the rules did.
func Offered(set tool.Set, p policy.Pipeline, who chela.Principal) (tool.Set, policy.Outcome) {
	if who.ID == "" {
		return tool.Set{}, policy.Outcome{}
	}
	p = Rules(set, p, who)
	if len(p) == 0 {
		return set, policy.Outcome{Kept: set.Names()}
	}
	o := p.Apply(set.Names())
	return set.Filter(func(sp tool.Spec) bool { return slices.Contains(o.Kept, sp.Name) }), o
}

// Rules returns the pipeline that holds for who: the door's own rule, that
// some tools are the owner's, comes after what is configured.
func Rules(set tool.Set, p policy.Pipeline, who chela.Principal) policy.Pipeline {
	if who.IsOwner() {
		return p
	}
	var own []string
	for _, n := range set.Names() {
		if t, _ := set.Get(n); t.Spec().OwnerOnly {
			own = append(own, n)
		}
	}
	if own == nil {
		return p
	}
	return append(slices.Clip(p), policy.OwnerOnly(own...))
}

// offered returns the tools of a run. What the rules did is logged when it is
// not what they did for the agent's run before.
func (d *Door) offered(s Scope) tool.Set {
	set, o := Offered(s.Tools, s.Policy, s.Principal)
	text := ""
	if len(o.Removed)+len(o.Warnings) > 0 {
		text = fmt.Sprint(o.Removed, o.Warnings)
	}
	d.mu.Lock()
	news := d.said[s.Agent] != text
	d.said[s.Agent] = text
	d.mu.Unlock()
	if !news {
		return set
	}
	for _, w := range o.Warnings {
		d.log.Warn("rules about tools", "agent", string(s.Agent), "warning", w)
	}
	for _, r := range o.Removed {
		d.log.Info("tools not offered", "agent", string(s.Agent), "rule", r.Label, "key", r.Key, "tools", strings.Join(r.Names, ","))
	}
	return set
}

// telling is what a model was told of tools: mostly the same as in the run
// before.
type telling struct {
	tools []tool.Spec
	specs []llm.ToolSpec
}

// told returns what a model is told of the tools.
func (d *Door) told(tools []tool.Spec) []llm.ToolSpec {
	if t := d.last.Load(); t != nil && slices.EqualFunc(t.tools, tools, sameTelling) {
		return t.specs
	}
	t := &telling{tools: tools}
	for _, sp := range tools {
		if takes, ok := d.schemas.offered(sp, d.log); ok {
			t.specs = append(t.specs, llm.ToolSpec{Name: sp.Name, Description: sp.Description, Schema: takes})
		}
	}
	d.last.Store(t)
	return t.specs
}

// sameTelling reports whether a model is told the same of both tools.
func sameTelling(a, b tool.Spec) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
}
