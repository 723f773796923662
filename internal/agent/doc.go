// Package agent is the loop: model → tools → model, until the model stops
// asking. It knows llm and tool and nothing else; what it does is seen in its
// events, which are its only output.
//
// [Run] is an iterator. The loop goes on when the body of the caller's range
// returns: the caller commits what an event says there, and may then publish
// it. A tool is not asked to run before the assistant message that called it
// was yielded and the body returned; the next model call is not made before
// every result of the group was yielded and the body returned.
//
//	TurnStart → (Text | Thinking)* → Assistant → (ToolStart ToolUpdate* ToolEnd)* → TurnStart … → End
//
// Results are yielded in the order of the calls, whatever order they end in.
// A failure is an event too: [End] is the last one, always, and exactly once.
package agent
