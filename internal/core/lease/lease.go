// Package lease determines which process acts for a name: a session, or an
// account of a channel. An owner (a process, with a new id at each start) acquires
// the [Lease] of a name and presents its fence with every write.
//
// Several processes may share one store. Each of them sends heartbeats: it renews a row
// with the time until which it is alive, by the clock of the store. Another owner can
// acquire the lease of a dead owner with a higher fence; later writes of the dead owner
// are then refused. An owner that sends no heartbeats is dead for all others, which is
// correct if a lock ensures that only one process uses the store.
//
// The fence protects only rows. Before an action outside of the store (a model call, a
// tool call, a message) an owner checks its [Beat].
package lease

import (
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Lease is the exclusive right of an owner to act for a name.
type Lease struct {
	Name  string
	Owner string // empty: the lease is free
	Fence int64  // increases with each Acquire
}

// Session returns the lease name of a session.
func Session(key chela.SessionKey) string { return "session:" + string(key) }

// Channel returns the lease name of an account of a channel.
func Channel(channel string, account chela.AccountID) string {
	return "channel:" + channel + ":" + string(account)
}

// Reader reads leases.
type Reader interface {
	// Get returns the lease of a name. A lease that was never acquired is free and has
	// the fence 0.
	Get(name string) (Lease, error)
	// Alive reports whether the last heartbeat of the owner is still valid.
	Alive(owner string) (bool, error)
}

// Table reads and writes leases in a transaction.
type Table interface {
	Reader
	// Acquire gives the lease of a name to owner, with the next fence, and reports
	// true. If another owner that is alive has the lease, Acquire returns that lease
	// and false. An owner may acquire its own lease again, which revokes its previous
	// lease. A commit that takes over a lease from another owner must be synced.
	Acquire(name, owner string) (Lease, bool, error)
	// Release frees the lease. It does nothing if the lease was acquired again since.
	Release(Lease) error
	// Beat records that owner is alive for ttl from now. A ttl of 0 or less marks the
	// owner as dead.
	Beat(owner string, ttl time.Duration) error
}

// Beat is the last heartbeat of an owner, as known without reading the store.
type Beat struct {
	Sent time.Time // by the owner's clock, before the heartbeat was written
	TTL  time.Duration
}

// Valid reports whether the heartbeat is certainly valid at now. It compares both the
// monotonic clock, which is not affected by changes of the wall clock, and the wall
// clock, which includes the time in which the machine was suspended.
func (b Beat) Valid(now time.Time) bool { return b.Left(now) > 0 }

// Left returns the remaining validity of the heartbeat.
func (b Beat) Left(now time.Time) time.Duration {
	return b.TTL - max(now.Sub(b.Sent), now.Round(0).Sub(b.Sent.Round(0)))
}
