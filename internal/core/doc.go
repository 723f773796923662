// Package core is the folder of nouns, rules and contracts.
//
// A noun (run, queue, session, outbox, …) is a package with the record type, the
// interface of its table, and the pure rules over both. A contract (llm, tool,
// channel, store, sandbox, hook, …) is an interface that plug-ins implement, with
// its conformance suite beside it (llmtest, tooltest, …). A rule that several
// rooms share (policy, allowlist, pathpolicy, …) is here too.
//
// Nothing here starts goroutines that outlive a call, opens the database or talks
// to a network, except egress, which is the only way out. The order within core is
// chela, then llm, run and shell, then the other packages, then store.
package core
