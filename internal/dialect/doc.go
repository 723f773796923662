// Package dialect is what the dialects share: a request body that is put
// together from kept pieces, JSON text, the HTTP call with its bounds and
// errors, and the message that a stream builds up. What a wire format looks
// like is in the dialects themselves.
package dialect
