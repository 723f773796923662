package inbound

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

func moneyCommands() []Command {
	const group = "info"
	return []Command{
		{
			Name: "usage", Group: group, Args: "[off | tokens | full | reset | cost | receipt [run]]", Scope: chela.ScopeWrite,
			Help: "show a usage line below each answer; cost shows the usage so far, receipt that of a task with its subagents",
			run:  (*call).usage,
		},
		{
			Name: "budget", Group: group, Args: "[amount | agent <amount> | reset]", Scope: chela.ScopeRead,
			Help: "show what model calls may cost today; the owner can set another amount for today",
			run:  (*call).budget,
		},
	}
}

// usage is /usage.
func (k *call) usage() (string, error) {
	verb, rest := cut(k.args)
	switch strings.ToLower(verb) {
	case "cost":
		return k.cost()
	case "receipt":
		return k.receipt(chela.RunID(strings.TrimSpace(rest)))
	case "reset":
		k.args = "default"
	}
	return k.set(setting{"Usage line", &k.meta.Usage, k.g.o.Inherit(k.meta).Usage, []string{"off", "tokens", "full"}})
}

// owner reports whether the owner writes: as such, or in a direct chat as a person who may
// change settings.
func (k *call) owner() bool {
	return k.who.IsOwner() || k.who.May(chela.ScopeWrite) && k.g.o.OwnerChat(k.in.Address)
}

// limits returns the budgets of money of the session's agent.
func (k *call) limits() usage.Limits { return k.g.o.Limits(k.key.Agent()) }

// spans are the spans of time of /usage cost, each ending today.
var spans = [...]struct {
	name string
	days int
}{{"Today", 1}, {"7 days", 7}, {"30 days", 30}}

// cost is /usage cost: the usage of this session, and for the owner also that of all
// sessions.
func (k *call) cost() (string, error) {
	now := k.limits().In(k.now)
	since := usage.DayStart(now).AddDate(0, 0, 1-spans[len(spans)-1].days)
	_, offset := now.Zone()
	sums, err := k.tx.Usage().Sums(usage.Query{Since: since, Offset: time.Duration(offset) * time.Second, BySession: true})
	if err != nil {
		return "", err
	}
	here := slices.DeleteFunc(slices.Clone(sums), func(s usage.Sum) bool { return s.Session != k.key })
	var lines []string
	if len(here) == 0 {
		lines = append(lines, "No usage in the last 30 days.")
	} else {
		lines = append(overSpans(here, now), "", "By model:")
		for _, s := range usage.Group(here, modelOf) {
			lines = append(lines, "- "+s.Provider+"/"+s.Model+": "+spent(s))
		}
	}
	if k.owner() && len(sums) > len(here) {
		lines = append(lines, "", "All sessions:")
		lines = append(lines, overSpans(sums, now)...)
		lines = append(lines, "", "By agent:")
		for _, s := range usage.Group(sums,
			func(s usage.Sum) usage.Sum { return usage.Sum{Provider: string(s.Session.Agent())} }) {
			lines = append(lines, "- "+s.Provider+": "+spent(s))
		}
	}
	return strings.Join(lines, "\n"), nil
}

// modelOf groups sums by model.
func modelOf(s usage.Sum) usage.Sum { return usage.Sum{Provider: s.Provider, Model: s.Model} }

// overSpans returns a line for each span of time that ends now.
func overSpans(sums []usage.Sum, now time.Time) (lines []string) {
	for _, span := range spans {
		from := now.AddDate(0, 0, 1-span.days).Format(time.DateOnly)
		in := slices.DeleteFunc(slices.Clone(sums), func(s usage.Sum) bool { return s.Day < from })
		lines = append(lines, "- "+span.name+": "+spent(usage.Total(in...)))
	}
	return lines
}

// spent formats a sum. It shows no cost if the price is unknown.
func spent(s usage.Sum) string {
	if s.Calls == 0 {
		return "no calls"
	}
	out := humanize.Many(s.Calls, "call") + ", " + usage.Tokens(s.Tokens)
	switch {
	case s.Priced():
		out += " · " + usage.USD(s.NanoUSD)
	case s.Unpriced < s.Calls:
		out += " · " + usage.USD(s.NanoUSD) + " and " + humanize.Many(s.Unpriced, "call") + " without a known price"
	}
	return out
}

// receipt is /usage receipt: the usage of a task, which is the last one of this session
// unless a run is named.
func (k *call) receipt(id chela.RunID) (string, error) {
	named := id != ""
	if !named {
		var err error
		if id, err = k.lastRun(); err != nil || id == "" {
			return "There is no task in this conversation yet.", err
		}
	}
	row, err := k.tx.Runs().Get(id)
	if errors.Is(err, chela.ErrNotFound) || err == nil && row.Session != k.key && !k.owner() {
		return "", refusef("There is no run %q. /usage receipt without a run shows the last task of this conversation.",
			humanize.Truncate(string(id), 60))
	}
	if err != nil {
		return "", err
	}
	sums, err := k.tx.Usage().OfTree(row.Tree())
	if err != nil {
		return "", err
	}
	r := usage.NewReceipt(row.Tree(), sums)
	lines := []string{fmt.Sprintf("Receipt of the task %s: %s", r.Root, spent(r.Total))}
	if len(r.Models) > 1 {
		lines = append(lines, "", "By model:")
	}
	for _, s := range r.Models {
		if len(r.Models) > 1 {
			lines = append(lines, "- "+s.Provider+"/"+s.Model+": "+spent(s))
		} else {
			lines[0] += " · " + s.Provider + "/" + s.Model
		}
	}
	if len(r.Runs) < 2 {
		return strings.Join(lines, "\n"), nil
	}
	lines = append(lines, "", humanize.Many(int64(len(r.Runs)), "run")+":")
	for _, s := range r.Runs[:min(len(r.Runs), maxReceipt)] {
		m, err := session.Lookup(k.tx.Sessions(), s.Session)
		if err != nil {
			return "", err
		}
		name := string(s.Session)
		if m.Label != "" {
			name = m.Label
		}
		lines = append(lines, "- "+name+": "+spent(s))
	}
	if n := len(r.Runs) - maxReceipt; n > 0 {
		lines = append(lines, fmt.Sprintf("- and %d more", n))
	}
	return strings.Join(lines, "\n"), nil
}

// maxReceipt is the number of runs in a receipt.
const maxReceipt = 20

// lastRun returns the last run in the transcript for which a model was asked; "": there is
// none.
func (k *call) lastRun() (chela.RunID, error) {
	last, err := k.tx.Sessions().Last(k.meta.ID, 50)
	for _, e := range slices.Backward(last) {
		if e.Run != "" && e.Usage != nil {
			return e.Run, nil
		}
	}
	return "", err
}

// budget is /budget.
func (k *call) budget() (string, error) {
	l := k.limits()
	agent, amount := chela.AgentID(""), strings.TrimSpace(k.args)
	if verb, rest := cut(k.args); strings.EqualFold(verb, "agent") {
		agent, amount = k.key.Agent(), strings.TrimSpace(rest)
	}
	if amount == "" && agent == "" {
		return k.budgets(l)
	}
	if !k.owner() {
		return "", refusef("Only the owner can change a budget.")
	}
	nano := int64(0)
	if !strings.EqualFold(amount, "reset") {
		usd, err := strconv.ParseFloat(strings.TrimPrefix(amount, "$"), 64)
		if nano = int64(math.Round(usd * 1e9)); err != nil || usd <= 0 || math.IsNaN(usd) ||
			usd*1e9 > usage.MaxLimit || nano <= 0 {
			return "", refusef("%q is not an amount of dollars. Examples: /budget 10, /budget agent 2.50, /budget reset",
				humanize.Truncate(amount, 40))
		}
	}
	err := l.SetLimit(k.tx, agent, nano, k.now)
	if e, ok := errors.AsType[*chela.Error](err); ok {
		return "", refuse{k.g.explain(e)}
	}
	if err != nil {
		return "", err
	}
	return k.budgets(l)
}

// budgets describes the budgets of the session's agent.
func (k *call) budgets(l usage.Limits) (string, error) {
	if !l.Any() {
		return "There is no budget of money. To set one for each day, run `chela config set budget.usdPerDay 5`.", nil
	}
	today, err := usage.ReadToday(k.tx, l.In(k.now))
	if err != nil {
		return "", err
	}
	states, err := l.States(k.tx.Usage(), k.key.Agent(), today, k.now)
	if err != nil {
		return "", err
	}
	var lines []string
	for _, s := range states {
		title := "All agents"
		if s.Kind() == usage.ScopeAgent {
			title = "Agent " + string(k.key.Agent())
		}
		line := fmt.Sprintf("- %s: %s of %s spent", title, usage.USD(s.Spent), usage.USD(s.Limit))
		if s.Held > 0 {
			line += ", " + usage.USD(s.Held) + " reserved"
		}
		line += ", " + usage.USD(s.Left()) + " left"
		if s.Limit != s.Configured {
			line += " (for today; otherwise " + usage.USD(s.Configured) + ")"
		}
		lines = append(lines, line)
	}
	if len(lines) > 0 {
		next := usage.NextDay(l.In(k.now))
		lines = append([]string{fmt.Sprintf("Today, until %s (%s):", next.Format("Monday, 2 January, 15:04"),
			usage.ZoneName(next))}, lines...)
	}
	for _, part := range [...]struct {
		name  string
		limit int64
	}{{"A task with its subagents", l.Task}, {"A run", l.Run}} {
		if part.limit > 0 {
			lines = append(lines, "- "+part.name+": at most "+usage.USD(part.limit))
		}
	}
	return strings.Join(lines, "\n"), nil
}
