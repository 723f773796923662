// Gate runs the parts of continuous integration that a shell script does badly:
//
//	go run ./internal/test/gate types                 type-check all targets from source
//	go run ./internal/test/gate test [ARG ...]        go test ARG ..., with a second look
//
// Both print the findings last, so that the end of a log says what is wrong.
//
// A run of tests is red after a build failure, a panic, a time-out, a data race, the
// failure of a package outside of its tests, or more than three failed tests. Otherwise
// each failed test runs three times more, alone, and the run is green if all of these
// pass; such a test is printed as FLAKY. It has to be entered into the file .ci/flaky,
// a line each:
//
//	2026-01-31 internal/kit/lane.TestFair: the second caller may come first
//
// The date is at most 14 days away when the line is written. A line whose date has
// passed makes every run red, so that a flaky test is mended or removed in time.
//
// Tests that were skipped because the machine lacks something are listed as well.
package main
