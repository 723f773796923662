//go:build !race

package pdf_test

// slow is the factor by which time limits are multiplied in this build.
const slow = 1
