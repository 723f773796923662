package tasks

import (
	"cmp"
	"slices"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/task"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// stateOf returns the state that an outcome stands for.
func stateOf(o chela.Outcome) task.State {
	switch o {
	case chela.OutcomeOK:
		return task.Succeeded
	case chela.OutcomeTimeout:
		return task.TimedOut
	case chela.OutcomeAborted, chela.OutcomeSuperseded:
		return task.Cancelled
	}
	return task.Failed
}

// ofChild returns the task of a subagent. began is the first run of the child; zero: it
// has not begun.
func ofChild(c subagent.Child, began run.Run) task.Task {
	t := task.Task{
		ID:        string(c.ID),
		Kind:      task.Subagent,
		Title:     c.Label,
		Agent:     c.Session.Agent(),
		Requester: c.Requester,
		Session:   c.Session,
		Run:       c.ID,
		Prompt:    c.Task,
		Result:    c.Result,
		Error:     c.Error,
		Created:   c.Created,
		Started:   began.Started,
		Ended:     c.Ended,

		Delivery: task.NotApplicable,
	}
	switch {
	case c.Open() && began.ID == "":
		t.State = task.Queued
	case c.Open():
		t.State = task.Running
	case c.Silent == subagent.Stopped:
		t.State = task.Cancelled
	case c.Silent == subagent.Lost:
		t.State = task.Lost
	default:
		t.State = stateOf(c.Outcome)
	}
	if c.Open() || c.Silent == "" {
		t.Delivery = task.Pending
	}
	return summarized(t)
}

// ofCommand returns the task of a deferred item that stands for a background command.
// title describes the command.
func ofCommand(it queue.Item, title string) task.Task {
	t := task.Task{
		ID:        it.ID,
		Kind:      task.Command,
		Title:     title,
		Agent:     it.Session.Agent(),
		Requester: it.Session,
		Run:       it.Parent,
		Call:      it.Call,
		Prompt:    title,
		Created:   it.Created,
		Started:   it.Created,
		Delivery:  task.NotApplicable,
	}
	switch r := it.Result; {
	case it.State == queue.Deferred:
		t.State, t.Delivery = task.Running, task.Pending
	case r.Outcome != "":
		t.State, t.Ended, t.Summary = stateOf(r.Outcome), r.Ended, r.Text
	case it.State == queue.Cancelled: // with its session
		t.State, t.Ended = task.Cancelled, it.Created
	default: // released, because the process that ran it is dead
		t.State, t.Ended, t.Error = task.Lost, it.Created, "Chela stopped while the command was running"
	}
	if (t.State == task.Failed || t.State == task.TimedOut) && t.Error == "" {
		t.Error = t.Summary
	}
	return summarized(t)
}

// ofMessage returns the task of a message. r is the run that took it; zero: none did.
func ofMessage(it queue.Item, r run.Run) task.Task {
	t := task.Task{
		ID:        it.ID,
		Kind:      task.Turn,
		Title:     it.Inbound.Text,
		Agent:     it.Session.Agent(),
		Requester: it.Session,
		Session:   it.Session,
		Run:       chela.RunID(it.ID),
		Prompt:    it.Inbound.Text,
		Created:   it.Created,
	}
	if it.Inbound.Task {
		t.Kind = task.Agent
	}
	if it.Origin.Kind == chela.OriginCron {
		t.Kind = task.Cron
		if due, ok := job.ParseDue(it.Inbound.Text); ok {
			t.Title = due.Name
		}
	}
	switch {
	case r.ID != "":
		return in(t, r)
	case it.State == queue.Dropped || it.State == queue.Cancelled:
		t.State, t.Ended, t.Error, t.Delivery = task.Cancelled, it.Created, it.Note, task.NotApplicable
	case it.State == queue.Done: // its run was deleted
		t.State, t.Ended, t.Delivery = task.Lost, it.Created, task.NotApplicable
	default:
		t.State, t.Delivery = task.Queued, task.Pending
	}
	return summarized(t)
}

// ofRun returns the task of a run that no message started.
func ofRun(r run.Run) task.Task {
	t := task.Task{
		ID:        string(r.ID),
		Kind:      task.Turn,
		Agent:     r.Session.Agent(),
		Requester: r.Session,
		Session:   r.Session,
		Run:       r.ID,
		Created:   r.Started,
	}
	if t.Title = "answer to " + string(r.Origin.Kind); r.Kind == run.Compact {
		t.Title = "compaction"
	}
	return in(t, r)
}

// in returns the task t of a message or run, which is answered by the run r.
func in(t task.Task, r run.Run) task.Task {
	t.Answer, t.Result, t.Error, t.Started, t.Ended = r.ID, r.Text, r.Error, r.Started, r.Ended
	t.State, t.Delivery = task.Running, task.Pending
	if r.State.Final() {
		t.State = stateOf(r.State.Outcome())
	}
	if r.Address.Local() || r.Kind == run.Compact { // its client reads the transcript
		t.Delivery = task.NotApplicable
	}
	return summarized(t)
}

// maxSummary is the maximum length of a summary, in characters.
const maxSummary = 200

// summarized returns the task with a title of one line, and a summary of its result.
func summarized(t task.Task) task.Task {
	t.Title = cmp.Or(chela.Line(secret.Mask(humanize.TruncateBytes(t.Title, 4*maxSummary)), maxSummary), string(t.Kind))
	if t.State.Final() {
		t.Summary = cmp.Or(t.Summary, chela.Line(t.Error, maxSummary), chela.Line(t.Result, maxSummary), string(t.State))
	}
	return t
}

// announced returns the task with the delivery of a result that is announced by an item.
func announced(t task.Task, it queue.Item) task.Task {
	switch it.State {
	case queue.Waiting:
		t.Delivery = task.SessionQueued
	case queue.Taken, queue.Done:
		t.Answer, t.Delivery = it.Run, task.Pending
	case queue.Dropped, queue.Cancelled:
		t.Delivery = task.NotApplicable
	}
	return t
}

// sent returns the task with the delivery of an answer. ended reports whether the run
// that answers has ended, and rows are the rows of its answer in the outbox.
func sent(t task.Task, ended bool, rows []outbox.Row) task.Task {
	if !ended {
		return t
	}
	has := func(f func(outbox.Row) bool) bool { return slices.ContainsFunc(rows, f) }
	t.Ambiguous = has(func(r outbox.Row) bool { return r.State == outbox.Ambiguous })
	switch {
	case has(blocked):
		t.Delivery = task.Blocked
	case has(func(r outbox.Row) bool { return r.State == outbox.Pending || r.State == outbox.Attempted }):
		t.Delivery = task.Pending
	case has(func(r outbox.Row) bool { return r.State == outbox.Dismissed }):
		t.Delivery = task.Dismissed
	default:
		t.Delivery = task.Delivered
	}
	for _, r := range rows {
		if blocked(r) && t.State == task.Succeeded {
			t.Error = r.Error
		}
	}
	return t
}

// blocked reports whether a row could not be sent so far: it failed, its outcome is not
// known, or an attempt failed and another one follows.
func blocked(r outbox.Row) bool {
	switch r.State {
	case outbox.Failed, outbox.Ambiguous:
		return true
	case outbox.Pending:
		return r.Error != ""
	}
	return false
}
