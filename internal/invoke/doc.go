// Package invoke is the tool door: every call of every tool goes through a
// [View] of the [Door], from whatever surface it comes.
//
// A call passes, in this order: the budgets; lookup; repair and validation of
// its arguments; the hooks, which may refuse it, change its arguments or want a
// person to allow it; loop detection; its plan, which may be forbidden or need a
// person's decision; the ledger, which has it on disk that the call begins; and
// then the tool. Whatever happens, the model gets a result that tells it what
// to do next, and the ledger what became of the call. The errors that Invoke
// returns are the context's own, those of the ledger, tool.ErrSuspended and
// tool.ErrStop.
//
// Arguments are judged after the hooks ran, so that what loop detection counts
// and what a person approves is what would be run.
package invoke
