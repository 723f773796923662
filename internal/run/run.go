// Package run is one prompt carried to its end: [Run], its states, and the
// [Lease] that makes one process and one run the only writer of a session.
package run

import (
	"time"

	"github.com/chela-ai/chela/internal/chela"
)

// State says where a run is.
type State string

// The states. Active runs are Running or Suspended; the others are final.
const (
	Running    State = "running"
	Suspended  State = "suspended" // a call waits for a decision; no goroutine belongs to it
	OK         State = "ok"
	Failed     State = "error"
	TimedOut   State = "timeout"
	Aborted    State = "aborted"
	Superseded State = "superseded"
)

// Final reports whether s never changes again.
func (s State) Final() bool { return s != Running && s != Suspended }

// Trigger says what started a run.
type Trigger string

// The triggers.
const (
	User   Trigger = "user"   // a person's message
	System Trigger = "system" // what Chela itself was told
)

// Run is the record of a run.
type Run struct {
	ID        chela.RunID
	Session   chela.SessionKey
	SessionID string // the transcript it writes to
	Agent     chela.AgentID
	Trigger   Trigger
	Lane      string
	State     State
	Principal chela.Principal
	Address   chela.Address // where the answer goes: of the latest message it answers
	Think     string        // level asked for by the message; empty: the session's
	Model     string        // provider/model that answered last
	Attempts  int           // how often it was begun: 1, and one more each time it was resumed after a crash
	Error     string        // one sentence for people, of a run that failed
	Text      string        // the final answer, of a run that ended; empty: nothing is delivered
	Footer    string        // one line about usage that follows the answer; empty: none
	Silent    bool          // the model chose to say nothing
	Started   time.Time
	Ended     time.Time
	Fence     int64 // of the lease under which it runs
}

// Lease is the right to write to a session. Every write of a run carries it;
// store.Held refuses the write when the session has a newer one.
type Lease struct {
	Session chela.SessionKey
	Owner   string // the process: a new id at each start
	Fence   int64  // rises with each owner and each superseding run
	Run     chela.RunID
}

// Reader reads runs.
type Reader interface {
	// Get returns a run, or chela.ErrNotFound.
	Get(chela.RunID) (Run, error)
	// Active returns the running and suspended runs of a session, oldest
	// first; of all sessions for the empty key.
	Active(chela.SessionKey) ([]Run, error)
	// Lease returns the session's lease; the zero Lease when there is none.
	Lease(chela.SessionKey) (Lease, error)
}

// Table is the runs inside a transaction.
type Table interface {
	Reader
	// Put stores a run by its id, new or changed: all but whose it is and when it
	// began, which stays as it was.
	Put(Run) error
	// Acquire takes the session's lease for owner and run with the next fence.
	Acquire(key chela.SessionKey, owner string, run chela.RunID) (Lease, error)
	// Prune deletes final runs that ended before t and returns how many.
	Prune(t time.Time) (int, error)
}
