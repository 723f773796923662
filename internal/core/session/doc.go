// Package session defines conversations: the [Meta] stored under a key, the [Entry] rows
// of the transcript, the [Call] rows of tool calls, and [Compile], which converts entries
// to the message list that is sent to a model.
//
// A transcript is append-only. Compile is a pure function that accepts any entries and
// returns a list that every provider accepts. So no crash, cut or abort can make a
// conversation unusable.
//
// [Cache] caches compiled transcripts. [Export] and [Import] write and
// read transcripts in an exchange format.
package session
