package sqlite

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/plugin/store/table"
)

// update is an Update that waits for its commit.
type update struct {
	ctx   context.Context
	sync  store.Sync
	f     func(store.Tx) error
	wakes []store.Topic
	err   error
	done  chan struct{} // closed after the commit; nil if the caller commits itself
}

// writer commits groups of jobs, one group at a time. A caller that finds the
// writer idle commits its own update; the goroutine of the writer commits those
// that arrive meanwhile and those without a waiting caller.
type writer struct {
	d           *DB
	c           *conn         // nil if it could not be reopened
	relaxed     bool          // commits are written without a sync, see setSync
	commits     int           // since the last check of the log's size
	needsRepair bool          // a write failed: repair the log before the next commit
	stopped     bool          // the connection is closed
	err         error         // result of closing the connection
	ended       chan struct{} // closed after stopped is set

	mu      sync.Mutex
	busy    bool // a commit is in progress; its goroutine owns the fields above
	waiting []*update
	closed  bool
	handoff chan struct{} // a token passes the ownership of busy to the goroutine
}

func newWriter(d *DB, c *conn) *writer {
	w := &writer{d: d, c: c, ended: make(chan struct{}), handoff: make(chan struct{}, 1)}
	go w.run()
	return w
}

// Update runs f in a transaction and commits it.
func (d *DB) Update(ctx context.Context, s store.Sync, f func(store.Tx) error) error {
	return d.writer.do(ctx, s, f)
}

// do commits f and waits for the result.
func (w *writer) do(ctx context.Context, s store.Sync, f func(store.Tx) error) error {
	if err := cmp.Or(ctx.Err(), w.d.Damage()); err != nil {
		return err
	}
	j := &update{ctx: ctx, sync: s, f: f}
	w.mu.Lock()
	switch {
	case w.closed:
		w.mu.Unlock()
		return table.ErrClosed
	case w.busy:
		j.done = make(chan struct{})
		w.waiting = append(w.waiting, j)
		w.mu.Unlock()
		<-j.done
	default:
		w.busy = true
		w.mu.Unlock()
		w.serve([]*update{j})
	}
	return j.err
}

// close commits the waiting jobs and closes the connection.
func (w *writer) close() error {
	w.mu.Lock()
	w.closed = true
	if !w.busy {
		w.busy = true
		w.handoff <- struct{}{}
	}
	w.mu.Unlock()
	<-w.ended
	return w.err
}

// run is the goroutine of the writer.
func (w *writer) run() {
	defer func() {
		if !w.stopped { // see serve
			go w.run()
		}
	}()
	for range w.handoff {
		if w.commits >= logEvery {
			w.checkpoint()
		}
		w.mu.Lock()
		group, closed := w.waiting, w.closed
		w.waiting = nil
		w.mu.Unlock()
		if len(group) == 0 && closed {
			w.err, w.stopped = w.closeConn(), true
			close(w.ended)
			return
		}
		w.serve(group)
	}
}

// serve commits the group, sends the results, and releases the writer. An update may
// end the goroutine with runtime.Goexit, as t.FailNow does.
func (w *writer) serve(group []*update) {
	returned := false
	defer func() {
		if !returned {
			_ = w.rollback(nil)
			for _, j := range group {
				j.err = errors.New("update: the function did not return")
			}
		}
		w.finish(group)
		w.yield()
	}()
	w.commit(group)
	returned = true
}

// finish sends the wakes of the committed jobs and then the results.
func (w *writer) finish(group []*update) {
	for _, j := range group {
		if j.err == nil {
			for _, t := range j.wakes {
				w.d.wakes.Wake(t)
			}
		}
		if j.done != nil {
			close(j.done)
		}
	}
}

// yield ends the commit of the current goroutine. If jobs are waiting, the
// goroutine of the writer continues with them.
func (w *writer) yield() {
	w.commits++
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) > 0 || w.closed || w.commits >= logEvery {
		w.handoff <- struct{}{} // does not block: at most one token exists
		return
	}
	w.busy = false
}

// commit sets the result of every update. If a transaction with several updates fails,
// each update is retried alone.
func (w *writer) commit(group []*update) {
	group = uncanceled(group)
	if len(group) == 0 {
		return
	}
	err := w.try(group)
	if err == nil {
		return
	}
	if len(group) > 1 {
		for _, j := range group {
			w.commit([]*update{j})
		}
		return
	}
	group[0].err = w.d.explain(err)
}

// uncanceled returns the jobs whose context has not ended. They are then run to
// completion.
func uncanceled(group []*update) []*update {
	list := make([]*update, 0, len(group))
	for _, j := range group {
		if j.err = j.ctx.Err(); j.err == nil {
			list = append(list, j)
		}
	}
	return list
}

// try commits the jobs in one transaction. An error means that none of them was
// stored; errors of single jobs are stored in the jobs.
func (w *writer) try(group []*update) error {
	if err := w.prepare(group); err != nil {
		return err
	}
	if _, err := w.c.Exec("BEGIN IMMEDIATE"); err != nil {
		return w.rollback(err)
	}
	stored := 0
	for _, j := range group {
		err := w.runUpdate(j, len(group) > 1)
		if w.c.txErr != nil {
			return w.rollback(w.c.txErr)
		}
		if j.err = err; err == nil {
			stored++
		}
	}
	if stored == 0 {
		_ = w.rollback(nil)
		return nil
	}
	if _, err := w.c.Exec("COMMIT"); err != nil {
		return w.rollback(err)
	}
	return nil
}

// runUpdate runs an update. In a batch it uses a savepoint, so that it can fail alone.
func (w *writer) runUpdate(j *update, batched bool) error {
	j.wakes = nil
	if !batched {
		return table.Invoke(w.d.log, w.c.Tables, &j.wakes, j.f)
	}
	if _, err := w.c.Exec("SAVEPOINT part"); err != nil {
		return err
	}
	err := table.Invoke(w.d.log, w.c.Tables, &j.wakes, j.f)
	if err != nil {
		if _, rerr := w.c.Exec("ROLLBACK TO part"); rerr != nil {
			return errors.Join(err, rerr)
		}
	}
	if _, rerr := w.c.Exec("RELEASE part"); rerr != nil {
		w.c.txErr = rerr
		return rerr
	}
	return err
}

// rollback rolls the transaction back and returns why.
func (w *writer) rollback(why error) error {
	w.c.txErr = nil
	_, _ = w.c.Exec("ROLLBACK") // fails if SQLite has already rolled back
	w.c.txErr = nil
	if why != nil && fatal(why) {
		w.d.log.Error("commit failed", "err", why)
		w.needsRepair = w.needsRepair || unsynced(why)
	}
	return why
}

// prepare repairs the log if needed and sets the sync mode of the group's commit.
func (w *writer) prepare(group []*update) error {
	if w.needsRepair || w.c == nil {
		if err := w.repair(); err != nil {
			return &chela.Error{Code: chela.CodeUnavailable, Message: "storage could not be repaired after a failed write",
				Err: err}
		}
	}
	synced := slices.ContainsFunc(group, func(j *update) bool { return bool(j.sync) })
	return w.setSync(synced)
}

// setSync sets whether the following commits are synced or only written. A synced
// commit also syncs the relaxed commits before it. SQLite syncs the log before a
// checkpoint in both modes.
func (w *writer) setSync(on bool) error {
	if w.relaxed == !on {
		return nil
	}
	mode := "NORMAL"
	if on {
		mode = "FULL"
	}
	if err := w.c.script(context.Background(), "PRAGMA synchronous = "+mode); err != nil {
		return w.c.note(err)
	}
	w.relaxed = !on
	return nil
}

// The log is checkpointed when it has logPages pages. Its size is checked every
// logEvery commits.
const (
	logPages = 1000
	logEvery = 32
)

// checkpoint checkpoints the log if it is large, as far as readers allow. It runs
// after the results were sent, so that only the next commit waits for it.
func (w *writer) checkpoint() {
	w.commits = 0
	if w.needsRepair || w.c == nil {
		return
	}
	pages, err := w.logged("PRAGMA wal_checkpoint(NOOP)")
	if err == nil && pages >= logPages {
		_, err = w.logged("PRAGMA wal_checkpoint(PASSIVE)")
	}
	if err != nil {
		w.needsRepair = w.needsRepair || unsynced(err)
		w.c.txErr = nil
		w.d.log.Error("checkpoint failed", "err", err)
	}
}

// logged runs a checkpoint and returns the number of pages that are only in the
// log.
func (w *writer) logged(sql string) (pages int64, err error) {
	_, err = w.c.One(func(r *table.Row) error {
		r.Skip(1) // whether a reader blocked the checkpoint
		pages = r.Int()
		pages -= r.Int()
		return nil
	}, sql)
	return pages, err
}

// closeConn closes the connection, which checkpoints the log into the database. A
// log that may not be on disk must not be checkpointed: the connection then stays
// open until the process ends, and the next start recovers the log.
func (w *writer) closeConn() error {
	if w.needsRepair {
		if err := w.repair(); err != nil {
			return w.d.explain(err)
		}
	}
	if w.c == nil {
		return nil
	}
	return w.c.Close()
}
