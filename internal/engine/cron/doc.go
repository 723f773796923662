// Package cron runs scheduled jobs.
//
// # From a slot to the answer
//
// The [Scheduler] has one timer, for the earliest next slot of all jobs. When a slot has
// come, one synced commit claims it: it stores the run of the job (job.Run, unique per
// job and slot), puts the work into the queue of a session, and sets the job's next slot.
// From there the work is an ordinary queue item with the origin chela.OriginCron: the
// dispatcher starts a run for it in the lane [Lane], and an interrupted run is resumed
// after a restart like any other.
//
// [Scheduler.Ended] observes the ends of runs. In the commit that ends the run of a job
// it closes the record, and decides what follows: the next slot after a failure, the end
// of a one-shot job, an alert. The answer is delivered by the outbox; [Scheduler.Sent]
// writes what became of it. So a kill at any point leads neither to a second run nor to a
// lost one.
//
// # Time
//
// The timer is set for at most a minute, so that a clock that was set is noticed. A slot
// that is older than that was missed while the gateway was not running, or the machine
// was asleep: cron.missedRuns decides about it, and missed slots run one after the other.
// If the clock was set back, jobs with an interval continue on their grid; for
// expressions the local time repeats, and a slot that ran already does not run again.
//
// A slot that comes while the job runs, or pauses after a failure, is left out. For a job
// with one slot the run in progress counts instead, also one that was begun by hand.
//
// Several schedulers may share a store. Each slot is claimed by one of them.
package cron
