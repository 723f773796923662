package sim

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
)

// The rules of the schedule, as its documentation has them.
const (
	jobGap     = 2 * time.Second  // between the starts of a job
	jobLate    = 61 * time.Second // an older slot was missed
	jobNotice  = 61 * time.Second // until a clock that was set is noticed
	jobSpacing = 5 * time.Second  // between the starts of missed slots
	jobRetries = 3                // of a job with one slot
	jobCommit  = 4 * time.Second  // for a claim, at most, if nothing fails
	jobRepeat  = 6 * time.Second  // after a failure of the store
)

// jobPause returns the pause after the nth failure in a row.
func jobPause(n int) time.Duration {
	ladder := [...]time.Duration{0, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour}
	return ladder[min(n, len(ladder)-1)]
}

// jobRun is a run of a job, with the item of its work and the run that took it.
type jobRun struct {
	job.Run
	item    queue.Item
	turn    run.Run
	told    queue.Item // with the result for a session; zero: there is none
	claimed time.Time  // as the other clocks tell
	ended   time.Time  // zero: it has no turn
}

// slot and the others are in the time of the wall clock.
func (r jobRun) slot() time.Time  { return r.Slot.Time() }
func (r jobRun) begun() time.Time { return r.Started.Time() }

// fails reports whether the run failed when it ended, so that the job pauses.
func (r jobRun) fails() bool {
	return r.Status == job.Failed && !strings.HasPrefix(r.Error, "the answer was not delivered")
}

// readJobs reads the jobs and their runs.
func (s *state) readJobs(r store.Reader, getRun func(chela.RunID) error) error {
	s.jobs, s.jobRuns = map[string]job.Job{}, map[string][]jobRun{}
	list, err := r.Jobs().List()
	if err != nil {
		return err
	}
	for _, j := range list {
		if _, twice := s.jobs[j.Name]; twice {
			s.w.broken("JOB: there are two jobs %s", j.Name)
		}
		s.jobs[j.Name] = j
	}
	runs, _, err1 := r.Jobs().Runs(job.Query{Limit: 100_000, Oldest: true})
	open, err2 := r.Jobs().OpenRuns()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	for _, o := range append(runs, open...) {
		it, err := r.Queue().Get(string(o.ID))
		if err != nil {
			return err
		}
		jr := jobRun{Run: o, item: it, claimed: it.Created}
		if err := getRun(it.Run); err != nil {
			return err
		}
		if jr.told, err = r.Queue().Get("result:" + string(o.ID)); err != nil && !errors.Is(err, chela.ErrNotFound) {
			return err
		}
		jr.turn = s.runs[it.Run]
		jr.ended = jr.turn.Ended
		if s.rows[o.ID], err = r.Outbox().OfRun(o.ID); err != nil {
			return err
		}
		s.jobRuns[o.Name] = append(s.jobRuns[o.Name], jr)
	}
	for _, runs := range s.jobRuns {
		slices.SortStableFunc(runs, func(a, b jobRun) int { return a.claimed.Compare(b.claimed) })
	}
	return nil
}

// window is the time in which a definition of a job is in force for certain.
type window struct {
	definition
	from, to time.Time
}

// jobCheck checks one job.
type jobCheck struct {
	*state
	j       *scheduled
	changes []*change // that were carried out
	runs    []jobRun
	end     time.Time
	failed  bool
}

func (c *jobCheck) broken(format string, args ...any) {
	c.failed = true
	c.w.broken("JOB: "+c.j.tag+": "+format, args...)
}

// checkJobs checks each job.
func (s *state) checkJobs() {
	for _, j := range s.w.jobs {
		c := &jobCheck{state: s, j: j, runs: s.jobRuns[j.tag], end: time.Now()}
		for _, ch := range j.changes {
			if !ch.refused {
				c.changes = append(c.changes, ch)
			}
		}
		if len(c.changes) == 0 || j.changes[0].refused {
			continue
		}
		c.checkRecord()
		c.checkByHand()
		c.checkEntries()
		c.checkOnce()
		c.checkGaps()
		for _, r := range c.runs {
			if !r.Forced {
				c.checkSlot(r)
			}
			c.checkOutcome(r)
			c.checkResult(r)
		}
		c.checkCatchUps()
		for _, w := range c.windows() {
			c.checkSlots(w)
		}
		if c.failed {
			c.tellRuns()
		}
	}
}

// tellRuns adds the runs of a job to the story. Slots are in the time of the wall clock.
func (c *jobCheck) tellRuns() {
	for _, r := range c.runs {
		c.w.tell("%s: run %.8s, by hand %t, slot %s, claimed %s, its turn %s ended %s, the run at %s: %s %s", c.j.tag, r.ID,
			r.Forced, r.slot().UTC().Format("15:04:05.000"),
			c.at(r.claimed), r.turn.State, c.at(r.ended), r.Ended.Time().UTC().Format("15:04:05.000"), r.Status, r.Error)
	}
}

func (c *jobCheck) last() *change { return c.changes[len(c.changes)-1] }

// succeeded reports whether a run of the schedule has succeeded.
func (c *jobCheck) succeeded() bool {
	return slices.ContainsFunc(c.runs,
		func(r jobRun) bool { return r.Status == job.OK || r.Status == job.Failed && !r.fails() })
}

// checkRecord checks that the record is what the person who has changed it knows, and
// that nothing is in progress.
func (c *jobCheck) checkRecord() {
	last := c.last()
	got, ok := c.jobs[c.j.tag]
	switch {
	case last.removed && ok:
		c.broken("it was removed, and it exists")
	case last.removed:
	case !ok && !(last.deletes && c.succeeded()):
		c.broken("it was added, and it does not exist")
	}
	for _, r := range c.runs {
		if r.Open() || r.Status == "" {
			c.broken("its run %s is open, status %q", r.ID, r.Status)
		}
	}
	if !ok {
		return
	}
	if got.State.Run != "" || got.State.Running != 0 {
		c.broken("it is marked as running %q", got.State.Run)
	}
	if got.Enabled && (last.every == 0 || !last.enabled) {
		c.broken("it is enabled at the end, want %t", last.enabled)
	}
	want, _ := last.args["schedule"].(map[string]any)
	sc := got.Schedule
	at, _ := sc.AtTime()
	if sc.Kind == job.KindAt && !at.Equal(last.first) || sc.Kind == job.KindEvery &&
		sc.EveryMs != last.every.Milliseconds() || sc.Kind == job.KindCron && sc.Expr != want["expr"] {
		c.broken("its schedule is %s, want %v", sc, want)
	}
	if d, _ := last.args["delivery"].(map[string]any); last.session == "" && got.Delivery != nil && d["to"] != nil &&
		got.Delivery.To != d["to"] {
		c.broken("its result goes to %s, want %s", got.Delivery.To, d["to"])
	}
}

// checkByHand checks that each run that was acknowledged to a person exists.
func (c *jobCheck) checkByHand() {
	for _, b := range c.j.byHand {
		if b.id != "" && !slices.ContainsFunc(c.runs, func(r jobRun) bool { return string(r.ID) == b.id }) {
			c.broken("its run %s was begun by hand, and it does not exist", b.id)
		}
	}
}

// checkEntries checks that the work of each run is in a transcript once.
func (c *jobCheck) checkEntries() {
	count := map[string]int{} // by item; events have none
	for id, list := range c.entries {
		for _, e := range list {
			if e.Kind != session.KindMessage || e.Message.Role != llm.RoleUser || c.home[id] != c.session() {
				continue
			}
			if n := strings.Count(e.Message.PlainText(), "[cron:"+c.j.id+" "+c.j.tag+"] "); n > 0 {
				count[e.ItemID] += n
			}
		}
	}
	if c.gone(c.session()) || c.j.id == "" {
		return
	}
	done := 0
	for _, r := range c.runs {
		id := string(r.ID)
		if r.item.State == queue.Done {
			done++
		}
		if n := count[id]; c.changes[0].session == "" && (n > 1 || n == 0 && r.item.State == queue.Done) {
			c.broken("its run %s is in the transcripts %d times, item %s", r.ID, n, r.item.State)
		}
		delete(count, id)
	}
	if n := count[""]; c.changes[0].session != "" && n != done {
		c.broken("%d of its events were handled, and are in the transcripts %d times", done, n)
	}
	delete(count, "")
	for id, n := range count {
		c.broken("the item %s is in the transcripts %d times, and no run of the job", id, n)
	}
}

// session returns the session in which the job works.
func (c *jobCheck) session() chela.SessionKey {
	if key := c.changes[0].session; key != "" {
		return key
	}
	return chela.SessionKey("agent:main:cron:" + c.j.id)
}

// changed reports whether a person has changed the job between two instants, perhaps.
func (c *jobCheck) changed(from, to time.Time, how func(*change) bool) bool {
	return slices.ContainsFunc(c.changes,
		func(ch *change) bool { return !ch.acked.Before(from) && !ch.sent.After(to) && how(ch) })
}

func anyChange(*change) bool { return true }

// stepped reports whether the clock was set between two instants.
func (c *jobCheck) stepped(from, to time.Time) bool {
	return slices.ContainsFunc(c.w.clock[1:], func(st clockStep) bool { return !st.at.Before(from) && !st.at.After(to) })
}

// checkOnce checks that a job with one slot ends with its first final outcome.
func (c *jobCheck) checkOnce() {
	var ended *jobRun
	tries := 0
	for i, r := range c.runs {
		if r.Forced || c.versionAt(r).every > 0 {
			continue
		}
		if ended != nil && !c.changed(ended.claimed, r.claimed, func(ch *change) bool { return ch.enabled }) {
			c.broken("it has one slot, its run %s ended with %s (%s), and it ran again at %s", ended.ID, ended.Status,
				ended.Error, c.at(r.claimed))
		}
		if i > 0 && c.changed(c.runs[i-1].claimed, r.claimed, anyChange) {
			tries = 0
		}
		if tries++; tries > 1+jobRetries {
			c.broken("it has one slot and ran %d times", tries)
		}
		ended = nil
		if r.Status != job.Failed || strings.Contains(r.Error, "refused") || !r.fails() {
			ended = &c.runs[i]
		}
	}
	if n := len(c.runs); n > 0 && c.last().every == 0 && !c.last().removed {
		r := c.runs[n-1]
		if !r.Forced && r.fails() && strings.Contains(r.Error, "overloaded") && n <= jobRetries &&
			!c.changed(r.claimed, c.end, anyChange) {
			c.broken("it has one slot, failed %d times for a reason that passes (%s), and is not repeated", n, r.Error)
		}
	}
}

// versionAt returns a definition that was in force when a run began.
func (c *jobCheck) versionAt(r jobRun) definition {
	d := c.changes[0].definition
	for _, ch := range c.changes {
		if !ch.sent.After(r.claimed) {
			d = ch.definition
		}
	}
	return d
}

// possible returns the definitions that may have been in force at an instant.
func (c *jobCheck) possible(t time.Time) (list []definition) {
	for i, ch := range c.changes {
		if !ch.sent.After(t) && (i == len(c.changes)-1 || !c.changes[i+1].acked.Before(t)) {
			list = append(list, ch.definition)
		}
	}
	return list
}

// has reports whether an instant is a slot.
func (d definition) has(t time.Time) bool {
	if d.every == 0 {
		return t.Equal(d.first)
	}
	return !t.Before(d.first) && t.Sub(d.first)%d.every == 0
}

// between returns the slots after an instant and not after another one.
func (d definition) between(from, to time.Time) (slots []time.Time) {
	if d.every == 0 {
		if d.first.After(from) && !d.first.After(to) {
			return []time.Time{d.first}
		}
		return nil
	}
	t := d.first
	if n := from.Sub(t) / d.every; n >= 0 && from.After(t) || from.Equal(t) {
		t = t.Add((n + 1) * d.every)
	}
	for ; !t.After(to); t = t.Add(d.every) {
		slots = append(slots, t)
	}
	return slots
}

// onGrid reports whether the slot of a run is one of its job.
func (c *jobCheck) onGrid(r jobRun) bool {
	return slices.ContainsFunc(c.possible(r.claimed), func(d definition) bool { return d.enabled && d.has(r.slot()) })
}

// checkSlot checks that the slot of a run had come, and was one of the job.
func (c *jobCheck) checkSlot(r jobRun) {
	defs := c.possible(r.claimed)
	if !slices.ContainsFunc(defs, func(d definition) bool { return d.enabled }) {
		c.broken("it ran at %s, and was not enabled", c.at(r.claimed))
		return
	}
	late := r.begun().Sub(r.slot())
	switch {
	case late < 0:
		c.broken("the slot %s ran %s before", r.slot(), -late)
	case c.onGrid(r) && late >= jobLate && !c.asked(r):
		c.broken("the slot %s ran %s later, as if it had not been missed", r.slot(), late)
	case c.onGrid(r):
	case slices.ContainsFunc(defs, func(d definition) bool { return d.every == 0 }): // it was repeated, or missed
	default:
		from, due := c.wallAt(r.claimed).Add(-24*time.Hour), r.claimed
		for _, o := range c.runs {
			if pause := pauseBetween(o, r); o.fails() && pause > 0 { // a missed slot that waited when a run failed
				if due = o.ended; due.IsZero() {
					due = r.claimed.Add(-pause)
				}
			}
			if !o.Forced && o.claimed.Before(r.claimed) && o.begun().After(from) { // a run by hand leaves the slots as they are
				from = o.begun()
			}
		}
		_, base := c.base(due, c.patience(due)+jobNotice)
		missed := slices.ContainsFunc(defs,
			func(d definition) bool { return d.enabled && len(d.between(from, r.begun())) > 0 })
		if base.IsZero() || !missed && !c.stepped(c.w.begun, r.claimed) {
			c.broken("the slot %s is none of it, and none was missed before", r.slot())
		}
	}
}

// pauseBetween returns the pause after a run that failed if another one has the slot at its end; else 0.
func pauseBetween(failed, r jobRun) time.Duration {
	pause := r.slot().Sub(failed.Ended.Time())
	for n := 1; n <= 5; n++ {
		if pause == jobPause(n) {
			return pause
		}
	}
	return 0
}

// asked reports whether a person may have begun a run by hand.
func (c *jobCheck) asked(r jobRun) bool {
	return slices.ContainsFunc(c.j.byHand,
		func(b byHand) bool { return !r.claimed.Before(b.sent) && !r.claimed.After(b.acked) })
}

// checkCatchUps checks that the slots that were missed while the gateway was not running
// are at most one run.
func (c *jobCheck) checkCatchUps() {
	for _, sp := range c.w.spans {
		to := sp.to
		if to.IsZero() {
			to = c.end
		}
		if c.stepped(c.w.begun, to) {
			continue
		}
		n := 0
		for _, r := range c.runs {
			if !r.Forced && c.versionAt(r).every > 0 && !r.claimed.Before(sp.born) && !r.claimed.After(to) &&
				(!c.onGrid(r) || r.slot().Before(sp.born)) && !c.asked(r) {
				n++
			}
		}
		if n > 1 {
			c.broken("%d runs of slots that were missed before the gateway %d", n, sp.n)
		}
	}
}

// checkGaps checks the time between two runs, and the pause after a failure.
func (c *jobCheck) checkGaps() {
	var prev *jobRun
	errors := 0
	for i, r := range c.runs {
		if r.Forced {
			if r.Status == job.OK || !r.fails() {
				errors = 0
			}
			continue
		}
		edited := prev != nil && c.changed(prev.claimed, r.claimed, anyChange)
		if edited {
			errors = 0
		}
		if prev != nil && !c.stepped(prev.claimed, r.claimed) {
			if gap := r.begun().Sub(prev.begun()); gap < jobGap {
				c.broken("it ran at %s and %s later", c.at(prev.claimed), gap)
			}
			if !edited && r.slot().Before(prev.begun().Add(jobGap)) {
				c.broken("it ran at %s for the slot %s, and then for %s", prev.begun().UTC().Format("15:04:05.000"),
					prev.slot().UTC().Format("15:04:05.000"), r.slot().UTC().Format("15:04:05.000"))
			}
			if errors > 0 && r.slot().Before(prev.Ended.Time().Add(jobPause(errors)-time.Millisecond)) {
				c.broken("it failed %d times in a row until %s, and ran at %s", errors,
					prev.Ended.Time().UTC().Format(time.TimeOnly), r.slot().UTC().Format(time.TimeOnly))
			}
		}
		if prev = &c.runs[i]; r.fails() {
			errors++
		} else {
			errors = 0
		}
	}
}

// windows returns the times in which a definition is in force for certain.
func (c *jobCheck) windows() (list []window) {
	for i, ch := range c.changes {
		w := window{ch.definition, ch.acked, c.end}
		if i < len(c.changes)-1 {
			w.to = c.changes[i+1].sent
		}
		// it may not be enabled any more
		ended := ch.every == 0 && !ch.sets &&
			slices.ContainsFunc(c.runs, func(r jobRun) bool { return !r.claimed.After(ch.acked) })
		if ch.enabled && !ch.removed && !ended {
			list = append(list, w)
		}
	}
	return list
}

// wallAt returns the time of the wall clock at an instant.
func (c *jobCheck) wallAt(t time.Time) time.Time {
	by := time.Duration(0)
	for _, st := range c.w.clock {
		if !st.at.After(t) {
			by = st.by
		}
	}
	return t.Add(by)
}

// latest returns the latest time that the wall clock has shown until an instant.
func (c *jobCheck) latest(t time.Time) time.Time {
	most := c.wallAt(t)
	for _, st := range c.w.clock[1:] {
		if before := c.wallAt(st.at.Add(-1)); !st.at.After(t) && before.After(most) {
			most = before
		}
	}
	return most
}

// checkSlots checks that each slot of a window ran, or was left out for a reason.
func (c *jobCheck) checkSlots(w window) {
	if j := c.jobs[c.j.tag]; j.State.Disabled != nil {
		return
	}
	for i, st := range c.w.clock {
		from, to := w.from, w.to
		if i > 0 && st.at.After(from) {
			from = st.at
			if !st.at.After(w.to) { // slots that the clock has left out
				for _, slot := range w.between(c.wallAt(st.at.Add(-1)), c.wallAt(st.at)) {
					c.checkHandled(w, slot, st.at)
				}
			}
		}
		if i < len(c.w.clock)-1 && c.w.clock[i+1].at.Before(to) {
			to = c.w.clock[i+1].at
		}
		if from.Before(to) {
			for _, slot := range w.between(from.Add(st.by), to.Add(st.by)) {
				c.checkHandled(w, slot, slot.Add(-st.by))
			}
		}
	}
}

// patience is how long missed slots wait for each other and for the channels.
func (c *jobCheck) patience(t time.Time) time.Duration {
	d := 15*time.Second + time.Duration(len(c.w.jobs))*jobSpacing
	return d + c.failures(t.Add(-d), t.Add(d))
}

// failures returns how long failures of the store delay what is due in a time.
func (c *jobCheck) failures(from, to time.Time) (d time.Duration) {
	for _, f := range c.w.failed {
		if f.After(from) && f.Before(to.Add(d)) {
			d += jobRepeat
		}
	}
	return d
}

// base returns whether a gateway has been running for some time at an instant, with a
// clock that was not set; and if not, since when.
func (c *jobCheck) base(t time.Time, within time.Duration) (calm bool, since time.Time) {
	up := false
	for _, sp := range c.w.spans {
		if sp.born.After(t) || !sp.to.IsZero() && sp.to.Before(t) {
			continue
		}
		if up = true; t.Sub(sp.born) < within {
			since = sp.born
		}
	}
	for _, st := range c.w.clock[1:] {
		if !st.at.After(t) && t.Sub(st.at) < within && st.at.After(since) {
			since = st.at
		}
	}
	return up && since.IsZero(), since
}

// deadline returns until when a slot that has come at an instant must have been handled,
// the instant from which on it could be, and the first one at which it perhaps was, by a
// gateway that did not run for long. It reports false if it is not known.
func (c *jobCheck) deadline(t, limit time.Time) (until, ready, first time.Time, calm, ok bool) {
	for _, sp := range c.w.spans {
		to := sp.to
		if to.IsZero() {
			to = c.end
		}
		if to.Before(t) {
			continue
		}
		if first.IsZero() {
			if first = t; sp.born.After(t) {
				first = sp.born
			}
		}
		if sp.from.IsZero() {
			continue
		}
		ready = t
		if sp.from.After(t) {
			ready = sp.from
		}
		d := jobCommit
		if calm, _ = c.base(t, c.patience(t)+jobNotice); !calm {
			d = jobNotice + c.patience(ready)
		}
		until = ready.Add(d)
		until = until.Add(c.failures(ready.Add(-jobRepeat), until))
		for _, st := range c.w.clock[1:] { // it begins again when the clock is set
			if st.at.After(ready) && !st.at.After(until) {
				calm, until = false, st.at.Add(jobNotice+c.patience(st.at))
			}
		}
		if !until.Before(to) {
			continue
		}
		return until, ready, first, calm, until.Before(limit)
	}
	return until, ready, first, false, false
}

// checkHandled checks that a slot that has come at an instant ran, or was left out for a
// reason.
func (c *jobCheck) checkHandled(w window, slot, t time.Time) {
	until, ready, first, calm, ok := c.deadline(t, w.to)
	// the clock was set back before a gateway could see that it has come: it comes again
	if !ok || c.wallAt(ready).Before(slot) {
		return
	}
	slack := until.Sub(ready)
	errors := 0
	for _, r := range c.runs {
		switch {
		case r.slot().Equal(slot):
			return // it ran
		case !r.Forced && (r.slot().Before(slot) || !calm && !c.onGrid(r)) && r.begun().After(slot.Add(-jobGap)) &&
			!r.claimed.After(until):
			return // it was missed, or less than the gap after another one that was late
		case !r.Forced && !calm && !c.onGrid(r) && r.claimed.After(t) && !r.claimed.After(until):
			return // it was missed, and the clock was set back before it ran
		case r.ended.IsZero() && !r.claimed.After(until) && r.Ended.Time().After(slot.Add(-slack-jobGap)):
			return
		case !r.ended.Before(first.Add(-slack-jobGap)) &&
			(!r.claimed.After(ready) || (calm || r.Forced) && !r.claimed.After(until)):
			return // the job was running
		}
		if r.claimed.After(until) {
			continue
		}
		if r.Status == job.Failed {
			errors++
		} else {
			errors = 0
		}
		if !r.Forced && r.fails() && slot.Before(r.Ended.Time().Add(jobPause(errors)+slack)) &&
			(w.every > 0 || r.slot().Before(slot)) {
			return // it paused
		}
	}
	if c.repeated(w, slot, t) {
		return
	}
	c.broken("the slot %s, at %s, did not run; want until %s, calm %t", slot.UTC().Format("15:04:05.000"),
		c.at(t), c.at(until), calm)
}

// repeated reports whether a slot is in a time that the clock shows again, or in the time
// until an interval goes on.
func (c *jobCheck) repeated(w window, slot, t time.Time) bool {
	sc, _ := w.args["schedule"].(map[string]any)
	if w.every == 0 {
		return c.latest(t.Add(-1)).After(slot)
	}
	if sc["kind"] == "cron" {
		return !slot.After(c.latest(t).Add(jobGap)) && c.latest(t).After(c.wallAt(t))
	}
	for i, st := range c.w.clock[1:] {
		if st.by > c.w.clock[i].by || st.at.After(t) {
			continue
		}
		noticed := st.at.Add(jobNotice)
		for _, sp := range c.w.spans {
			if !sp.from.IsZero() && (sp.to.IsZero() || sp.to.After(noticed)) {
				if sp.from.After(st.at) {
					noticed = sp.from.Add(c.patience(sp.from))
				}
				break
			}
		}
		if !slot.After(c.wallAt(noticed).Add(w.every + jobGap)) {
			return true
		}
	}
	return false
}

// checkOutcome checks that the record of a run has ended together with its turn, and in
// the same way.
func (c *jobCheck) checkOutcome(r jobRun) {
	if !r.turn.State.Final() || r.item.Next || c.gone(r.Session) {
		return
	}
	ok := r.turn.State == run.OK || r.turn.State == run.Superseded && r.turn.ID != r.ID
	switch {
	case ok != (r.Status == job.OK || !r.fails()):
		c.broken("its run %s is %s (%s), and its turn is %s", r.ID, r.Status, r.Error, r.turn.State)
	case r.turn.Error != "" && r.fails() && !strings.Contains(r.Error, r.turn.Error) && r.turn.State != run.Superseded:
		c.broken("its run %s failed with %q, and its turn with %q", r.ID, r.Error, r.turn.Error)
	}
	late := r.Ended.Time().Sub(c.wallAt(r.ended))
	if limit := jobCommit + c.failures(r.ended.Add(-jobRepeat), r.ended.Add(jobRepeat)); late > limit &&
		!c.stepped(r.ended, r.ended.Add(late)) {
		c.broken("its run %s ended %s after its turn", r.ID, late)
	}
}

// checkTold checks that a session that is to get the result of a run got it once.
func (c *jobCheck) checkTold(r jobRun, token string) {
	key := chela.SessionKey(r.Target.To)
	if r.Target.Channel != chela.LocalChannel || c.gone(key) {
		return
	}
	n := 0
	for id, list := range c.entries {
		for _, e := range list {
			if e.Kind == session.KindMessage && e.Message.Role == llm.RoleUser && c.home[id] == key &&
				strings.Contains(e.Message.PlainText(), token) &&
				strings.Contains(e.Message.PlainText(), `"`+c.j.tag+`" has ended`) {
				n++
			}
		}
	}
	removed := c.last().removed && !r.ended.Before(c.last().acked)
	switch {
	case removed && (n > 0 || r.told.ID != ""):
		c.broken("the result %s was told to %s, and the job had been removed", token, key)
	case n > 1, n != 1 && r.told.State == queue.Done:
		c.broken("the result %s was told to %s %d times, its item is %q", token, key, n, r.told.State)
	case n == 0 && r.Delivery == job.WasDelivered && !c.stopped(key, r.ended):
		c.broken("the result %s was not told to %s, its item is %q, %s", token, key, r.told.State, r.told.Note)
	}
}

// checkResult checks where the answer of a run went.
func (c *jobCheck) checkResult(r jobRun) {
	token := tokenIn(r.Summary)
	a := c.w.answers[token]
	if a == nil {
		return
	}
	if c.changes[0].session != "" { // it is answered like any event
		return
	}
	if len(a.tags) > 0 &&
		!slices.ContainsFunc(a.tags, func(tag string) bool { return tag == c.j.tag || strings.HasPrefix(tag, c.j.tag+".") }) {
		c.broken("the result of its run %s is %s, an answer to %v", r.ID, token, a.tags)
	}
	c.checkTold(r, token)
	there, elsewhere := 0, 0
	for _, p := range c.w.platforms {
		for _, m := range p.sent {
			switch {
			case m.gone || !strings.Contains(m.text, token):
			case p.name == r.Target.Channel && m.to.Peer.ID == r.Target.To:
				there++
			default:
				elsewhere++
			}
		}
	}
	removed := c.last().removed && !r.ended.Before(c.last().acked)
	announced := func(d definition) bool { return d.to.Channel != "" || d.tell != "" }
	switch {
	case elsewhere > 0:
		c.broken("the result %s was sent to another chat than %s", token, r.Target.To)
	case removed && there > 0:
		c.broken("the result %s was sent, and the job had been removed", token)
	case r.Target.Channel != chela.LocalChannel && (there > 1 || r.Delivery == job.WasDelivered && there != 1):
		c.broken("the result %s is %s, and was sent %d times", token, r.Delivery, there)
	case r.Delivery == job.NotRequested && r.Status == job.OK && c.changes[0].enabled &&
		!slices.ContainsFunc(c.changes, func(ch *change) bool { return ch.removed || !announced(ch.definition) }):
		c.broken("the result %s was sent to nobody", token)
	}
	if r.Target.Mode == job.Announce && !slices.ContainsFunc(c.changes, func(ch *change) bool {
		return string(ch.tell) == r.Target.To || ch.to.Channel == r.Target.Channel && ch.to.Peer.ID == r.Target.To
	}) {
		c.broken("the result %s goes to %s %s, which nobody asked for", token, r.Target.Channel, r.Target.To)
	}
}
