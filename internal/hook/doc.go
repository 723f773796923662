// Package hook is what may stand before and after a call of a tool.
//
// A [Before] is asked when the arguments are known and valid. It may refuse the
// call, give other arguments, ask that a person allows it, or say nothing. Hooks
// are asked one after the other, by falling priority, those of the same in the
// order in which they were given; each sees the arguments that the one before it
// left. The first that refuses decides, also over one that asked for a person.
// One that fails is logged and passed over; one that does not answer in its time
// refuses, since nobody knows what it would have said.
//
// An [After] is told of each call whose tool has run, once, in the order in
// which the calls ended. It changes nothing, and nothing waits for it.
package hook
