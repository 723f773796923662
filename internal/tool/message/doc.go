// Package message is the tool message: the model writes to a chat.
//
// What it sends is rows of the outbox, like an answer: on disk before it is
// sent, under a key, and carried by package deliver. The tool waits a moment for
// what becomes of them, so that the model knows. A local chat, which clients
// read, gets an entry in its transcript.
package message
