package wireview

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/wire"
)

// CronJob returns a job as clients see it. Who asked for it and in which chat, where it
// was imported from, and the state of the scheduler are left out.
func CronJob(j job.Job) wire.CronJob {
	s := j.State
	out := wire.CronJob{
		ID:             string(j.ID),
		Name:           j.Name,
		Description:    j.Description,
		DeclarationKey: j.DeclarationKey,
		DisplayName:    j.DisplayName,
		Enabled:        j.Enabled,
		DeleteAfterRun: j.DeleteAfterRun,
		AgentID:        string(j.Agent),
		SessionKey:     j.Session,
		CreatedAt:      wire.Millis(j.Created),

		UpdatedAt:     wire.Millis(j.Updated),
		Schedule:      cronSchedule(j.Schedule),
		SessionTarget: j.Target,
		WakeMode:      string(j.Wake),

		Payload:        cronPayload(j.Payload),
		Delivery:       cronDelivery(j.Delivery),
		FailureAlert:   cronAlert(j.FailureAlert),
		State:          cronState(s),
		ConfigRevision: j.Revision(),

		NextRunAt:    cronTime(s.Next),
		LastRunAt:    cronTime(s.Last),
		LastStatus:   string(s.LastStatus),
		LastError:    s.LastError,
		LastDelivery: string(s.Delivery),
	}
	if t := j.Trigger; t != nil {
		out.Trigger = &wire.CronTrigger{Script: t.Script, Once: t.Once}
	}
	return out
}

// CronSummary returns a job for a compact list.
func CronSummary(j job.Job) wire.CronSummary {
	s := j.State
	return wire.CronSummary{
		ID:             string(j.ID),
		Name:           j.Name,
		AgentID:        string(j.Agent),
		UpdatedAt:      wire.Millis(j.Updated),
		DeclarationKey: j.DeclarationKey,
		DisplayName:    j.DisplayName,
		Enabled:        j.Enabled,
		NextRunAt:      cronTime(s.Next),
		ScheduleKind:   string(j.Schedule.Kind),

		Schedule:   cronSchedule(j.Schedule),
		Trigger:    j.Trigger != nil,
		LastRunAt:  cronTime(s.Last),
		LastStatus: cronText(string(s.LastStatus)),
		LastError:  cronText(s.LastError),

		RunningAt:      wire.Millis(s.Running),
		AutoDisabled:   cronDisabled(s.Disabled),
		LastDelivery:   string(s.Delivery),
		EffectiveAgent: string(j.ForAgent()),
	}
}

func cronTime(m job.Millis) *wire.Millis {
	if m == 0 {
		return nil
	}
	at := wire.Millis(m)
	return &at
}

func cronText(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func cronSchedule(s job.Schedule) wire.CronSchedule {
	out := wire.CronSchedule{
		Kind:     string(s.Kind),
		At:       s.At,
		EveryMs:  s.EveryMs,
		AnchorMs: wire.Millis(s.AnchorMs),
		Expr:     s.Expr,
		TZ:       s.TZ,
	}
	if s.StaggerMs != nil {
		stagger := wire.Millis(*s.StaggerMs)
		out.StaggerMs = &stagger
	}
	return out
}

func cronPayload(p job.Payload) wire.CronPayload {
	return wire.CronPayload{
		Kind:           string(p.Kind),
		Text:           p.Text,
		Message:        p.Message,
		Model:          p.Model,
		Fallbacks:      p.Fallbacks,
		Thinking:       p.Thinking,
		TimeoutSeconds: p.TimeoutSeconds,
		LightContext:   p.Light,
		UnsafeExternal: p.Unsafe,
		ToolsAllow:     p.Tools,
	}
}

func cronDelivery(d *job.Delivery) *wire.CronDelivery {
	if d == nil {
		return nil
	}
	return &wire.CronDelivery{
		Mode:       string(d.Mode),
		Channel:    d.Channel,
		To:         d.To,
		ThreadID:   string(d.Thread),
		AccountID:  d.Account,
		BestEffort: d.BestEffort,
		Failure:    cronDestination(d.Failure),
		Completion: cronDestination(d.Completion),
	}
}

func cronDestination(d *job.Destination) *wire.CronDestination {
	if d == nil {
		return nil
	}
	return &wire.CronDestination{Mode: string(d.Mode), Channel: d.Channel, To: d.To, AccountID: d.Account}
}

func cronAlert(a *job.Alert) json.RawMessage {
	if a == nil {
		return nil
	}
	raw, err := json.Marshal(a)
	if err != nil { // it holds only plain values
		return nil
	}
	return raw
}

func cronDisabled(d *job.Disabled) *wire.CronDisabled {
	if d == nil {
		return nil
	}
	return &wire.CronDisabled{Reason: d.Reason, At: wire.Millis(d.At), ConsecutiveErrors: d.Errors}
}

func cronState(s job.State) wire.CronState {
	return wire.CronState{
		NextRunAt:     wire.Millis(s.Next),
		ActivatedAt:   wire.Millis(s.Activated),
		RunningAt:     wire.Millis(s.Running),
		LastRunAt:     wire.Millis(s.Last),
		LastRunStatus: string(s.LastStatus),
		LastStatus:    string(s.LastStatus),
		LastError:     s.LastError,

		LastDurationMs:    s.LastMs,
		ConsecutiveErrors: s.Errors,
		ConsecutiveSkips:  s.Skips,
		ScheduleErrors:    s.BadSchedule,
		AutoDisabled:      cronDisabled(s.Disabled),

		LastDelivered:     s.Delivered,
		LastDelivery:      string(s.Delivery),
		LastDeliveryError: s.DeliveryErr,
		LastAlertAt:       wire.Millis(s.AlertAt),
		LastCheckAt:       wire.Millis(s.CheckAt),

		Checks:      s.Checks,
		LastFiredAt: wire.Millis(s.FiredAt),
	}
}

// CronEntry returns an ended run of a job as clients see it.
func CronEntry(r job.Run) wire.CronEntry {
	out := wire.CronEntry{
		Time:          wire.Millis(r.Ended),
		JobID:         string(r.Job),
		Action:        "finished",
		Status:        string(r.Status),
		Error:         r.Error,
		Summary:       r.Summary,
		Delivered:     cronDelivered(r),
		Delivery:      string(cmp.Or(r.Delivery, job.NotRequested)),
		DeliveryError: r.DeliveryErr,

		SessionID:  r.SessionID,
		SessionKey: string(r.Session),
		RunID:      string(r.ID),
		RunAt:      wire.Millis(r.Started),
		DurationMs: int64(max(0, r.Ended-r.Started)),

		NextRunAt: wire.Millis(r.Next),
		Fired:     r.Fired,
		JobName:   r.Name,
		Usage:     cronUsage(r.Usage),
	}
	out.Provider, out.Model = cronModel(r.Model)
	switch r.Status {
	case job.OK:
		out.Completion = "succeeded"
	case job.Failed:
		out.Completion = "failed"
	default:
		out.Completion = "unknown"
	}
	return out
}

// cronDelivered reports whether the answer of a run was delivered; nil: nobody wanted it,
// or it is not known.
func cronDelivered(r job.Run) *bool {
	if r.Delivery != job.WasDelivered && r.Delivery != job.NotDelivered {
		return nil
	}
	delivered := r.Delivery == job.WasDelivered
	return &delivered
}

// cronModel splits provider/model.
func cronModel(ref string) (provider, model string) {
	provider, model, ok := strings.Cut(ref, "/")
	if !ok {
		return "", ref
	}
	return provider, model
}

func cronUsage(u llm.Usage) *wire.CronUsage {
	if u.Total() == 0 {
		return nil
	}
	return &wire.CronUsage{
		Input:      u.Input,
		Output:     u.Output,
		Total:      u.Total(),
		CacheRead:  u.CacheRead,
		CacheWrite: u.CacheWrite,
	}
}

// CronEvent returns an event about a job as clients see it.
func CronEvent(e job.Event) wire.CronEvent {
	out := wire.CronEvent{Action: e.Action, JobID: string(e.Job.ID)}
	if e.Job.Schedule.Kind != "" && e.Action != "removed" {
		view := CronJob(e.Job)
		out.Job = &view
	}
	r := e.Run
	if r.ID == "" {
		return out
	}
	out.JobID = string(r.Job)
	out.RunID, out.RunAt, out.SessionKey, out.SessionID = string(r.ID), wire.Millis(r.Started),
		string(r.Session), r.SessionID
	if r.Open() {
		return out
	}
	entry := CronEntry(r)
	out.DurationMs, out.Status, out.Error, out.Summary, out.Delivered, out.Delivery = entry.DurationMs, entry.Status,
		entry.Error, entry.Summary, entry.Delivered, entry.Delivery
	out.DeliveryError, out.NextRunAt, out.Model, out.Provider, out.Usage = entry.DeliveryError, entry.NextRunAt,
		entry.Model, entry.Provider, entry.Usage
	return out
}
