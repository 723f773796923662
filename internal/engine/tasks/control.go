package tasks

import (
	"context"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/task"
)

// Cancel stops the work of a task, and all work that was started from it. The result is
// not told. It reports false if the task has ended already, and the task as it is then.
func (l *List) Cancel(ctx context.Context, id string) (bool, task.Task, error) {
	t, err := l.Get(ctx, id)
	if err != nil || t.State.Final() {
		return false, t, err
	}
	stopped := true
	switch t.Kind {
	case task.Subagent:
		_, err = l.o.Abort(ctx, t.Session, "")
	case task.Command:
		stopped, err = l.o.Kill(ctx, t.Call)
	default:
		var ids []chela.RunID
		ids, err = l.o.Abort(ctx, t.Session, chela.RunID(t.ID))
		if err == nil && len(ids) == 0 && t.Answer != "" { // another run has taken the message
			ids, err = l.o.Abort(ctx, t.Session, t.Answer)
		}
		stopped = len(ids) > 0
	}
	if err != nil {
		return false, t, err
	}
	t, err = l.Get(ctx, id)
	return stopped, t, err
}

// Retry sends the blocked answer of a task again, now and with all attempts. A part whose
// outcome is not known may arrive twice.
func (l *List) Retry(ctx context.Context, id string) (task.Task, error) {
	return l.redeliver(ctx, id, "there is no answer to send again", func(row *outbox.Row, now time.Time) {
		// The age limit and the attempts count from now.
		row.State, row.Attempts, row.NotBefore, row.Created, row.Error = outbox.Pending, 0, time.Time{}, now, ""
	})
}

// Dismiss gives up the delivery of the blocked answer of a task.
func (l *List) Dismiss(ctx context.Context, id string) (task.Task, error) {
	return l.redeliver(ctx, id, "there is no answer to dismiss",
		func(row *outbox.Row, _ time.Time) { row.State = outbox.Dismissed })
}

// redeliver changes the blocked rows of the answer of a task. why says why it cannot.
func (l *List) redeliver(ctx context.Context, id, why string, change func(*outbox.Row, time.Time)) (task.Task, error) {
	var before, after task.Task
	now := time.Now()
	err := l.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		v := txRows(tx)
		var err error
		if before, err = v.get(id); err != nil {
			return err
		}
		if before.Delivery != task.Blocked {
			return chela.Errorf(chela.CodeConflict, "%s: the delivery of the task is %s", why, before.Delivery)
		}
		list, err := v.outbox.OfRun(before.Answer)
		if err != nil {
			return err
		}
		for _, row := range list {
			if row.State == outbox.Failed || row.State == outbox.Ambiguous || row.State == outbox.Pending {
				change(&row, now)
				if err := tx.Outbox().Put(row); err != nil {
					return err
				}
			}
		}
		tx.Wake(store.Topic{Kind: store.TopicOutbox})
		after, err = v.get(id)
		return err
	})
	if err != nil {
		return before, err
	}
	after.Ambiguous = before.Ambiguous
	l.o.Changed(after)
	return after, nil
}
