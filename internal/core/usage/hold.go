package usage

import (
	"fmt"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Scope is the scope of a budget: a day, an agent on a day, or the runs of one tree.
type Scope struct {
	Name  string
	Limit int64 // in billionths of a dollar; ≤ 0: unlimited
}

// DayScope returns the name of the scope of the day of t, in the time zone of t.
func DayScope(t time.Time) string { return "day:" + t.Format(time.DateOnly) }

// AgentScope returns the name of the scope of an agent on the day of t, in the time zone
// of t.
func AgentScope(id chela.AgentID, t time.Time) string {
	return "agent:" + string(id) + ":" + t.Format(time.DateOnly)
}

// TreeScope returns the name of the scope of the tree of runs with the given root.
func TreeScope(root chela.RunID) string { return "tree:" + string(root) }

// Hold is an amount reserved before a model call: the maximum cost of the call. It counts
// as spent until the actual cost replaces it. If the process ends before that, the hold
// remains spent.
type Hold struct {
	ID      string // unique for each call
	Run     chela.RunID
	Scopes  []Scope
	Nano    int64
	Created time.Time
}

// BudgetError reports that a hold does not fit the budget of a scope.
type BudgetError struct {
	Scope Scope
	Spent int64 // in the scope, holds included
	Nano  int64 // of the hold
}

// Error returns the scope, the amount spent and the limit.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("the budget %s is used up: %s of %s are spent or held, and this call may cost %s",
		e.Scope.Name, USD(e.Spent), USD(e.Scope.Limit), USD(e.Nano))
}

// Reserve stores the hold, or returns a [BudgetError] if it exceeds the limit of one of
// its scopes.
func Reserve(t Table, h Hold) error {
	for _, s := range h.Scopes {
		if s.Limit <= 0 {
			continue
		}
		spent, err := t.Committed(s.Name)
		if err != nil {
			return err
		}
		if spent+h.Nano > s.Limit {
			return &BudgetError{Scope: s, Spent: spent, Nano: h.Nano}
		}
	}
	return t.PutHold(h)
}

// Settle adds the usage row of a call and replaces the hold of the call by its cost. The
// cost of a call without a known price is the held amount.
func (h Hold) Settle(t Table, r Row) error {
	if err := t.Add(r); err != nil {
		return err
	}
	cost := h.Nano
	if r.Priced {
		cost = r.NanoUSD
	}
	return t.SettleHold(h.ID, cost)
}
