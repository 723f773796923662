// Package relay carries messages between sessions, and their answers back.
//
// An exchange (core/exchange) begins with [Relay.Send]: one commit checks that the sender
// may see the target and puts the message into the queue of the target. The run that
// answers is an ordinary run in the lane [Lane], or the run in progress that the message
// joins, as the queue mode of the target says. It has the principal of the run that sent
// the message, and the bounds of its own session.
//
// [Relay.Ended] observes the ends of runs. The commit that ends the run of a step puts
// the next step: an answer for the other session, or the announcement in the target. All
// items have ids that depend only on the exchange and the number of the step. So an
// exchange goes on after a crash, and no step is made twice.
//
// The item of the message gets one result: the reply, from the end of the run that replies,
// or that the sender has stopped waiting. In the first case the waiting call returns the
// reply. In the second case the end of the run puts an event with the reply into the queue
// of the sender.
package relay
