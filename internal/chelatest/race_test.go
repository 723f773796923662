//go:build race

package chelatest

// raced says that the race detector is on: everything takes ten times as long.
const raced = true
