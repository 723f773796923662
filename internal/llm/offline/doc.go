// Package offline is the assistant that answers when there is no model: an
// [llm.Provider] that is no language model and says so. It understands plain
// requests in English and Chinese through a table of intents and carries them
// out through the tools that the request offers, like any model.
//
// It is deterministic and keeps no state: what was asked, what is done and
// what comes next is read from the messages each time. A request becomes a
// plan of steps in groups; the steps of a group run side by side. The rounds
// of tool calls since the person's message are played back against the plan,
// and the answer is the next round or, when nothing is left or something
// failed, a reply made of the results. A reply claims nothing that no result
// shows.
package offline
