// Package outbox is what is owed to a channel: [Row], one keyed part of an
// answer, written in the commit that ends the run and sent afterwards by
// package deliver.
package outbox

import (
	"time"

	"github.com/chela-ai/chela/internal/chela"
)

// State says how far a row is.
type State string

// The states. Sent, Failed and Ambiguous are final.
const (
	Draft     State = "draft"     // a preview of a run that goes on; PlatformID is the message that is edited
	Pending   State = "pending"   // to be sent, at NotBefore or later
	Attempted State = "attempted" // handed to the channel, outcome not known yet
	Sent      State = "sent"      // the platform confirmed it
	Failed    State = "failed"    // refused for good, or out of attempts
	Ambiguous State = "ambiguous" // the connection broke after it was handed over: sent at most once, perhaps not
)

// Row is one part of an answer to an address.
type Row struct {
	Key        string // run id, part: one message on the platform
	Run        chela.RunID
	Session    chela.SessionKey
	Address    chela.Address
	ReplyTo    string
	Part       int // 0-based; parts of a run go out in this order
	Text       string
	Media      []chela.Media
	State      State
	Attempts   int
	NotBefore  time.Time
	PlatformID string // of the message on the platform, once known
	Error      string
	Created    time.Time
	Seq        int64 // order of writing, given by the table
}

// Reader reads the outbox.
type Reader interface {
	// Get returns a row, or chela.ErrNotFound.
	Get(key string) (Row, error)
	// Open returns rows that are not final, by Seq, at most limit (0: all).
	Open(limit int) ([]Row, error)
	// OfRun returns the rows of a run, by Part.
	OfRun(chela.RunID) ([]Row, error)
}

// Table is the outbox inside a transaction.
type Table interface {
	Reader
	// Put stores rows by their keys, new or changed.
	Put(...Row) error
	// Delete removes rows: drafts that came to nothing.
	Delete(keys ...string) error
	// Prune deletes final rows created before t and returns how many.
	Prune(t time.Time) (int, error)
}
