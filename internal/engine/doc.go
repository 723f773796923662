// Package engine is the folder of the packages that carry work out: they accept
// messages, decide which session is served when, run the loop of model and tools,
// and deliver answers.
//
// A package belongs here if it owns goroutines or transactions over several tables
// on behalf of a session. It works on the contracts in core and never imports a
// plug-in or a surface: app hands both in. A rule over several tables takes a
// store.Tx and is here; a rule over one table is in that table's noun in core.
package engine
