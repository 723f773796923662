// Package spawn starts the children of sessions and reports their results.
//
// A spawn is one commit: the record of the child (core/subagent), its session, whose
// bounds are those of the requester narrowed by what was asked, and the queue item
// with the task. The child's run is an ordinary run in the lane [Lane]. It is begun,
// resumed after a crash, suspended and stopped like any other.
//
// [Spawner.Ended] observes the ends of runs. In the commit that ends the last run of
// a child it closes the record and puts the announcement into the queue of the
// requester, or, if that session was deleted, of the nearest one above it. A message
// that waits for the child's session keeps it open: its next run reports.
//
// [Spawner.Stop] is called in the commit that stops the work of a session. It closes
// the records of the child in it and of all children below, which are then not
// announced, whatever their runs still do.
package spawn
