package cron

import (
	"context"
	"time"

	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/store"
)

const (
	maxChecks    = 4                // triggers that are checked at once
	checkTimeout = 30 * time.Second // of a check
)

// watch checks the trigger of a job whose slot has come, on a goroutine. The job runs only
// if the check finds something else than the last time.
func (s *Scheduler) watch(ctx context.Context, j job.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[j.ID] {
		return
	}
	select {
	case s.checks <- struct{}{}:
	default:
		return // at the next tick
	}
	s.busy[j.ID] = true
	s.watches.Go(func() {
		defer func() {
			s.mu.Lock()
			delete(s.busy, j.ID)
			s.mu.Unlock()
			<-s.checks
			s.Reload()
		}()
		if err := s.check(ctx, j); err != nil && ctx.Err() == nil {
			s.o.Log.Error("check the trigger of a job; retrying", "job", j.ID, "name", j.Name, "err", err)
		}
	})
}

// check checks the trigger of a job and claims the slot.
func (s *Scheduler) check(ctx context.Context, j job.Job) error {
	checking, cancel := context.WithTimeout(ctx, checkTimeout)
	seen, found, failed := s.o.Check(checking, j.Principal, j.ForAgent(), *j.Trigger)
	cancel()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var r job.Run
	err := s.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		r = job.Run{}
		now := s.o.Now()
		j, ok, err := same(tx, j)
		if err != nil || !ok {
			return err
		}
		slot, st := j.State.Next.Time(), &j.State
		st.CheckAt, st.Checks = job.At(now), st.Checks+1
		if failed != nil {
			return s.failCheck(tx, j, slot, now, failed)
		}
		first := st.Seen == ""
		if first || st.Seen == seen {
			st.Seen = seen
			return s.advance(tx, &j, slot, now)
		}
		st.Seen = seen
		r, err = s.begin(tx, &j, slot, now, start{fired: true, found: found})
		return err
	})
	if err == nil && r.ID != "" {
		s.publishStarted(r)
	}
	return err
}

// failCheck records a check that failed as a failed run of the job.
func (s *Scheduler) failCheck(tx store.Tx, j job.Job, slot, now time.Time, why error) error {
	r := s.record(j, slot, now)
	r.Ended, r.Status, r.Error, r.Delivery = job.At(now), job.Failed, "check: "+why.Error(), job.NotRequested
	claimed, err := tx.Jobs().Claim(r)
	if err != nil {
		return err
	}
	if err := s.advance(tx, &j, slot, now); err != nil || !claimed {
		return err
	}
	return s.close(tx, j, r, outcome{})
}
