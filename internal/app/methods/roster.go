package methods

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/route"
	"github.com/chela-ai/chela/internal/surface/method/agents"
)

// roster implements agents.Roster over the configuration.
type roster struct{ o *Options }

// agentOptions is what the methods about agents work with.
func (o *Options) agentOptions() agents.Options {
	a := agents.Options{Default: chela.DefaultAgent, Scope: "per-sender", Agents: o.agents, State: o.State}
	if o.Config.Tree() != nil {
		a.Roster = roster{o}
	}
	return a
}

// At implements agents.Roster.
func (r roster) At(id chela.AgentID) (path string, listed bool) {
	return r.o.Current.Load().Settings.At(id)
}

// Set implements agents.Roster.
func (r roster) Set(ctx context.Context, values ...agents.Value) error {
	return r.edit(ctx, func(*config.Tree) []agents.Value { return values })
}

// edit writes the values that it gets for the current configuration, and applies them.
func (r roster) edit(ctx context.Context, of func(now *config.Tree) []agents.Value) error {
	return r.o.Config.Edit(ctx, func(now *config.Tree) (*config.Draft, error) {
		values := of(now)
		var edits []config.Edit
		for _, v := range values {
			e := config.Edit{Path: v.Path}
			if v.To == nil && now.Section(v.Path) == nil {
				continue // it is not set
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
}

// Forget implements agents.Roster.
func (r roster) Forget(ctx context.Context, id chela.AgentID) (bindings int, err error) {
	rules := r.o.Current.Load().Allowed.File
	d, exists, err := rules.Load()
	if err != nil {
		return 0, err
	}
	if _, has := d.Agents[string(id)]; exists && has {
		if _, err := rules.Update("", func(d *allowlist.Document) error { delete(d.Agents, string(id)); return nil }); err !=
			nil {
			return 0, err
		}
	}
	err = r.edit(ctx, func(now *config.Tree) (values []agents.Value) {
		var all []route.Binding
		if raw := now.Section("bindings"); raw != nil && json.Unmarshal(raw, &all) != nil {
			return nil // refused when it was loaded
		}
		for i, b := range slices.Backward(all) {
			if b.Agent.ID() == id {
				values = append(values, agents.Value{Path: fmt.Sprintf("bindings[%d]", i)})
			}
		}
		bindings = len(values)
		return values
	})
	return bindings, err
}
