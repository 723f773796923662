// Package wire is the gateway protocol as Go types: frames, errors, the
// handshake, and the parameters, results and event payloads of its methods.
//
// A connection carries text frames, one JSON object each. The gateway speaks
// first, with the event connect.challenge; the client answers with the request
// connect; the gateway's response to it is a [Hello]. From then on the client
// sends requests and the gateway responses and events, in any order.
//
//	gateway  {"type":"event","event":"connect.challenge","payload":{"nonce":"…","ts":1795188873525}}
//	client   {"type":"req","id":"1","method":"connect","params":{"minProtocol":4,"maxProtocol":4,…}}
//	gateway  {"type":"res","id":"1","ok":true,"payload":{"type":"hello-ok","protocol":4,…}}
//	client   {"type":"req","id":"2","method":"chat.send","params":{"sessionKey":"main","message":"hi","idempotencyKey":"…"}}
//	gateway  {"type":"res","id":"2","ok":true,"payload":{"runId":"…","status":"started"}}
//	gateway  {"type":"event","event":"chat","payload":{"runId":"…","state":"delta","deltaText":"He",…},"seq":1}
//
// Some methods answer twice with the same id: first that the work was
// accepted, later with its result.
//
// Events that go to everybody carry a sequence number that rises by one for
// each connection, from 1. A client that sees a gap has missed something and
// reads again what it shows. Nothing is sent twice.
//
// Our own addition for clients that come back is [CapCursor]: with it events
// have a cursor, a [Resume] in the parameters of connect names the last one,
// and the [Hello] says in [Resumed] what follows. Who does not name the
// capability is told none of it.
//
// A field without omitempty in a type of parameters is required. Readers
// ignore properties that they do not know.
package wire
