// Package offline is the assistant that answers when there is no model: an
// [llm.Provider] that is no language model and says so. It understands plain
// requests in English and Chinese through a table of intents and carries them
// out through the tools that the request offers, like any model.
//
// It keeps no state. A request becomes a plan of steps in groups; the steps of
// a group run side by side. The rounds of tool calls since the person's message
// are played back against the plan: what comes next is the next round, or a
// reply made of the results, which claims nothing that no result shows.
package offline
