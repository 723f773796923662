package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/llm"
	money "github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

// usd returns an amount for people.
func usd(dollars float64) string { return money.USD(int64(math.Round(dollars * 1e9))) }

// costOf returns the cost of model calls for people. It is empty if no price is known.
func costOf(s wire.UsageSum) string {
	switch {
	case s.Missing == s.Calls:
		return ""
	case s.Missing > 0:
		return usd(s.Cost) + " and " + humanize.Many(s.Missing, "call") + " without a known price"
	}
	return usd(s.Cost)
}

// tokensOf returns the tokens of model calls for people.
func tokensOf(s wire.UsageSum) string {
	return money.Tokens(llm.Usage{Input: s.Input, Output: s.Output, CacheRead: s.CacheRead, CacheWrite: s.CacheWrite})
}

func (c *commands) usageReport() *cobra.Command {
	in := wire.UsageCost{Mode: "gateway"}
	cmd := &cobra.Command{Use: "usage", Short: "Show the usage and the cost of model calls", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if in.Days < 0 || in.Days == 0 && cmd.Flags().Changed("days") {
				return usage(errors.New("--days: want a positive number"))
			}
			return query(cmd.Context(), c, wire.MethodUsageCost, in, c.printUsage)
		}}
	f := cmd.Flags()
	f.IntVar(&in.Days, "days", 0, "the last `N` days (default 30)")
	f.StringVar(&in.SessionKey, "session", "", "only the session `KEY`")
	cmd.AddCommand(c.usageReceipt())
	return c.withJSON(cmd)
}

func (c *commands) printUsage(r wire.UsageReport) {
	rows := [][]string{{"DAY", "CALLS", "TOKENS", "COST"}}
	add := func(name string, s wire.UsageSum) {
		rows = append(rows, []string{name, fmt.Sprint(s.Calls), tokensOf(s), costOf(s)})
	}
	for _, d := range r.Daily {
		if d.Calls > 0 {
			add(d.Date, d.UsageSum)
		}
	}
	if len(rows) == 1 {
		fmt.Fprintf(c.stdout, "there were no model calls in the last %d days\n", r.Days)
		return
	}
	add("total", r.Totals)
	c.printTable(rows)
	fmt.Fprintln(c.stdout)
	c.printModelUsage(r.Models)
}

func (c *commands) printModelUsage(models []wire.ModelUsage) {
	rows := [][]string{{"MODEL", "CALLS", "TOKENS", "COST"}}
	for _, m := range models {
		rows = append(rows, []string{ansi.Line(m.Provider + "/" + m.Model), fmt.Sprint(m.Calls), tokensOf(m.UsageSum),
			costOf(m.UsageSum)})
	}
	c.printTable(rows)
}

func (c *commands) usageReceipt() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "receipt RUN", Short: "Show what a task with its subagents has cost",
		Args: exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
			return query(cmd.Context(), c, wire.MethodUsageReceipt, wire.ReceiptGet{RunID: args[0]}, func(r wire.UsageReceipt) {
				c.printRow("task", r.RunID)
				c.printRow("calls", fmt.Sprint(r.Totals.Calls))
				c.printRow("tokens", tokensOf(r.Totals))
				if cost := costOf(r.Totals); cost != "" {
					c.printRow("cost", cost)
				}
				if len(r.Models) == 0 {
					return
				}
				fmt.Fprintln(c.stdout)
				c.printModelUsage(r.Models)
				if len(r.Runs) < 2 {
					return
				}
				fmt.Fprintln(c.stdout)
				rows := [][]string{{"RUN", "SESSION", "CALLS", "TOKENS", "COST"}}
				for _, u := range r.Runs {
					name := u.SessionKey
					if u.Label != "" {
						name = u.Label
					}
					rows = append(rows, []string{ansi.Line(u.RunID), ansi.Line(name), fmt.Sprint(u.Calls), tokensOf(u.UsageSum),
						costOf(u.UsageSum)})
				}
				c.printTable(rows)
			})
		}})
}

func (c *commands) budget() *cobra.Command {
	agent := ""
	cmd := &cobra.Command{
		Use: "budget [AMOUNT|reset]", Short: "Show what model calls may cost today, or set another amount for today",
		Example: "  chela budget\n  chela budget 10\n  chela budget reset", Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return query(cmd.Context(), c, wire.MethodBudgetStatus, wire.BudgetGet{AgentID: agent}, c.printBudget)
			}
			return c.setBudget(cmd.Context(), agent, args[0])
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the budget of the agent `ID`")
	return c.withJSON(cmd)
}

func (c *commands) setBudget(ctx context.Context, agent, amount string) error {
	in := wire.BudgetSet{AgentID: agent}
	if amount != "reset" {
		var err error
		if in.USD, err = strconv.ParseFloat(strings.TrimPrefix(amount, "$"), 64); err != nil || !(in.USD > 0) {
			return usage(withHint(fmt.Errorf("%q is not an amount of dollars", amount), c.commandLine("budget 10")))
		}
	}
	return query(ctx, c, wire.MethodBudgetSet, in, c.printBudget)
}

func (c *commands) printBudget(s wire.BudgetStatus) {
	if len(s.Budgets) == 0 && s.Task == 0 && s.Run == 0 {
		fmt.Fprintln(c.stdout, "there is no budget of money")
		fmt.Fprintln(c.stderr, "hint: "+c.commandLine("config set budget.usdPerDay 5"))
		return
	}
	if len(s.Budgets) > 0 {
		rows := [][]string{{"BUDGET OF " + s.Day, "LIMIT", "SPENT", "RESERVED", "LEFT"}}
		for _, b := range s.Budgets {
			name := "all agents"
			if b.Scope == wire.BudgetOfAgent {
				name = "agent " + s.AgentID
			}
			limit := usd(b.Limit)
			if b.Limit != b.Configured {
				limit += " (for today; otherwise " + usd(b.Configured) + ")"
			}
			rows = append(rows, []string{ansi.Line(name), limit, usd(b.Spent), usd(b.Held), usd(b.Left)})
		}
		c.printTable(rows)
		fmt.Fprintf(c.stdout, "\nA new day begins %s (%s).\n", s.ResetsAt.Time().Format("Monday, 2 January, 15:04"),
			ansi.Line(s.TimeZone))
	}
	if s.Task > 0 {
		fmt.Fprintf(c.stdout, "A task with its subagents costs at most %s.\n", usd(s.Task))
	}
	if s.Run > 0 {
		fmt.Fprintf(c.stdout, "A run costs at most %s.\n", usd(s.Run))
	}
}
