// Package store combines the tables of all packages in one transaction. It is an
// interface only: the implementations are plug-ins (plugin/store/sqlite), and
// package storetest is the test suite for them.
//
// # Transactions
//
// A [Synced] commit is on disk when Update returns; it precedes everything that is
// reported to the outside or done there. An [Ordered] commit survives the end of
// the process, and the next synced commit makes it durable: a power loss undoes
// only work that was not reported as done. Commits become visible, and durable, in
// the order in which their Updates returned.
//
// The function given to Update may run twice. It must only assign the variables
// that it captures, do no I/O, and not retain the Tx. An error rolls back its own
// writes only. Several Updates may share one commit.
//
// Readers see a consistent state and never wait for a writer.
//
// Wakes are hints: a lost or repeated wake must be harmless. The rows are authoritative.
package store

import (
	"context"
	"fmt"

	"github.com/chela-ai/chela/internal/core/admission"
	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/lease"
	"github.com/chela-ai/chela/internal/core/node"
	"github.com/chela-ai/chela/internal/core/outbox"
	"github.com/chela-ai/chela/internal/core/pairing"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/usage"
)

// Sync is the durability of a commit.
type Sync bool

// The two kinds of commits.
const (
	Ordered Sync = false
	Synced  Sync = true
)

// Topic says what a transaction changed, for the readers of [Store.Wakes].
type Topic struct {
	Kind    TopicKind
	Session chela.SessionKey // set for TopicQueue
}

// TopicKind is a kind of wake.
type TopicKind string

// The kinds of wakes.
const (
	TopicQueue  TopicKind = "queue"  // an item was added for Session
	TopicOutbox TopicKind = "outbox" // a row was added for delivery
	TopicJobs   TopicKind = "jobs"   // a job or the run of a job was changed

	TopicHeartbeat TopicKind = "heartbeat" // a wake was requested
)

// Store is the durable state. It is safe for concurrent use.
type Store interface {
	// View runs f on a consistent state.
	View(ctx context.Context, f func(Reader) error) error
	// Update runs f in a transaction and commits it. The error of f is returned
	// unchanged. If the disk is full, the error is chela.ErrFull and nothing was
	// stored.
	Update(ctx context.Context, s Sync, f func(Tx) error) error
	// Wakes returns a channel of the wakes of a kind, until ctx ends. A slow reader
	// may lose wakes but never the last one of a topic.
	Wakes(ctx context.Context, kind TopicKind) <-chan Topic
}

// Get is [Store.View] for a function that returns a value.
func Get[T any](ctx context.Context, s Store, f func(Reader) (T, error)) (T, error) {
	var v T
	err := s.View(ctx, func(r Reader) error {
		var err error
		v, err = f(r)
		return err
	})
	return v, err
}

// Reader gives read access to the tables.
type Reader interface {
	Queue() queue.Reader
	Sessions() session.Reader
	Calls() session.CallReader
	Runs() run.Reader
	Leases() lease.Reader
	Approvals() approval.Reader
	Outbox() outbox.Reader
	Usage() usage.Reader
	Devices() pairing.Reader
	Guests() admission.Reader
	Children() subagent.Reader
	Jobs() job.Reader
	Heartbeats() heartbeat.Reader
	Changes() journal.Reader
	Invocations() node.Reader
	// Media returns the file references (see package media) in all rows. It may
	// contain duplicates.
	Media() ([]string, error)
	// Setting returns a value from the table of settings, "" if it is not set.
	Setting(name string) (string, error)
}

// Tx gives access to the tables in one transaction.
type Tx interface {
	Queue() queue.Table
	Sessions() session.Table
	Calls() session.Calls
	Runs() run.Table
	Leases() lease.Table
	Approvals() approval.Table
	Outbox() outbox.Table
	Usage() usage.Table
	Devices() pairing.Table
	Guests() admission.Table
	Children() subagent.Table
	Jobs() job.Table
	Heartbeats() heartbeat.Table
	Changes() journal.Table
	Invocations() node.Table
	Setting(name string) (string, error)
	SetSetting(name, value string) error
	// Wake notifies the readers of Wakes after the commit.
	Wake(Topic)
}

// Enqueue puts an item into the queue and wakes its session. If the key of the item
// exists, it puts nothing.
func Enqueue(tx Tx, it queue.Item) error {
	_, err := tx.Queue().Put(it)
	tx.Wake(Topic{Kind: TopicQueue, Session: it.Session})
	return err
}

// Held runs f in a transaction if l is still held. If the lease was released or
// acquired again, it writes nothing and returns an error that wraps
// chela.ErrFenced.
func Held(ctx context.Context, s Store, l lease.Lease, sync Sync, f func(Tx) error) error {
	return s.Update(ctx, sync, func(tx Tx) error {
		have, err := tx.Leases().Get(l.Name)
		if err != nil {
			return err
		}
		if have != l || l.Owner == "" {
			return fmt.Errorf("%s: %w", l.Name, chela.ErrFenced)
		}
		return f(tx)
	})
}

// Texts is a Store whose texts can be read and replaced in all tables, so that what a
// person wants to be forgotten is found wherever it was written.
type Texts interface {
	// Texts calls f with every text that is not empty, until it returns an error. The
	// texts are those of one moment.
	Texts(ctx context.Context, f func(Text) error) error
	// Replace replaces texts in one synced commit, and returns how many. A text that has
	// changed since it was read stays.
	Replace(ctx context.Context, texts []Replacement) (int, error)
	// Scrub removes what was replaced or deleted from the files of the store. It waits
	// for readers, but not longer than ctx.
	Scrub(ctx context.Context) error
}

// Text is a text in a table.
type Text struct {
	Table, Column string
	Row           int64
	ID            string           // of the row; "": it has none
	Session       chela.SessionKey // that the row belongs to; "": none
	Fixed         bool             // it identifies something and cannot be replaced
	Value         string
}

// Replacement is a text and what replaces it.
type Replacement struct {
	Text
	New string
}
