// Package forget removes what is known about a topic from all places where it was
// written: transcripts and other rows of the store, notes, stored attachments and
// outputs, scheduled jobs, the input history of the terminal, logs and search indexes.
//
// [Forgetter.Find] lists what would be removed, and what would stay and why.
// [Forgetter.Remove] removes it: runs that have it in their context are stopped, each
// place is searched with the same rules and changed, memory caches are dropped, and all
// places are searched again, until nothing is found. The database overwrites what it
// deletes.
//
// A removal that has begun is recorded, and [Forgetter.Resume] completes it at the next
// start. The record and the answer are removed as well. Nothing here is told to the
// journal of changes: a removal cannot be undone.
//
// What cannot be removed: what was sent to providers of models and to chat apps, copies
// of the database, the history of a repository, and the person's own files.
package forget
