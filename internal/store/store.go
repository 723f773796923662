// Package store joins the tables of the nouns in one transaction. It is the
// contract of what keeps the truth; implementations are packages below it
// (sqlite), and the suite that each of them runs is package storetest.
//
// # Transactions
//
// A [Synced] commit is on disk when Update returns, and stands before whatever
// the outside is told or sees done. An [Ordered] commit survives the death of
// the process and is made durable by the next synced one: power loss can only
// undo work that nobody was told is done. Commits become visible, and durable,
// in the order in which their Updates returned.
//
// The function given to Update may run twice. It only assigns what it
// captures, does no I/O, and must not keep the Tx. An error rolls back what it
// wrote, and only that. Several Updates may share one commit.
//
// Readers see a consistent state and never wait for a writer.
//
// Wakes are hints: lost or doubled ones must do no harm. Rows are the truth.
package store

import (
	"context"
	"fmt"

	"github.com/chela-ai/chela/internal/approval"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/outbox"
	"github.com/chela-ai/chela/internal/pairing"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/run"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/usage"
)

// Sync says what a commit waits for.
type Sync bool

// The two kinds of commits.
const (
	Ordered Sync = false
	Synced  Sync = true
)

// Topic says what a transaction changed, for those who wait for it.
type Topic struct {
	Kind    TopicKind
	Session chela.SessionKey // of TopicQueue
}

// TopicKind is a kind of wake.
type TopicKind string

// The kinds of wakes.
const (
	TopicQueue  TopicKind = "queue"  // an item was put for Session
	TopicOutbox TopicKind = "outbox" // a row is to be sent
)

// Store keeps the truth. It is safe for concurrent use.
type Store interface {
	// View runs f on a consistent state.
	View(ctx context.Context, f func(Reader) error) error
	// Update runs f in a transaction and commits it. The error of f is
	// returned as it is; chela.ErrFull says that nothing was stored for lack
	// of room.
	Update(ctx context.Context, s Sync, f func(Tx) error) error
	// Wakes returns a channel of what commits woke of a kind, until ctx ends. A
	// slow reader loses wakes but never the last one of a topic.
	Wakes(ctx context.Context, kind TopicKind) <-chan Topic
}

// Get is View for what f reads.
func Get[T any](ctx context.Context, s Store, f func(Reader) (T, error)) (T, error) {
	var v T
	err := s.View(ctx, func(r Reader) error {
		var err error
		v, err = f(r)
		return err
	})
	return v, err
}

// Reader is the tables, to read.
type Reader interface {
	Queue() queue.Reader
	Sessions() session.Reader
	Calls() session.CallReader
	Runs() run.Reader
	Approvals() approval.Reader
	Outbox() outbox.Reader
	Usage() usage.Reader
	Devices() pairing.Reader
	// Media returns the references to files (see package media) that rows hold,
	// some of them more than once.
	Media() ([]string, error)
	// Setting returns a value of the small table of facts that belong to no
	// noun ("" when there is none).
	Setting(name string) (string, error)
}

// Tx is the tables, in one transaction.
type Tx interface {
	Queue() queue.Table
	Sessions() session.Table
	Calls() session.Calls
	Runs() run.Table
	Approvals() approval.Table
	Outbox() outbox.Table
	Usage() usage.Table
	Devices() pairing.Table
	Setting(name string) (string, error)
	SetSetting(name, value string) error
	// Wake tells the readers of Wakes after the commit.
	Wake(Topic)
}

// Held runs f in a transaction in which l is still the session's lease. It
// returns an error in whose chain is chela.ErrFenced, and writes nothing, when
// another run or another process took the session.
func Held(ctx context.Context, s Store, l run.Lease, sync Sync, f func(Tx) error) error {
	return s.Update(ctx, sync, func(tx Tx) error {
		have, err := tx.Runs().Lease(l.Session)
		if err != nil {
			return err
		}
		if have.Fence != l.Fence || have.Owner != l.Owner {
			return fmt.Errorf("session %s: %w", l.Session, chela.ErrFenced)
		}
		return f(tx)
	})
}
