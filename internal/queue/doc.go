// Package queue is the work that waits for a session: [Item], the table it
// lies in, and [Plan], the one rule for what becomes of it.
//
// An item is put once under its key; putting it again gives the receipt of the
// first time. It then moves from [Waiting] to [Taken] (its text is in the
// transcript of a run), and with the run's end to [Done]; or it is [Dropped]
// or [Cancelled]. Items are the truth; a wake is only a hint to look.
package queue
