package usage

import (
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Scope is the scope of a budget: a day, an agent on a day, the runs of one tree, or a
// run.
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

// RunScope returns the name of the scope of a run.
func RunScope(id chela.RunID) string { return "run:" + string(id) }

// ScopeKind is what a scope is about.
type ScopeKind int

// The kinds of scopes.
const (
	ScopeDay   ScopeKind = iota + 1 // all agents on a day
	ScopeAgent                      // an agent on a day
	ScopeTask                       // the runs of one tree
	ScopeRun                        // a run
)

// Kind returns what the scope is about.
func (s Scope) Kind() ScopeKind {
	kind, _, _ := strings.Cut(s.Name, ":")
	return map[string]ScopeKind{"day": ScopeDay, "agent": ScopeAgent, "tree": ScopeTask, "run": ScopeRun}[kind]
}

// Daily reports whether the scope ends with the day.
func (s Scope) Daily() bool { return s.Kind() == ScopeDay || s.Kind() == ScopeAgent }

// Title names the budget of the scope for people.
func (s Scope) Title() string {
	switch s.Kind() {
	case ScopeDay:
		return "the budget of today"
	case ScopeAgent:
		name := strings.TrimPrefix(s.Name, "agent:")
		return "the budget of the agent " + name[:strings.LastIndexByte(name, ':')] + " for today"
	case ScopeTask:
		return "the budget of this task"
	}
	return "the budget of this run"
}

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
	Spent int64     // in the scope, holds included
	Nano  int64     // of the hold
	Until time.Time // the end of the scope; zero: it is not known
}

// Error returns a sentence for people: which budget is used up, and what can be done.
func (e *BudgetError) Error() string {
	text := fmt.Sprintf("%s is used up: %s of %s are spent or reserved, and the next model call may cost %s",
		e.Scope.Title(), USD(e.Spent), USD(e.Scope.Limit), USD(e.Nano))
	switch e.Scope.Kind() {
	case ScopeTask:
		return text + `. Say "continue" to start another one; the limit is agents.defaults.budget.usdPerTask`
	case ScopeRun:
		return text + `. Say "continue" to start another one; the limit is agents.defaults.budget.usd`
	}
	if !e.Until.IsZero() {
		text += ". I answer again from " + e.Until.Format("Monday, 2 January, 15:04") + " (" + ZoneName(e.Until) + ")"
	}
	if e.Scope.Kind() == ScopeAgent {
		return text + "; the owner can raise it for today with /budget agent AMOUNT"
	}
	return text + "; the owner can raise it for today with /budget AMOUNT"
}

// Reserve stores the hold, or returns a [BudgetError] if it exceeds the limit of one of
// its scopes.
func Reserve(t Table, h Hold) error {
	over, err := h.tightest(t)
	if err != nil {
		return err
	}
	if over != nil && over.Spent+h.Nano > over.Scope.Limit {
		return over
	}
	return t.PutHold(h)
}

// ReserveQuote stores a hold for a call with the quote. If the call could cost too much,
// the limit of its answer is lowered; see [Quote.Fit]. It returns the hold with the amount
// and the limit of the answer, or a [BudgetError].
func ReserveQuote(t Table, h Hold, q Quote) (Hold, int64, error) {
	h.Nano = q.Nano(q.Output)
	over, err := h.tightest(t)
	if err != nil {
		return h, 0, err
	}
	output := q.Output
	if over != nil && over.Spent+h.Nano > over.Scope.Limit {
		var ok bool
		if output, ok = q.Fit(over.Scope.Limit - over.Spent); !ok {
			over.Nano = q.Nano(q.floor())
			return h, 0, over
		}
		h.Nano = q.Nano(output)
	}
	return h, output, t.PutHold(h)
}

// tightest returns the scope of the hold of which the least is left; nil: none has a
// limit.
func (h Hold) tightest(t Table) (*BudgetError, error) {
	var least *BudgetError
	for _, s := range h.Scopes {
		if s.Limit <= 0 {
			continue
		}
		spent, err := t.Committed(s.Name)
		if err != nil {
			return nil, err
		}
		if least == nil || s.Limit-spent < least.Scope.Limit-least.Spent {
			least = &BudgetError{Scope: s, Spent: spent, Nano: h.Nano}
		}
	}
	return least, nil
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
