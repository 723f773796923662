package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

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
	done  chan struct{} // closed after the commit
}

// writer commits groups of updates, one group at a time.
type writer struct {
	d     *DB
	c     *conn // nil: none, or a broken one
	mark  int64 // number of the last transaction
	ended chan struct{}

	mu      sync.Mutex
	waiting []*update
	closed  bool
	signal  chan struct{} // cap 1: something is waiting, or the writer is closed
}

func newWriter(d *DB) *writer {
	w := &writer{d: d, ended: make(chan struct{}), signal: make(chan struct{}, 1)}
	go w.run()
	return w
}

// Update runs f in a transaction and commits it.
func (d *DB) Update(ctx context.Context, s store.Sync, f func(store.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := d.writer
	j := &update{ctx: ctx, sync: s, f: f, done: make(chan struct{})}
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return table.ErrClosed
	}
	w.waiting = append(w.waiting, j)
	w.mu.Unlock()
	w.wake()
	<-j.done
	return j.err
}

func (w *writer) wake() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// close commits the waiting updates and closes the connection.
func (w *writer) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.wake()
	<-w.ended
}

// run is the goroutine of the writer. An update may end it with runtime.Goexit, as
// t.FailNow does; another one then continues.
func (w *writer) run() {
	returned := false
	defer func() {
		if !returned {
			go w.run()
			w.wake()
		}
	}()
	for range w.signal {
		w.mu.Lock()
		group, closed := w.waiting, w.closed
		w.waiting = nil
		w.mu.Unlock()
		w.serve(group)
		if closed {
			if w.c != nil {
				w.c.close()
			}
			returned = true
			close(w.ended)
			return
		}
	}
}

// serve commits the group, and sends the wakes and the results.
func (w *writer) serve(group []*update) {
	returned := false
	defer func() {
		if !returned {
			w.drop()
			for _, j := range group {
				j.err = errors.New("update: the function did not return")
			}
		}
		for _, j := range group {
			if j.err == nil {
				for _, t := range j.wakes {
					w.d.wakes.Wake(t)
				}
			}
			close(j.done)
		}
	}()
	w.commit(group)
	returned = true
}

// drop closes the connection, which ends its transaction.
func (w *writer) drop() {
	if w.c != nil {
		w.c.close()
		w.c = nil
	}
}

// retryLimit is how long an update waits for a server that restarts. The ownership ends
// before, unless the server is back soon.
const retryLimit = 30 * time.Second

// commit sets the result of every update. A transaction that was certainly not committed
// is repeated, after an error that passes. If a transaction with several updates fails for
// another reason, each of them is retried alone.
func (w *writer) commit(group []*update) {
	group = slices.DeleteFunc(slices.Clone(group), func(j *update) bool {
		j.err = j.ctx.Err()
		return j.err != nil
	})
	if len(group) == 0 {
		return
	}
	var err error
	for b := newBackoff(retryLimit); ; {
		if err = w.try(group); err == nil {
			return
		}
		again := isConnection(err) && passing(err) || conflicting(err)
		if !again || !b.wait(context.Background(), w.d.owner.lost) {
			break
		}
		w.d.log.Warn("transaction is repeated", "err", err)
		if stateOf(err) == "0A000" { // the prepared statements are of tables that were changed since
			w.drop()
		}
	}
	if len(group) > 1 && !errors.Is(err, chela.ErrFenced) && !isConnection(err) {
		for _, j := range group {
			w.commit([]*update{j})
		}
		return
	}
	for _, j := range group {
		j.err = explain(err)
	}
}

// try commits the updates in one transaction. An error means that none of them was stored;
// errors of single updates are stored in them.
func (w *writer) try(group []*update) error {
	if w.d.owner.isLost() {
		return w.d.owner.fenced()
	}
	// The ownership ends before, and with it every connection.
	ctx, cancel := context.WithTimeout(w.d.owner.ctx, retryLimit)
	defer cancel()
	if w.c == nil || w.c.pg.IsClosed() {
		c, err := w.d.dial(ctx)
		if err != nil {
			return w.broken(err)
		}
		c.Memo = &w.d.memo
		w.c = c
	}
	if err := w.begin(ctx, slices.ContainsFunc(group, func(j *update) bool { return bool(j.sync) })); err != nil {
		return err
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
	return w.finish(ctx)
}

// begin begins a transaction, unless another process owns the database.
func (w *writer) begin(ctx context.Context, synced bool) error {
	mode := "off"
	if synced {
		mode = w.c.sync
	}
	w.mark++
	results, err := w.c.begin(ctx, fmt.Sprintf(
		"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL synchronous_commit TO %s; UPDATE owner SET mark = %d WHERE fence = %d",
		mode, w.mark, w.d.owner.fence))
	if err != nil {
		return w.rollback(err)
	}
	if results[len(results)-1].CommandTag.RowsAffected() != 1 {
		w.d.owner.lose("another process took over")
		return w.rollback(w.d.owner.fenced())
	}
	return nil
}

// finish commits the transaction. If the connection breaks meanwhile, it finds out whether
// the transaction was committed.
func (w *writer) finish(ctx context.Context) error {
	results, err := w.c.pg.Exec(ctx, "COMMIT").ReadAll()
	if err == nil {
		if tag := results[0].CommandTag.String(); tag != "COMMIT" {
			return fmt.Errorf("the server answered a commit with %s", tag)
		}
		return nil
	}
	if !w.c.pg.IsClosed() { // the server refused: a deferred constraint, a full disk
		return w.rollback(err)
	}
	w.d.log.Warn("connection broke during a commit", "err", err)
	w.drop()
	for b := newBackoff(retryLimit); ; {
		committed, lerr := w.outcome()
		switch {
		case lerr == nil && committed:
			return nil
		case lerr == nil:
			return w.broken(err)
		case w.d.owner.isLost() || !isConnection(lerr) || !b.wait(context.Background(), w.d.owner.lost):
			return fmt.Errorf("whether a transaction was committed is not known: %w", w.d.owner.fenced())
		}
	}
}

// outcome reports whether the last transaction was committed. It waits for the server to
// end it.
func (w *writer) outcome() (committed bool, err error) {
	ctx, cancel := context.WithTimeout(w.d.owner.ctx, w.d.dialLimit())
	defer cancel()
	c, err := w.d.dial(ctx)
	if err != nil {
		return false, w.broken(err)
	}
	defer c.close()
	results, err := c.begin(ctx, "SELECT fence, mark FROM owner FOR SHARE")
	if err != nil {
		return false, w.broken(err)
	}
	row := results[0].Rows[0]
	if string(row[0]) != fmt.Sprint(w.d.owner.fence) {
		w.d.owner.lose("another process took over")
		return false, w.d.owner.fenced()
	}
	return string(row[1]) == fmt.Sprint(w.mark), nil
}

// broken returns the error about the connection.
func (w *writer) broken(err error) error {
	if w.d.owner.isLost() {
		return w.d.owner.fenced()
	}
	return &brokenError{err}
}

// runUpdate runs an update. In a batch it uses a savepoint, so that it can fail alone.
func (w *writer) runUpdate(j *update, batched bool) error {
	j.wakes = nil
	if batched {
		if err := w.c.script(w.c.ctx, "SAVEPOINT part"); err != nil {
			w.c.txErr = err
			return err
		}
	}
	err := table.Invoke(w.d.log, w.c.Tables, &j.wakes, j.f)
	if w.c.txErr != nil && !w.c.pg.IsClosed() && !conflicting(w.c.txErr) {
		// A statement failed, and what the function wrote before is not stored, even if
		// it does not return the error.
		err, w.c.txErr = explain(cmp.Or(err, w.c.txErr)), nil
		if !batched {
			return err
		}
	}
	switch {
	case !batched, w.c.txErr != nil:
		return err
	case err != nil:
		w.c.txErr = w.c.script(w.c.ctx, "ROLLBACK TO part; RELEASE part")
	default:
		w.c.txErr = w.c.script(w.c.ctx, "RELEASE part")
	}
	return err
}

// rollback rolls the transaction back and returns why, as an error of the connection if it
// is broken.
func (w *writer) rollback(why error) error {
	if !w.c.pg.IsClosed() {
		w.c.txErr = nil
		if err := w.c.script(w.c.ctx, "ROLLBACK"); err == nil {
			return why
		}
	}
	w.drop()
	if why == nil || errors.Is(why, chela.ErrFenced) {
		return why
	}
	return w.broken(why)
}
