// Package egress is the HTTP client for all outgoing requests.
//
// A [Transport] resolves a name itself, checks all of its addresses against its
// [Policy] and dials one of the checked addresses, so there is no second lookup
// that could return another address. One address that is not allowed refuses
// the name. The zero Policy allows the public internet only. Loopback, private,
// link-local, metadata and other special addresses, in any form, are refused
// unless the policy allows them.
//
// Each redirect is a new request through the same Transport. Credentials are
// not sent to another origin, and no redirect leads from https to http. See
// [Client].
//
// A proxy from the environment is trusted and may have any address. The target
// of the request is still resolved and checked here, but the proxy makes the
// connection and may resolve the name to other addresses.
package egress
