//go:build !race

package web

// slow is how much longer everything takes in this build.
const slow = 1
