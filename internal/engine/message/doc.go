// Package message carries out actions on messaging channels: it sends messages and polls to
// chats, and reacts to, edits, deletes, pins and reads what stands there. The tool message,
// the methods of the gateway and through them the command line use it; no other package
// calls the abilities of a channel for somebody.
//
// Messages and polls are rows of the outbox: they are stored under a key before they are
// sent, package deliver sends them, and the caller waits briefly for the outcome. Other
// actions call the running instance of the account once, with a time limit. An account that
// is not running fails at once. If the connection is lost during a call, the outcome is
// unknown, and the action is not repeated.
//
// A chat is named by its id, or, on a channel with a directory, by a name that fits one
// entry of it.
package message
