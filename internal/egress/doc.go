// Package egress is the way out: the HTTP client through which everything that
// Chela fetches is fetched.
//
// A [Transport] looks a name up itself, holds every address that it leads to
// against its [Policy], and dials one of those addresses: there is no second
// lookup in which a name could lead elsewhere. One address that is not allowed
// refuses the name. The zero Policy is the public internet; loopback, private,
// link-local, metadata and other special networks, in whatever form they are
// written, are refused unless they are named.
//
// Each redirect is a new request to the same Transport. What identifies the
// caller does not go along to another origin, and nothing goes from https to
// http. See [Client].
//
// A proxy of the environment is trusted: it is dialled wherever it is. The
// target is still looked up and held against the policy here, but it is the
// proxy that connects, and that may see other addresses.
package egress
