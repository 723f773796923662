// Package heartbeat defines the periodic check of an agent and the requests for it.
//
// A heartbeat is a run in which the model looks whether something needs attention. If
// nothing does, its answer is HEARTBEAT_OK, which nobody gets to see. It begins at the
// interval of the agent (see [Next]), or because of a [Wake]: a job, a webhook or a client
// has put an event into the queue of a session and requests that the session handles it
// now.
//
// A Wake is stored by [Request] in the transaction of its cause. There is at most one
// pending Wake per session; further requests merge with it. The service of the engine
// replaces it by the queue item of the run in one transaction, so that neither a crash nor
// a busy session loses or doubles it.
//
// The package also reads HEARTBEAT.md ([ParseFile]), and decides when ticks are due and
// which of them are skipped. These rules are pure functions.
package heartbeat
