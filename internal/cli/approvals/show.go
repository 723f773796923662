package approvals

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/cli/console"
	"github.com/chela-ai/chela/internal/figure"
	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c commands) list() *cobra.Command {
	var asJSON, all bool
	var limit int
	cmd := &cobra.Command{Use: "list", Short: "List what waits for a decision", Args: console.Exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
		return c.waiting(cmd.Context(), func(l *client.Client, list []wire.Approval) error {
			switch {
			case all:
				return c.listAll(cmd.Context(), l, list, limit, asJSON)
			case asJSON:
				return c.JSON(list)
			case len(list) == 0:
				fmt.Fprintln(c.Out, "Nothing waits for a decision.")
				return nil
			}
			rows := [][]string{{"ID", "TOOL", "SESSION", "ASKED", "FOR"}}
			for _, a := range list {
				rows = append(rows, []string{a.ID, a.Request.Tool, ansi.Line(a.Request.SessionKey), console.Ago(a.Created.Time()), brief(a.Request.Command)})
			}
			c.Table(rows)
			fmt.Fprintln(c.Err, "the whole of one: "+c.Command("approvals get ID"))
			return nil
		})
	}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&all, "all", false, "also what was decided, the latest first")
	cmd.Flags().IntVar(&limit, "limit", 20, "with --all, at most `N` that were decided")
	return cmd
}

// listAll lists what waits and what was decided.
func (c commands) listAll(ctx context.Context, l *client.Client, list []wire.Approval, limit int, asJSON bool) error {
	var past wire.ApprovalHistory
	if err := l.Call(ctx, wire.MethodApprovalHistory, wire.ApprovalHistoryGet{Limit: limit}, &past); err != nil {
		return err
	}
	if asJSON {
		return c.JSON(map[string]any{"pending": list, "decided": past.Items})
	}
	if len(list)+len(past.Items) == 0 {
		fmt.Fprintln(c.Out, "Nothing was asked yet.")
		return nil
	}
	rows := [][]string{{"ID", "SESSION", "ASKED", "STATE", "FOR"}}
	for _, a := range list {
		state := outcome(wire.ApprovalSnapshot{Status: wire.ApprovalPending, Expires: a.Expires})
		rows = append(rows, []string{a.ID, ansi.Line(a.Request.SessionKey), console.Ago(a.Created.Time()), state, brief(a.Request.Command)})
	}
	for _, s := range past.Items {
		session := ""
		if s.Source != nil {
			session = ansi.Line(s.Source.Session)
		}
		rows = append(rows, []string{s.ID, session, console.Ago(s.Created.Time()), outcome(s), brief(s.Shown.Command)})
	}
	c.Table(rows)
	return nil
}

// brief is the first line of a plan. Nothing is decided by it.
func brief(command string) string {
	first, _, more := strings.Cut(command, "\n")
	if more {
		first += " …"
	}
	return ansi.Truncate(ansi.Line(first), 60)
}

// show shows all of a request: what is not shown is not decided about.
func (c commands) show(a wire.Approval) {
	r := a.Request
	fmt.Fprintf(c.Out, "%s of %s, in %s\n", a.ID, r.Tool, ansi.Line(r.SessionKey))
	c.plan(r.Reason, r.Command)
	fmt.Fprintf(c.Out, "\nexpires in %s\n", figure.Span(time.Until(a.Expires.Time())))
}

// showPast shows a request that was decided.
func (c commands) showPast(s wire.ApprovalSnapshot, asJSON bool) error {
	if asJSON {
		return c.JSON(s)
	}
	fmt.Fprint(c.Out, s.ID)
	if s.Source != nil {
		fmt.Fprint(c.Out, ", in "+ansi.Line(s.Source.Session))
	}
	fmt.Fprintln(c.Out)
	c.plan(s.Shown.Warning, s.Shown.Command)
	fmt.Fprintf(c.Out, "\n%s, %s\n", outcome(s), console.Ago(s.Resolved.Time()))
	return nil
}

// plan shows why something is asked, and the whole of what.
func (c commands) plan(reason, command string) {
	if reason != "" {
		fmt.Fprintln(c.Out, ansi.Line(reason))
	}
	fmt.Fprintln(c.Out)
	for line := range strings.Lines(command) {
		fmt.Fprintln(c.Out, "  "+ansi.Clean(strings.TrimRight(line, "\n")))
	}
}
