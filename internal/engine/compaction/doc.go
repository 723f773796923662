// Package compaction writes the summary that replaces the beginning of a conversation.
//
// Package compact has the rules: where a conversation is cut, how it is divided, what
// a summary must contain. [Summarize] follows them and asks a model. It always
// returns a text, unless it is stopped:
//
//	everything → without the large messages → a note with the facts
//
// A step that fails is followed by the next one. A step fails if the model fails twice,
// or if its answers are empty, truncated, a refusal, or contain none of the facts of
// the conversation. The number of calls is limited.
//
// Every text passes the exam of package compact: facts that it does not contain are
// put back literally.
//
// Summarize neither reads nor writes the store. Package runner commits the result.
package compaction
