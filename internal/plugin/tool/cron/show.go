package cron

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

const (
	maxLines = 50   // of a list
	maxRuns  = 10   // of a history
	maxGet   = 8000 // characters of a job
)

// clock formats an instant in the person's zone.
func (t cronTool) clock(at time.Time) string {
	return at.In(t.Location).Format(job.NextLayout)
}

// next returns when a job runs next.
func (t cronTool) next(j job.Job) string {
	switch {
	case j.State.Running != 0:
		return "running now"
	case !j.Enabled && j.State.Disabled != nil:
		return "never: it was switched off after " + humanize.Many(j.State.Disabled.Errors, "failure")
	case !j.Enabled:
		return job.Off
	case j.State.Next == 0:
		return "never"
	}
	return t.clock(j.State.Next.Time())
}

func (t cronTool) status(ctx context.Context) (tool.Result, error) {
	o, err := t.Scheduler.Overview(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	text := fmt.Sprintf("The scheduler is on; %s, %d running", humanize.Many(o.Jobs, "job"), o.Running)
	if !o.Enabled {
		text = fmt.Sprintf("The scheduler is off (cron.enabled), so nothing runs; %s", humanize.Many(o.Jobs, "job"))
	}
	if !o.Next.IsZero() {
		text += "; next " + t.clock(o.Next)
	}
	return tool.Text(text + "."), nil
}

func (t cronTool) list(ctx context.Context, c tool.Call) (tool.Result, error) {
	jobs, err := t.own(ctx, c)
	if err != nil {
		return tool.Result{}, err
	}
	if len(jobs) == 0 {
		return tool.Text(job.NoJobs), nil
	}
	var b strings.Builder
	for i, j := range jobs {
		if i == maxLines {
			fmt.Fprintf(&b, "and %d more\n", len(jobs)-i)
			break
		}
		b.WriteString(j.Line(t.next(j)))
		if j.State.LastStatus != "" {
			fmt.Fprintf(&b, "; last %s", j.State.LastStatus)
		}
		if j.State.LastStatus == job.Failed {
			fmt.Fprintf(&b, ": %s", humanize.Truncate(j.State.LastError, 80))
		}
		b.WriteByte('\n')
	}
	return tool.Text(strings.TrimSpace(b.String())), nil
}

// get returns a job as JSON, without what is private to the gateway.
func (t cronTool) get(_ context.Context, j job.Job, _ map[string]json.RawMessage) (tool.Result, error) {
	next := t.next(j)
	j.Principal, j.Address, j.Source, j.Extra, j.State.Run = chela.Principal{}, chela.Address{}, "", nil, ""
	raw, err := json.Marshal(j)
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Text(humanize.Truncate(string(raw), maxGet) + "\nnext: " + next), nil
}

func (t cronTool) runs(ctx context.Context, j job.Job, _ map[string]json.RawMessage) (tool.Result, error) {
	runs, n, err := t.Scheduler.Runs(ctx, job.Query{Job: j.ID, Limit: maxRuns})
	if err != nil {
		return tool.Result{}, err
	}
	if n == 0 {
		return tool.Text(fmt.Sprintf("%q has not run yet; next %s.", j.Title(), t.next(j))), nil
	}
	var b strings.Builder
	for _, r := range runs {
		fmt.Fprintf(&b, "%s: %s after %s", t.clock(r.Started.Time()), r.Status,
			humanize.Span(r.Ended.Time().Sub(r.Started.Time())))
		if r.Delivery != "" {
			fmt.Fprintf(&b, ", %s", r.Delivery)
		}
		if text := cmp.Or(r.Error, r.DeliveryErr, r.Summary); text != "" {
			fmt.Fprintf(&b, ": %s", humanize.Truncate(strings.Join(strings.Fields(text), " "), 300))
		}
		b.WriteByte('\n')
	}
	if n > len(runs) {
		fmt.Fprintf(&b, "and %d before\n", n-len(runs))
	}
	return tool.Text(strings.TrimSpace(b.String())), nil
}
