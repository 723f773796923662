package cron

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
)

// importFile imports cron.store if it has changed. A file that cannot be read changes
// nothing; it is reported once.
func (s *Scheduler) importFile(ctx context.Context, c *clock, path string) {
	if path == "" || s.o.File == nil {
		return
	}
	raw, stamp, err := s.o.File(path, c.file)
	if err == nil && raw == nil {
		return
	}
	if err != nil {
		if problem := "problem: " + err.Error(); c.file != problem {
			c.file = problem
			s.o.Log.Error("cron.store cannot be read", "file", path, "err", err)
		}
		return
	}
	c.file = stamp
	jobs, err := job.ParseFile(raw)
	if err == nil {
		var added, changed int
		if added, changed, err = s.Import(ctx, jobs, path); err == nil && added+changed > 0 {
			s.o.Log.Info("jobs imported", "file", path, "added", added, "changed", changed)
		}
	}
	if err != nil && ctx.Err() == nil {
		s.o.Log.Error("cron.store is not imported; the jobs stay as they are", "file", path, "err", err)
	}
}

const (
	pruneEvery = time.Hour
	cronPart   = ":cron:" // is contained in the keys of the sessions of jobs
)

// prune deletes the oldest runs of each job, and old transcripts of isolated jobs.
func (s *Scheduler) prune(ctx context.Context, c *clock, now time.Time) error {
	if c.pruned.IsZero() { // not at the start
		c.pruned = now
	}
	if now.Sub(c.pruned) < pruneEvery && !now.Before(c.pruned) {
		return nil
	}
	c.pruned = now
	conf := s.o.Config.Cron()
	err := s.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		_, err := tx.Jobs().PruneRuns(conf.Keep())
		return err
	})
	retain := conf.Retain()
	if err != nil || retain == 0 {
		return err
	}
	return s.pruneSessions(ctx, now.Add(-retain))
}

// pruneSessions deletes the transcripts of isolated jobs that ended before a time, and
// the sessions of jobs that are gone.
func (s *Scheduler) pruneSessions(ctx context.Context, before time.Time) error {
	list, err := store.Get(ctx, s.o.Store, func(r store.Reader) ([]session.Meta, error) {
		list, _, err := r.Sessions().List(session.Query{Search: cronPart, Archived: session.ArchivedToo, Limit: job.MaxJobs})
		return list, err
	})
	for _, m := range list {
		if err != nil {
			return err
		}
		id, ok := strings.CutPrefix(m.Key.Name(), "cron:")
		if !ok { // the part is in the label or the title, or elsewhere in the key
			continue
		}
		gone := false
		err = s.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
			_, err := tx.Jobs().Get(job.ID(id))
			if gone = errors.Is(err, chela.ErrNotFound); err != nil && !gone {
				return err
			}
			_, err = tx.Sessions().PrunePast(m.Key, before)
			return err
		})
		if err == nil && gone && m.Updated.Before(before) {
			_, err = s.o.Delete(ctx, m.Key,
				func(_ store.Tx, m session.Meta) (bool, error) { return m.Updated.Before(before), nil })
		}
	}
	return err
}
