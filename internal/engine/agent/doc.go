// Package agent is the agent loop: model, tools, model, until the model requests no
// more tools. It imports llm and tool only. Its events are its only output.
//
// [Run] returns an iterator. The loop continues when the body of the caller's range
// loop returns: there the caller commits what an event reports, and may then
// publish it. No tool is run before the assistant message that called it was
// yielded and the body returned. The next model call is not made before every
// result of the group was yielded and the body returned.
//
//	TurnStart → (Text | Thinking)* → Assistant → (ToolStart ToolUpdate* ToolEnd)* → TurnStart … → End
//
// Results are yielded in the order of the calls, regardless of the order in which
// they end. A failure is an event too: [End] is always the last event, and occurs
// exactly once.
package agent
