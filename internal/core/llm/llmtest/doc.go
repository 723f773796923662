// Package llmtest provides scripted models for tests: their answers are lists
// of steps.
//
// [Script] is an [llm.Provider] in this process. [Server] is an HTTP handler
// with the wire format of a real service, served over a socket or, for
// testing/synctest, over memory ([Pipe]). Both reject requests that the real
// service would reject, with a reason: see [Validate] and package wiretest.
// [Suite] is the conformance suite of dialects.
package llmtest
