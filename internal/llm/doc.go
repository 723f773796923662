// Package llm is what a model is: messages, tools, a request, the events of
// its answer, and [Provider], the contract that each provider's dialect
// implements. It imports the standard library only.
//
// Messages are immutable once they are part of a request. A conversation that
// goes on sends the same pointers again, so that a dialect can keep what it
// encoded with [Message.Memo].
//
// # Streams
//
// [Provider.Stream] returns an iterator. It yields any number of deltas and
// then exactly one of: an event of kind [Done], or an error. Nothing follows
// either. [Restart] says: forget what this call gave so far, the answer begins
// again (another key or model answers now). Breaking out of the range closes
// the connection.
//
// What a call used that broke off is told too, once: beside the error that ends
// the stream, or by [Spent] when others were asked after it.
//
// The conformance suite is package llmtest.
package llm
