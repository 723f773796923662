package wireview

import (
	"github.com/chela-ai/chela/internal/core/task"
	"github.com/chela-ai/chela/wire"
)

// Task returns a task as clients see it in lists and events.
func Task(t task.Task) wire.Task {
	out := wire.Task{
		ID:              t.ID,
		TaskID:          t.ID,
		Kind:            string(t.Kind),
		Runtime:         "cli",
		Title:           t.Title,
		AgentID:         string(t.Agent),
		SessionKey:      string(t.Requester),
		OwnerKey:        string(t.Requester),
		ChildSessionKey: string(t.Session),
		HasTranscript:   t.Session != "",
		RunID:           string(t.Run),
		SourceID:        string(t.Run),
		ParentTaskID:    t.Parent,
		CreatedAt:       wire.At(t.Created),
		UpdatedAt:       wire.At(t.Updated()),
		StartedAt:       wire.At(t.Started),

		EndedAt:   wire.At(t.Ended),
		Summary:   t.Summary,
		Error:     t.Error,
		Delivery:  string(t.Delivery),
		Execution: wire.TaskExecution{State: "unknown"},
	}
	switch t.Kind {
	case task.Subagent, task.Cron:
		out.Runtime = string(t.Kind)
	case task.Agent:
		out.Kind = out.Runtime
	}
	switch t.State {
	case task.Succeeded:
		out.Status = wire.TaskCompleted
	case task.Lost: // the protocol has no such state
		out.Status = wire.TaskFailed
	default:
		out.Status = string(t.State)
	}
	switch {
	case t.State.Final():
		out.Execution.State = "finished"
	case t.State == task.Running:
		out.Execution.State = "running"
	}
	if t.Delivery == task.Blocked {
		out.Delivery = wire.DeliveryFailed
	}
	switch {
	case t.State == task.Succeeded && t.Delivery == task.Blocked:
		out.Outcome = "blocked"
	case t.State == task.Succeeded:
		out.Outcome = "succeeded"
	}
	return out
}
