//go:build race

package sqlite

// race says whether the race detector slows this build down, so that tests use less
// data.
const race = true
