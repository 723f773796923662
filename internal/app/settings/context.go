package settings

import (
	"encoding/json"
	"fmt"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/compact"
	"github.com/chela-ai/chela/internal/core/window"
)

// agentContext is how the context of an agent is kept small.
type agentContext struct {
	compaction compact.Config
	pruning    window.Pruning
}

// Compaction returns the settings of the compactions of an agent's sessions. Settings that
// the agent does not have come from agents.defaults.
func (o *Settings) Compaction(id chela.AgentID) compact.Config {
	if c, ok := o.contexts[id]; ok {
		return c.compaction
	}
	return o.Agent.Compaction
}

// Pruning returns the settings of the pruning of an agent's sessions. Settings that the
// agent does not have come from agents.defaults.
func (o *Settings) Pruning(id chela.AgentID) window.Pruning {
	if c, ok := o.contexts[id]; ok {
		return c.pruning
	}
	return o.Agent.Pruning
}

// joinContexts joins the settings of agents with those of agents.defaults.
func (o *Settings) joinContexts() error {
	o.contexts = map[chela.AgentID]agentContext{}
	for _, id := range o.Roster() {
		a, at := o.Agents.find(id)
		if a.OwnCompaction == nil && a.OwnPruning == nil {
			continue
		}
		compaction, err := override(o.Agent.Compaction, a.OwnCompaction)
		if err != nil {
			return fmt.Errorf("configuration, %s.compaction: %w", at, err)
		}
		pruning, err := override(o.Agent.Pruning, a.OwnPruning)
		if err != nil {
			return fmt.Errorf("configuration, %s.contextPruning: %w", at, err)
		}
		o.contexts[id] = agentContext{compaction, pruning}
	}
	return nil
}

// override returns base with the fields that are set in own. It shares nothing with base.
func override[T any](base T, own json.RawMessage) (T, error) {
	if own == nil {
		return base, nil
	}
	var out T
	b, err := json.Marshal(base)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(b, &out); err != nil {
		return out, err
	}
	return out, json.Unmarshal(own, &out)
}

// checkContexts returns the errors in the settings of agents.defaults and of agents.
func (o *Settings) checkContexts() []error {
	check := func(at string, c compact.Config, p window.Pruning) (errs []error) {
		if err := c.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("%s.compaction.%w", at, err))
		}
		if err := p.Check(); err != nil {
			errs = append(errs, fmt.Errorf("%s.contextPruning.%w", at, err))
		}
		return errs
	}
	errs := check("agents.defaults", o.Agent.Compaction, o.Agent.Pruning)
	if errs != nil { // agents have the same errors
		return errs
	}
	for _, id := range o.Roster() {
		if c, ok := o.contexts[id]; ok {
			_, at := o.Agents.find(id)
			errs = append(errs, check(at, c.compaction, c.pruning)...)
		}
	}
	return errs
}
