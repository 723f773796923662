// Package wire defines the gateway protocol as Go types: frames, errors, the
// handshake, and the parameters, results and event payloads of the methods.
//
// A connection carries text frames of one JSON object each. The gateway sends
// the event connect.challenge first; the client answers with the request
// connect; the gateway responds with a [Hello]. After that the client sends
// requests and the gateway sends responses and events, in any order.
//
//	gateway  {"type":"event","event":"connect.challenge","payload":{"nonce":"…","ts":1795188873525}}
//	client   {"type":"req","id":"1","method":"connect","params":{"minProtocol":4,"maxProtocol":4,…}}
//	gateway  {"type":"res","id":"1","ok":true,"payload":{"type":"hello-ok","protocol":4,…}}
//	client   {"type":"req","id":"2","method":"chat.send","params":{"sessionKey":"main","message":"hi",…}}
//	gateway  {"type":"res","id":"2","ok":true,"payload":{"runId":"…","status":"started"}}
//	gateway  {"type":"event","event":"chat","payload":{"runId":"…","state":"delta","deltaText":"He",…},"seq":1}
//
// Some methods answer twice with the same id: first to accept the work, later
// with its result.
//
// Broadcast events carry a sequence number per connection that starts at 1 and
// increases by one. A client that sees a gap missed an event and must reload
// what it displays. Events are never sent again.
//
// Chela adds [CapCursor] for clients that reconnect. With this capability,
// events carry a cursor, a [Resume] in the parameters of connect names the last
// cursor received, and [Resumed] in the [Hello] describes what follows. Other
// clients see none of this.
//
// In types of parameters a field without omitempty is required. Unknown
// properties are ignored.
package wire
