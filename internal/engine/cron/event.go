package cron

import (
	"context"
	"encoding/json"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/store"
)

// The actions of events about jobs.
const (
	Added    = "added"
	Updated  = "updated"
	Removed  = "removed"
	Started  = "started"
	Ended    = "finished"
	Imported = "imported"
)

// publish tells clients about a job. Without an action it does nothing.
func (s *Scheduler) publish(action string, j job.Job) {
	if action == "" {
		return
	}
	s.tellAll(job.Event{Action: action, Job: j})
}

// tellAll tells clients and hooks about a job.
func (s *Scheduler) tellAll(e job.Event) {
	s.o.Bus.Publish(chela.Event{Stream: chela.StreamCron, Data: e})
	if !s.o.Hooks.CronChanged.Any() {
		return
	}
	e.Job.Principal, e.Job.Address, e.Job.Extra = chela.Principal{}, chela.Address{}, nil
	data, err := json.Marshal(e.Job)
	if err != nil { // the record holds only plain values
		data = nil
	}
	s.o.Hooks.CronChanged.Notify(context.Background(), hook.CronChanged{
		Context: hook.Context{Agent: e.Job.ForAgent(), Session: e.Run.Session, Run: e.Run.ID}, Action: e.Action,
		Job: string(e.Job.ID), Data: data,
	})
}

func (s *Scheduler) publishStarted(r job.Run) {
	s.tellAll(job.Event{Action: Started, Job: job.Job{ID: r.Job, Name: r.Name, Agent: r.Agent}, Run: r})
}

// ended remembers a run that a transaction has ended, if it is committed.
func (s *Scheduler) ended(id chela.RunID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.changed) < maxChanged {
		s.changed = append(s.changed, id)
	}
}

// maxChanged bounds the events that wait. Clients that miss one read the list.
const maxChanged = 1024

// publishEnded tells clients about the runs that have ended.
func (s *Scheduler) publishEnded(ctx context.Context) {
	s.mu.Lock()
	ids := s.changed
	s.changed = nil
	s.mu.Unlock()
	for _, id := range ids {
		var e job.Event
		err := s.o.Store.View(ctx, func(r store.Reader) error {
			var err error
			if e.Run, err = r.Jobs().Run(id); err != nil || e.Run.Open() {
				return err
			}
			e.Action = Ended
			e.Job, _ = r.Jobs().Get(e.Run.Job) // it may have been removed
			e.Job.ID, e.Job.Name = e.Run.Job, e.Run.Name
			return nil
		})
		if err == nil && e.Action != "" {
			s.tellAll(e)
		}
	}
}
