package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/store/sqlite/db"
)

// job is an Update that waits for its commit.
type job struct {
	ctx   context.Context
	sync  store.Sync
	f     func(store.Tx) error
	wakes []store.Topic
	err   error
	done  chan struct{} // closed with its commit; nil: the caller commits it
}

// writer commits, one group of jobs after another. Who comes when nobody commits
// does it; what came meanwhile, and what nobody waits for, is the goroutine's.
type writer struct {
	d       *DB
	c       *conn         // nil: it could not be opened again yet
	held    *db.Stmt      // see begin
	commits int           // since the log was looked at
	suspect bool          // a write failed: settle the log before the next commit
	gone    bool          // closed
	err     error         // of the closing
	ended   chan struct{} // closed when gone

	mu      sync.Mutex
	busy    bool // somebody commits; what stands above is theirs
	waiting []*job
	closed  bool
	bell    chan struct{} // a token hands what busy says over to the goroutine
}

func newWriter(d *DB, c *conn) *writer {
	w := &writer{d: d, c: c, ended: make(chan struct{}), bell: make(chan struct{}, 1)}
	go w.run()
	return w
}

// do has f committed and waits for it.
func (w *writer) do(ctx context.Context, s store.Sync, f func(store.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := &job{ctx: ctx, sync: s, f: f}
	w.mu.Lock()
	switch {
	case w.closed:
		w.mu.Unlock()
		return errClosed
	case w.busy:
		j.done = make(chan struct{})
		w.waiting = append(w.waiting, j)
		w.mu.Unlock()
		<-j.done
	default:
		w.busy = true
		w.mu.Unlock()
		w.serve([]*job{j})
	}
	return j.err
}

// close commits what waits and closes the connection.
func (w *writer) close() error {
	w.mu.Lock()
	w.closed = true
	if !w.busy {
		w.busy = true
		w.bell <- struct{}{}
	}
	w.mu.Unlock()
	<-w.ended
	return w.err
}

// run is the goroutine.
func (w *writer) run() {
	defer func() {
		if !w.gone { // see serve
			go w.run()
		}
	}()
	for range w.bell {
		if w.commits >= logEvery {
			w.checkpoint()
		}
		w.mu.Lock()
		group, closed := w.waiting, w.closed
		w.waiting = nil
		w.mu.Unlock()
		if len(group) == 0 && closed {
			w.err, w.gone = w.shut(), true
			close(w.ended)
			return
		}
		w.serve(group)
	}
}

// serve joins the group into one commit, answers, and lets others in. A function
// of a job may end the goroutine with runtime.Goexit, as a failing test does.
func (w *writer) serve(group []*job) {
	returned := false
	defer func() {
		if !returned {
			_ = w.back(nil)
			for _, j := range group {
				j.err = errors.New("update: the function did not return")
			}
		}
		w.finish(group)
		w.leave()
	}()
	w.commit(group)
	returned = true
}

// finish answers the callers, after the wakes of those that were committed.
func (w *writer) finish(group []*job) {
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

// leave ends the turn of who committed: the goroutine goes on with what came
// meanwhile. It never waits for more to come.
func (w *writer) leave() {
	w.commits++
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) > 0 || w.closed || w.commits >= logEvery {
		w.bell <- struct{}{} // there is room: one at a time is busy
		return
	}
	w.busy = false
}

// commit gives every job its outcome. When the transaction is lost in which
// several were joined, each gets another try of its own.
func (w *writer) commit(group []*job) {
	group = begun(group)
	if len(group) == 0 {
		return
	}
	err := w.try(group)
	if err == nil {
		return
	}
	if len(group) > 1 {
		for _, j := range group {
			w.commit([]*job{j})
		}
		return
	}
	group[0].err = w.d.explain(err)
}

// begun returns the jobs whose context has not ended; they will be carried to
// their end.
func begun(group []*job) []*job {
	kept := make([]*job, 0, len(group))
	for _, j := range group {
		if j.err = j.ctx.Err(); j.err == nil {
			kept = append(kept, j)
		}
	}
	return kept
}

// try commits the jobs in one transaction. An error says that none of them was
// stored; errors of single jobs are left in them.
func (w *writer) try(group []*job) error {
	if err := w.ready(group); err != nil {
		return err
	}
	if err := w.begin(); err != nil {
		return w.back(err)
	}
	stored := 0
	for _, j := range group {
		err := w.one(j, len(group) > 1)
		if w.c.lost != nil {
			return w.back(w.c.lost)
		}
		if j.err = err; err == nil {
			stored++
		}
	}
	if stored == 0 {
		_ = w.back(nil)
		return nil
	}
	if _, err := w.c.exec("COMMIT"); err != nil {
		return w.back(err)
	}
	return nil
}

// begin begins a transaction. A query that stays open has the connection go on
// reading from one commit to the next: it need not look for its place in the log
// and lock it anew, which are most of the locks of a commit. When the database
// was written by another process meanwhile, that place is not the last one.
func (w *writer) begin() error {
	_, err := w.c.exec("BEGIN IMMEDIATE")
	if err != nil && w.held != nil {
		w.release()
		_, err = w.c.exec("BEGIN IMMEDIATE")
	}
	if err != nil || w.held != nil {
		return err
	}
	s, err := w.c.Prepare("SELECT 1 FROM sqlite_schema")
	if err != nil {
		return w.c.note(err)
	}
	w.held = s
	_, err = s.Step()
	return w.c.note(err)
}

// release ends the query that stays open.
func (w *writer) release() {
	if w.held != nil {
		w.held.Reset()
	}
	w.held, w.c.lost = nil, nil
}

// one runs a job. Among others it gets a savepoint, so that it can fail alone.
func (w *writer) one(j *job, among bool) error {
	j.wakes = nil
	if !among {
		return w.call(j)
	}
	if _, err := w.c.exec("SAVEPOINT job"); err != nil {
		return err
	}
	err := w.call(j)
	if err != nil {
		if _, rerr := w.c.exec("ROLLBACK TO job"); rerr != nil {
			return errors.Join(err, rerr)
		}
	}
	if _, rerr := w.c.exec("RELEASE job"); rerr != nil {
		w.c.lost = rerr
		return rerr
	}
	return err
}

// call runs the function of a job. A panic is its error: it must not take the
// others, or the process, with it.
func (w *writer) call(j *job) (err error) {
	defer func() {
		if p := recover(); p != nil {
			w.d.log.Error("panic in an update", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("update: panic: %v", p)
		}
	}()
	return j.f(tx{w.c, &j.wakes})
}

// back takes the transaction back and returns why.
func (w *writer) back(why error) error {
	w.c.lost = nil
	_, _ = w.c.exec("ROLLBACK") // fails where SQLite has done it
	w.c.lost = nil
	if why != nil && fatal(why) {
		w.release()
		w.d.log.Error("commit failed", "err", why)
		w.suspect = w.suspect || unsynced(why)
	}
	return why
}

// ready makes the connection fit for the group's commit.
func (w *writer) ready(group []*job) error {
	if w.suspect || w.c == nil {
		if err := w.mend(); err != nil {
			return &chela.Error{Code: chela.CodeUnavailable, Message: "storage is not sure of what is on disk", Err: err}
		}
	}
	synced := slices.ContainsFunc(group, func(j *job) bool { return bool(j.sync) })
	w.d.wal.Relax(!synced)
	return nil
}

// The log is copied into the database when it holds this many pages, and
// looked at once in so many commits.
const (
	logPages = 1000
	logEvery = 32
)

// checkpoint copies the log into the database when it has grown, as far as
// readers allow. It stands after the answers: nobody waits for it but the next
// commit.
func (w *writer) checkpoint() {
	w.commits = 0
	if w.suspect || w.c == nil {
		return
	}
	w.release()
	pages, err := w.logged("PRAGMA wal_checkpoint(NOOP)")
	if err == nil && pages >= logPages {
		_, err = w.logged("PRAGMA wal_checkpoint(PASSIVE)")
	}
	if err != nil {
		w.suspect = w.suspect || unsynced(err)
		w.c.lost = nil
		w.d.log.Error("checkpoint failed", "err", err)
	}
}

// logged runs a checkpoint and returns how many pages are in the log only.
func (w *writer) logged(sql string) (pages int64, err error) {
	_, err = w.c.one(func(r *row) error {
		r.skip(1) // whether a reader was in the way
		pages = r.int()
		pages -= r.int()
		return nil
	}, sql)
	return pages, err
}

// shut closes the connection, which copies the log into the database. A log
// that may not be on disk is not copied: the connection is left to the end of
// the process, and the log to the next start.
func (w *writer) shut() error {
	if w.suspect {
		if err := w.mend(); err != nil {
			return w.d.explain(err)
		}
	}
	if w.c == nil {
		return nil
	}
	return w.c.Close()
}
