//go:build !race

package chelatest

// raced reports whether the race detector is on.
const raced = false
