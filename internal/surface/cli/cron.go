package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/wire"
)

func (c *commands) cron() *cobra.Command {
	cmd := group("cron", "Schedule reminders, reports and watches",
		c.cronStatus(), c.cronList(), c.cronShow(), c.cronAdd(), c.cronEdit(), c.cronSwitch("enable", true),
		c.cronSwitch("disable", false),
		c.cronRemove(), c.cronRun(), c.cronRuns(), c.cronExport(), c.cronImport())
	cmd.Aliases = []string{"automations"}
	return cmd
}

func (c *commands) cronStatus() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "status", Short: "Show whether jobs run, and when the next one does",
		Args: exactly(0), RunE: func(cmd *cobra.Command, _ []string) error {
			return query(cmd.Context(), c, wire.MethodCronStatus, nil, func(s wire.CronStatus) {
				on, next := "on", "-"
				if !s.Enabled {
					on = "off (cron.enabled)"
				}
				if s.NextWakeAt != nil {
					next = clock(*s.NextWakeAt)
				}
				c.printRow("scheduler", on)
				c.printRow("jobs", fmt.Sprint(s.Jobs))
				c.printRow("running", fmt.Sprint(s.Running))
				c.printRow("next", next)
			})
		}})
}

// clock returns an instant in the zone of this machine, and how far away it is.
func clock(at wire.Millis) string {
	t := at.Time()
	text := t.Format("2006-01-02 15:04:05")
	if d := time.Until(t); d > 0 {
		return text + " (in " + humanize.Span(d) + ")"
	}
	return text + " (" + ago(t) + ")"
}

// shortJob returns the part of a job's id that is shown in lists. It finds the job.
func shortJob(id string) string {
	if len(id) == 36 && id[8] == '-' {
		return id[:8]
	}
	return ansi.Line(id)
}

// cronTitle returns the name of a job for people.
func cronTitle(j wire.CronJob) string { return ansi.Line(cmp.Or(j.DisplayName, j.Name)) }

// cronNext returns when a job runs next.
func cronNext(j wire.CronJob) string {
	switch {
	case j.State.RunningAt != 0:
		return "running"
	case !j.Enabled && j.State.AutoDisabled != nil:
		return "off: " + ansi.Line(j.State.AutoDisabled.Reason)
	case !j.Enabled:
		return "off"
	case j.State.NextRunAt == 0:
		return "-"
	}
	return j.State.NextRunAt.Time().Format("2006-01-02 15:04")
}

// cronLast returns how a job ended last.
func cronLast(j wire.CronJob) string {
	if j.State.LastRunStatus == "" {
		return "-"
	}
	return ansi.Line(j.State.LastRunStatus) + " " + ago(j.State.LastRunAt.Time())
}

// cronSchedule returns a schedule for people.
func cronSchedule(s wire.CronSchedule) string {
	if s.Kind == string(job.KindAt) {
		if t, err := time.Parse(time.RFC3339, s.At); err == nil {
			return "at " + t.Local().Format("2006-01-02 15:04")
		}
	}
	return ansi.Line(job.Schedule{Kind: job.Kind(s.Kind), At: s.At, EveryMs: s.EveryMs, Expr: s.Expr, TZ: s.TZ}.String())
}

// cronAnswer returns where the answer of a job goes.
func cronAnswer(j wire.CronJob) string {
	d := j.Delivery
	switch {
	case j.Payload.Kind == string(job.SystemEvent) && (d == nil || d.Mode != string(job.Webhook)):
		return "session " + ansi.Line(cmp.Or(j.SessionKey, "main"))
	case d == nil || d.Mode == string(job.None):
		return "nowhere"
	case d.Mode == string(job.Webhook):
		return ansi.Line(d.To)
	}
	if d.Channel == "" || d.Channel == job.Last {
		return "the last chat"
	}
	return ansi.Line(strings.TrimSuffix(d.Channel+":"+d.To, ":"))
}

// maxPage is the number of jobs in a page.
const maxPage = 200

// cronPages returns all jobs that the parameters select, up to limit; 0: no limit.
func cronPages(ctx context.Context, l *link, p wire.CronList, limit int) (wire.CronPage, error) {
	all := wire.CronPage{Jobs: []wire.CronJob{}}
	for {
		p.Limit, p.Offset = maxPage, len(all.Jobs)
		if limit > 0 {
			p.Limit = min(p.Limit, limit-len(all.Jobs))
		}
		var page wire.CronPage
		if err := l.Call(ctx, wire.MethodCronList, p, &page); err != nil {
			return all, err
		}
		jobs, previews := append(all.Jobs, page.Jobs...), all.Previews
		for id, preview := range page.Previews {
			if previews == nil {
				previews = map[string]wire.CronPreview{}
			}
			previews[id] = preview
		}
		all = page
		all.Jobs, all.Previews, all.Offset, all.Limit = jobs, previews, 0, len(jobs)
		if !page.HasMore || len(page.Jobs) == 0 || len(jobs) == limit {
			return all, nil
		}
	}
}

func (c *commands) cronList() *cobra.Command {
	var p wire.CronList
	cmd := &cobra.Command{Use: "list", Short: "List jobs, the next one first", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withLink(cmd.Context(), func(l *link) error {
				page, err := cronPages(cmd.Context(), l, p, p.Limit)
				if err != nil {
					return err
				}
				return c.print(page, func() { c.printJobs(page, p) })
			})
		}}
	f := cmd.Flags()
	f.BoolVar(&p.IncludeDisabled, "all", false, "also those that are switched off")
	f.StringVar(&p.AgentID, "agent", "", "only those of the agent `ID`")
	f.StringVar(&p.Query, "query", "", "only those with `TEXT` in name, description or text")
	f.StringVar(&p.ScheduleKind, "kind", "", "only those of the `KIND` at, every or cron")
	f.StringVar(&p.LastRunStatus, "status", "", "only those whose last run has the `STATUS` ok, error, skipped or unknown")
	f.StringVar(&p.SortBy, "sort", "", "sort by `FIELD` nextRunAtMs, updatedAtMs or name (default nextRunAtMs)")
	f.IntVar(&p.Limit, "limit", 0, "at most `N` jobs (default all)")
	return c.withJSON(cmd)
}

func (c *commands) printJobs(page wire.CronPage, p wire.CronList) {
	if len(page.Jobs) == 0 {
		text := "there are no jobs"
		if p != (wire.CronList{}) && !(p == wire.CronList{IncludeDisabled: true}) {
			text = "no job matches"
		}
		fmt.Fprintln(c.stdout, text)
		return
	}
	table := [][]string{{"ID", "NEXT", "SCHEDULE", "LAST", "ANSWER", "NAME"}}
	for _, j := range page.Jobs {
		table = append(table, []string{shortJob(j.ID), cronNext(j), ansi.Truncate(cronSchedule(j.Schedule), 40), cronLast(j),
			ansi.Truncate(cronAnswer(j), 40), ansi.Truncate(cronTitle(j), 60)})
	}
	c.printTable(table)
	if page.HasMore {
		fmt.Fprintf(c.stderr, "and %d more; raise --limit\n", page.Total-len(page.Jobs))
	}
}

// withJob connects and calls f with the job that ref names: its id, the beginning of the
// id, or its name.
func (c *commands) withJob(ctx context.Context, ref string, f func(*link, wire.CronJob) error) error {
	return c.withLink(ctx, func(l *link) error {
		j, err := c.findJob(ctx, l, ref)
		if err != nil {
			return err
		}
		return f(l, j)
	})
}

func (c *commands) findJob(ctx context.Context, l *link, ref string) (wire.CronJob, error) {
	var j wire.CronJob
	err := l.Call(ctx, wire.MethodCronGet, wire.CronID{ID: ref}, &j)
	if e, ok := errors.AsType[*wire.Error](err); !ok || e.Detail() != wire.DetailNoJob {
		return j, err
	}
	none := false
	page, err := cronPages(ctx, l, wire.CronList{IncludeDisabled: true, Previews: &none}, 0)
	if err != nil {
		return j, err
	}
	list := make([]job.Job, 0, len(page.Jobs))
	for _, j := range page.Jobs {
		list = append(list, job.Job{ID: job.ID(j.ID), Name: j.Name, DisplayName: j.DisplayName})
	}
	found, err := job.Find(list, ref)
	if err != nil {
		return j, c.suggest(err, "cron list --all")
	}
	for _, j := range page.Jobs {
		if j.ID == string(found.ID) {
			return j, nil
		}
	}
	return j, nil
}

func (c *commands) cronShow() *cobra.Command {
	return c.withJSON(&cobra.Command{Use: "show JOB",
		Short: "Show a job; JOB is its id, the beginning of the id, or its name", Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withJob(cmd.Context(), args[0], func(_ *link, j wire.CronJob) error {
				return c.print(j, func() { c.printJob(j) })
			})
		}})
}

func (c *commands) printJob(j wire.CronJob) {
	c.printRow("job", ansi.Line(j.ID))
	c.printRow("name", cronTitle(j))
	for _, row := range []struct{ name, text string }{
		{"about", j.Description}, {"agent", j.AgentID}, {"asked in", j.SessionKey}, {"runs in", j.SessionTarget},
		{"model", j.Payload.Model}, {"thinking", j.Payload.Thinking},
	} {
		if row.text != "" {
			c.printRow(row.name, ansi.Line(row.text))
		}
	}
	c.printRow("schedule", cronSchedule(j.Schedule))
	if t := j.Trigger; t != nil {
		c.printRow("only if", "changed: "+ansi.Line(t.Script))
	}
	next := cronNext(j)
	if j.Enabled && j.State.RunningAt == 0 && j.State.NextRunAt != 0 {
		next = clock(j.State.NextRunAt)
	}
	c.printRow("next", next)
	c.printRow("answer", cronAnswer(j))
	if s := j.State; s.LastRunStatus != "" {
		c.printRow("last", ansi.Line(s.LastRunStatus)+" "+clock(s.LastRunAt))
		if s.LastError != "" {
			c.printRow("error", ansi.Line(s.LastError))
		}
		if s.LastDeliveryError != "" {
			c.printRow("delivery", ansi.Line(s.LastDeliveryError))
		}
	}
	fmt.Fprintf(c.stdout, "\n%s\n", ansi.Clean(cmp.Or(j.Payload.Message, j.Payload.Text)))
	if j.State.AutoDisabled != nil {
		fmt.Fprintf(c.stderr, "hint: %s\n", c.commandLine("cron enable "+shortJob(j.ID)))
	}
}

// printAdded prints a job that was added or changed.
func (c *commands) printAdded(what string, j wire.CronJob) {
	fmt.Fprintf(c.stdout, "%s %s %s: %s", what, shortJob(j.ID), cronTitle(j), cronSchedule(j.Schedule))
	if j.Enabled && j.State.NextRunAt != 0 {
		fmt.Fprintf(c.stdout, "; next %s", clock(j.State.NextRunAt))
	} else {
		fmt.Fprintf(c.stdout, "; %s", cronNext(j))
	}
	fmt.Fprintf(c.stdout, "; answer: %s\n", cronAnswer(j))
}

// cronSwitch returns the command that switches jobs on or off.
func (c *commands) cronSwitch(use string, on bool) *cobra.Command {
	short := "Switch jobs off"
	if on {
		short = "Switch jobs on again, and forget their failures"
	}
	return c.withJSON(&cobra.Command{Use: use + " JOB [JOB]...", Short: short, Args: between(1, 100),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.eachJob(cmd.Context(), args, func(l *link, j wire.CronJob) (any, error) {
				var out wire.CronJob
				err := l.Call(cmd.Context(), wire.MethodCronUpdate,
					map[string]any{"id": j.ID, "patch": map[string]any{"enabled": on}}, &out)
				if err == nil && !c.json {
					fmt.Fprintf(c.stdout, "%sd %s %s\n", use, shortJob(j.ID), cronTitle(out))
				}
				return out, err
			})
		}})
}

func (c *commands) cronRemove() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "rm JOB [JOB]...",
		Aliases: []string{"remove", "delete"},
		Short:   "Delete jobs; their history is kept",
		Args:    between(1, 100),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.eachJob(cmd.Context(), args, func(l *link, j wire.CronJob) (any, error) {
				var out wire.CronRemoved
				err := l.Call(cmd.Context(), wire.MethodCronRemove, wire.CronID{ID: j.ID}, &out)
				if err == nil && !c.json {
					fmt.Fprintf(c.stdout, "removed %s %s\n", shortJob(j.ID), cronTitle(j))
				}
				return map[string]any{"ok": out.OK, "removed": out.Removed, "id": j.ID}, err
			})
		},
	}
	return c.withJSON(cmd)
}

// eachJob calls f for each of the jobs, reports those that fail, and prints the results
// as JSON if that was asked for.
func (c *commands) eachJob(ctx context.Context, refs []string, f func(*link, wire.CronJob) (any, error)) error {
	return c.withLink(ctx, func(l *link) error {
		results := []any{}
		var failed error
		for _, ref := range refs {
			j, err := c.findJob(ctx, l, ref)
			if err == nil {
				var r any
				if r, err = f(l, j); err == nil {
					results = append(results, r)
				}
			}
			switch {
			case err != nil && len(refs) == 1:
				return err
			case err != nil:
				fmt.Fprintf(c.stderr, "%s: %s\n", ansi.Line(ref), ansi.Line(errorText(err)))
				failed = errReported
			}
		}
		if c.json {
			var err error
			if len(refs) == 1 {
				err = c.printJSON(results[0])
			} else {
				err = c.printJSON(results)
			}
			if err != nil {
				return err
			}
		}
		return failed
	})
}

func (c *commands) cronExport() *cobra.Command {
	var out string
	cmd := &cobra.Command{Use: "export", Short: "Write all jobs in the form of OpenClaw's jobs.json", Args: exactly(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var e wire.CronExported
			if err := c.call(cmd.Context(), wire.MethodCronExport, nil, &e); err != nil {
				return err
			}
			if out == "" {
				return c.printJSON(e.File)
			}
			if _, err := os.Lstat(out); err == nil {
				return c.suggest(fmt.Errorf("%s already exists", out), "cron export --output FILE")
			}
			if err := atomicfile.Write(out, e.File, 0o600); err != nil {
				return fmt.Errorf("export: %w", err)
			}
			fmt.Fprintln(c.stdout, out)
			return nil
		}}
	cmd.Flags().StringVarP(&out, "output", "o", "", "write to `FILE` instead of standard output")
	cmd.Flags().BoolVar(&c.json, "json", false, "print JSON, which is the only form")
	return cmd
}

func (c *commands) cronImport() *cobra.Command {
	var in wire.CronImport
	cmd := &cobra.Command{
		Use: "import FILE", Short: "Add or replace jobs from a file that chela or OpenClaw wrote",
		Long: "Add or replace jobs, by their ids, from a file of the form {\"version\":1,\"jobs\":[...]};\n" +
			"- is standard input. Either all jobs of the file are stored or none.",
		Example: "  chela cron import ~/.openclaw/cron/jobs.json",
		Args:    exactly(1), RunE: func(cmd *cobra.Command, args []string) error {
			file, err := c.readFile(args[0], wire.MaxPayload/2)
			if err != nil {
				return fmt.Errorf("import: %w", err)
			}
			file = bytes.TrimPrefix(file, []byte("\xef\xbb\xbf")) // no part of JSON, which the request is
			if in.File, in.Name = file, args[0]; args[0] == "-" {
				in.Name = ""
			}
			if _, err := job.ParseFile(file); err != nil {
				switch _, some := errors.AsType[*job.Rejected](err); {
				case !some:
					return fmt.Errorf("%s: %w", args[0], err)
				case !in.Skip:
					return c.suggest(err, "cron import --skip-invalid "+shell.Quote(args[0]))
				}
			}
			return query(cmd.Context(), c, wire.MethodCronImport, in, func(r wire.CronImported) {
				for _, why := range r.Rejected {
					fmt.Fprintf(c.stderr, "left out: %s\n", ansi.Line(why))
				}
				fmt.Fprintf(c.stdout, "added %s, changed %d\n", humanize.Many(r.Added, "job"), r.Changed)
			})
		},
	}
	cmd.Flags().BoolVar(&in.Skip, "skip-invalid", false, "leave out the jobs that cannot be used")
	return c.withJSON(cmd)
}
