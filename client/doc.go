// Package client speaks the gateway protocol: [Dial] connects, [Client.Call]
// asks for a method, [Client.Events] gives what happens.
//
// A Client outlives its connection. When that is lost it connects again, at
// once after a restart of the gateway and otherwise with growing pauses, until
// [Client.Close], or until the gateway does not let it in any more. Done is
// closed then, and Err says why. [Options.Once] ends it with its first
// connection instead.
//
// # What happens meanwhile
//
// The client tells of an outage among the events: EventLost, and then
// EventResumed or EventReset. After EventResumed nothing is missing: the events
// that the client would have got follow, each once and in order, but that a
// text that grew comes as one delta which replaces what there is of it. After
// EventReset the gateway does not know what was missed, because it was started
// again or the outage was long: the client has subscribed again to what it was
// subscribed to, and who shows something reads the history.
//
// Calls wait while there is no connection, as long as their context lets them,
// or fail with ErrOffline when [Options.NoWait] says so. A call whose answer
// was lost with the connection fails with ErrLost, because it may have been
// carried out; [Client.Repeat] asks again, for what may be asked for twice.
// [Client.Chat] and [Client.Send] do so: a message is taken exactly once.
//
// # Events that nobody reads
//
// Reading events late disturbs nothing: responses do not wait behind them. When
// more than [Options.Buffer] events wait, further ones are left out, and
// EventReset stands where they would have been.
package client
