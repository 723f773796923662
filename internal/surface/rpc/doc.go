// Package rpc defines the methods of the gateway. [New] creates a method from
// its name, the role and scope a caller needs, and a function from parameters
// to a result. [Set.Call] is the only way to call one. It checks the role, the
// scope and the parameters, in this order, before it runs the function.
//
// Parameters are a struct. A property without omitempty or omitzero in its json
// tag is required. Properties that the struct does not have are rejected,
// unless the method ignores them by name (see [Method.Ignoring]).
package rpc
