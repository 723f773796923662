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
