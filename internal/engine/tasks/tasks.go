// Package tasks reads the list of tasks from the rows that they are views of (see
// core/task), and stops, retries and dismisses tasks.
package tasks

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/task"
)

// Options are the dependencies of a List. All are required.
type Options struct {
	Store store.Store
	// Abort stops a run or a waiting message, or, for the empty id, all work of a
	// session and of its children.
	Abort func(context.Context, chela.SessionKey, chela.RunID) ([]chela.RunID, error)
	// Kill ends the background command of a tool call. It reports false if no such
	// command runs in this process.
	Kill func(ctx context.Context, call string) (bool, error)
	// Changed is called after the delivery of a task was changed.
	Changed func(task.Task)
}

// List is the list of tasks. It is safe for concurrent use.
type List struct{ o Options }

// New returns a List.
func New(o Options) *List { return &List{o} }

// maxRows limits how many rows of each kind are read, the newest first.
const maxRows = 500

// Query selects tasks. Zero fields select all.
type Query struct {
	States  []task.State
	Agent   chela.AgentID
	Session chela.SessionKey // of the requester or of the work
	Turns   bool             // with messages and runs that are not work in the background
	ByEnd   bool             // ordered by the end; otherwise by the last change
	Offset  int
	Limit   int
}

func (q Query) selects(t task.Task, now time.Time) bool {
	return (len(q.States) == 0 || slices.Contains(q.States, t.State)) &&
		(q.Agent == "" || q.Agent == t.Agent) &&
		(q.Session == "" || q.Session == t.Requester || q.Session == t.Session) &&
		(q.Turns || t.Kind != task.Turn || t.State.Final()) && !t.Expired(now)
}

// List returns the selected tasks, newest first, and whether there are more.
func (l *List) List(ctx context.Context, q Query) (page []task.Task, more bool, err error) {
	err = l.o.Store.View(ctx, func(r store.Reader) error {
		page, more = nil, false
		view := readRows(r)
		all, err := view.all()
		if err != nil {
			return err
		}
		now := time.Now()
		all = slices.DeleteFunc(all, func(t task.Task) bool { return !q.selects(t, now) })
		at := func(t task.Task) time.Time {
			if q.ByEnd {
				return t.Ended
			}
			return t.Updated()
		}
		slices.SortStableFunc(all,
			func(a, b task.Task) int { return cmp.Or(at(b).Compare(at(a)), strings.Compare(a.ID, b.ID)) })
		from := min(q.Offset, len(all))
		to := min(from+q.Limit, len(all))
		page, more = all[from:to], to < len(all)
		for i := range page {
			if page[i], err = view.complete(page[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return page, more, err
}

// Get returns a task, or chela.ErrNotFound.
func (l *List) Get(ctx context.Context, id string) (task.Task, error) {
	return store.Get(ctx, l.o.Store, func(r store.Reader) (task.Task, error) { return readRows(r).get(id) })
}
