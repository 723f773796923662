package tasks

import (
	"context"
	"errors"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/task"
)

// rows is read access to the tables that tasks are views of.
type rows struct {
	children subagent.Reader
	items    queue.Reader
	runs     run.Reader
	outbox   outbox.Reader
	calls    session.CallReader
}

func readRows(r store.Reader) rows {
	return rows{r.Children(), r.Queue(), r.Runs(), r.Outbox(), r.Calls()}
}

func txRows(tx store.Tx) rows {
	return rows{tx.Children(), tx.Queue(), tx.Runs(), tx.Outbox(), tx.Calls()}
}

// all returns all tasks, without their deliveries.
func (v rows) all() ([]task.Task, error) {
	c := collection{seen: map[string]bool{}}
	for _, add := range []func(*collection) error{v.addChildren, v.addBackground, v.addActive,
		v.addWaiting, v.addUndelivered} {
		if err := add(&c); err != nil {
			return nil, err
		}
	}
	return c.list, nil
}

// collection collects tasks, each once.
type collection struct {
	list []task.Task
	seen map[string]bool // by id of the task, and of the run that the task stands for
}

func (c *collection) add(t task.Task, err error) error {
	if err == nil && !c.seen[t.ID] {
		c.list = append(c.list, t)
		c.seen[t.ID], c.seen[string(t.Answer)] = true, true
	}
	return err
}

func (v rows) addChildren(c *collection) error {
	open, err := v.children.Open("")
	if err != nil {
		return err
	}
	recent, err := v.children.Recent(maxRows)
	for _, child := range append(open, recent...) {
		err = errors.Join(err, c.add(v.ofChild(child)))
	}
	return err
}

func (v rows) addBackground(c *collection) error {
	running, err := v.items.Deferred()
	if err != nil {
		return err
	}
	recent, err := v.items.Background(maxRows)
	for _, it := range append(running, recent...) {
		err = errors.Join(err, c.add(v.ofItem(it)))
	}
	return err
}

// addActive adds the runs in progress that belong to no other task.
func (v rows) addActive(c *collection) error {
	active, err := v.runs.Active("")
	for _, r := range active {
		if c.seen[string(r.ID)] {
			continue
		}
		if child, cerr := v.child(r.Session); child.ID != "" && child.Open() || cerr != nil {
			err = errors.Join(err, cerr)
			continue // the task of the child stands for all of its runs
		}
		err = errors.Join(err, c.add(v.ofRun(r)))
	}
	return err
}

// addWaiting adds the messages that wait.
func (v rows) addWaiting(c *collection) error {
	sessions, err := v.items.Sessions()
	for _, key := range sessions {
		waiting, werr := v.items.Waiting(key)
		child, cerr := v.child(key)
		err = errors.Join(err, werr, cerr)
		for _, it := range waiting {
			if it.Kind == queue.Message && child.ID == "" {
				err = errors.Join(err, c.add(v.ofItem(it)))
			}
		}
	}
	return err
}

// addUndelivered adds the runs whose answer is blocked and which no other task tells.
func (v rows) addUndelivered(c *collection) error {
	pending, err1 := v.outbox.Open(maxRows)
	final, err2 := v.outbox.Undelivered(maxRows)
	err := errors.Join(err1, err2)
	for _, row := range append(pending, final...) {
		if !blocked(row) || row.Run == "" || c.seen[string(row.Run)] {
			continue
		}
		r, rerr := v.runs.Get(row.Run)
		switch {
		case errors.Is(rerr, chela.ErrNotFound):
			continue
		case rerr != nil:
			err = errors.Join(err, rerr)
			continue
		}
		told, jerr := v.joined(r.ID)
		err = errors.Join(err, jerr)
		if len(told) == 0 {
			err = errors.Join(err, c.add(v.ofRun(r)))
		}
		c.seen[string(row.Run)] = true
	}
	return err
}

// get returns the task with an id, with its delivery.
func (v rows) get(id string) (task.Task, error) {
	t, err := v.find(id)
	if err != nil {
		return t, err
	}
	return v.complete(t)
}

func (v rows) find(id string) (task.Task, error) {
	child, err := v.children.Get(chela.RunID(id))
	if err == nil {
		return v.ofChild(child)
	}
	if !errors.Is(err, chela.ErrNotFound) {
		return task.Task{}, err
	}
	it, err := v.items.Get(id)
	switch {
	case err == nil && (it.Owner != "" || it.Kind == queue.Message):
		return v.ofItem(it)
	case err != nil && !errors.Is(err, chela.ErrNotFound):
		return task.Task{}, err
	}
	r, err := v.runs.Get(chela.RunID(id))
	if errors.Is(err, chela.ErrNotFound) {
		return task.Task{}, chela.Errorf(chela.CodeNotFound, "there is no task %s", id)
	}
	if err != nil {
		return task.Task{}, err
	}
	return v.ofRun(r)
}

// child returns the child in a session; the zero Child if there is none.
func (v rows) child(key chela.SessionKey) (subagent.Child, error) {
	if !key.IsChild() {
		return subagent.Child{}, nil
	}
	return subagent.Lookup(v.children, key)
}

// run returns a run; the zero Run if there is none.
func (v rows) run(id chela.RunID) (run.Run, error) {
	if id == "" {
		return run.Run{}, nil
	}
	r, err := v.runs.Get(id)
	if errors.Is(err, chela.ErrNotFound) {
		return run.Run{}, nil
	}
	return r, err
}

func (v rows) ofChild(c subagent.Child) (task.Task, error) {
	began, err := v.run(c.ID)
	return ofChild(c, began), err
}

func (v rows) ofItem(it queue.Item) (task.Task, error) {
	if it.Owner != "" {
		call, err := v.calls.Call(it.Call)
		if errors.Is(err, chela.ErrNotFound) {
			err = nil
		}
		return ofCommand(it, call.Wire.Label()), err
	}
	r, err := v.run(it.Run)
	return ofMessage(it, r), err
}

func (v rows) ofRun(r run.Run) (task.Task, error) {
	it, err := v.items.Get(string(r.ID))
	switch {
	case errors.Is(err, chela.ErrNotFound), err == nil && it.Kind != queue.Message:
		return ofRun(r), nil
	case err != nil:
		return task.Task{}, err
	}
	return ofMessage(it, r), nil
}

// complete returns the task with its parent and its delivery.
func (v rows) complete(t task.Task) (task.Task, error) {
	parent, err := v.child(t.Requester)
	if err != nil {
		return t, err
	}
	if parent.Session != t.Session {
		t.Parent = string(parent.ID)
	}
	if t.Delivery == task.NotApplicable || !t.State.Final() {
		return t, nil
	}
	if t.Kind == task.Subagent {
		it, err := v.announcement(subagent.Child{ID: chela.RunID(t.ID)}.AnnounceKey())
		if errors.Is(err, chela.ErrNotFound) { // pruned, so it was answered long ago
			t.Delivery = task.Delivered
			return t, nil
		}
		if err != nil {
			return t, err
		}
		t = announced(t, it)
	}
	if t.Answer == "" {
		return t, nil
	}
	by, err := v.run(t.Answer)
	if err != nil {
		return t, err
	}
	rows, err := v.outbox.OfRun(t.Answer)
	return sent(t, by.State.Final(), rows), err
}

// announcement returns the item with an announcement, wherever it was moved.
func (v rows) announcement(key string) (queue.Item, error) {
	it, err := v.items.ByKey(key)
	for err == nil && it.State == queue.Cancelled {
		above, aerr := v.items.ByKey(it.Key + subagent.MovedUp)
		if errors.Is(aerr, chela.ErrNotFound) {
			break
		}
		it, err = above, aerr
	}
	return it, err
}

// joined returns the tasks of the items that joined a run: subagents whose results it
// tells, and messages that it answers.
func (v rows) joined(id chela.RunID) ([]task.Task, error) {
	items, err := v.items.OfRun(id)
	if err != nil {
		return nil, err
	}
	began, err := v.items.Get(string(id))
	switch {
	case err == nil:
		items = append([]queue.Item{began}, items...)
	case !errors.Is(err, chela.ErrNotFound):
		return nil, err
	}
	var list []task.Task
	for _, it := range items {
		var t task.Task
		switch {
		case it.Kind == queue.Event && it.Origin.Kind == chela.OriginSubagent:
			var c subagent.Child
			if c, err = v.child(chela.SessionKey(it.Origin.ID)); err == nil && c.ID != "" {
				t, err = v.ofChild(c)
			}
		case it.Inbound.Task:
			t, err = v.ofItem(it)
		}
		if err != nil {
			return nil, err
		}
		if t.ID != "" {
			list = append(list, t)
		}
	}
	return list, nil
}

// ChangedBy returns the tasks that an event may have changed.
func (l *List) ChangedBy(ctx context.Context, e chela.Event) ([]task.Task, error) {
	return store.Get(ctx, l.o.Store, func(r store.Reader) ([]task.Task, error) {
		v := readRows(r)
		list, err := v.changedBy(e)
		if chela.CodeOf(err) == chela.CodeNotFound {
			return nil, nil
		}
		for i := range list {
			if err == nil {
				list[i], err = v.complete(list[i])
			}
		}
		return list, err
	})
}

func (v rows) changedBy(e chela.Event) ([]task.Task, error) {
	if e.Stream == chela.StreamTask && e.Text != "" {
		t, err := v.find(e.Text)
		return []task.Task{t}, err
	}
	if c, err := v.child(e.Session); err != nil || c.ID != "" {
		t, terr := v.ofChild(c)
		return []task.Task{t}, errors.Join(err, terr)
	}
	if e.Run == "" {
		return nil, nil
	}
	list, err := v.joined(e.Run)
	if err != nil {
		return nil, err
	}
	by, err := v.run(e.Run)
	if err != nil || by.ID == "" {
		return list, err
	}
	if e.Stream == chela.StreamTask && len(list) == 0 {
		t, err := v.ofRun(by)
		return []task.Task{t}, err
	}
	return list, nil
}
