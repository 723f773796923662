// Package runner carries out runs: it answers what was put into the queue of a
// session. Package dispatch decides which session is served when, and calls it.
//
// A run passes through these steps:
//
//		Draft → Resolve → Begin → attempts → End
//
//	  - [Draft] computes the record of the run from the items that it answers.
//	  - [Profiles].Resolve finds out what the run works with: model, credentials,
//	    prompt, tools. It may do I/O and is called in the session's lane, never in a
//	    transaction.
//	  - [Runner.Begin] turns the items into entries and writes the run and its lease
//	    in one commit. For a message to an idle session this is the commit that
//	    accepts the message.
//	  - An attempt ranges over the loop of package agent. Each of its events is
//	    committed first and published on the bus afterwards. Every write carries the
//	    run's lease, so that a superseded run cannot write.
//	  - [Runner.End] is the only way to a final state. One synced commit holds the
//	    last entry, the outcome, the session's counters, and what each [Ended]
//	    observer writes.
//
// [Runner.Resume] continues a run after a crash or an approval: planned and
// approved calls run, calls that only read are repeated, and calls that may have
// had an effect get the result "unknown" and are never repeated. A suspended run
// is a stopped one: nothing of it is kept in memory.
//
// # Who waits for whom
//
// A run that waits is a row in the state suspended, without goroutine, lane and lease. Its
// column waits says for what, and an item in the queue of its session continues it. The
// item is put in the commit of what the run waits for, so that nothing is lost between
// the two, and whoever puts it needs to know neither this process nor this package:
//
//	waits     begins when                                   ends with the item
//	approval  a call of the run needs a decision            resume, in the commit of the decision (dispatch)
//	children  it yields, or it owes its result and is       the announcement of a child, or resume if none
//	          done, and children or commands are open       is due (spawn); the event of a command, or
//	                                                        resume if it is cancelled (dispatch)
//	retry     the process has ended three times in it       resume with a time, put at once (this package)
//
// A run owes its result if others wait for it: the run of a child, of a job or of most
// webhooks. Before it ends, its commit asks for deferred or waiting events of its own
// background commands, and [Children].Open for children of its tree of runs, and for
// results of such children that wait in its session. If there are any, it is suspended
// instead of ended. Its answer so far stays in the transcript, and is not sent.
//
// What ends in the same moment cannot be missed. If a child ends before the commit that
// suspends the run, that commit finds its announcement in the queue, or finds that nothing
// is open any more and puts the resume itself. If it ends after it, the commit that ends
// the child finds the suspended run. Both commits read rows only.
//
// A child ends with the run after which nothing more waits for it in its session: no
// event and no message, except those of exchanges, which are answered later. A run that
// was superseded is no end, because the run that replaces it reports. The commit of the
// end closes the record and puts the announcement into the session of the requester, or of
// the nearest one above it that still exists. There the announcement continues the waiting
// run, joins the run in progress, or begins a run. It joins only a run that answers to the
// chat in which the child was started: for another one a resume is put instead, and a later
// run takes the announcement. A child that was stopped is announced only to a run that waits
// for it. One that has nothing to say is not announced, and only continues such a run.
//
// While a run waits for an approval or for children, only persons take its place: a
// message of a person supersedes it, the new run receives what it owed (run.Run.Replaces),
// and its open calls get results that say so. A compaction runs beside it. Other messages
// and events wait in the queue. A run that waits for another try is not in the way of
// others.
//
// Stopping a session stops all below it, in one commit: [Children].Stop closes the records
// of the children and names their sessions, whose runs are then stopped one by one. A run in
// progress is stopped by a row, which the process that carries it out reads. Deleting a
// session moves the announcements in its queue to the session above ([Children].Deleted).
//
// An exchange between sessions needs no state of a run: the sender waits in a tool call for
// the result in the item of its message (package relay).
package runner
