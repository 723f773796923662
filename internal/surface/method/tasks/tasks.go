// Package tasks implements the methods about tasks: work in the background, and answers
// that could not be delivered.
package tasks

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/task"
	"github.com/chela-ai/chela/internal/engine/tasks"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// Options configures the methods. All fields are required.
type Options struct {
	Store   store.Store
	List    *tasks.List
	Default chela.AgentID
	Agent   func(chela.AgentID) bool // reports whether the agent exists
	Show    wireview.Show
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	const op = wire.RoleOperator
	return []rpc.Method{
		rpc.New(wire.MethodTasksList, op, chela.ScopeRead, o.list),
		rpc.New(wire.MethodTasksGet, op, chela.ScopeRead, o.get),
		rpc.New(wire.MethodTasksHistory, op, chela.ScopeRead, o.history),
		rpc.New(wire.MethodTasksCancel, op, chela.ScopeWrite, o.cancel),
		rpc.New(wire.MethodTasksRetry, op, chela.ScopeWrite, o.retry),
		rpc.New(wire.MethodTasksDismiss, op, chela.ScopeWrite, o.dismiss),
	}
}

// Limits of lists.
const (
	defaultList    = 100
	maxList        = 500
	defaultHistory = 100
	maxHistory     = 500
	maxIDs         = 10
	maxText        = 32 << 10 // bytes of the prompt and the result
	maxPictures    = 1 << 20  // bytes of the pictures of a page
	maxBytes       = 4 << 20  // of a page of the history
)

// states are the states of the protocol.
var states = map[string][]task.State{
	wire.TaskQueued: {task.Queued}, wire.TaskRunning: {task.Running}, wire.TaskCompleted: {task.Succeeded},
	wire.TaskFailed: {task.Failed, task.Lost}, wire.TaskCancelled: {task.Cancelled}, wire.TaskTimedOut: {task.TimedOut},
}

func (o Options) list(ctx context.Context, _ rpc.Peer, in wire.TasksList) (wire.TasksPage, error) {
	q := tasks.Query{Agent: chela.AgentID(in.AgentID), Turns: in.Turns, Limit: rpc.Limit(in.Limit, defaultList, maxList)}
	out := wire.TasksPage{Tasks: []wire.Task{}}
	for _, name := range in.Status {
		if states[name] == nil {
			return out, rpc.Invalid("at /status: must be equal to one of the allowed values: %s",
				strings.Join(slices.Sorted(maps.Keys(states)), ", "))
		}
		q.States = append(q.States, states[name]...)
	}
	switch in.SortBy {
	case "", "updatedAt":
	case "endedAt":
		q.ByEnd = true
	default:
		return out, rpc.Invalid("at /sortBy: must be equal to one of the allowed values: updatedAt, endedAt")
	}
	var err error
	if in.Limit < 0 || in.Limit > maxList {
		return out, rpc.Invalid("at /limit: must be >= 1 and <= %d", maxList)
	}
	if q.Offset, err = offset(in.Cursor); err != nil {
		return out, err
	}
	if in.AgentID != "" && !o.Agent(q.Agent) {
		return out, rpc.UnknownAgent(q.Agent)
	}
	if in.SessionKey != "" {
		if q.Session, err = rpc.SessionKey(in.SessionKey, in.AgentID, o.Default); err != nil {
			return out, err
		}
	}
	list, more, err := o.List.List(ctx, q)
	for _, t := range list {
		out.Tasks = append(out.Tasks, wireview.Task(t))
	}
	if more {
		out.Next = strconv.Itoa(q.Offset + len(list))
	}
	return out, err
}

// offset returns the position that a cursor stands for.
func offset(cursor string) (int, error) {
	if cursor == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(cursor)
	if err != nil || n < 0 {
		return 0, rpc.Invalid("at /cursor: not a cursor of this method")
	}
	return n, nil
}

func (o Options) get(ctx context.Context, _ rpc.Peer, in wire.TaskGet) (wire.TaskFound, error) {
	t, err := o.List.Get(ctx, in.ID)
	if err != nil {
		return wire.TaskFound{}, err
	}
	out := wireview.Task(t)
	out.Prompt, out.Result = humanize.TruncateBytes(t.Prompt, maxText), humanize.TruncateBytes(t.Result, maxText)
	return wire.TaskFound{Task: out}, nil
}

func (o Options) cancel(ctx context.Context, p rpc.Peer, in wire.TaskCancel) (wire.TaskStopped, error) {
	p.Yield()
	stopped, t, err := o.List.Cancel(ctx, in.ID)
	if chela.CodeOf(err) == chela.CodeNotFound {
		return wire.TaskStopped{Reason: err.Error()}, nil
	}
	if err != nil {
		return wire.TaskStopped{}, err
	}
	view := wireview.Task(t)
	out := wire.TaskStopped{Found: true, Cancelled: stopped, Task: &view}
	switch {
	case stopped:
	case t.State.Final():
		out.Reason = "the task has ended: " + view.Status
	default:
		out.Reason = "the task cannot be stopped by this process"
	}
	return out, nil
}

func (o Options) retry(ctx context.Context, _ rpc.Peer, in wire.TaskIDs) (wire.TasksRecovered, error) {
	return recovered(ctx, in, o.List.Retry, true)
}

func (o Options) dismiss(ctx context.Context, _ rpc.Peer, in wire.TaskIDs) (wire.TasksRecovered, error) {
	return recovered(ctx, in, o.List.Dismiss, false)
}

// recovered calls f for each of the ids.
func recovered(ctx context.Context, in wire.TaskIDs, f func(context.Context, string) (task.Task, error),
	sends bool) (wire.TasksRecovered, error) {
	out := wire.TasksRecovered{Results: []wire.TaskRecovered{}}
	if n := len(in.IDs); n < 1 || n > maxIDs || slices.Contains(in.IDs, "") {
		return out, rpc.Invalid("at /taskIds: must have 1 to %d ids", maxIDs)
	}
	for _, id := range in.IDs {
		t, err := f(ctx, id)
		r := wire.TaskRecovered{ID: id, OK: err == nil}
		switch code := chela.CodeOf(err); {
		case err == nil:
			r.DuplicateRisk = sends && t.Ambiguous
		case code == chela.CodeNotFound || code == chela.CodeConflict:
			r.Reason = err.Error()
		default:
			return out, err
		}
		if t.ID != "" {
			view := wireview.Task(t)
			r.Task = &view
		}
		out.Results = append(out.Results, r)
	}
	return out, nil
}

// history returns a page of the transcript of a task's session, the newest page first. Of
// a task that shares its session with others it returns its own entries.
func (o Options) history(ctx context.Context, _ rpc.Peer, in wire.TaskHistory) (wire.TaskMessages, error) {
	out := wire.TaskMessages{Messages: []wire.Message{}}
	skip, err := offset(in.Cursor)
	if err != nil {
		return out, err
	}
	t, err := o.List.Get(ctx, in.ID)
	if err != nil || t.Session == "" {
		return out, err
	}
	n := rpc.Limit(in.Limit, defaultHistory, maxHistory)
	var page []session.Entry
	total, start := 0, 0
	err = o.Store.View(ctx, func(r store.Reader) error {
		page = nil
		m, err := session.Lookup(r.Sessions(), t.Session)
		if err != nil || m.ID == "" {
			return err
		}
		if total, err = r.Sessions().Count(m.ID); err != nil {
			return err
		}
		end := max(0, total-skip)
		if start = max(0, end-n); end > start {
			page, err = r.Sessions().Entries(m.ID, int64(start), end-start)
		}
		return err
	})
	if err != nil {
		return out, err
	}
	o.Show.Entries(page, maxPictures)
	room := maxBytes
	for i, e := range slices.Backward(page) {
		if t.Kind != task.Subagent && e.Run != t.Answer {
			continue
		}
		messages := wireview.Messages(e)
		b, err := json.Marshal(messages)
		if err != nil {
			return out, err
		}
		if room -= len(b); room < 0 && len(out.Messages) > 0 {
			start += i + 1
			break
		}
		out.Messages = append(messages, out.Messages...)
	}
	if start > 0 {
		out.Next = strconv.Itoa(total - start)
	}
	return out, nil
}
