package cron

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// runDue claims the slots that have come. It checks the triggers of jobs that have one on
// goroutines of their own.
func (s *Scheduler) runDue(ctx context.Context, c *clock, now time.Time) error {
	due, err := store.Get(ctx, s.o.Store, func(r store.Reader) ([]job.Job, error) { return r.Jobs().Due(now, maxDue) })
	if err != nil {
		return err
	}
	watched := func(j job.Job) bool { return j.Trigger != nil }
	for _, j := range due {
		if watched(j) {
			s.watch(ctx, j)
		}
	}
	for group := range slices.Chunk(slices.DeleteFunc(due, watched), batch) {
		var started []job.Run
		err := s.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
			started = started[:0]
			for _, j := range group {
				r, err := s.claim(tx, c, j, now)
				if err != nil {
					return fmt.Errorf("job %s: %w", j.ID, err)
				}
				if r.ID != "" {
					started = append(started, r)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		s.o.Step("cron.claimed")
		for _, r := range started {
			s.publishStarted(r)
		}
	}
	return nil
}

// claim runs a slot of a job that has come, or moves missed slots into the near future.
// The run without an id says that nothing was started.
func (s *Scheduler) claim(tx store.Tx, c *clock, seen job.Job, now time.Time) (job.Run, error) {
	none := job.Run{}
	j, ok, err := same(tx, seen)
	if err != nil || !ok {
		return none, err
	}
	if j.State.BadSchedule > 0 { // the slot could not be computed
		return none, s.advance(tx, &j, now, now)
	}
	slot := j.State.Next.Time()
	if j.State.Missed == 0 && now.Sub(slot) >= late {
		if slot, err = s.catchUp(tx, c, &j, now); err != nil || slot.After(now) {
			return none, err
		}
	}
	if j.State.Missed > 0 && !s.o.Ready() && now.Sub(c.started) < readyWithin {
		c.missed = later(c.missed, now).Add(missedGap)
		j.State.Next = job.At(c.missed)
		return none, tx.Jobs().Put(j)
	}
	return s.begin(tx, &j, slot, now, start{})
}

// same returns the job as it is now, if its next slot is still the one that was seen.
func same(tx store.Tx, seen job.Job) (job.Job, bool, error) {
	j, err := tx.Jobs().Get(seen.ID)
	if errors.Is(err, chela.ErrNotFound) {
		return j, false, nil
	}
	return j, err == nil && j.Enabled && j.State.Next == seen.State.Next, err
}

// catchUp decides about the slots that were missed. Those that are to run get times in
// the near future, one after the other, so that they do not delay each other. It returns
// the next slot.
func (s *Scheduler) catchUp(tx store.Tx, c *clock, j *job.Job, now time.Time) (time.Time, error) {
	limit := 1
	policy := s.o.Config.Cron().Missed
	if policy == job.MissedAll {
		limit = job.MaxMissed
	}
	slots, n, err := j.Missed(j.State.Next.Time(), now, limit)
	if err != nil || n == 0 {
		return now.Add(1), s.advance(tx, j, now, now)
	}
	if policy == job.MissedSkip {
		return now.Add(1), s.skip(tx, j, slots[len(slots)-1], n, now)
	}
	at := now
	if next := c.missed.Add(missedGap); next.After(at) {
		at = next
	}
	c.missed = at
	j.State.Next, j.State.Missed = job.At(at), len(slots)
	if len(slots) == 1 {
		j.State.Due = job.At(slots[0])
	}
	return at, tx.Jobs().Put(*j)
}

// skip records that n missed slots were left out, the last of them at slot.
func (s *Scheduler) skip(tx store.Tx, j *job.Job, slot time.Time, n int, now time.Time) error {
	r := s.record(*j, slot, now)
	r.Ended, r.Status, r.Error = job.At(now), job.Skipped,
		fmt.Sprintf("missed while Chela was not running: %s (cron.missedRuns is skip)", humanize.Many(n, "slot"))
	claimed, err := tx.Jobs().Claim(r)
	if err == nil {
		err = s.advance(tx, j, now, now)
	}
	if err != nil || !claimed {
		return err
	}
	return s.close(tx, *j, r, outcome{})
}

// start is how a run begins.
type start struct {
	forced bool
	fired  bool        // by a trigger
	found  string      // by the trigger; a text for the model
	id     chela.RunID // empty: a new one
}

// begin claims a slot and puts the work of the job into the queue. The run without an id
// says that the slot was left out.
func (s *Scheduler) begin(tx store.Tx, j *job.Job, slot, now time.Time, how start) (job.Run, error) {
	none, due := job.Run{}, j.State.Due.Time()
	if how.forced {
		due = time.Time{}
	}
	if j.State.Run != "" && !how.forced { // the last run has not ended
		return none, s.advance(tx, j, slot, now)
	}
	r := s.record(*j, slot, now)
	r.ID, r.Forced, r.Fired = cmp.Or(how.id, r.ID), how.forced, how.fired
	claimed, err := tx.Jobs().Claim(r)
	if err != nil {
		return none, err
	}
	if !how.forced {
		if err := s.advance(tx, j, slot, now); err != nil {
			return none, err
		}
	}
	if !claimed {
		return none, nil
	}
	if how.fired {
		j.State.FiredAt = job.At(now)
	}
	j.State.Run, j.State.Running, j.State.Last = r.ID, job.At(now), job.At(now)
	status, why := s.refuse(*j)
	if status == "" {
		var to job.Destination
		if to, err = s.put(tx, *j, r, how.found, due, now); err != nil {
			return none, err
		}
		r.Target = to
	}
	if err := errors.Join(tx.Jobs().PutRun(r), tx.Jobs().Put(*j)); err != nil {
		return none, err
	}
	tx.Wake(store.Topic{Kind: store.TopicJobs})
	switch {
	case status != "":
		r.Ended, r.Status, r.Error = job.At(now), status, why
		return r, s.close(tx, *j, r, outcome{})
	// the event waits for the next turn, which is no part of the job
	case j.Target == job.TargetMain && j.Wake == job.WakeNext:
		r.Ended, r.Status, r.Summary, r.Delivery = job.At(now), job.OK, j.Payload.Text, job.NotRequested
		return r, s.close(tx, *j, r, outcome{})
	}
	return r, nil
}

// record returns the run of a job that begins.
func (s *Scheduler) record(j job.Job, slot, now time.Time) job.Run {
	return job.Run{
		Job:       j.ID,
		Name:      j.Title(),
		Slot:      job.At(slot),
		ID:        chela.RunID(uuid.NewString()),
		Agent:     j.ForAgent(),
		Session:   sessionOf(j),
		Started:   job.At(now),
		Principal: j.Principal,
	}
}

// refuse returns why a job cannot run now.
func (s *Scheduler) refuse(j job.Job) (job.Status, string) {
	agent := j.ForAgent()
	switch {
	case !s.o.Config.HasAgent(agent):
		return job.Failed, fmt.Sprintf("there is no agent %q", agent)
	case strings.TrimSpace(j.Payload.Content()) == "":
		return job.Skipped, "the text of the job is empty"
	case j.Payload.Model != "":
		if err := s.o.Config.CheckModel(agent, j.Payload.Model); err != nil {
			return job.Failed, fmt.Sprintf("the model %q cannot be used: %v", j.Payload.Model, err)
		}
	}
	return "", ""
}

// advance sets the next slot of a job after one that is over, and stores the job.
func (s *Scheduler) advance(tx store.Tx, j *job.Job, slot, now time.Time) error {
	st := &j.State
	if st.Missed > 1 {
		st.Missed--
		st.Next = job.At(now.Add(missedGap))
		return tx.Jobs().Put(*j)
	}
	st.Missed, st.Due = 0, 0
	if j.OneShot() && st.BadSchedule == 0 { // it is over, also if the clock was set back before it, and this was a retry
		st.Next = 0
		return tx.Jobs().Put(*j)
	}
	s.schedule(j, later(slot, now.Add(job.MinGap-time.Millisecond)), now)
	tx.Wake(store.Topic{Kind: store.TopicJobs})
	return tx.Jobs().Put(*j)
}

// schedule sets the next slot of a job to the first one after a time.
func (s *Scheduler) schedule(j *job.Job, after, now time.Time) {
	st := &j.State
	next, err := j.Slot(after)
	if err == nil {
		st.Next, st.BadSchedule = job.At(next), 0
		return
	}
	st.BadSchedule++
	st.LastError = err.Error()
	st.Next = job.At(now.Add(time.Minute))
	if st.BadSchedule >= job.MaxBadSchedule {
		j.Enabled, st.Next = false, 0
		st.Disabled = &job.Disabled{Reason: job.ReasonSchedule, At: job.At(now), Errors: st.BadSchedule}
		s.o.Log.Error("job disabled: its schedule cannot be computed", "job", j.ID, "name", j.Name, "err", err)
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// home returns the session that asked for a job, or the main session of its agent.
func home(j job.Job) chela.SessionKey {
	if key := chela.SessionKey(j.Session); key.Agent() == j.ForAgent() && j.Session != "" {
		return key
	}
	return chela.MainSession(j.ForAgent())
}

// sessionOf returns the session in which a job works.
func sessionOf(j job.Job) chela.SessionKey {
	switch {
	case j.Isolated():
		return chela.SessionKey("agent:" + string(j.ForAgent()) + ":cron:" + string(j.ID))
	case j.Named() != "":
		if key := chela.SessionKey(j.Named()); key.Agent() != "" && strings.HasPrefix(j.Named(), "agent:") {
			return key
		}
		return chela.SessionKey("agent:" + string(j.ForAgent()) + ":" + j.Named())
	}
	return home(j)
}

// unattended is added to the system prompt of a run that nobody waits for.
const unattended = "This turn was started by a schedule, and nobody is present to answer questions. Do the task with what you have. " +
	"Your final reply is what the person gets: write only the result. If there is nothing to report, reply with exactly " +
	run.NoReply + "."

// put puts the work of a run into the queue; due is the slot that was missed, or zero. It
// returns where the answer is to go.
func (s *Scheduler) put(tx store.Tx, j job.Job, r job.Run, found string, due, now time.Time) (job.Destination, error) {
	key := "cron:" + string(j.ID) + ":" + fmt.Sprint(int64(r.Slot))
	if r.Forced {
		key += ":forced"
	}
	it := queue.Item{
		ID: string(r.ID), Key: key, Session: r.Session, State: queue.Waiting, Created: time.Now(),
		Origin: chela.Origin{Kind: chela.OriginCron, ID: string(j.ID)}, Principal: j.Principal,
		Inbound: chela.Inbound{Text: j.DueText(due, now, s.o.Config.Location(), found), Time: now},
	}
	var to job.Destination
	if j.Payload.Kind == job.SystemEvent {
		it.Kind, it.Next = queue.Event, j.Wake == job.WakeNext
	} else {
		it.Kind, it.Inbound.Address = queue.Message, chela.Address{Channel: chela.LocalChannel}
		it.Overrides = overrides(j)
		t := s.target(tx, j)
		it.Overrides.Shared = !t.address.Private()
		to = t.destination()
		if err := label(tx, j, r); err != nil {
			return to, err
		}
	}
	err := store.Enqueue(tx, it)
	if err == nil && it.Next { // with the next tick, if the agent has heartbeats
		err = heartbeat.Request(tx.Heartbeats(), heartbeat.Wake{
			Agent:     r.Agent,
			Session:   r.Session,
			Reason:    "cron:" + string(j.ID),
			Mode:      heartbeat.NextTick,
			Principal: j.Principal,
			At:        now,
		})
		tx.Wake(store.Topic{Kind: store.TopicHeartbeat})
	}
	return to, err
}

// overrides returns the settings of the turn of a job.
func overrides(j job.Job) run.Overrides {
	o := run.Overrides{
		Model: j.Payload.Model, Think: j.Payload.Thinking, Lane: Lane, Timeout: job.Timeout, Prompt: unattended,
		Tools: run.Tools{Allow: j.Payload.Tools}, Deliver: run.Delivery{Mode: run.DeliverNowhere},
	}
	if t := j.Payload.TimeoutSeconds; t != nil {
		o.Timeout = time.Duration(*t * float64(time.Second))
		if *t == 0 {
			o.Timeout = job.Stuck
		}
	}
	switch {
	case j.Isolated() && j.Payload.Light:
		o.Context = run.ContextBare
	case j.Isolated():
		o.Context = run.ContextFresh
	case j.Payload.Light:
		o.Context = run.ContextLight
	}
	return o
}

// label makes the session of an isolated job, with the name of the job.
func label(tx store.Tx, j job.Job, r job.Run) error {
	if !j.Isolated() {
		return nil
	}
	m, err := session.Lookup(tx.Sessions(), r.Session)
	if err != nil || m.Label == j.Title() && m.ID != "" {
		return err
	}
	if now := time.Now(); m.ID == "" {
		m.ID, m.Created, m.Started, m.Updated = uuid.NewString(), now, now, now
	}
	m.Label = j.Title()
	return tx.Sessions().Put(m)
}
