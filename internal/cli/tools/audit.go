package tools

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/cli/console"
	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c commands) audit() *cobra.Command {
	var p wire.ToolsCallsGet
	var since time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use: "audit", Short: "Show which tools were called, who decided, and what became of it",
		Long: "Show which tools were called, the newest first: by whom, with what, which rule decided,\nwhat became of it and how long it took. Arguments are short and without secrets.\nThe record goes back 30 days.",
		Args: console.Exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if since > 0 {
				p.Since = time.Now().Add(-since).UnixMilli()
			}
			var list wire.ToolsCalls
			if err := c.Call(cmd.Context(), wire.MethodToolsCalls, p, &list); err != nil {
				return err
			}
			if asJSON {
				return c.JSON(list)
			}
			c.printCalls(list)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&p.SessionKey, "session", "", "of the session `KEY`")
	f.StringVar(&p.RunID, "run", "", "of the run `ID`")
	f.StringVar(&p.Tool, "tool", "", "of the tool `NAME`")
	f.StringVar(&p.Decision, "decision", "", "that were `DECIDED` so: allowed, refused, denied, blocked, stopped")
	f.StringVar(&p.Outcome, "outcome", "", "that `ENDED` so: ok, error, aborted, stopped, unknown")
	f.DurationVar(&since, "since", 0, "of the last `TIME`, as in 24h")
	f.Int64Var(&p.Before, "before", 0, "older than number `N`")
	f.IntVar(&p.Limit, "limit", 0, "at most `N` (default 50)")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c commands) printCalls(list wire.ToolsCalls) {
	if len(list.Calls) == 0 {
		fmt.Fprintln(c.Out, "No tool was called.")
		return
	}
	rows := [][]string{{"TIME", "WHO", "TOOL", "DECISION", "OUTCOME", "TOOK", "ARGUMENTS"}}
	for _, k := range list.Calls {
		decision := k.Decision
		if k.Rule != "" && k.Rule != "default" {
			decision += " (" + k.Rule + ")"
		}
		rows = append(rows, []string{
			k.Time.Time().Local().Format(time.DateTime), ansi.Line(cmp.Or(k.Principal, "–")), ansi.Line(k.Tool), ansi.Line(cmp.Or(decision, "–")),
			ansi.Line(outcome(k)), took(k.DurationMs), ansi.Truncate(ansi.Line(k.Args), 80),
		})
	}
	c.Table(rows)
	if last := list.Calls[len(list.Calls)-1]; list.More {
		fmt.Fprintf(c.Err, "older ones: %s\n", c.Command(fmt.Sprintf("tools audit --before %d", last.Seq)))
	}
}

// outcome says what became of a call, also of one that has not ended.
func outcome(k wire.ToolCalled) string {
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

func took(ms int64) string {
	if ms == 0 {
		return ""
	}
	d := time.Duration(ms) * time.Millisecond
	if d > time.Second {
		d = d.Round(10 * time.Millisecond)
	}
	return d.String()
}
