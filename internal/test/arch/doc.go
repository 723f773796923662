// Package arch tests the rules of the source tree: which package may import
// which, that every package is documented, how things are named, and what no
// package may contain. It has no code besides its tests.
package arch
