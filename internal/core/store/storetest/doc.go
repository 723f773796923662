// Package storetest is the test suite for implementations of the store:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.Store { return open(t) })
//	}
//
// It tests the tables, the transactions and the wakes. Durability cannot be
// tested from within a process: package power simulates power cuts.
package storetest
