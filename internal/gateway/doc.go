// Package gateway serves the gateway protocol over WebSockets. It knows what a
// method is (package rpc) and none of them, and turns what is published on the
// bus into the events that clients read.
//
// # A connection
//
// The gateway sends a challenge; the client answers with connect; the
// [Authenticator] of the listener decides who that is; the hello follows.
// Requests of a connection are carried out one after the other, so that two
// messages are taken in the order in which they were sent; a method that takes
// long lets the next one begin.
//
// An idle connection is one goroutine that reads, with small buffers; one that
// carries a request out, or writes, is there while there is something to do. Who
// answers, or ends a run, writes that himself, with all that is ready, as far as
// the system takes it without waiting; in the middle of a run another goroutine
// does. A client that says nothing is asked with a ping, and one that does not answer,
// or cannot be written to for some ticks, is gone.
//
// A connection has one queue of frames to send, bounded in bytes. Events that
// a later one replaces (deltas, ticks) are left out when it is full, and their
// sequence number with them, so that the client sees the gap; when anything
// else does not fit, the connection is closed as a slow consumer. Nobody who
// publishes ever waits for a client.
//
// # Events
//
// An event is encoded once for all connections; what differs, the sequence
// number, is put at the end of the frame when it is sent. The text of an
// answer is sent at once when it begins, and then joined over [Merge]: no text
// is lost, and what ends an answer comes after all of it.
//
// Clients that name the capability event-cursor are told with each event where
// it stands. For them, and for those of them whose connection ended not long
// ago, events are kept, within bounds: of a text that grows only all of it as
// it is now, of tools what they began with and what came out. Such a client
// names with its connect the connection that it lost and the last event that it
// has, gets its subscriptions back and what it missed, once and in order, or
// is told that this cannot be known any more. State (presence, health, ticks)
// is not kept: it is in the hello.
//
//	bus                          clients
//	lifecycle start, model       agent; sessions.changed (start)
//	assistant                    agent, chat delta          (merged)
//	tool start, update, result   agent, to the connection that started the run;
//	                             session.tool, to others that watch all sessions
//	lifecycle end, error         agent; chat final, aborted or error, exactly once; sessions.changed
//	message                      session.message, to those that watch the session
//	command                      chat final with the text
//	session absorbed             chat final without a message
//	approval                     exec.approval.requested, exec.approval.resolved
package gateway
