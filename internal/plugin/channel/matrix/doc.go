// Package matrix connects to a Matrix homeserver by the client-server API.
//
// Run reads /sync with a long poll. The token of the next request is stored after the sink
// accepted every message of the answer, so that a crash repeats messages and loses none.
// The first request of an account skips the messages that are older than it.
//
// A room of two people is a direct chat. Its peer is the other person; the room is
// remembered, and messages to the person go there. Any other room is a group. A thread is
// named by the event id of its root.
//
// A message is sent with a transaction id that is derived from the key of the part, so that
// the homeserver makes one event of all attempts. Encrypted rooms are not supported:
// nothing is read from them or sent to them.
package matrix
