// Package tool defines the contract of a tool: [Tool], its [Spec], the [Call]
// it receives and the [Result] it returns. Only the executor in package invoke
// runs tools.
//
// A tool declares its [Effect]. The effect decides how a call is recovered
// after a crash (only calls that read are repeated), which calls may run in
// parallel, and whether the start of a call must be on disk before it runs. A
// tool whose effect depends on its arguments, or that may need an approval,
// also implements [Planner]: it first describes exactly what it would do, and
// only what was planned is run.
//
// The conformance suite is in package tooltest.
package tool
