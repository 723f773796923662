package cron

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// Limits of lists.
const (
	defaultLimit = 50
	maxLimit     = 200
)

// allowed checks that a property is empty or one of the values.
func allowed(name, value string, values ...string) error {
	if value == "" || slices.Contains(values, value) {
		return nil
	}
	return oneOf(name)
}

// list answers with a page of jobs, whose form depends on the request.
func (o Options) list(ctx context.Context, _ rpc.Peer, in wire.CronList) (any, error) {
	for _, err := range [...]error{
		allowed("enabled", in.Enabled, "all", "enabled", "disabled"),
		allowed("scheduleKind", in.ScheduleKind, "all", "at", "every", "cron", "on-exit", "stream"),
		allowed("lastRunStatus", in.LastRunStatus, "all", "ok", "error", "skipped", "unknown"),
		allowed("trigger", in.Trigger, "all", "conditional", "unconditional"),
		allowed("sortBy", in.SortBy, "nextRunAtMs", "updatedAtMs", "name"),
		allowed("sortDir", in.SortDir, "asc", "desc"),
		checkPage(in.Limit, in.Offset),
	} {
		if err != nil {
			return nil, err
		}
	}
	session := ""
	if in.SessionKey != "" {
		key, err := rpc.SessionKey(in.SessionKey, in.SessionAgentID, o.Default)
		if err != nil {
			return nil, err
		}
		session = string(key)
	}
	all, err := o.Scheduler.List(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(j job.Job) bool { return !matches(j, in) || session != "" && !bound(j, session) })
	order(all, in)
	page := wire.CronPage{
		Snapshot: snapshot(all),
		Total:    len(all),
		Offset:   in.Offset,
		Limit:    rpc.Limit(in.Limit, defaultLimit, maxLimit),
		Jobs:     []wire.CronJob{},
	}
	all = all[min(in.Offset, len(all)):]
	shown := all[:min(page.Limit, len(all))]
	if page.HasMore = len(shown) < len(all); page.HasMore {
		next := in.Offset + len(shown)
		page.Next = &next
	}
	if in.Compact {
		out := wire.CronCompactPage{
			Snapshot: page.Snapshot,
			Total:    page.Total,
			Offset:   page.Offset,
			Limit:    page.Limit,
			HasMore:  page.HasMore,
			Next:     page.Next,
			Jobs:     []wire.CronSummary{},
		}
		for _, j := range shown {
			out.Jobs = append(out.Jobs, wireview.CronSummary(j))
		}
		return out, nil
	}
	if in.Previews == nil || *in.Previews {
		page.Previews = map[string]wire.CronPreview{}
	}
	for _, j := range shown {
		view := wireview.CronJob(j)
		view.EffectiveAgent = string(j.ForAgent())
		page.Jobs = append(page.Jobs, view)
		if page.Previews != nil {
			page.Previews[string(j.ID)] = o.preview(j)
		}
	}
	return page, nil
}

// checkPage checks the limit and the offset of a page.
func checkPage(limit, offset int) error {
	if limit < 0 || limit > maxLimit {
		return rpc.Invalid("at /limit: must be >= 1 and <= %d", maxLimit)
	}
	if offset < 0 {
		return rpc.Invalid("at /offset: must be >= 0")
	}
	return nil
}

// matches reports whether the filters of a list select a job.
func matches(j job.Job, in wire.CronList) bool {
	enabled := in.Enabled
	if enabled == "" && !in.IncludeDisabled {
		enabled = "enabled"
	}
	status := cmp.Or(string(j.State.LastStatus), "unknown")
	return (enabled != "enabled" || j.Enabled) && (enabled != "disabled" || !j.Enabled) &&
		(in.ScheduleKind == "" || in.ScheduleKind == "all" || in.ScheduleKind == string(j.Schedule.Kind)) &&
		(in.LastRunStatus == "" || in.LastRunStatus == "all" || in.LastRunStatus == status) &&
		(in.Trigger != "conditional" || j.Trigger != nil) && (in.Trigger != "unconditional" || j.Trigger == nil) &&
		(in.AgentID == "" || chela.AgentID(in.AgentID) == j.ForAgent()) &&
		contains(j, strings.ToLower(strings.TrimSpace(in.Query)))
}

// contains reports whether a text of a job contains part, which is in lower case.
func contains(j job.Job, part string) bool {
	if part == "" {
		return true
	}
	for _, s := range [...]string{string(j.ID), j.Name, j.DisplayName, j.Description, j.DeclarationKey, string(j.Agent),
		j.Payload.Content(), j.Schedule.Expr} {
		if strings.Contains(strings.ToLower(s), part) {
			return true
		}
	}
	return false
}

// bound reports whether a job asks for a session or was asked for by it.
func bound(j job.Job, key string) bool {
	return j.Session == key || j.Named() != "" && "agent:"+string(j.ForAgent())+":"+j.Named() == key
}

// order sorts a list. Jobs that do not run again are the last ones by time.
func order(all []job.Job, in wire.CronList) {
	by := func(a, b job.Job) int {
		switch {
		case a.State.Next == 0 && b.State.Next == 0:
			return 0
		case a.State.Next == 0:
			return 1
		case b.State.Next == 0:
			return -1
		}
		return cmp.Compare(a.State.Next, b.State.Next)
	}
	switch in.SortBy {
	case "updatedAtMs":
		by = func(a, b job.Job) int { return cmp.Compare(a.Updated, b.Updated) }
	case "name":
		by = func(a, b job.Job) int {
			return cmp.Or(strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), strings.Compare(a.Name, b.Name))
		}
	}
	slices.SortStableFunc(all, func(a, b job.Job) int {
		n := cmp.Or(by(a, b), strings.Compare(string(a.ID), string(b.ID)))
		if in.SortDir == "desc" {
			n = -n
		}
		return n
	})
}

// snapshot returns a text that changes with the list or its order.
func snapshot(all []job.Job) string {
	h := fnv.New128a()
	for _, j := range all {
		fmt.Fprintf(h, "%s %d\n", j.ID, j.Updated)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (o Options) runs(ctx context.Context, _ rpc.Peer, in wire.CronRuns) (wire.CronRunsPage, error) {
	out := wire.CronRunsPage{Entries: []wire.CronEntry{}, Offset: in.Offset,
		Limit: rpc.Limit(in.Limit, defaultLimit, maxLimit)}
	q := job.Query{
		Agent:  chela.AgentID(in.AgentID),
		Run:    chela.RunID(in.RunID),
		Text:   strings.TrimSpace(in.Query),
		Oldest: in.SortDir == "asc",
		Limit:  out.Limit,
		Offset: in.Offset,
	}
	err := cmp.Or(allowed("scope", in.Scope, "job", "all"), allowed("sortDir", in.SortDir, "asc", "desc"),
		checkPage(in.Limit, in.Offset))
	if err != nil {
		return out, err
	}
	if in.Scope == "job" || in.Scope == "" && in.ID+in.JobID != "" {
		if q.Job, err = jobID(in.ID, in.JobID); err != nil {
			return out, err
		}
	}
	for _, s := range append(in.Statuses, in.Status) {
		if err := allowed("status", s, "all", string(job.OK), string(job.Failed), string(job.Skipped)); err != nil {
			return out, err
		}
		if s != "" && s != "all" {
			q.Statuses = append(q.Statuses, job.Status(s))
		}
	}
	for _, s := range append(in.DeliveryStatuses, in.DeliveryStatus) {
		if err := allowed("deliveryStatus", s, string(job.WasDelivered), string(job.NotDelivered), string(job.Unknown),
			string(job.NotRequested)); err != nil {
			return out, err
		}
		if s != "" {
			q.Deliveries = append(q.Deliveries, job.Delivered(s))
		}
	}
	runs, total, err := o.Scheduler.Runs(ctx, q)
	if err != nil {
		return out, err
	}
	for _, r := range runs {
		out.Entries = append(out.Entries, wireview.CronEntry(r))
	}
	out.Total = total
	if out.HasMore = in.Offset+len(runs) < total; out.HasMore {
		next := in.Offset + len(runs)
		out.Next = &next
	}
	return out, nil
}
