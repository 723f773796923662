// Package jobtest contains a scheduler in memory, for tests of what uses one.
package jobtest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/job"
)

// Scheduler keeps jobs in memory and runs none: RunNow only records a run. The zero
// Scheduler is empty and on. It is safe for concurrent use.
type Scheduler struct {
	Off bool // cron.enabled is false

	mu    sync.Mutex
	added int
	jobs  []job.Job
	runs  []job.Run
}

// Now returns the time.
func (s *Scheduler) Now() time.Time { return time.Now() }

func missing(id job.ID) error {
	return chela.Errorf(chela.CodeNotFound, "there is no job %q", id)
}

func (s *Scheduler) indexLocked(id job.ID) int {
	return slices.IndexFunc(s.jobs, func(j job.Job) bool { return j.ID == id })
}

// complete checks a job and sets its next slot.
func complete(j job.Job, now time.Time) (job.Job, error) {
	j.Complete()
	if err := j.Check(); err != nil {
		return j, err
	}
	j.State.Next = 0
	if !j.Enabled {
		return j, nil
	}
	next, err := j.Slot(now)
	j.State.Next = job.At(next)
	return j, err
}

// Add stores a job, or returns the one with its id.
func (s *Scheduler) Add(_ context.Context, j job.Job) (job.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.indexLocked(j.ID); i >= 0 && j.ID != "" {
		return s.jobs[i], nil
	}
	now := time.Now()
	s.added++
	j.ID = cmp.Or(j.ID, job.ID(fmt.Sprintf("job-%d", s.added)))
	j.Created, j.Updated = job.At(now), job.At(now)
	j, err := complete(j, now)
	if err == nil {
		s.jobs = append(s.jobs, j)
	}
	return j, err
}

// Update replaces a job by what f returns.
func (s *Scheduler) Update(_ context.Context, id job.ID, f func(job.Job) (job.Job, error),
	revision string) (job.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.indexLocked(id)
	if i < 0 {
		return job.Job{}, missing(id)
	}
	if revision != "" && revision != s.jobs[i].Revision() {
		return job.Job{}, chela.Errorf(chela.CodeConflict, "job %s has changed since it was read", id)
	}
	j, err := f(s.jobs[i])
	if err != nil {
		return job.Job{}, err
	}
	now := time.Now()
	j.Updated = job.At(now)
	if j, err = complete(j, now); err == nil {
		s.jobs[i] = j
	}
	return j, err
}

// Remove deletes a job.
func (s *Scheduler) Remove(_ context.Context, id job.ID) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.indexLocked(id)
	if i >= 0 {
		s.jobs = slices.Delete(s.jobs, i, i+1)
	}
	return i >= 0, nil
}

// RunNow records a run that ended at once.
func (s *Scheduler) RunNow(_ context.Context, id job.ID, how job.Start, _ chela.RunID) (job.Started, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.indexLocked(id)
	if i < 0 {
		return job.Started{}, missing(id)
	}
	j, now := &s.jobs[i], time.Now()
	switch {
	case how == job.IfEnabled && !j.Enabled:
		return job.Started{Reason: job.NotEnabled}, nil
	case how == job.IfDue && (j.State.Next == 0 || j.State.Next.Time().After(now)):
		return job.Started{Reason: job.NotDue}, nil
	}
	r := job.Run{
		Job:      id,
		Name:     j.Name,
		Slot:     job.At(now),
		ID:       chela.RunID(fmt.Sprintf("run-%d", len(s.runs)+1)),
		Agent:    j.Agent,
		Started:  job.At(now),
		Ended:    job.At(now),
		Status:   job.OK,
		Summary:  "done: " + j.Payload.Content(),
		Delivery: job.WasDelivered,
		Forced:   true,
	}
	s.runs = append(s.runs, r)
	j.State.Last, j.State.LastStatus, j.State.Delivery = r.Started, r.Status, r.Delivery
	return job.Started{Run: r.ID}, nil
}

// Get returns a job.
func (s *Scheduler) Get(_ context.Context, id job.ID) (job.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.indexLocked(id); i >= 0 {
		return s.jobs[i], nil
	}
	return job.Job{}, missing(id)
}

// List returns all jobs, oldest first.
func (s *Scheduler) List(context.Context) ([]job.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.jobs), nil
}

// Overview returns the state of the scheduler.
func (s *Scheduler) Overview(context.Context) (job.Overview, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := job.Overview{Enabled: !s.Off, Jobs: len(s.jobs)}
	for _, j := range s.jobs {
		if t := j.State.Next.Time(); !t.IsZero() && (o.Next.IsZero() || t.Before(o.Next)) {
			o.Next = t
		}
	}
	return o, nil
}

// Runs returns the runs that a query selects, newest first unless it says otherwise.
func (s *Scheduler) Runs(_ context.Context, q job.Query) ([]job.Run, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []job.Run
	for _, r := range s.runs {
		if q.Matches(r) {
			out = append(out, r)
		}
	}
	if !q.Oldest {
		slices.Reverse(out)
	}
	n := len(out)
	out = out[min(q.Offset, n):]
	return out[:min(q.Limit, len(out))], n, nil
}

// Preview names the channel of the delivery.
func (s *Scheduler) Preview(j job.Job) (label, detail string) {
	switch d := j.Delivery; {
	case d == nil:
		return "main session", "an event"
	case d.Mode != job.Announce:
		return string(d.Mode), d.To
	default:
		return cmp.Or(d.Channel, "last chat"), d.To
	}
}

// Import stores jobs by their ids.
func (s *Scheduler) Import(_ context.Context, jobs []job.Job, source string) (added, changed int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range jobs {
		j.Source = source
		if j, err = complete(j, time.Now()); err != nil {
			return added, changed, err
		}
		switch i := s.indexLocked(j.ID); {
		case i < 0:
			s.jobs = append(s.jobs, j)
			added++
		case s.jobs[i].Revision() != j.Revision():
			s.jobs[i] = j
			changed++
		}
	}
	return added, changed, nil
}
