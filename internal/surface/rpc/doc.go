// Package rpc defines the methods of the gateway. [New] creates a method from
// its name, the role and scope a caller needs, and a function from parameters
// to a result. [Set.Call] is the only way to call one. It checks the role, the
// scope and the parameters, in this order, before it runs the function.
//
// Parameters are a struct. A property without omitempty or omitzero in its json
// tag is required. One rule holds for properties that the struct does not have. A
// method that reads ignores them. A method that changes something accepts those that
// it names with [Method.Ignoring], and refuses the others, those of
// [Method.Refusing] with a better reason. Conditions and prohibitions are never
// ignored. The log names the properties that had no effect.
package rpc
