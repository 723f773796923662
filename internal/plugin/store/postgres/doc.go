// Package postgres implements the store in a PostgreSQL database, so that a second machine
// goes on when the first one fails. The statements are those of store/table.
//
// # Ownership
//
// One process at a time owns the database: only its commits are accepted. [Open] waits until
// no other process does. The owner renews its right every second, by the clock of the
// database, and it expires after [Options.TTL], so that another process takes over when the
// owner, its machine or its network fails. Each takeover increments a fence, and every
// transaction begins with an update of the fence's row that fails if the fence is another
// one: an owner that was suspended or cut off, and does not know that it was superseded,
// writes nothing. The update also locks the row, so that a takeover waits for a
// transaction in progress, and the server ends a transaction whose client is silent
// for longer than the right lasts.
//
// An owner knows by its own clocks until when it has certainly not been superseded
// ([DB.Held]); before an action outside of the database it checks that. Once the right was
// not renewed in time, [DB.Lost] is closed, nothing is stored, and the process has to open
// the database again.
//
// # Commits
//
// There is one commit at a time, by the goroutine of the writer. Updates that arrive during
// a commit are batched into one transaction, each behind its own savepoint. If a batched
// transaction fails, each of its Updates is retried alone. An ordered commit is
// one with synchronous_commit off, which PostgreSQL makes durable with the next synced
// commit, because the log is one file.
//
// If the connection breaks before a commit, the transaction is repeated on a new one. If it
// breaks during a commit, the outcome is unknown: the row of the fence also has the number
// of the last transaction, which is read again, and only a transaction that was not
// committed is repeated.
//
// Because only the owner commits, wakes do not leave the process: there is no NOTIFY.
//
// # The schema
//
// The tables are in the schema that search_path of the address names, or in "chela". A new
// database gets its tables from the files in migrations. Each of them leads from one version
// to the next; only the owner migrates.
//
// A text cannot contain the character 0 or bytes that are not UTF-8: the first is left out,
// the others are replaced.
package postgres
