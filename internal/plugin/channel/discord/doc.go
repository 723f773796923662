// Package discord is the channel of Discord. It receives messages over a WebSocket
// connection, which Discord calls the gateway, and sends them with the REST API.
//
// # Receiving
//
// Discord numbers the events of a session. A lost connection is resumed with the number of
// an event, and all later events are sent again. The channel resumes after the last event
// that was processed completely: the number advances past a message only after the sink
// accepted it. Events are processed in order, by one goroutine; while the sink refuses a
// message for a temporary reason, later events wait. Session and number are written to the
// file session.json in the directory of the account, so that a restarted process resumes
// too. Discord keeps a session for a few minutes; messages sent during a longer absence are
// not received.
//
// A connection works while each heartbeat is acknowledged before the next one. Otherwise it
// is closed and resumed. Interactions (slash commands and pressed buttons) are acknowledged
// as soon as they arrive, because Discord waits 3 seconds, and are passed on once.
//
// # Sending
//
// Each message has a nonce made from the key of its part. Discord creates one message for a
// repeated nonce, so that a request whose outcome is unknown is repeated. Discord remembers
// nonces for a few minutes only; the channel remembers the last confirmed ones itself.
//
// A thread is a channel of its own at Discord. Its address has the channel that contains it
// as the peer. The peer of a direct message is the person, not the channel of the messages.
package discord
