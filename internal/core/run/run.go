// Package run defines the runs of a session: [Run], its states, and its [Overrides]. A run
// extends from the first model call to the final answer.
package run

import (
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// State is the state of a run.
type State string

// The states. Active runs are Running or Suspended; the others are final.
const (
	Running    State = "running"
	Suspended  State = "suspended" // waiting, see Run.Waits; has no goroutine
	OK         State = State(chela.OutcomeOK)
	Failed     State = State(chela.OutcomeError)
	TimedOut   State = State(chela.OutcomeTimeout)
	Aborted    State = State(chela.OutcomeAborted)
	Superseded State = State(chela.OutcomeSuperseded)
)

// Final reports whether s is a final state.
func (s State) Final() bool { return s != Running && s != Suspended }

// Outcome returns the outcome that a final state stands for.
func (s State) Outcome() chela.Outcome { return chela.Outcome(s) }

// Kind is the kind of a run.
type Kind string

// The kinds of runs.
const (
	Turn    Kind = "turn"    // answers messages and events
	Compact Kind = "compact" // summarizes the older part of the transcript
)

// Waits is what a suspended run waits for.
type Waits string

// The values of [Waits].
const (
	WaitsApproval Waits = "approval" // a decision about a call
	WaitsChildren Waits = "children" // the end of its child runs and background commands
	WaitsRetry    Waits = "retry"    // the time of another try, after several interruptions; other runs go first
)

// Failure is why a run failed, for code that decides what follows.
type Failure string

// The values of [Failure]. Failures of other kinds have none.
const (
	Limit       Failure = "limit"       // it reached one of its limits, or used up a budget
	Transient   Failure = "transient"   // something that may pass, such as an overloaded model
	Empty       Failure = "empty"       // the model answered with nothing
	Interrupted Failure = "interrupted" // the process ended too often while it was worked on
)

// Run is the record of a run.
type Run struct {
	ID        chela.RunID
	Session   chela.SessionKey
	SessionID string // the transcript it writes to
	Agent     chela.AgentID
	Kind      Kind
	Origin    chela.Origin // the source that started the run
	Parent    chela.RunID  // the run that started it; empty: none
	Root      chela.RunID  // the root of its tree of runs; empty: the run itself
	Replaces  chela.RunID  // the run that it superseded, whose pending results it receives; empty: none
	Lane      string
	State     State
	Waits     Waits  // of a suspended run
	Stop      string // reason of a stop request of another process, set by Table.RequestStop; empty: none
	Principal chela.Principal
	Address   chela.Address // of the answer: the address of the latest answered message
	Overrides Overrides     // of the items that started the run
	Model     string        // provider/model of the last answer
	Attempts  int           // number of starts: 1, plus the number of resumes after a crash
	Error     string        // one sentence for people, if the run failed
	Failure   Failure       // what the sentence says; empty: something else
	Text      string        // the final answer of an ended run; empty: nothing is delivered
	Footer    string        // one line about usage that follows the answer; empty: none
	Reasoning string        // the thoughts that precede the answer, if the person wants them; not stored
	Silent    bool          // the model chose not to answer
	Started   time.Time
	Ended     time.Time
	Fence     int64 // of the session's lease under which it runs

	// Until is set at the end of a run for which the budget of a day was used up: the time
	// from which there is a new one. It is not stored.
	Until time.Time

	Decided Decided // by hooks about the end of the run; not stored
}

// Decided is what hooks decided about the end of a run.
type Decided struct {
	Outgoing *string        // the text that is sent instead of the answer; nil: the answer
	Announce *chela.Address // where the result of a child is announced; nil: the usual place
}

// Tree returns the id of the root of the tree of runs of r.
func (r Run) Tree() chela.RunID {
	if r.Root != "" {
		return r.Root
	}
	return r.ID
}

// Reader reads runs.
type Reader interface {
	// Get returns a run, or chela.ErrNotFound.
	Get(chela.RunID) (Run, error)
	// Active returns the running and suspended runs of a session, or of all sessions
	// for the empty key, oldest first.
	Active(chela.SessionKey) ([]Run, error)
	// Orphans returns the running runs of a session, or of all sessions for the empty
	// key, that no other process executes, oldest first: the lease of the session is
	// free, its owner is dead, or it belongs to owner. The caller has to exclude the
	// runs that it executes itself.
	Orphans(key chela.SessionKey, owner string) ([]Run, error)
}

// Table reads and writes runs in a transaction.
type Table interface {
	Reader
	// Put inserts or updates a run by id. An update does not change Session,
	// SessionID, Agent, Kind, Origin, Parent, Root, Replaces, Started and Stop.
	Put(Run) error
	// RequestStop sets Run.Stop of a run that is not final, for the process that
	// executes the run. It reports whether there is such a run.
	RequestStop(id chela.RunID, reason string) (bool, error)
	// Prune deletes final runs that ended before t and returns their number.
	Prune(t time.Time) (int, error)
}
