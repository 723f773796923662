// Package queue defines the pending work of sessions: the [Item], its table, and [Plan],
// which decides what a session does with its waiting items.
//
// An item is stored once per key; putting it again returns the receipt of the first
// Put. It moves from [Waiting] to [Taken] when a run writes it to its
// transcript, and to [Done] when the run ends; or it becomes [Dropped] or
// [Cancelled]. The rows are authoritative; a wake is only a hint to read them.
package queue
