package job

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Start says under which condition a job is run by hand.
type Start string

// The values of [Start].
const (
	Force     Start = "force"      // also if the job is disabled
	IfDue     Start = "due"        // only if a slot has come
	IfEnabled Start = "if-enabled" // only if the job is enabled
)

// Started is the answer to a request to run a job.
type Started struct {
	Run    chela.RunID // empty: it was not started
	Reason string      // why not: one of the Not constants
}

// The reasons of [Started].
const (
	NotDue         = "not-due"
	NotEnabled     = "disabled"
	AlreadyRunning = "already-running"
)

// Overview is the state of the scheduler.
type Overview struct {
	Enabled bool      // cron.enabled
	Jobs    int       // number of jobs
	Next    time.Time // the next slot of any job; zero: none
	Running int       // open runs
}

// Revision returns a text that changes when the job is changed, but not when it runs.
func (j Job) Revision() string {
	j.State, j.Updated = State{}, 0
	b, err := json.Marshal(j)
	if err != nil { // the record holds only plain values
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}
