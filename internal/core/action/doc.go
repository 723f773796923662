// Package action defines what can be done on messaging channels besides answering: sending
// a message, a reaction, a poll. A [Request] names an [Action] and a chat as people and
// models write them, and a [Result] says what became of it. Package engine/message carries
// requests out.
//
// What a channel supports follows from the optional interfaces that it implements, and the
// configuration may switch actions off; see [Of] and [Allowed].
package action
