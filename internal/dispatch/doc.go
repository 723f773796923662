// Package dispatch is the conductor: it looks at what waits for a session and
// carries it out. A wake is a hint to look; the rows are the truth.
//
// One goroutine serves a session while there is something to do for it:
//
//		wake → look (queue.Plan) → begin → attempt … → end → look again
//
//	  - begin is one commit: items become entries, the run row and its lease are
//	    written. For a message to an idle session it is the commit that takes the
//	    message (see [Place]): then there is nothing to look for.
//	  - attempt ranges over the loop of package agent. Each of its events is
//	    committed first and published on the bus afterwards. Every write carries
//	    the run's lease, so that a superseded run can write nothing.
//	  - end is one synced commit: the last entry, the run's outcome, the session's
//	    counters, and what is owed because of it (see [Ended]).
//
// Going on after a crash is the same code: a run that is marked running and
// belongs to no living process is begun again from its rows. Calls that were
// planned or approved run; calls that only read are repeated; calls that may
// have changed something get the result "unknown" and are never repeated.
//
// A run in which a call waits for a person is stopped, not parked: suspending,
// dying and moving to another process resume alike.
package dispatch
