package heartbeat

import (
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// State is what is remembered of the heartbeats of an agent.
type State struct {
	Agent chela.AgentID `json:"agentId"`
	// Ticked is the last tick of the interval, or the time at which the interval began.
	Ticked time.Time `json:"tickedAt,omitzero"`
	// Tasks is when the tasks of HEARTBEAT.md were last done, by name. A task without an
	// entry counts from the tick before the one at which it was first seen.
	Tasks map[string]time.Time `json:"tasks,omitempty"`
	// Runs are the runs that have not ended, oldest first.
	Runs []Run `json:"runs,omitempty"`
	// Started is when heartbeats of sessions last began, as long as MinGap requires.
	Started map[chela.SessionKey]time.Time `json:"started,omitempty"`
	// Last is the outcome of the last heartbeat.
	Last Result `json:"last,omitzero"`
}

// Run is a heartbeat that is queued or in progress.
type Run struct {
	ID     chela.RunID `json:"runId"`
	Reason string      `json:"reason"`
	Begun  time.Time   `json:"begunAt"`
	// Tick is the tick of the interval that the run stands for; zero: none.
	Tick time.Time `json:"tickAt,omitzero"`
	// Tasks are the names of the tasks in its prompt.
	Tasks []string `json:"tasks,omitempty"`
	// Home is the session that an alert is told that could not be delivered.
	Home chela.SessionKey `json:"home,omitempty"`
	// To is where an alert goes; zero: nowhere, because of Blocked.
	To      chela.Address `json:"to,omitzero"`
	Blocked string        `json:"blocked,omitempty"`
	// ShowOK is set if the address is told that nothing needs attention. Indicator is set
	// if clients show the outcome.
	ShowOK    bool `json:"showOk,omitempty"`
	Indicator bool `json:"indicator,omitempty"`
	Reasoning bool `json:"reasoning,omitempty"` // it precedes the alert
	// Model is the model of the heartbeat; empty: that of the session.
	Model string `json:"model,omitempty"`
}

// RunPrefix begins the ids of the runs of heartbeats.
const RunPrefix = "heartbeat:"

// IsRun reports whether the id is that of a heartbeat.
func IsRun(id chela.RunID) bool { return strings.HasPrefix(string(id), RunPrefix) }

// MaxRuns limits State.Runs. Older ones are forgotten: their items were cancelled.
const MaxRuns = 32

// Status is the outcome of a heartbeat.
type Status string

// The values of [Status].
const (
	StatusSent    Status = "sent"     // the answer is an alert, which is delivered
	StatusOK      Status = "ok-token" // nothing needs attention
	StatusEmpty   Status = "ok-empty" // the model gave no answer
	StatusSkipped Status = "skipped"  // no run was started, or its answer was not delivered
	StatusFailed  Status = "failed"
)

// Reasons of skipped heartbeats.
const (
	SkipHours    = "outside-hours"
	SkipFile     = "empty-heartbeat-file"
	SkipTasks    = "no-tasks-due"
	SkipAlerts   = "alerts-disabled" // the channel shows nothing
	SkipNoRoute  = "no-route"        // the chat of the configuration does not exist
	SkipNoTarget = "no-target"       // alerts are for clients of the gateway only
	SkipDM       = "dm-blocked"      // directPolicy
	SkipBusy     = "busy"            // too many wakes are pending
	SkipSend     = "send-off"        // the session does not send to the chat
	SkipNotReady = "channel-not-ready"
)

// Result is the outcome of a heartbeat, or of a tick without one.
type Result struct {
	Agent    chela.AgentID    `json:"agentId"`
	Session  chela.SessionKey `json:"sessionKey,omitempty"`
	Run      chela.RunID      `json:"runId,omitempty"`
	Time     time.Time        `json:"ts,omitzero"`
	Status   Status           `json:"status"`
	Reason   string           `json:"reason,omitempty"` // why it was skipped or failed, or else why it began
	Preview  string           `json:"preview,omitempty"`
	To       chela.Address    `json:"to,omitzero"`
	Duration time.Duration    `json:"durationNs,omitempty"`
	// Silent is set if nobody was told that nothing needs attention.
	Silent bool `json:"silent,omitempty"`
	// Indicator is what clients show: ok, alert, error; empty: nothing.
	Indicator string `json:"indicator,omitempty"`
}

// EventPayload marks the result as the data of an event.
func (Result) EventPayload() {}

// MaxPreview is the maximum number of characters of Result.Preview.
const MaxPreview = 200

// switchName is the name of the setting that is set while ticks are disabled.
const switchName = "heartbeats.disabled"

// Disabled reports whether a person has disabled the ticks of all agents.
func Disabled(r interface {
	Setting(name string) (string, error)
}) (bool, error) {
	v, err := r.Setting(switchName)
	return v != "", err
}

// SetDisabled disables or enables the ticks of all agents. The transaction has to wake
// store.TopicHeartbeat.
func SetDisabled(t interface {
	SetSetting(name, value string) error
}, disabled bool) error {
	v := ""
	if disabled {
		v = "true"
	}
	return t.SetSetting(switchName, v)
}
