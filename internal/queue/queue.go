package queue

import (
	"time"

	"github.com/chela-ai/chela/internal/chela"
)

// State says what became of an item.
type State string

// The states. The last three are final.
const (
	Owed      State = "owed" // what it tells of has not happened yet; see Tell and Release
	Waiting   State = "waiting"
	Taken     State = "taken" // by the run Item.Run; it becomes Done with the run's end
	Done      State = "done"
	Dropped   State = "dropped"   // by the cap; its text may be in a summary
	Cancelled State = "cancelled" // by a stop
)

// Kind says what an item asks for.
type Kind string

// The kinds.
const (
	Message Kind = "message" // a person wrote
	System  Kind = "system"  // Chela itself has something to tell the model: a result that was owed
	Resume  Kind = "resume"  // a suspended run can go on: a call of it was decided
	Command Kind = "command" // a slash command; stored as Done, for its key only
)

// Item is one piece of work for a session.
type Item struct {
	ID        string           // unique; of a message the id of the run it would start
	Key       string           // dedupe key: taken at most once; unique among all items of 30 days
	Session   chela.SessionKey // whose work it is
	Kind      Kind
	Principal chela.Principal // who asked
	Inbound   chela.Inbound   // what was asked; of other kinds Text and Address only
	Call      string          // of Resume and System: the tool call it is about
	State     State
	Run       chela.RunID // the run that took it
	Note      string      // why it was dropped or cancelled; of a command, its answer
	Created   time.Time
	Seq       int64 // order of arrival, given by the table
}

// Receipt says what became of a Put.
type Receipt struct {
	Item Item // as it is stored now
	New  bool // false: the key was known, nothing was stored
}

// Reader reads the queue.
type Reader interface {
	// Waiting returns the items of the session in state Waiting, by Seq.
	Waiting(chela.SessionKey) ([]Item, error)
	// Get returns an item by id, or chela.ErrNotFound.
	Get(id string) (Item, error)
	// ByKey returns an item by dedupe key, or chela.ErrNotFound.
	ByKey(key string) (Item, error)
	// Owed returns the items of all sessions in state Owed, by Seq.
	Owed() ([]Item, error)
	// Sessions returns the keys that have waiting items.
	Sessions() ([]chela.SessionKey, error)
}

// Table is the queue inside a transaction.
type Table interface {
	Reader
	// Put stores a new item, or returns the receipt of its key.
	Put(Item) (Receipt, error)
	// Set moves items to a state, with their Run and Note as given.
	Set(State, ...Item) error
	// Take is Set for items that wait. It reports whether all of them did.
	Take(State, ...Item) (bool, error)
	// Finish moves the items that a run took to Done.
	Finish(chela.RunID) error
	// Prune deletes final items created before t and returns how many.
	Prune(t time.Time) (int, error)
}
