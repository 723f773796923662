// Package session is a conversation: its [Meta] under a key, the [Entry] rows
// of its transcript, the [Call] rows of its tools, and [Compile], which makes
// of entries the list that is sent to a model.
//
// The transcript only grows. What a model is sent is a pure function of it:
// total (any entries give a list), and valid (any list is accepted by every
// provider), so that no crash, cut or abort can break a conversation for good.
//
// [Cache] keeps the compiled transcripts that were used last. [Export] and
// [Import] are the form in which a transcript leaves and enters the database.
package session
