//go:build !race

package web

// slow is the factor by which time and memory limits are multiplied in this
// build.
const slow = 1
