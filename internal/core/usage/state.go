package usage

import (
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// State is the state of the budget of a day.
type State struct {
	Scope
	Configured int64 // the limit without the one that was set for the day
	Spent      int64
	Held       int64 // reserved, and not known to be spent
}

// Left returns what is left.
func (s State) Left() int64 { return max(0, s.Limit-s.Spent-s.Held) }

// States returns the states of the budgets of the day of t: that of all agents, and that
// of the agent. There is none without a limit.
func (l Limits) States(r Reader, agent chela.AgentID, today Today, t time.Time) ([]State, error) {
	t = l.In(t)
	var out []State
	for _, s := range l.Scopes(agent, "", "", today, t) {
		if !s.Daily() {
			continue
		}
		of := State{Scope: s, Configured: l.Day}
		if s.Kind() == ScopeAgent {
			of.Configured = l.Agent
		}
		all, err := r.Committed(s.Name)
		if err != nil {
			return nil, err
		}
		if of.Held, err = r.Held(s.Name); err != nil {
			return nil, err
		}
		before, err := Earlier(r, s, agent, t)
		if err != nil {
			return nil, err
		}
		of.Spent = max(all-of.Held, before)
		out = append(out, of)
	}
	return out, nil
}

// Earlier returns what the calls of a day have cost that count against a daily scope,
// whether money was reserved for them or not.
func Earlier(r Reader, s Scope, agent chela.AgentID, t time.Time) (int64, error) {
	sums, err := r.Sums(Query{Since: DayStart(t), BySession: true})
	var nano int64
	for _, sum := range sums {
		if s.Kind() == ScopeDay || sum.Session.Agent() == agent {
			nano += sum.NanoUSD
		}
	}
	return nano, err
}

// SetLimit sets the limit of a daily scope until the day of t ends: that of the agent, or
// that of all agents without one. 0 restores the configured limit. There must be one.
func (l Limits) SetLimit(s Settings, agent chela.AgentID, nano int64, t time.Time) error {
	t = l.In(t)
	name, configured, key := DayScope(t), l.Day, "budget.usdPerDay"
	if agent != "" {
		name, configured, key = AgentScope(agent, t), l.Agent, "agents.defaults.budget.usdPerDay"
	}
	if configured <= 0 {
		return &chela.Error{
			Code: chela.CodeInvalid, Message: "there is no such budget to change for today",
			Hint: fmt.Sprintf("chela config set %s AMOUNT", key),
		}
	}
	today, err := ReadToday(s, t)
	if err != nil {
		return err
	}
	set := map[string]int64{}
	for k, v := range today.Limits {
		set[k] = v
	}
	if set[name] = nano; nano <= 0 {
		delete(set, name)
	}
	today.Limits = set
	return today.Write(s)
}

// MaxLimit is the highest limit that can be set for a day, in billionths of a dollar.
const MaxLimit = 1_000_000 * 1_000_000_000
