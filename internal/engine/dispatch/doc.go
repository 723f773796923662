// Package dispatch decides which session is served when. Package runner carries
// the runs out.
//
// A goroutine serves a session while there is something to do for it:
//
//	wake → read its rows → plan → start or resume a run → read its rows again
//
// A wake is a hint to read the rows; hints may be lost or doubled. A session that
// waits for its lane reads its rows again before it acts on them, and each commit
// checks the rows that it changes.
//
// A message to an idle session needs no goroutine to find it: [Reservation] lets
// the commit that accepts the message begin its run.
package dispatch
