package job

import (
	"cmp"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
)

// Run is one run of a job: the claim of a slot, and then what became of it.
type Run struct {
	Job     ID               `json:"jobId"`
	Name    string           `json:"jobName"`
	Slot    Millis           `json:"slotMs"` // unique per job
	ID      chela.RunID      `json:"runId"`  // of the turn, or of its queue item
	Agent   chela.AgentID    `json:"agentId,omitempty"`
	Session chela.SessionKey `json:"sessionKey,omitempty"`
	// SessionID is the transcript of the turn.
	SessionID   string      `json:"sessionId,omitempty"`
	Started     Millis      `json:"runAtMs"`
	Ended       Millis      `json:"ts,omitempty"` // 0: open
	Status      Status      `json:"status,omitempty"`
	Error       string      `json:"error,omitempty"`
	Summary     string      `json:"summary,omitempty"` // the answer, at most MaxSummary characters
	Model       string      `json:"model,omitempty"`   // provider/model
	Usage       llm.Usage   `json:"usage,omitzero"`
	Next        Millis      `json:"nextRunAtMs,omitempty"`
	Delivery    Delivered   `json:"deliveryStatus,omitempty"`
	DeliveryErr string      `json:"deliveryError,omitempty"`
	Target      Destination `json:"target,omitzero"`  // where the answer goes
	Forced      bool        `json:"forced,omitempty"` // asked for by a person, not by the schedule
	Fired       bool        `json:"triggerFired,omitempty"`

	Principal chela.Principal `json:"principal,omitzero"` // of the job; never sent to clients
}

// MaxSummary is the maximum length of a summary in characters.
const MaxSummary = 2000

// Open reports whether the run has not ended.
func (r Run) Open() bool { return r.Ended == 0 }

// Query selects ended runs.
type Query struct {
	Job        ID            // empty: of all jobs
	Agent      chela.AgentID // empty: of all agents
	Run        chela.RunID   // empty: any
	Statuses   []Status      // empty: any
	Deliveries []Delivered   // empty: any
	Text       string        // contained in the job's name, the summary or the error
	Oldest     bool          // oldest first
	Limit      int
	Offset     int
}

// Matches reports whether the query selects a run.
func (q Query) Matches(r Run) bool {
	return (q.Job == "" || r.Job == q.Job) && (q.Agent == "" || r.Agent == q.Agent) && (q.Run == "" || r.ID == q.Run) &&
		(len(q.Statuses) == 0 || contains(q.Statuses, r.Status)) &&
		(len(q.Deliveries) == 0 || contains(q.Deliveries, cmp.Or(r.Delivery, NotRequested))) &&
		(q.Text == "" || containsFold(r.Name, q.Text) || containsFold(r.Summary, q.Text) || containsFold(r.Error, q.Text))
}

func contains[T comparable](list []T, v T) bool {
	for _, have := range list {
		if have == v {
			return true
		}
	}
	return false
}

func containsFold(s, part string) bool {
	return strings.Contains(strings.ToLower(s), strings.ToLower(part))
}

// Reader reads jobs and their runs.
type Reader interface {
	// Get returns a job, or chela.ErrNotFound.
	Get(ID) (Job, error)
	// List returns all jobs, oldest first.
	List() ([]Job, error)
	// Relative returns the enabled jobs whose next slot is not a time of the clock: those
	// with an interval, a pause before a retry, or a missed slot that waits. Oldest first.
	Relative() ([]Job, error)
	// Count returns the number of jobs.
	Count() (int, error)
	// Due returns at most n enabled jobs whose next slot is not after t, earliest slot
	// first.
	Due(t time.Time, n int) ([]Job, error)
	// Next returns the earliest next slot of all enabled jobs; zero: there is none.
	Next() (time.Time, error)
	// Run returns a run by its id, or chela.ErrNotFound.
	Run(chela.RunID) (Run, error)
	// OpenRuns returns the runs that have not ended, oldest first.
	OpenRuns() ([]Run, error)
	// Runs returns ended runs, newest first, and the number of all that the query selects.
	Runs(Query) ([]Run, int, error)
}

// Table reads and writes jobs and their runs in a transaction.
type Table interface {
	Reader
	// Put inserts or replaces a job by its id.
	Put(Job) error
	// Delete deletes a job. Its runs are kept. It reports whether the job existed.
	Delete(ID) (bool, error)
	// Claim stores the run of a slot. It reports false if the slot of the job has one.
	Claim(Run) (bool, error)
	// PutRun replaces a run by its id.
	PutRun(Run) error
	// PruneRuns deletes the oldest ended runs of each job, so that at most n remain, and
	// returns their number.
	PruneRuns(n int) (int, error)
}
