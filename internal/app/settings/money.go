package settings

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/engine/runner"
)

// Budget limits the runs of an agent. 0 stands for the default, a negative number for no
// limit.
type Budget struct {
	Calls     int     `json:"toolCalls"`
	Failures  int     `json:"failures"`
	Identical int     `json:"identicalCalls"`
	Minutes   int     `json:"minutes"`
	Tokens    int64   `json:"tokens"`
	USD       float64 `json:"usd"`        // of a run; 0: no limit
	Task      float64 `json:"usdPerTask"` // of a run with all runs that it causes; 0: no limit
	Day       float64 `json:"usdPerDay"`  // of the agent on a day; 0: no limit
}

// or returns the budget with the values of other for those that are not set.
func (b Budget) or(other Budget) Budget {
	return Budget{
		Calls:     cmp.Or(b.Calls, other.Calls),
		Failures:  cmp.Or(b.Failures, other.Failures),
		Identical: cmp.Or(b.Identical, other.Identical),
		Minutes:   cmp.Or(b.Minutes, other.Minutes),
		Tokens:    cmp.Or(b.Tokens, other.Tokens),
		USD:       cmp.Or(b.USD, other.USD),
		Task:      cmp.Or(b.Task, other.Task),
		Day:       cmp.Or(b.Day, other.Day),
	}
}

// Money is budget: what all agents may spend together, and what happens if a budget of
// money is used up.
type Money struct {
	Day      float64  `json:"usdPerDay"` // of all agents on a day; 0: no limit
	Warn     *float64 `json:"warnAt"`    // share of a limit; nil: 0.8; 0: nobody is told
	Ladder   []string `json:"ladder"`    // nil: wait
	Model    string   `json:"model"`     // for the step cheaper; "": the cheapest one
	Unpriced string   `json:"unpriced"`  // models without a known price: block (also ""), allow
}

// Values of Money.Unpriced.
const (
	unpricedBlock = "block"
	unpricedAllow = "allow"
)

const defaultWarn = 0.8

// invalid returns the error about the value of a key.
func invalid(path, value, want, example string) error {
	return &chela.Error{
		Code: chela.CodeInvalid, Message: fmt.Sprintf("configuration, %s: %s, want %s", path, value, want),
		Hint: "chela config set " + path + " " + example,
	}
}

// checkMoney returns what is wrong with the budgets of money.
func (o *Settings) checkMoney() error {
	m := &o.Money
	steps := []string{runner.StepCheaper, runner.StepSmaller, runner.StepWait}
	for _, s := range m.Ladder {
		if !slices.Contains(steps, s) {
			return invalid("budget.ladder", fmt.Sprintf("unknown step %q", s), "cheaper, smaller and wait",
				`'["cheaper", "wait"]'`)
		}
	}
	if w := m.Warn; w != nil && (*w < 0 || *w > 1 || math.IsNaN(*w)) {
		return invalid("budget.warnAt", fmt.Sprint(*w), "a share from 0 to 1", "0.8")
	}
	if !slices.Contains([]string{"", unpricedBlock, unpricedAllow}, m.Unpriced) {
		return invalid("budget.unpriced", fmt.Sprintf("%q", m.Unpriced), "block or allow", unpricedBlock)
	}
	return nil
}

// budget returns the limits of an agent's runs. Those that the agent does not have come
// from agents.defaults.
func (o *Settings) budget(id chela.AgentID) Budget {
	a, _ := o.Agents.find(id)
	return a.Budget.or(o.Agent.Budget)
}

// RunBudget limits what a run of an agent may use. Without configuration there are limits
// too, because nobody may be present to stop a run.
func (o *Settings) RunBudget(id chela.AgentID) usage.Budget {
	b := o.budget(id)
	return usage.Budget{
		ToolCalls: cmp.Or(b.Calls, 500), Failures: cmp.Or(b.Failures, 20), Identical: cmp.Or(b.Identical, 100),
		Time: time.Duration(cmp.Or(b.Minutes, 240)) * time.Minute, Tokens: cmp.Or(b.Tokens, 20_000_000),
	}
}

// Limits returns the budgets of money of an agent's runs.
func (o *Settings) Limits(id chela.AgentID, zone *time.Location) usage.Limits {
	b := o.budget(id)
	l := usage.Limits{
		Day:   nano(o.Money.Day),
		Agent: nano(b.Day),
		Task:  nano(b.Task),
		Run:   nano(b.USD),
		Warn:  defaultWarn,
		Zone:  zone,
	}
	if o.Money.Warn != nil {
		l.Warn = *o.Money.Warn
	}
	return l
}

// nano returns an amount in billionths of a dollar.
func nano(usd float64) int64 {
	const most = 1e9 // dollars
	return int64(math.Round(min(max(usd, 0), most) * 1e9))
}

// Ladder returns the steps that are taken if a model call does not fit a budget.
func (o *Settings) Ladder() []string {
	if o.Money.Ladder == nil {
		return []string{runner.StepWait}
	}
	return o.Money.Ladder
}

// PricedOnly reports whether models without a known price are not used while there is a
// budget of money.
func (o *Settings) PricedOnly() bool { return o.Money.Unpriced != unpricedAllow }
