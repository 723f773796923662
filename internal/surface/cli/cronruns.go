package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

// pollRuns is how often a command looks whether a run has ended.
const pollRuns = 500 * time.Millisecond

func (c *commands) cronRun() *cobra.Command {
	var due, wait bool
	var limit time.Duration
	cmd := &cobra.Command{
		Use: "run JOB", Short: "Run a job now, also one that is switched off",
		Long: "Run a job now, also one that is switched off. Its schedule does not change. With --wait,\n" +
			"the exit code is 1 if the run fails.",
		Args: exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
			mode := job.Force
			if due {
				mode = job.IfDue
			}
			return c.withJob(cmd.Context(), args[0], func(l *link, j wire.CronJob) error {
				var s wire.CronStarted
				if err := l.Call(cmd.Context(), wire.MethodCronRun, wire.CronRun{ID: j.ID, Mode: string(mode)}, &s); err != nil {
					return err
				}
				if s.RunID != "" && wait {
					return c.awaitRun(cmd.Context(), l, j, s.RunID, limit)
				}
				return c.print(s, func() {
					if s.RunID == "" {
						fmt.Fprintf(c.stdout, "not started: %s\n", ansi.Line(s.Reason))
						return
					}
					fmt.Fprintf(c.stdout, "started %s %s\n", shortJob(j.ID), cronTitle(j))
					fmt.Fprintf(c.stderr, "hint: %s\n", c.commandLine("cron runs "+shortJob(j.ID)))
				})
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&due, "due", false, "only if the job is due")
	f.BoolVar(&wait, "wait", false, "wait for the end of the run, and print its outcome")
	f.DurationVar(&limit, "wait-timeout", 10*time.Minute, "wait at most for the `DURATION`")
	return c.withJSON(cmd)
}

// awaitRun waits for the end of a run and prints it.
func (c *commands) awaitRun(ctx context.Context, l *link, j wire.CronJob, id string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(pollRuns)
	defer tick.Stop()
	for {
		var page wire.CronRunsPage
		if err := l.Call(ctx, wire.MethodCronRuns, wire.CronRuns{ID: j.ID, RunID: id, Limit: 1}, &page); err != nil &&
			ctx.Err() == nil {
			return err
		}
		if len(page.Entries) > 0 {
			e := page.Entries[0]
			err := c.print(e, func() { c.printEntry(e) })
			if err == nil && e.Status == string(job.Failed) {
				err = errReported
			}
			return err
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return c.suggest(fmt.Errorf("the run has not ended after %s", humanize.Span(limit)), "cron runs "+shortJob(j.ID))
			}
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// printEntry prints a run with its whole answer.
func (c *commands) printEntry(e wire.CronEntry) {
	c.printRow("status", ansi.Line(e.Status))
	c.printRow("took", humanize.Span(time.Duration(e.DurationMs)*time.Millisecond))
	c.printRow("delivery", ansi.Line(e.Delivery))
	for _, row := range []struct{ name, text string }{{"error", e.Error}, {"not sent", e.DeliveryError},
		{"model", strings.Trim(e.Provider+"/"+e.Model, "/")}, {"session", e.SessionKey}} {
		if row.text != "" {
			c.printRow(row.name, ansi.Line(row.text))
		}
	}
	if e.Summary != "" {
		fmt.Fprintf(c.stdout, "\n%s\n", ansi.Clean(e.Summary))
	}
}

func (c *commands) cronRuns() *cobra.Command {
	var p wire.CronRuns
	cmd := &cobra.Command{Use: "runs [JOB]", Short: "Show the history of a job or of all jobs, newest first",
		Args: between(0, 1), RunE: func(cmd *cobra.Command, args []string) error {
			return c.withLink(cmd.Context(), func(l *link) error {
				if len(args) > 0 {
					j, err := c.findJob(cmd.Context(), l, args[0])
					switch {
					case err == nil:
						p.ID = j.ID
					case strings.Contains(err.Error(), "there is no job"): // it was deleted; its history was not
						p.ID = args[0]
					default:
						return err
					}
				}
				return callOn(cmd.Context(), l, wire.MethodCronRuns, p, func(page wire.CronRunsPage) error {
					if p.ID != "" && page.Total == 0 && len(args) > 0 && p.ID == args[0] {
						if _, err := c.findJob(cmd.Context(), l, args[0]); err != nil {
							return err
						}
					}
					return c.print(page, func() { c.printRuns(page) })
				})
			})
		}}
	f := cmd.Flags()
	f.StringVar(&p.Status, "status", "", "only runs with the `STATUS` ok, error or skipped")
	f.StringVar(&p.DeliveryStatus, "delivery", "",
		"only runs with the `DELIVERY` delivered, not-delivered, unknown or not-requested")
	f.StringVar(&p.AgentID, "agent", "", "only runs of the agent `ID`")
	f.StringVar(&p.RunID, "run-id", "", "only the run with the `ID`")
	f.StringVar(&p.Query, "query", "", "only runs with `TEXT` in the name, the answer or the error")
	f.StringVar(&p.SortDir, "sort", "", "`DIRECTION` desc or asc (default desc)")
	f.IntVar(&p.Limit, "limit", 20, "at most `N` runs")
	f.IntVar(&p.Offset, "offset", 0, "skip the first `N` runs")
	return c.withJSON(cmd)
}

func (c *commands) printRuns(page wire.CronRunsPage) {
	if len(page.Entries) == 0 {
		fmt.Fprintln(c.stdout, "there are no runs")
		return
	}
	table := [][]string{{"TIME", "STATUS", "TOOK", "DELIVERY", "JOB", "RESULT"}}
	for _, e := range page.Entries {
		table = append(table, []string{
			e.RunAt.Time().Format("2006-01-02 15:04:05"), ansi.Line(e.Status),
			humanize.Span(time.Duration(e.DurationMs) * time.Millisecond), ansi.Line(e.Delivery),
			ansi.Truncate(ansi.Line(cmp.Or(e.JobName, e.JobID)), 30),
			ansi.Truncate(ansi.Line(cmp.Or(e.Error, e.DeliveryError, e.Summary)), 80),
		})
	}
	c.printTable(table)
	if page.HasMore {
		fmt.Fprintf(c.stderr, "and %d more; raise --limit\n", page.Total-page.Offset-len(page.Entries))
	}
}
