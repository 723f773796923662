// Package offline is the assistant that answers if there is no model: an
// [llm.Provider] that is not a language model and says so. It understands plain
// requests in English and Chinese by a table of intents and performs them with
// the tools of the request, like any model.
//
// The provider has no state. A request becomes a plan of steps in groups; the
// steps of a group run in parallel. The rounds of tool calls since the user's
// message are replayed against the plan. The answer is the next round, or a
// reply that is based only on the results.
package offline
