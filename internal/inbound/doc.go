// Package inbound is the one door through which a person's message becomes
// work. Nothing happens for a sender before [Gate.Admit]: no command, no
// typing, no model call.
//
// In this order: principal → size → access → session → command → mention →
// commit. What is taken is one synced commit: the dedupe key, the queue item
// with its principal, and the session. Only then is the channel or the client
// told "taken"; the commit wakes who carries it out. A key that is known gives
// the receipt of the first time, and changes nothing.
//
// A command never waits behind a run. It is carried out in the commit that
// holds its dedupe key, so that it happens once however often it is offered;
// what it does outside the store (ending a run) follows the commit.
//
// Messages that a person writes in one go are not held back here, because then
// they would not be on disk when the channel is told so: they are joined when
// the queue is looked at (queue.Policy.Inbound).
package inbound
