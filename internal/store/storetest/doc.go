// Package storetest is the suite that every implementation of the store runs:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Store { return open(t) })
//	}
//
// It asks for what the tables, the transactions and the wakes promise. What
// survives the loss of power is not visible from outside a process: package
// power cuts it.
package storetest
