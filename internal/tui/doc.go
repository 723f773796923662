// Package tui is the conversation on a terminal.
//
// It uses the normal screen: what is complete is printed once, above, and
// belongs to the terminal's scrollback from then on; only the tail that still
// changes, the question and the input are drawn again. Each block of an answer
// is printed as soon as nothing can change it any more.
//
// The screen is one goroutine's: events, keys and results of calls come to it
// as messages. It speaks to the gateway through package client, which connects
// again by itself; where that says that events are missing, the screen reads
// the history and shows what is new in it.
package tui
