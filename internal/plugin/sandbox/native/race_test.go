//go:build race

package native_test

// race says whether the race detector slows this build down, so that tests attack
// less.
const race = true
