package cron

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/history"
)

// version returns a job as the journal records it: without what its runs change. The zero
// Job has the zero Version.
func version(j job.Job) (journal.Version, error) {
	if j.ID == "" {
		return journal.Version{}, nil
	}
	j.State, j.Updated = job.State{}, 0
	b, err := json.Marshal(j)
	return journal.TextVersion(string(b)), err
}

// recordChange records the change of a job from old to now in the transaction that makes it. The
// zero Job is one that does not exist.
func (s *Scheduler) recordChange(ctx context.Context, tx store.Tx, old, now job.Job, at time.Time) error {
	before, err := version(old)
	if err != nil {
		return err
	}
	after, err := version(now)
	if err != nil || before.Same(after) || !s.o.Journal() {
		return err
	}
	src := journal.SourceFrom(ctx)
	if src.Tool == "" {
		src.Tool = "cron"
	}
	c, err := history.Stamp(tx, src, at)
	if err != nil {
		return err
	}
	c.Kind, c.Target, c.Before, c.After, c.State = journal.Job, string(old.ID), before, after, journal.Done
	if c.Target == "" {
		c.Target = string(now.ID)
	}
	if c.Agent == "" {
		c.Agent = now.ForAgent()
	}
	return tx.Changes().Add(c)
}

// Version returns a job as the journal records it; the zero Version if it does not exist.
func (s *Scheduler) Version(r job.Reader, id string) (journal.Version, error) {
	j, err := r.Get(job.ID(id))
	if errors.Is(err, chela.ErrNotFound) {
		return journal.Version{}, nil
	}
	if err != nil {
		return journal.Version{}, err
	}
	return version(j)
}

// Restore adds, changes or deletes a job so that it is as an undo wants it, and returns
// what is to be done after the commit. It records nothing.
func (s *Scheduler) Restore(tx store.Tx, id string, v journal.Version) (after func(), err error) {
	old, err := tx.Jobs().Get(job.ID(id))
	if err != nil && !errors.Is(err, chela.ErrNotFound) {
		return nil, err
	}
	if !v.Exists {
		if _, err := deleteJob(tx, job.ID(id)); err != nil {
			return nil, err
		}
		tx.Wake(store.Topic{Kind: store.TopicJobs})
		return func() { s.publish(Removed, old) }, s.withdraw(tx, job.ID(id))
	}
	var j job.Job
	if err := json.Unmarshal([]byte(v.Text), &j); err != nil {
		return nil, err
	}
	action := Added
	if old.ID != "" {
		action = Updated
	}
	j.State = old.State
	if err := s.store(tx, &j, old, s.o.Now()); err != nil {
		return nil, err
	}
	return func() { s.publish(action, j) }, nil
}
