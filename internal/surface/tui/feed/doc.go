// Package feed translates gateway events into the steps of one conversation:
// growing text, tool calls, complete answers, approval requests. A user
// interface shows the [Step] values in order and does not need to know the
// protocol.
package feed
