// Package tool is what a tool is: [Tool], its [Spec], the [Call] it gets and
// the [Result] it gives. Tools are run by the door in package invoke and by
// nothing else.
//
// A tool says its [Effect], which decides how a crash is recovered (only what
// [Reads] is run again), what may run side by side (calls that are Parallel),
// and whether the start must be on disk first. A tool whose effect depends on
// its arguments, or that may have to ask, is a [Planner]: it says first,
// exactly, what it would do; what was planned, and nothing else, is run.
//
// The conformance suite is package tooltest.
package tool
