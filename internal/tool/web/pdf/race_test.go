//go:build race

package pdf_test

// slow is how much longer everything takes in this build.
const slow = 20
