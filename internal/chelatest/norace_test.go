//go:build !race

package chelatest

// raced says that the race detector is on.
const raced = false
