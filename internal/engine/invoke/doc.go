// Package invoke executes tool calls. Every call of every tool, from any surface,
// goes through a [View] of the [Executor].
//
// A call passes these steps in order: the budgets; the lookup of the tool; repair
// and validation of its arguments; the hooks, which may block it, change its
// arguments or require an approval; loop detection; its plan, which may be
// forbidden or need an approval; the ledger, which records the start on disk; and
// finally the tool. In every case the model gets a result that says what to do
// next, and the ledger gets the outcome. Invoke returns only errors of the
// context, errors of the ledger, tool.ErrSuspended and tool.ErrStop.
//
// Loop detection and approvals come after the hooks, so that they see the
// arguments that are used.
//
// A tool that lacks a right returns tool.Blocked. The call is planned again with
// that right, and its new plan needs an approval; see tool.Blocked.
package invoke
