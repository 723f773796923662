// Package rpc says what a method of the gateway is. [New] is the only way to
// make one: it takes the method's name, the role and the scope that a caller
// needs, and a function from parameters to a result. [Set.Call] is the only
// way to call one; it checks role, scope and parameters, in this order, and
// only then runs the function.
//
// Parameters are a struct. A property without omitempty or omitzero in its
// json tag is required; a property that the struct does not have is refused,
// unless the method accepts it by name (see [Method.Accepting]).
package rpc
