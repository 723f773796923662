package queue

import (
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/run"
)

// State is the state of an item.
type State string

// The states. The last three are final.
const (
	Deferred  State = "owed" // reserved for an event that has not happened yet; see Resolve and Release
	Waiting   State = "waiting"
	Taken     State = "taken" // by the run Item.Run; becomes Done when the run ends
	Done      State = "done"
	Dropped   State = "dropped"   // by the cap; its text may be in a summary
	Cancelled State = "cancelled" // by a stop
)

// Kind is the kind of an item.
type Kind string

// The kinds.
const (
	Message Kind = "message" // a message, usually of a person
	Event   Kind = "event"   // a notification for the model, such as the end of a background command
	// a suspended run can continue: its call Item.Call was decided, a background command of the run
	// Item.Parent ended, or it is time for another try of that run
	Resume  Kind = "resume"
	Compact Kind = "compact" // the transcript is to be compacted
	Command Kind = "command" // a slash command; stored as Done, for its key only, or waiting for its answer
)

// Item is one piece of work of a session.
type Item struct {
	ID        string           // unique; for a message, the id of the run that it starts
	Key       string           // deduplication key: accepted at most once in 30 days; empty: always new
	Session   chela.SessionKey // the session that handles the item
	Kind      Kind
	Origin    chela.Origin    // where it comes from
	Principal chela.Principal // whose rights the run gets
	// the message; other kinds use only Text, Address and Mode, and Resume the Time, before which it
	// waits
	Inbound   chela.Inbound
	Overrides run.Overrides // of the run that it starts
	Call      string        // of Resume and Event: the related tool call
	Next      bool          // of Event: does not start a run, but joins the next run of the session
	Skipped   int           // of an event with Next: number of older events that were dropped
	Owner     string        // of a deferred item: the process that releases it
	Parent    chela.RunID   // the run that put it; empty: none
	Root      chela.RunID   // the first run of the tree that Parent belongs to; empty: none
	State     State
	Run       chela.RunID // the run that took it
	Note      string      // why it was dropped or cancelled
	Result    Result      // of a command, a resolved item, and a message that another session answers; zero: none yet
	Created   time.Time
	Seq       int64 // order of arrival, assigned by the table
}

// NewEvent returns an event that joins the session's next run and starts none. The id is
// also its key: an event with the same id is accepted once. The transaction that puts it
// has to wake store.TopicQueue for the session, so that older events above [MaxNext] are
// dropped.
func NewEvent(id string, key chela.SessionKey, from chela.Origin, text string, now time.Time) Item {
	return Item{
		ID: id, Key: id, Session: key, Kind: Event, Next: true, Origin: from, State: Waiting, Created: now,
		Inbound: chela.Inbound{Text: text},
	}
}

// NewResume returns an item that continues a run in state run.Suspended. The id is also its
// key. If the run waits for another try, at is the time of it, and otherwise zero.
func NewResume(id string, r run.Run, at, now time.Time) Item {
	return Item{
		ID: id, Key: id, Session: r.Session, Kind: Resume, State: Waiting, Created: now, Principal: r.Principal, Parent: r.ID,
		Inbound: chela.Inbound{Time: at},
	}
}

// Retries reports whether the item continues a run that waits for another try.
func (it Item) Retries() bool { return it.Kind == Resume && !it.Inbound.Time.IsZero() }

// SessionDeleted is the Note of the items of a session that was deleted, whose texts are
// gone, whatever their Note was.
const SessionDeleted = "session deleted"

// Deleted reports whether the session of the item was deleted.
func (it Item) Deleted() bool { return it.Note == SessionDeleted }

// IsInput reports whether the item is a message that is listed as waiting: any except that
// of a heartbeat.
func (it Item) IsInput() bool {
	return it.Kind == Message && it.Origin.Kind != chela.OriginHeartbeat
}

// Messages returns the number of messages among items. Events, heartbeats and other kinds
// do not count: no person waits for their answer.
func Messages(items []Item) int {
	n := 0
	for _, it := range items {
		if it.IsInput() {
			n++
		}
	}
	return n
}

// Receipt is the result of a Put.
type Receipt struct {
	Item Item // as stored
	New  bool // false: the key exists already, and nothing was stored
}

// Reader reads the queue.
type Reader interface {
	// Waiting returns the items of a session in the state Waiting, ordered by Seq.
	Waiting(chela.SessionKey) ([]Item, error)
	// Get returns an item by id, or chela.ErrNotFound.
	Get(id string) (Item, error)
	// ByKey returns an item by dedupe key, or chela.ErrNotFound.
	ByKey(key string) (Item, error)
	// Deferred returns the items of all sessions in the state Deferred, ordered by Seq.
	Deferred() ([]Item, error)
	// Background returns the newest n items of work in the background, newest first:
	// those that are or were deferred, and messages with Inbound.Task.
	Background(n int) ([]Item, error)
	// OfRun returns the items that a run took, except the one that started it, ordered
	// by Seq.
	OfRun(chela.RunID) ([]Item, error)
	// Sessions returns the keys of the sessions with waiting items.
	Sessions() ([]chela.SessionKey, error)
	// Unfinished returns the first n waiting items of all sessions that belong to no run
	// yet, ordered by Seq: messages with Inbound.Unread set, and commands.
	Unfinished(n int) ([]Item, error)
	// WaitingOf returns the number of items of all sessions in the state Waiting that
	// have an origin of the kind.
	WaitingOf(chela.OriginKind) (int, error)
}

// Result is what the work that an item stands for has led to.
type Result struct {
	Outcome chela.Outcome `json:"outcome"`
	Ended   time.Time     `json:"endedAt,omitzero"`
	Text    string        `json:"text,omitempty"` // the answer, or one line for people about a background command
	Error   string        `json:"error,omitempty"`
}

// Table reads and writes the queue in a transaction.
type Table interface {
	Reader
	// Put stores a new item. If its key exists, Put returns the receipt of the existing
	// item.
	Put(Item) (Receipt, error)
	// Set moves items to a state and updates their Run, Note, Result and Skipped.
	Set(State, ...Item) error
	// Take moves waiting items to a state and updates their Run and Note. It reports whether all items were waiting.
	Take(State, ...Item) (bool, error)
	// Replace stores the Kind, Inbound, Overrides, State, Note and Result of a waiting item. It
	// reports false, and stores nothing, if the item does not wait any more.
	Replace(Item) (bool, error)
	// Finish moves the items that a run took to Done.
	Finish(chela.RunID) error
	// Prune deletes final items created before t and returns their number.
	Prune(t time.Time) (int, error)
}
