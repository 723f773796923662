package cron

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// tooLate is how far in the past the time of a new job may be.
const tooLate = time.Minute

// Now returns the time of the clock by which jobs run.
func (s *Scheduler) Now() time.Time { return s.o.Now() }

// Add stores a new job and returns it with its next slot. A job whose id exists is
// returned as it is. A job whose DeclarationKey exists replaces that one and keeps its id
// and history. An error is for the model or the person who asked.
func (s *Scheduler) Add(ctx context.Context, j job.Job) (job.Job, error) {
	now := s.o.Now()
	j.Complete()
	if err := j.Check(); err != nil {
		return job.Job{}, err
	}
	action := Added
	err := s.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		have, err := s.find(tx, j)
		switch {
		case err != nil:
			return err
		case have.ID != "" && (j.DeclarationKey == "" || have.ID == j.ID):
			j, action = have, ""
			return nil
		case have.ID != "":
			action = Updated
			j.ID, j.Created, j.State = have.ID, have.Created, have.State
			return s.storeRecorded(ctx, tx, &j, have, now)
		}
		if n, err := tx.Jobs().Count(); err != nil || n >= job.MaxJobs {
			return cmp.Or(err,
				error(chela.Errorf(chela.CodeForbidden,
					"there are %d jobs already, which is the limit; remove one with: chela cron rm <id>", n)))
		}
		j.ID = cmp.Or(j.ID, job.ID(uuid.NewString()))
		j.Created, j.State = cmp.Or(j.Created, job.At(now)), job.State{}
		return s.storeRecorded(ctx, tx, &j, job.Job{}, now)
	})
	if err != nil {
		return job.Job{}, err
	}
	s.publish(action, j)
	return j, nil
}

// find returns the job with the id or the declaration key of j; without an id: there is
// none.
func (s *Scheduler) find(tx store.Tx, j job.Job) (job.Job, error) {
	if j.ID != "" {
		have, err := tx.Jobs().Get(j.ID)
		if !errors.Is(err, chela.ErrNotFound) {
			return have, err
		}
	}
	if j.DeclarationKey == "" {
		return job.Job{}, nil
	}
	all, err := tx.Jobs().List()
	if i := slices.IndexFunc(all, func(o job.Job) bool { return o.DeclarationKey == j.DeclarationKey }); i >= 0 {
		return all[i], err
	}
	return job.Job{}, err
}

// storeRecorded stores a job that a person or a model changed from old, and records the change.
func (s *Scheduler) storeRecorded(ctx context.Context, tx store.Tx, j *job.Job, old job.Job, now time.Time) error {
	if err := s.store(tx, j, old, now); err != nil {
		return err
	}
	return s.recordChange(ctx, tx, old, *j, now)
}

// store checks a job against the configuration and stores it. Its next slot is computed
// again if the schedule is another one or the job was disabled.
func (s *Scheduler) store(tx store.Tx, j *job.Job, old job.Job, now time.Time) error {
	if agent := j.ForAgent(); !s.o.Config.HasAgent(agent) {
		return chela.Errorf(chela.CodeNotFound, "there is no agent %q", agent)
	}
	if err := s.checkChat(*j); err != nil {
		return err
	}
	if m := j.Payload.Model; m != "" && m != old.Payload.Model {
		if err := s.o.Config.CheckModel(j.ForAgent(), m); err != nil {
			return chela.Errorf(chela.CodeInvalid, "payload.model: %q cannot be used: %v", m, err)
		}
	}
	if p := &j.Payload; p.Thinking != "" && (p.Thinking != old.Payload.Thinking || p.Model != old.Payload.Model) {
		level, err := s.o.Config.FindLevel(j.ForAgent(), p.Model, p.Thinking)
		if err != nil {
			return chela.Errorf(chela.CodeInvalid, "payload.thinking: %w", err)
		}
		p.Thinking = string(level)
	}
	st := &j.State
	switch {
	case !j.Enabled:
		st.Next, st.Missed = 0, 0
	case !old.Enabled || !sameSchedule(j.Schedule, old.Schedule):
		st.Disabled, st.Errors, st.Retries, st.BadSchedule, st.Missed = nil, 0, 0, 0, 0
		if err := s.first(j, now); err != nil {
			return err
		}
		st.Activated = job.At(now)
	}
	if t, o := j.Trigger, old.Trigger; t != nil && (o == nil || t.Script != o.Script) {
		st.Seen = ""
	}
	j.Updated = job.At(now)
	tx.Wake(store.Topic{Kind: store.TopicJobs})
	return tx.Jobs().Put(*j)
}

// first sets the first slot of a job.
func (s *Scheduler) first(j *job.Job, now time.Time) error {
	if j.OneShot() {
		at, err := j.Schedule.AtTime()
		if err != nil {
			return err
		}
		if ago := now.Sub(at); ago > tooLate {
			return chela.Errorf(chela.CodeInvalid, "schedule.at: %s was %s ago; want a time in the future",
				j.Schedule.At, humanize.Span(ago))
		}
		j.State.Next = job.At(at)
		return nil
	}
	after := now
	if last := j.State.Last.Time(); !last.After(now) { // else the clock was set back
		after = later(now, last.Add(job.MinGap-time.Millisecond))
	}
	next, err := j.Slot(after)
	if err == nil && next.IsZero() {
		err = chela.Errorf(chela.CodeInvalid, "schedule: %s has no time in the future", j.Schedule)
	}
	j.State.Next = job.At(next)
	return err
}

func sameSchedule(a, b job.Schedule) bool {
	as, bs := a.StaggerMs, b.StaggerMs
	same := as == nil && bs == nil || as != nil && bs != nil && *as == *bs
	a.StaggerMs, b.StaggerMs = nil, nil
	return same && a == b
}

// checkChat checks the channels that a job names.
func (s *Scheduler) checkChat(j job.Job) error {
	check := func(field, name, account string) error {
		if name == "" || name == job.Last || name == chela.LocalChannel || s.o.Has(name, chela.AccountID(account)) {
			return nil
		}
		return &chela.Error{
			Code: chela.CodeInvalid, Message: fmt.Sprintf("%s: there is no channel %q%s", field, name, ofAccount(account)),
			Hint: "chela status",
		}
	}
	if d := j.Delivery; d != nil {
		if d.Mode == job.Announce {
			if err := check("delivery.channel", d.Channel, d.Account); err != nil {
				return err
			}
		}
		if f := d.Failure; f != nil && f.Mode != job.Webhook {
			if err := check("delivery.failureDestination.channel", f.Channel, f.Account); err != nil {
				return err
			}
		}
	}
	if a := j.FailureAlert; a != nil && a.Mode != job.Webhook {
		return check("failureAlert.channel", a.Channel, a.Account)
	}
	return nil
}

func ofAccount(id string) string {
	if id == "" {
		return ""
	}
	return fmt.Sprintf(" with the account %q", id)
}

// Update changes a job. f is called in the transaction and may be called twice. If
// revision is not empty, it must be that of the job, or the error has the code
// chela.CodeConflict.
func (s *Scheduler) Update(ctx context.Context, id job.ID, f func(job.Job) (job.Job, error),
	revision string) (job.Job, error) {
	now := s.o.Now()
	var j job.Job
	err := s.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		old, err := tx.Jobs().Get(id)
		if err != nil {
			return unknown(id, err)
		}
		if revision != "" && revision != old.Revision() {
			return chela.Errorf(chela.CodeConflict, "the job %s was changed by somebody else; read it again", id)
		}
		if j, err = f(old); err != nil {
			return err
		}
		j.ID, j.Created, j.Principal, j.State = old.ID, old.Created, old.Principal, old.State
		j.Complete()
		if err := j.Check(); err != nil {
			return err
		}
		return s.storeRecorded(ctx, tx, &j, old, now)
	})
	if err != nil {
		return job.Job{}, err
	}
	s.publish(Updated, j)
	return j, nil
}

func unknown(id job.ID, err error) error {
	if errors.Is(err, chela.ErrNotFound) {
		return &chela.Error{Code: chela.CodeNotFound,
			Message: fmt.Sprintf("there is no job %q", humanize.Truncate(string(id), 80)), Hint: "chela cron list"}
	}
	return err
}

// Remove deletes a job. A run in progress ends, but its answer is not delivered, and what
// waits to be sent is withdrawn. It reports whether the job existed.
func (s *Scheduler) Remove(ctx context.Context, id job.ID) (bool, error) {
	var j job.Job
	removed := false
	err := s.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		var err error
		j, err = tx.Jobs().Get(id)
		if errors.Is(err, chela.ErrNotFound) {
			removed = false
			return nil
		}
		if err != nil {
			return err
		}
		removed, err = deleteJob(tx, id)
		tx.Wake(store.Topic{Kind: store.TopicJobs})
		return errors.Join(err, s.withdraw(tx, id), s.recordChange(ctx, tx, j, job.Job{}, s.o.Now()))
	})
	if removed && err == nil {
		s.publish(Removed, j)
	}
	return removed, err
}

// withdraw gives up the messages of a job of which nothing was sent yet.
func (s *Scheduler) withdraw(tx store.Tx, id job.ID) error {
	open, err := tx.Outbox().Open(0)
	if err != nil {
		return err
	}
	for _, row := range open {
		if row.Origin != (chela.Origin{Kind: chela.OriginCron, ID: string(id)}) {
			continue
		}
		parts, err := tx.Outbox().OfRun(row.Run)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(parts, func(o outbox.Row) bool { return message(o) == message(row) && o.Attempts > 0 }) {
			continue
		}
		row.State, row.Error = outbox.Dismissed, "the job was removed"
		if err := tx.Outbox().Put(row); err != nil {
			return err
		}
		if err := s.Sent(row)(tx); err != nil {
			return err
		}
	}
	return nil
}

// message returns what the keys of the parts of a message have in common.
func message(row outbox.Row) string { return strings.TrimSuffix(row.Key, ":"+strconv.Itoa(row.Part)) }

// deleteJob deletes a job with what clients keep for it.
func deleteJob(tx store.Tx, id job.ID) (bool, error) {
	removed, err := tx.Jobs().Delete(id)
	if name := job.ScratchSetting(id); err == nil && removed {
		var have string
		if have, err = tx.Setting(name); err == nil && have != "" {
			err = tx.SetSetting(name, "")
		}
	}
	return removed, err
}

// RunNow runs a job by hand. Its schedule does not change. key is the id of the run; a
// run that exists is returned as it is. Empty: a new one.
func (s *Scheduler) RunNow(ctx context.Context, id job.ID, when job.Start, key chela.RunID) (job.Started, error) {
	now := s.o.Now()
	var out job.Started
	var r job.Run
	err := s.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		r, out = job.Run{}, job.Started{}
		if key != "" {
			if have, err := tx.Jobs().Run(key); !errors.Is(err, chela.ErrNotFound) {
				out.Run = have.ID
				return err
			}
		}
		j, err := tx.Jobs().Get(id)
		if err != nil {
			return unknown(id, err)
		}
		due := j.Enabled && j.State.Next != 0 && !j.State.Next.Time().After(now)
		switch {
		case j.State.Run != "":
			out.Reason = job.AlreadyRunning
		case when == job.IfEnabled && !j.Enabled:
			out.Reason = job.NotEnabled
		case when == job.IfDue && !due:
			out.Reason = job.NotDue
		case when == job.IfDue:
			r, err = s.begin(tx, &j, j.State.Next.Time(), now, start{id: key})
		default:
			r, err = s.begin(tx, &j, now, now, start{forced: true, id: key})
		}
		out.Run = r.ID
		if err == nil && r.ID == "" && out.Reason == "" {
			out.Reason = job.AlreadyRunning
		}
		return err
	})
	if err != nil {
		return job.Started{}, err
	}
	if r.ID != "" {
		s.publishStarted(r)
	}
	return out, nil
}

// Get returns a job.
func (s *Scheduler) Get(ctx context.Context, id job.ID) (job.Job, error) {
	j, err := store.Get(ctx, s.o.Store, func(r store.Reader) (job.Job, error) { return r.Jobs().Get(id) })
	if err != nil {
		return j, unknown(id, err)
	}
	return j, nil
}

// List returns all jobs, oldest first.
func (s *Scheduler) List(ctx context.Context) ([]job.Job, error) {
	return store.Get(ctx, s.o.Store, func(r store.Reader) ([]job.Job, error) { return r.Jobs().List() })
}

// Runs returns ended runs, newest first, and the number of all that the query selects.
func (s *Scheduler) Runs(ctx context.Context, q job.Query) (list []job.Run, total int, err error) {
	err = s.o.Store.View(ctx, func(r store.Reader) error {
		list, total, err = r.Jobs().Runs(q)
		return err
	})
	return list, total, err
}

// Overview returns the state of the scheduler.
func (s *Scheduler) Overview(ctx context.Context) (job.Overview, error) {
	o := job.Overview{Enabled: s.o.Config.Cron().On()}
	err := s.o.Store.View(ctx, func(r store.Reader) error {
		var err1, err2, err3 error
		var open []job.Run
		o.Jobs, err1 = r.Jobs().Count()
		o.Next, err2 = r.Jobs().Next()
		open, err3 = r.Jobs().OpenRuns()
		o.Running = len(open)
		return errors.Join(err1, err2, err3)
	})
	if !o.Enabled {
		o.Next = time.Time{}
	}
	return o, err
}

// Import adds and replaces jobs by id in one transaction. The state of a job that exists
// is kept. source names where they come from.
func (s *Scheduler) Import(ctx context.Context, jobs []job.Job, source string) (added, changed int, err error) {
	now := s.o.Now()
	for i := range jobs {
		j := &jobs[i]
		j.ID = cmp.Or(j.ID, job.ID(uuid.NewString()))
		j.Complete()
		if err := j.Check(); err != nil {
			return 0, 0, fmt.Errorf("job %q: %w", cmp.Or(j.Name, string(j.ID)), err)
		}
	}
	err = s.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		added, changed = 0, 0
		if n, err := tx.Jobs().Count(); err != nil || n+len(jobs) > 2*job.MaxJobs {
			return cmp.Or(err, error(chela.Errorf(chela.CodeForbidden, "%d jobs are too many", n+len(jobs))))
		}
		for _, j := range jobs {
			old, err := tx.Jobs().Get(j.ID)
			switch {
			case errors.Is(err, chela.ErrNotFound):
				added++
				j.Created = cmp.Or(j.Created, job.At(now))
				j.State = job.State{
					Next:       j.State.Next,
					Last:       j.State.Last,
					LastStatus: j.State.LastStatus,
					LastError:  j.State.LastError,
					Errors:     j.State.Errors,
				}
				if j.Principal.ID == "" {
					j.Principal = chela.Owner("import")
				}
			case err != nil:
				return err
			default:
				j.Created, j.State, j.Principal, j.Address, j.Updated = old.Created, old.State, old.Principal,
					old.Address, old.Updated
				if j.Source = source; j.Revision() == old.Revision() {
					continue
				}
				changed++
			}
			j.Source = source
			if err := s.adopt(tx, &j, old, now); err != nil {
				return err
			}
			if err := s.recordChange(ctx, tx, old, j, now); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && added+changed > 0 {
		s.publish(Imported, job.Job{})
	}
	return added, changed, err
}

// adopt stores an imported job. Unlike a new job, it may have missed its time: the policy
// for missed slots decides then.
func (s *Scheduler) adopt(tx store.Tx, j *job.Job, old job.Job, now time.Time) error {
	st := &j.State
	switch {
	case !j.Enabled:
		st.Next = 0
	case old.Enabled && sameSchedule(j.Schedule, old.Schedule):
	case st.Next != 0 && old.ID == "": // as the file says
	case j.OneShot() && st.Last == 0:
		at, err := j.Schedule.AtTime()
		if err != nil {
			return err
		}
		st.Next = job.At(at)
	default:
		s.schedule(j, now, now)
	}
	j.Updated = job.At(now)
	tx.Wake(store.Topic{Kind: store.TopicJobs})
	return tx.Jobs().Put(*j)
}

// regrid sets the slots again that are too far in the future, because the clock was set
// back: those of jobs with an interval, pauses before a retry, and missed slots that wait.
func (s *Scheduler) regrid(ctx context.Context, c *clock, now time.Time) error {
	missed, n := c.missed, 0
	some, err := store.Get(ctx, s.o.Store, func(r store.Reader) (list []job.Job, err error) {
		if n, err = r.Jobs().Count(); err != nil {
			return nil, err
		}
		return r.Jobs().Relative()
	})
	if err != nil || !slices.ContainsFunc(some, func(j job.Job) bool { return s.toGrid(&j, n, &missed, now) }) {
		return err
	}
	err = s.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		missed = c.missed
		some, err := tx.Jobs().Relative()
		if err != nil {
			return err
		}
		for i := range some {
			if s.toGrid(&some[i], n, &missed, now) {
				if err := tx.Jobs().Put(some[i]); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err == nil {
		c.missed = missed
	}
	return err
}

// toGrid moves the next slot of a job, one of n, if it is further away than the job ever
// waits. It reports whether it did. missed is the time of the last missed slot.
func (s *Scheduler) toGrid(j *job.Job, n int, missed *time.Time, now time.Time) bool {
	st, wait := &j.State, j.State.Next.Time().Sub(now)
	pause := time.Duration(0)
	if fails := max(st.Retries, st.Errors); fails > 0 {
		pause = s.o.Config.Cron().Backoff(fails)
	}
	every := time.Duration(j.Schedule.EveryMs) * time.Millisecond
	switch {
	case !j.Enabled:
	case st.Missed > 0 && wait > time.Duration(n)*missedGap+readyWithin+pause:
		*missed = later(*missed, now).Add(missedGap)
		st.Next = job.At(*missed)
		return true
	case st.Missed > 0:
	case st.Retries > 0 && wait > pause:
		st.Next = job.At(now.Add(pause))
		return true
	case j.Schedule.Kind == job.KindEvery && wait > every+job.MinGap+pause:
		s.schedule(j, now.Add(pause), now)
		return true
	}
	return false
}
