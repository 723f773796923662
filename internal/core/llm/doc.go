// Package llm defines messages, tools, requests and the events of a model's
// answer, and [Provider], the contract of the dialects. It imports the standard
// library and kit only.
//
// Messages are immutable once they are part of a request. Successive requests
// of a conversation contain the same pointers, so that a dialect can store
// encodings with [Message.Memo].
//
// # Streams
//
// [Provider.Stream] returns an iterator. It yields any number of deltas and
// then either one event of kind [Done] or one error, which ends the stream.
// [Restart] tells the caller to discard all events of this call so far, because
// the answer begins again (another key or model answers now). Breaking out of
// the range closes the connection.
//
// The usage of a failed attempt is reported once: with the error that ends the
// stream, or by [Spent] if further attempts follow.
//
// The conformance suite is package llmtest.
package llm
