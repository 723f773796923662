package llm

// Texts that Chela itself writes into a conversation. Every model reads them; the
// offline provider also recognizes them, because it gets nothing but the messages.
const (
	// EventPrefix begins a user message that reports an event, such as the end of a
	// background command.
	EventPrefix = "[System] "
	// RequesterPrefix follows EventPrefix in a message to a subagent.
	RequesterPrefix = "Message from your requester: "
	// EventsHeading begins a user message that lists the events since the last turn.
	EventsHeading = "[System events since the last turn]"
	// OverheardHeading begins a user message with the messages of a chat since the last
	// answer that did not address the assistant.
	OverheardHeading = "[Messages in this chat since your last answer, which are context and not addressed to you]"
	// EarlierHeading begins a user message with what was said before the next one, in a
	// conversation that a client keeps itself.
	EarlierHeading = "[Earlier messages of this conversation, as the client has them]"
	// WaitingPrefix begins the result of a call that waits for a decision. The id of
	// the approval follows.
	WaitingPrefix = "waiting for approval "
	// LimitText asks for an answer without further calls.
	LimitText = "The limit of tool calls for this turn is reached. Answer now with the information that you have, and say what is missing."
)
