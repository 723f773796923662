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
package runner
