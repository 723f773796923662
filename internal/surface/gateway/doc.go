// Package gateway serves the gateway protocol over WebSockets. It dispatches
// requests to methods (package rpc) without knowing any of them, and converts
// events on the bus into events for clients.
//
// # Connections
//
// The gateway sends a challenge, the client answers with connect, the
// [Authenticator] of the listener identifies the client, and the hello follows.
// The requests of a connection are executed one after another, so that messages
// are accepted in the order in which they were sent. A long call can yield to
// the next request.
//
// An idle connection has one goroutine, which reads, and small buffers. Calls and
// writes use further goroutines while they last. The server pings silent clients.
// It closes connections that do not answer the ping or accept no data for several
// ticks.
//
// Each connection has one send queue, limited in bytes. When the queue is full,
// events that later ones replace (deltas, ticks) are dropped along with their
// sequence number, so that the client notices the gap. If any other frame does
// not fit, the connection is closed as a slow consumer. Publishers never wait
// for clients.
//
// # Events
//
// An event is encoded once for all connections. The sequence number, which
// differs, is appended when the frame is sent. The first text of an answer is
// sent immediately; further deltas are merged over [Merge]. No text is lost, and
// the end of an answer follows all of its text.
//
// Events carry a cursor for clients with the capability event-cursor. For these
// clients, and for some time after their connection ended, the server retains
// events within limits: of streamed text only the latest state, of tools their
// start and result. To resume, a client names in connect its lost connection and
// the last cursor. It gets its subscriptions back and the missed events, once
// and in order, or learns that they are no longer available. State (presence,
// health, ticks) is not retained, because the hello contains it.
//
//	bus                          clients
//	lifecycle start, model       agent; sessions.changed (start)
//	assistant                    agent, chat delta          (merged)
//	tool start, update, result   agent, to the connection that started the run;
//	                             session.tool, to others that subscribed to all sessions
//	lifecycle end, error         agent; chat final, aborted or error, exactly once; sessions.changed
//	message                      session.message, to subscribers of the session
//	command                      chat final with the text
//	session absorbed             chat final without a message
//	approval                     exec.approval.requested, exec.approval.resolved
package gateway
