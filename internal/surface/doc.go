// Package surface contains the interfaces to people and programs: the gateway
// (WebSocket), its methods, the HTTP API, the command line and the terminal
// interface.
//
// A surface translates: it authenticates the caller, decodes the request, calls
// the engine or reads the store, and encodes the answer. It declares the small
// interfaces that it needs from the engine. cli and tui speak to the gateway
// only through the public package client, even when the engine runs in their
// own process.
package surface
