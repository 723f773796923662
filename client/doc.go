// Package client is a client of the gateway protocol: [Dial] connects,
// [Client.Call] calls a method, [Client.Events] returns the events.
//
// A Client outlives its connection. When the connection is lost, the client
// reconnects, immediately after a restart of the gateway and otherwise with
// growing delays, until [Client.Close] is called or the gateway rejects it.
// Then Done is closed and Err returns the reason. With [Options.Once] the
// client ends when its first connection ends.
//
// # Outages
//
// The client reports an outage as events: EventLost, followed by EventResumed
// or EventReset. After EventResumed no event is missing: the missed events
// follow, each once and in order, except that streamed text arrives as one delta
// that replaces the text so far. After EventReset events may be missing,
// because the gateway restarted or the outage was long. The client has renewed
// its subscriptions; the caller must reload the history it displays.
//
// While there is no connection, calls wait until their context ends, or fail
// with ErrOffline if [Options.NoWait] is set. A call fails with ErrLost if the
// connection is lost before its answer, because it may have been executed.
// [Client.Repeat] repeats such a call, for methods that are safe to repeat.
// [Client.Chat] and [Client.Send] use it: a message is delivered exactly once.
//
// # Unread events
//
// Responses do not wait for events to be read. If more than [Options.Buffer]
// events are unread, further events are dropped and replaced by one EventReset.
package client
