package app

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/chela-ai/chela/internal/allowlist"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/config"
	"github.com/chela-ai/chela/internal/method/agents"
)

// roster is the agents in the configuration of an engine.
type roster struct{ e *Engine }

// agentMethods is what the methods about agents work with.
func (e *Engine) agentMethods() agents.Options {
	o := agents.Options{Default: chela.DefaultAgent, Scope: "per-sender", Agents: e.agents, State: e.o.State}
	if e.tree() != nil {
		o.Roster = roster{e}
	}
	return o
}

// At implements agents.Roster.
func (r roster) At(id chela.AgentID) (path string, listed bool) { return r.e.now().opts.At(id) }

// Set implements agents.Roster.
func (r roster) Set(ctx context.Context, values ...agents.Value) error {
	_, err := r.e.change(ctx, anyBase, func(now *config.Tree) (*config.Draft, error) {
		var edits []config.Edit
		for _, v := range values {
			e := config.Edit{Path: v.Path}
			if v.To == nil && now.Section(v.Path) == nil {
				continue // it is away already
			}
			if v.To != nil {
				b, err := json.Marshal(v.To)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", v.Path, err)
				}
				e.Value = b
			}
			edits = append(edits, e)
		}
		return now.Draft(edits...)
	})
	return err
}

// Forget implements agents.Roster.
func (r roster) Forget(ctx context.Context, id chela.AgentID) (bindings int, err error) {
	rules := r.e.now().ruleFile
	d, exists, err := rules.Load()
	if err != nil {
		return 0, err
	}
	if _, has := d.Agents[string(id)]; exists && has {
		if _, err := rules.Update("", func(d *allowlist.Document) error { delete(d.Agents, string(id)); return nil }); err != nil {
			return 0, err
		}
	}
	var all []struct {
		Agent string `json:"agentId"`
	}
	if raw := r.e.tree().Section("bindings"); raw != nil && json.Unmarshal(raw, &all) != nil {
		return 0, nil // nobody reads what has another form
	}
	var values []agents.Value
	for i, b := range slices.Backward(all) {
		if chela.AgentIDOf(b.Agent) == id {
			values = append(values, agents.Value{Path: fmt.Sprintf("bindings[%d]", i)})
		}
	}
	if len(values) == 0 {
		return 0, nil
	}
	return len(values), r.Set(ctx, values...)
}
