// Package inbound accepts messages of people. Nothing happens for a sender before
// [Gate.Admit]: no command, no typing indicator, no model call.
//
// The steps are: principal, size, access, session, command, mention, commit. A
// message is accepted by one synced commit that holds its dedupe key, the queue
// item with its principal and origin, and the session. Only then is the channel or
// client told that it was accepted. The commit wakes the dispatcher. A message
// with a known key gets the receipt of the first time and changes nothing.
//
// A command does not wait for a run. It is executed in the commit that holds its
// dedupe key, so that it is executed once however often it is delivered. Its
// effects outside of the store, such as stopping a run, follow the commit.
//
// Messages that a person writes in quick succession are not delayed here, because
// then they would not be on disk when the channel is told so. They are merged when
// the queue is read (queue.Policy.Inbound).
package inbound
