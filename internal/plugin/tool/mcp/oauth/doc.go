// Package oauth is a client of authorization servers, as servers of the Model Context
// Protocol want it (revisions 2025-06-18 and 2025-11-25): it finds out where one logs in
// (RFC 9728, RFC 8414), registers (RFC 7591), makes the address at which a person
// agrees (PKCE, RFC 8707), and gets, renews and revokes tokens.
//
// It keeps nothing: the caller stores a [Pending], a [Client] and a [Token].
//
// What a server says is not believed: an answer must name the server that was asked
// ([Discover], [Pending.Code]), no request is redirected to another host, and tokens are
// sent over https only, or to this machine. Which addresses can be reached at all is up
// to the client that the caller passes.
package oauth
