// Package external is a channel that a program implements. The program speaks JSON-RPC 2.0
// on its standard input and output, one object a line, in both directions: the gateway
// requests that messages are sent, edited and so on, and the program requests that messages
// of people are accepted. docs/channel-plugin.md specifies the protocol.
//
// Run starts the program, and starts it again with growing pauses when it ends, does not
// answer, or breaks the protocol. At the end its standard input is closed; then it is ended
// with all processes that it started.
//
// A request whose answer does not arrive has an unknown outcome ([channel.ErrAmbiguous])
// unless the program has not begun to read it. A message of a person is answered after the
// sink has accepted it, so that the program knows that it is on disk.
//
// The abilities of the channel are declared before the program runs (see [Options]), because
// they decide how answers are shown. The program repeats them when it is initialized; a
// difference is an error.
package external
