// Package task defines the list of the work in the background and of the answers that
// could not be delivered.
//
// A [Task] is not stored. It is a view of rows that exist for other reasons: the record
// of a subagent, the deferred item of a background command, the item and the run of a
// message, and the outbox. Its id is that of the row. A state that is final in these rows
// is final here, too.
//
// The state says how the work went; [Delivery] says separately what became of its result.
package task

import (
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Kind is what the work of a task is.
type Kind string

// The kinds.
const (
	Subagent Kind = "subagent" // the runs of a child
	Command  Kind = "command"  // a background command of a tool call
	Agent    Kind = "agent"    // a message with Inbound.Task
	// the turn of a scheduled job; a task only while it is active, or while its answer is not
	// delivered
	Cron Kind = "cron"
	// another message or run; a task only while it is active, or while its answer is not delivered
	Turn Kind = "turn"
)

// State is the state of the work.
type State string

// The states. The last five are final.
const (
	Queued    State = "queued"
	Running   State = "running"
	Succeeded State = "succeeded"
	Failed    State = "failed"
	TimedOut  State = "timed_out"
	Cancelled State = "cancelled"
	Lost      State = "lost" // what it ran in does not exist any more
)

// Final reports whether s is a final state.
func (s State) Final() bool { return s != Queued && s != Running }

// Delivery is what became of the result.
type Delivery string

// The values of [Delivery].
const (
	NotApplicable Delivery = "not_applicable" // there is no result, or nobody waits for it
	SessionQueued Delivery = "session_queued" // it waits for its turn in the session that gets it
	Pending       Delivery = "pending"        // the session answers it, or the answer is being sent
	Delivered     Delivery = "delivered"
	Blocked       Delivery = "blocked"   // the answer could not be sent so far
	Dismissed     Delivery = "dismissed" // a person gave it up
)

// Task is one element of the list.
type Task struct {
	ID        string
	Kind      Kind
	State     State
	Delivery  Delivery
	Title     string
	Agent     chela.AgentID
	Requester chela.SessionKey // the session that gets the result
	Session   chela.SessionKey // where the work is done; empty: it has no session
	Run       chela.RunID
	Parent    string      // id of the task whose session is Requester; empty: none
	Call      string      // of Command: the tool call
	Answer    chela.RunID // the run that tells the result; empty: none so far

	Prompt  string // what was asked for
	Result  string
	Summary string // of a final state, one line
	Error   string
	// Ambiguous is set if a blocked answer may have been sent.
	Ambiguous bool

	Created, Started, Ended time.Time
}

// Updated returns the time of the last change of the state.
func (t Task) Updated() time.Time {
	switch {
	case !t.Ended.IsZero():
		return t.Ended
	case !t.Started.IsZero():
		return t.Started
	}
	return t.Created
}

// How long tasks in final states are listed.
const (
	keepFor  = 7 * 24 * time.Hour
	keepLost = 24 * time.Hour
)

// Expired reports whether the task is not listed any more.
func (t Task) Expired(now time.Time) bool {
	keep := keepFor
	if t.State == Lost {
		keep = keepLost
	}
	return t.State.Final() && now.Sub(t.Updated()) > keep
}
