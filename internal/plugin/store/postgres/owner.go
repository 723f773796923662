package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/lease"
)

// owner is the right of this process to use the database. Its goroutine renews it.
type owner struct {
	d     *DB
	c     *conn // used by the goroutine, until it has ended
	fence int64
	seen  string // end of the right of another owner when this process last looked

	ctx    context.Context // ends with the right
	cancel context.CancelFunc
	stop   chan struct{} // closed by release
	ended  chan struct{} // closed when nothing is renewed any more

	beat   atomic.Pointer[lease.Beat] // the last renewal
	once   sync.Once
	lost   chan struct{}
	reason string // set before lost is closed
}

// bootstrap makes the tables that say who owns the database, and which version its tables
// have. owner is locked by each transaction, alive is written by renewals, which must not
// wait for one.
const bootstrap = `
CREATE TABLE IF NOT EXISTS owner (one BOOLEAN PRIMARY KEY CHECK (one), fence BIGINT NOT NULL, mark BIGINT NOT NULL, name TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS alive (one BOOLEAN PRIMARY KEY CHECK (one), fence BIGINT NOT NULL, until TIMESTAMPTZ NOT NULL);
CREATE TABLE IF NOT EXISTS version (one BOOLEAN PRIMARY KEY CHECK (one), n BIGINT NOT NULL);
INSERT INTO owner VALUES (TRUE, 0, 0, '') ON CONFLICT DO NOTHING;
INSERT INTO alive VALUES (TRUE, 0, '-infinity') ON CONFLICT DO NOTHING;
INSERT INTO version VALUES (TRUE, 0) ON CONFLICT DO NOTHING;`

// own waits until this process owns the database.
func own(ctx context.Context, d *DB) (*owner, error) {
	o := &owner{d: d, stop: make(chan struct{}), ended: make(chan struct{}), lost: make(chan struct{})}
	patience := time.Now().Add(d.opts.TTL + d.opts.TTL/2) // for an owner that was killed
	for ready := false; ; {
		before := o.seen
		taken, holder, err := o.attempt(ctx, &ready)
		switch {
		case taken:
			o.ctx, o.cancel = context.WithCancel(context.Background())
			go o.run()
			return o, nil
		case ctx.Err() != nil:
			o.drop()
			return nil, ctx.Err()
		case err != nil && (d.opts.Standby == nil || !passing(err)):
			o.drop()
			if e := (*chela.Error)(nil); errors.As(err, &e) {
				return nil, err
			}
			return nil, connecting(err)
		case d.opts.Standby != nil:
			d.opts.Standby(holder, brief(err))
		case time.Now().After(patience), before != "" && o.seen != before: // it renews its right
			o.drop()
			return nil, &chela.Error{
				Code: chela.CodeConflict, Message: fmt.Sprintf("%s uses the database of storage.postgres", holder),
				Hint: "run the command on that machine, or open the web page of its gateway",
			}
		}
		select {
		case <-time.After(min(d.opts.TTL/8, time.Second)):
		case <-ctx.Done():
		}
	}
}

// attempt tries to become the owner, and reports whether it is, or the name of the other
// one.
func (o *owner) attempt(ctx context.Context, ready *bool) (taken bool, holder string, err error) {
	if o.c == nil {
		if o.c, err = o.d.dial(ctx); err != nil {
			return false, "", err
		}
		o.d.warnPlain(o.c)
	}
	ctx, cancel := context.WithTimeout(ctx, o.d.dialLimit())
	defer cancel()
	if !*ready {
		if err := o.prepare(ctx); err != nil {
			o.drop()
			return false, "", err
		}
		*ready = true
	}
	if taken, holder, err = o.take(ctx); err != nil {
		o.drop()
	}
	return taken, holder, err
}

// prepare makes the schema and the tables of the ownership, and refuses a database of a
// newer version before it waits for it.
func (o *owner) prepare(ctx context.Context) error {
	c, schema := o.c, o.d.schema
	found, err := c.begin(ctx, "SELECT to_regclass('version')")
	if err != nil {
		return err
	}
	if found[0].Rows[0][0] == nil {
		// Others do the same at the same time.
		sql := "BEGIN; SELECT pg_advisory_xact_lock(hashtext('chela'));"
		if found, err := c.begin(ctx, "SELECT to_regnamespace("+literal(quote(schema))+")"); err != nil {
			return err
		} else if found[0].Rows[0][0] == nil {
			sql += "CREATE SCHEMA IF NOT EXISTS " + quote(schema) + ";"
		}
		if err := c.script(ctx, sql+bootstrap+"COMMIT"); err != nil {
			return err
		}
	}
	have, err := c.begin(ctx, "SELECT n FROM version")
	if err != nil {
		return err
	}
	_, err = o.d.missing(string(have[0].Rows[0][0]))
	return err
}

// take becomes the owner, if there is none. It waits for a transaction of the owner before,
// which the server ends if that is silent.
func (o *owner) take(ctx context.Context) (taken bool, holder string, err error) {
	const alive = "SELECT name, until > clock_timestamp(), alive.fence || ' ' || until FROM owner, alive"
	have, err := o.c.begin(ctx, alive)
	if err != nil {
		return false, "", err
	}
	if row := have[0].Rows[0]; string(row[1]) == "t" {
		o.seen = string(row[2])
		return false, string(row[0]), nil
	}
	// Both rows are locked: a renewal that comes later finds another fence.
	have, err = o.c.begin(ctx, `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT fence, name FROM owner FOR UPDATE;
SELECT until > clock_timestamp() FROM alive FOR UPDATE`)
	if err != nil {
		return false, "", err
	}
	if string(have[2].Rows[0][0]) == "t" { // another one was faster
		return false, string(have[1].Rows[0][1]), o.c.script(ctx, "ROLLBACK")
	}
	if o.fence, err = strconv.ParseInt(string(have[1].Rows[0][0]), 10, 64); err != nil {
		return false, "", err
	}
	o.fence++
	sent := time.Now()
	err = o.c.script(ctx,
		fmt.Sprintf("UPDATE owner SET fence = %d, mark = 0, name = %s; UPDATE alive SET fence = %d, until = %s; COMMIT",
			o.fence, literal(o.d.opts.Name), o.fence, o.until()))
	o.beat.Store(&lease.Beat{Sent: sent, TTL: o.d.opts.TTL})
	return err == nil, "", err
}

// until is the end of the right, as an expression.
func (o *owner) until() string {
	return fmt.Sprintf("clock_timestamp() + interval '%d milliseconds'", o.d.opts.TTL.Milliseconds())
}

// run renews the right until it is released or lost.
func (o *owner) run() {
	defer close(o.ended)
	every := o.d.opts.TTL / 4
	for next := every; ; {
		select {
		case <-time.After(next):
		case <-o.stop:
			return
		case <-o.ctx.Done():
			return
		}
		next = every
		switch err := o.renew(); {
		case errors.Is(err, chela.ErrFenced):
			o.lose("another process took over")
			return
		case !o.beat.Load().Valid(time.Now()):
			o.lose(fmt.Sprintf("it could not be reached in time: %v", err))
			return
		case err != nil:
			o.d.log.Warn("renew the ownership of the database; retrying", "err", err)
			next = every / 8
		}
	}
}

// renew renews the right, unless another process has taken it.
func (o *owner) renew() (err error) {
	ctx, cancel := context.WithTimeout(o.ctx, max(o.beat.Load().Left(time.Now()), time.Millisecond))
	defer cancel()
	if o.c == nil || o.c.pg.IsClosed() {
		if o.c, err = o.d.dial(ctx); err != nil {
			return err
		}
	}
	sent := time.Now()
	done, err := o.c.begin(ctx, fmt.Sprintf("SET synchronous_commit = off; UPDATE alive SET until = %s WHERE fence = %d",
		o.until(), o.fence))
	if err != nil {
		o.drop()
		return err
	}
	if done[1].CommandTag.RowsAffected() != 1 {
		return chela.ErrFenced
	}
	if !o.beat.Load().Valid(time.Now()) {
		return errors.New("the answer came too late") // something may have seen that it had ended
	}
	o.beat.Store(&lease.Beat{Sent: sent, TTL: o.d.opts.TTL})
	return nil
}

// drop closes the connection.
func (o *owner) drop() {
	if o.c != nil {
		o.c.close()
		o.c = nil
	}
}

// held reports whether the right certainly lasts.
func (o *owner) held() bool { return !o.isLost() && o.beat.Load().Valid(time.Now()) }

func (o *owner) isLost() bool {
	select {
	case <-o.lost:
		return true
	default:
		return false
	}
}

// lose says that another process may own the database.
func (o *owner) lose(reason string) {
	o.once.Do(func() {
		o.reason = reason
		close(o.lost)
		o.cancel()
		o.d.log.Error("this process does not own the database any more", "reason", reason)
	})
}

// fenced is the error of an update when the right is lost.
func (o *owner) fenced() error {
	return fmt.Errorf("database: %s: %w", o.reason, chela.ErrFenced)
}

// release gives the right up, so that another process can take it at once. If that fails,
// the right ends by itself.
func (o *owner) release() {
	close(o.stop)
	<-o.ended
	defer o.cancel()
	defer o.drop()
	if o.isLost() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.d.dialLimit())
	defer cancel()
	var err error
	for range 2 { // the connection may have broken
		if o.c == nil || o.c.pg.IsClosed() {
			if o.c, err = o.d.dial(ctx); err != nil {
				break
			}
		}
		if err = o.c.script(ctx, fmt.Sprintf("UPDATE alive SET until = '-infinity' WHERE fence = %d", o.fence)); err == nil {
			return
		}
		o.drop()
	}
	o.d.log.Warn("release the database; others wait until the right of this process ends", "err", err)
}
