// Package acp drives coding agents: programs that speak the Agent Client Protocol on their
// standard input and output, such as Claude Code or OpenCode. The section acp of the
// configuration names them (core/acp), and session.External says which one answers in a
// session.
//
// For a run, the agent is its model: [Pool.Provider] sends it the messages that it has not
// got yet, and streams what it says. What the agent does itself appears as calls of the
// tool of this package: its Run waits until the agent reports the end, and does nothing.
// A question for permission blocks the call (tool.Blocked), so that a person is asked as
// for any other call, the run is suspended meanwhile, and nothing is allowed if nobody can
// be asked. The answer goes to the agent when the call runs again, or, if it was denied,
// with the next request to the provider.
//
// The program of a session is started by its first message. It is ended after some time
// without a message, to make room for that of another session, with the session, and with
// the gateway. Its next message starts it again, and it loads its conversation if it can.
// A message is recorded in the session before it is sent. If the record says that a run's
// message was sent, and this process has no answer in progress, the program or the gateway
// ended in between: then the message is not sent again, and the person is told.
package acp
