// Package dialect is the code that the dialects share: the options of a
// provider, a request body that is assembled from stored pieces, JSON text, the
// HTTP call with its limits and errors, and the message that a stream builds.
// The wire formats are in the dialects themselves.
package dialect
