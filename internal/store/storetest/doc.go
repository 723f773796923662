// Package storetest is the suite that every implementation of the store runs.
package storetest
