// Package sqlite implements the store in one SQLite file with a write-ahead log.
//
// # Commits
//
// There is one commit at a time. If no commit is in progress, Update commits in the
// goroutine of its caller, without a handoff. Updates that arrive during a commit
// are batched into one transaction by the goroutine of the writer; each runs behind
// its own savepoint. The writer never waits for more Updates to arrive. A commit is
// synced if one of its Updates asked for it. Because the log is one file, the sync
// also makes the earlier ordered commits durable. If a batched transaction fails,
// each of its Updates is retried alone.
//
// Readers use a small pool of connections with small caches, which are closed when
// they are idle. They see the last commit and do not block the writer.
//
// # Faults
//
// A full disk is reported as chela.ErrFull; nothing was stored then. After any
// other failed write or sync, no commit is accepted until the log was rewritten and
// synced: an fsync that failed may succeed the next time although the data was lost
// (see repair.go). The process stays up and continues when the disk works again.
//
// A file with unexpected content is reported as a *[DamagedError]; from then on no
// commit is accepted. Each row has a checksum (see checksum.go), which is checked
// when the row is read. Open compares the log with the index that a killed process
// leaves, because SQLite ignores what follows a damaged frame. [Restore]
// replaces it by a backup; [Recover] replaces it by its readable rows, which
// [Salvage] copies. [DB.Check] reads the whole file in the background.
//
// # The schema
//
// A new database gets the tables of schema.sql. Each file in migrations leads from
// one version to the next; a test shows that they lead to the tables of schema.sql.
// The database is copied before a migration.
//
// A message that consists of one plain text is stored as it is and read without
// decoding. Most of a long transcript consists of such messages.
//
// # Tests
//
// Package storetest is the suite for all stores. Package power simulates a disk
// that loses unsynced writes and that fails; its sweeps test the durability
// guarantees. A database that is used in a synctest bubble must be opened in the
// bubble.
package sqlite
