// Package tui is the terminal user interface for conversations.
//
// It uses the normal screen, not the alternate one: complete text is printed
// once, above, and becomes part of the terminal's scrollback. Only the text that
// still changes, the approval question and the input are redrawn. Each block of
// an answer is printed as soon as it cannot change any more.
//
// One goroutine owns the screen; it receives events, keys and results of calls
// as messages. It talks to the gateway through package client, which reconnects
// automatically. If the client reports missed events, the screen loads the
// history and shows the part that is new.
package tui
