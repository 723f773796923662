// Package llmtest is models for tests: what they answer is a list of steps.
//
// [Script] is an [llm.Provider] in this process. [Server] is an HTTP handler
// that speaks the wire format of a real service, over a socket or, so that
// testing/synctest can own the time, over memory ([Pipe]). Both refuse a
// request that the real service would refuse, and say why: see [Validate] and
// package wiretest. [Suite] is what each dialect must pass.
package llmtest
