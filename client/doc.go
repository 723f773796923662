// Package client speaks the gateway protocol: [Dial] connects, [Client.Call]
// asks for a method, [Client.Events] gives what happens.
//
// A Client lives as long as its connection. When that is lost, Done is closed,
// calls that wait return an error, and [Client.Err] says why; the caller dials
// again, subscribes again, and reads the history to go on where it was.
//
// Reading events late disturbs nothing: responses do not wait behind them.
// When more than [Options.Buffer] events wait, further ones are left out; the
// gap in their Seq tells that they are missing.
package client
