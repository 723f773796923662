// Package outbox defines the messages that are to be sent to channels. A [Row] is one
// part of an answer, with a unique key. The commit that ends the run writes the rows,
// and package deliver sends them afterwards.
package outbox

import (
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// State is the delivery state of a row.
type State string

// The states. The last four are final.
const (
	Draft     State = "draft"     // the preview of a run in progress; PlatformID is the message that is edited
	Pending   State = "pending"   // to be sent, at NotBefore or later
	Attempted State = "attempted" // handed to the channel; the outcome is not yet known
	Sent      State = "sent"      // the platform confirmed it
	Failed    State = "failed"    // refused permanently, or out of attempts
	// the connection was lost during the attempt; the message may have been sent, and is not retried
	Ambiguous State = "ambiguous"
	Dismissed State = "dismissed" // a person gave up the delivery
)

// Row is one part of an answer. It becomes one message on the platform.
type Row struct {
	Key        string // unique: run id and part
	Run        chela.RunID
	Session    chela.SessionKey
	Address    chela.Address
	ReplyTo    string
	Part       int // 0-based; the parts of a run are sent in this order
	Text       string
	Media      []chela.Media
	Buttons    [][]chela.Button // below the text, in rows; nil on platforms without buttons
	Poll       *Poll            // sent instead of Text, which shows it to people and hooks; nil: none
	State      State
	Attempts   int
	NotBefore  time.Time
	PlatformID string // id of the message on the platform, once known
	Error      string
	Created    time.Time
	Origin     chela.Origin // of the run; the outcome of the row is reported to it
	Seq        int64        // order of writing, assigned by the table
}

// Poll is a question with answers to choose from.
type Poll struct {
	Question string        `json:"question"`
	Options  []string      `json:"options"`
	Multiple bool          `json:"multiple,omitempty"` // several answers may be chosen
	Public   bool          `json:"public,omitempty"`   // everybody sees who chose what
	Open     time.Duration `json:"open,omitempty"`     // 0: until it is closed by hand
}

// String returns the question, and each answer on a line of its own.
func (p Poll) String() string {
	return p.Question + "\n- " + strings.Join(p.Options, "\n- ")
}

// Reader reads the outbox.
type Reader interface {
	// Get returns a row, or chela.ErrNotFound.
	Get(key string) (Row, error)
	// Open returns at most limit rows (0: all) that are not final, ordered by Seq.
	Open(limit int) ([]Row, error)
	// Undelivered returns the newest n rows that are Failed or Ambiguous, newest first.
	Undelivered(n int) ([]Row, error)
	// SentAs returns the row that became the message with an id in a chat, in any of its
	// threads, or chela.ErrNotFound. It is only as old as Prune permits.
	SentAs(a chela.Address, id string) (Row, error)
	// OfRun returns the rows of a run, ordered by Part.
	OfRun(chela.RunID) ([]Row, error)
}

// Table reads and writes the outbox in a transaction.
type Table interface {
	Reader
	// Put inserts or replaces rows by key.
	Put(...Row) error
	// Delete removes rows, such as drafts that are no longer needed.
	Delete(keys ...string) error
	// Prune deletes final rows created before t and returns their number.
	Prune(t time.Time) (int, error)
}
