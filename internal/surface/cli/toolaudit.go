package cli

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) toolsAudit() *cobra.Command {
	var p wire.ToolsCallsGet
	var since time.Duration
	cmd := &cobra.Command{
		Use: "audit", Short: "Show past tool calls, their decisions and outcomes",
		Long: "Show past tool calls, newest first: the caller, the rule that decided, the outcome, the\nduration and the arguments, which are shortened and contain no secrets. Calls are kept\nfor 30 days.",
		Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if since > 0 {
				p.Since = time.Now().Add(-since).UnixMilli()
			}
			return query(cmd.Context(), c, wire.MethodToolsCalls, p, c.printCalls)
		},
	}
	f := cmd.Flags()
	f.StringVar(&p.SessionKey, "session", "", "only calls in the session `KEY`")
	f.StringVar(&p.RunID, "run", "", "only calls of the run `ID`")
	f.StringVar(&p.Tool, "tool", "", "only calls of the tool `NAME`")
	f.StringVar(&p.Decision, "decision", "", "only calls with the `DECISION` allowed, refused, denied, blocked or stopped")
	f.StringVar(&p.Outcome, "outcome", "", "only calls with the `OUTCOME` ok, error, aborted, stopped or unknown")
	f.DurationVar(&since, "since", 0, "only calls in the last `DURATION`, such as 24h")
	f.Int64Var(&p.Before, "before", 0, "only calls before number `N`")
	f.IntVar(&p.Limit, "limit", 0, "show at most `N` calls (default 50)")
	return c.withJSON(cmd)
}

func (c *commands) printCalls(list wire.ToolsCalls) {
	if len(list.Calls) == 0 {
		fmt.Fprintln(c.stdout, "there are no tool calls")
		return
	}
	rows := [][]string{{"TIME", "CALLER", "TOOL", "DECISION", "OUTCOME", "TOOK", "ARGUMENTS"}}
	for _, k := range list.Calls {
		decision := k.Decision
		if k.Rule != "" && k.Rule != "default" {
			decision += " (" + k.Rule + ")"
		}
		rows = append(rows, []string{
			k.Time.Time().Local().Format(time.DateTime), ansi.Line(cmp.Or(k.Principal, "–")), ansi.Line(k.Tool),
			ansi.Line(cmp.Or(decision, "–")),
			ansi.Line(callOutcome(k)), callDuration(k.DurationMs), ansi.Truncate(ansi.Line(k.Args), 80),
		})
	}
	c.printTable(rows)
	if last := list.Calls[len(list.Calls)-1]; list.More {
		fmt.Fprintf(c.stderr, "older calls: %s\n", c.commandLine(fmt.Sprintf("tools audit --before %d", last.Seq)))
	}
}

// callOutcome returns the outcome of a call, or its state if it has not ended.
func callOutcome(k wire.ToolCalled) string {
	switch {
	case k.Outcome != "":
		return k.Outcome
	case k.State == wire.CallClosed && k.Effect == "":
		return "not run"
	case k.State == wire.CallClosed:
		return "unknown"
	}
	return k.State
}

func callDuration(ms int64) string {
	if ms == 0 {
		return ""
	}
	d := time.Duration(ms) * time.Millisecond
	if d > time.Second {
		d = d.Round(10 * time.Millisecond)
	}
	return d.String()
}
