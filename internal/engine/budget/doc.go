// Package budget limits the money that model calls cost.
//
// Before each call [Budgets.Reserve] stores a hold of the most that the call may cost, in
// every scope that has a limit: the day, the agent's day, the task (a run with all runs
// that it causes) and the run. A call whose hold does not fit a limit gets a lower limit
// for its answer, or is refused with a [usage.BudgetError]. After the call
// [Budgets.Settle] replaces the hold by the cost, in the commit that stores the usage of
// the call. The hold of a call whose process ended counts as spent.
//
// Without limits nothing is stored and nothing is read.
//
// When a share of a limit is spent, and when a limit is reached, people are told, once for
// each scope and day. What they were told is in the store.
package budget
