// Package message implements the tool message, with which the model writes to
// a chat.
//
// Messages are rows of the outbox, like answers: they are stored under a key
// before they are sent, and package deliver sends them. The tool waits
// briefly for the result, so that the model learns it. A message to a local
// chat, which clients read, becomes an entry in its transcript.
package message
