// Package sqlite keeps the truth in one SQLite file with a write-ahead log.
//
// # Commits
//
// One at a time commits. Who comes when nobody does it commits by itself, and
// wakes nobody; what came meanwhile is joined into one transaction by a
// goroutine, each Update behind a savepoint of its own. Nobody waits for more to
// come. A commit is synced when one of those in it asked for that: the log is one
// file, so that this makes the ordered commits before it durable too. When a
// joined transaction is lost, each Update in it gets another try of its own.
// Package wal below writes the pages of a commit at once, and syncs them or not.
//
// Readers have connections of their own, few, with small caches, closed when
// nothing is read. They see the last commit and hold nobody up.
//
// # Faults
//
// No room is chela.ErrFull, and nothing was stored. After any other write or
// sync that failed, no commit is taken until the log was written again and
// synced: a sync that failed once may succeed the next time although what it
// was to write is gone (see mend.go). The process stays up, and goes on when
// the disk does.
//
// A file that is not what was written is a *[DamagedError]. [Restore] puts a
// backup in its place; [Recover] what can be read of it, with [Salvage].
// [DB.Check] reads all of it in the background.
//
// # The schema
//
// A file in migrations leads from each version to the next; a copy of the
// database is kept before each step. Two things are more than tables:
//
// Every table has a rowid, and a number of columns that no other has, so that
// salvage knows where a row belongs without the schema. A step that adds a
// column to a table therefore copies the table.
//
// A message of one plain text is stored as it is, and read without decoding:
// that is most of a long transcript.
//
// # Tests
//
// The suite of every store is package storetest. Package power below it is a
// disk that loses what was not synced, and that fails: the sweeps over it
// stand for the promises of durability. A database that a synctest bubble uses
// is opened in the bubble.
package sqlite
