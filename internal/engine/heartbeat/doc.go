// Package heartbeat runs the heartbeats of agents: at their intervals, and because of the
// wakes that others have requested (see core/heartbeat).
//
// A tick of an interval is first checked without a model call: active hours, HEARTBEAT.md,
// its tasks, and what the channel shows. If something is left to do, the tick becomes a
// wake of the session, like any other. A wake that is due becomes a queue item of the
// session, in one synced commit with the record of the run ([Service] claims it); while
// the session is busy it waits, longer each time. The dispatcher carries the item out like
// any other. [Service.Ended] records the outcome in the commit that ends the run, and
// [Service.Sent] keeps an alert that could not be delivered as an event for the next run.
//
// There is one timer for all agents. It is at most a minute ahead, so that a clock that
// was set, or a machine that slept, is noticed. Without intervals there is no timer.
package heartbeat
