package job

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// ID identifies a job.
type ID string

// Millis is a time in milliseconds since 1970; 0 is no time.
type Millis int64

// At returns t in milliseconds; 0 for the zero time.
func At(t time.Time) Millis {
	if t.IsZero() {
		return 0
	}
	return Millis(t.UnixMilli())
}

// Time returns the time; zero for 0.
func (m Millis) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(m))
}

// Job is a scheduled job.
type Job struct {
	ID          ID     `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// chosen by a program that adds the job again and again; unique
	DeclarationKey string `json:"declarationKey,omitempty"`
	DisplayName    string `json:"displayName,omitempty"`
	Enabled        bool   `json:"enabled"`
	// delete a one-shot job when it succeeded; nil: see Job.Deletes
	DeleteAfterRun *bool           `json:"deleteAfterRun,omitempty"`
	Agent          chela.AgentID   `json:"agentId,omitempty"`    // empty: the default agent
	Session        string          `json:"sessionKey,omitempty"` // the session that asked for the job
	Created        Millis          `json:"createdAtMs"`
	Updated        Millis          `json:"updatedAtMs"`
	Schedule       Schedule        `json:"schedule"`
	Trigger        *Trigger        `json:"trigger,omitempty"`
	Target         string          `json:"sessionTarget"` // main, isolated, current, or session:NAME
	Wake           WakeMode        `json:"wakeMode"`
	Payload        Payload         `json:"payload"`
	Delivery       *Delivery       `json:"delivery,omitempty"`
	FailureAlert   *Alert          `json:"failureAlert,omitempty"` // nil: as configured
	State          State           `json:"state"`
	Principal      chela.Principal `json:"principal,omitzero"` // who asked for the job; never sent to clients
	Address        chela.Address   `json:"address,omitzero"`   // the chat in which it was asked for; never sent to clients
	// the file from which it was imported; never sent to clients
	Source string `json:"source,omitempty"`

	// Extra holds the fields of an imported job that are not known.
	Extra map[string]json.RawMessage `json:"extra,omitempty"`
}

// The values of Job.Target. A further value is "session:NAME".
const (
	TargetMain     = "main"     // an event in the main session of the agent, or in Job.Session
	TargetIsolated = "isolated" // a turn in a session of the job, with a new transcript each time
	TargetCurrent  = "current"  // a turn in Job.Session
	targetNamed    = "session:"
)

// Named returns the name of a target session:NAME, or "".
func (j Job) Named() string {
	name, _ := strings.CutPrefix(j.Target, targetNamed)
	if name == j.Target {
		return ""
	}
	return name
}

// WakeMode is when an event of a job is handled.
type WakeMode string

// The wake modes.
const (
	WakeNow  WakeMode = "now"            // it starts a turn
	WakeNext WakeMode = "next-heartbeat" // it joins the next turn of the session
)

// Payload is what a job does.
type Payload struct {
	Kind           PayloadKind `json:"kind"`
	Text           string      `json:"text,omitempty"`    // of an event
	Message        string      `json:"message,omitempty"` // of a turn
	Model          string      `json:"model,omitempty"`
	Fallbacks      []string    `json:"fallbacks,omitempty"`
	Thinking       string      `json:"thinking,omitempty"`
	TimeoutSeconds *float64    `json:"timeoutSeconds,omitempty"` // nil: the default; 0: none but the limit of all jobs
	Light          bool        `json:"lightContext,omitempty"`   // without the bootstrap files of the workspace
	Unsafe         bool        `json:"allowUnsafeExternalContent,omitempty"`
	Tools          []string    `json:"toolsAllow,omitempty"` // empty: every tool that the agent may use
}

// PayloadKind is the kind of a payload.
type PayloadKind string

// The kinds of payloads.
const (
	SystemEvent PayloadKind = "systemEvent" // a text for the main session
	AgentTurn   PayloadKind = "agentTurn"   // a message that a turn answers
)

// Content returns the text of the payload.
func (p Payload) Content() string {
	if p.Kind == SystemEvent {
		return p.Text
	}
	return p.Message
}

// Delivery is where the answer of a turn goes.
type Delivery struct {
	Mode       Mode         `json:"mode"`
	Channel    string       `json:"channel,omitempty"` // "last" or empty: where the session was used last
	To         string       `json:"to,omitempty"`      // a peer, or a URL for webhook
	Thread     Text         `json:"threadId,omitempty"`
	Account    string       `json:"accountId,omitempty"`
	BestEffort bool         `json:"bestEffort,omitempty"` // an answer that cannot be delivered is no failure of the job
	Failure    *Destination `json:"failureDestination,omitempty"`
	Completion *Destination `json:"completionDestination,omitempty"` // gets the finished event, too
}

// Destination is where a notice about a job goes.
type Destination struct {
	Mode    Mode   `json:"mode,omitempty"` // announce or webhook
	Channel string `json:"channel,omitempty"`
	To      string `json:"to,omitempty"`
	Account string `json:"accountId,omitempty"`
}

// Mode is how something is delivered.
type Mode string

// The delivery modes.
const (
	Announce Mode = "announce" // to a chat
	Webhook  Mode = "webhook"  // to a URL
	None     Mode = "none"
)

// Last is the channel name for the chat that a session used last.
const Last = "last"

// Text is a string that may be a number in JSON.
type Text string

// UnmarshalJSON accepts a string or a number.
func (t *Text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(t))
	}
	var n json.Number
	err := json.Unmarshal(b, &n)
	*t = Text(n)
	return err
}

// Alert says when somebody is told about failures. In JSON it may be false.
type Alert struct {
	Off            bool    `json:"-"`
	After          int     `json:"after,omitempty"` // consecutive failures; 0: as configured
	CooldownMs     *Millis `json:"cooldownMs,omitempty"`
	IncludeSkipped bool    `json:"includeSkipped,omitempty"`
	Destination
}

// MarshalJSON writes false for an alert that is off.
func (a Alert) MarshalJSON() ([]byte, error) {
	if a.Off {
		return []byte("false"), nil
	}
	type plain Alert
	return json.Marshal(plain(a))
}

// UnmarshalJSON accepts false, or the settings.
func (a *Alert) UnmarshalJSON(b []byte) error {
	if string(b) == "false" {
		*a = Alert{Off: true}
		return nil
	}
	type plain Alert
	var p plain
	err := json.Unmarshal(b, &p)
	*a = Alert(p)
	return err
}

// Trigger is a cheap check that decides at each slot whether the job runs.
type Trigger struct {
	Script string `json:"script"`         // "file PATH", "url URL" or "command LINE"
	Once   bool   `json:"once,omitempty"` // the job is disabled after it ran once
}

// State is what has happened to a job.
type State struct {
	Next        Millis      `json:"nextRunAtMs,omitempty"` // the next slot; 0: none
	Activated   Millis      `json:"scheduleActivatedAtMs,omitempty"`
	Running     Millis      `json:"runningAtMs,omitempty"` // start of the open run
	Last        Millis      `json:"lastRunAtMs,omitempty"`
	LastStatus  Status      `json:"lastRunStatus,omitempty"`
	LastError   string      `json:"lastError,omitempty"`
	LastMs      int64       `json:"lastDurationMs,omitempty"`
	Errors      int         `json:"consecutiveErrors,omitempty"`
	Skips       int         `json:"consecutiveSkipped,omitempty"`
	BadSchedule int         `json:"scheduleErrorCount,omitempty"`
	Retries     int         `json:"retries,omitempty"` // of the present slot of a one-shot job
	Disabled    *Disabled   `json:"autoDisabled,omitempty"`
	Delivered   *bool       `json:"lastDelivered,omitempty"`
	Delivery    Delivered   `json:"lastDeliveryStatus,omitempty"`
	DeliveryErr string      `json:"lastDeliveryError,omitempty"`
	AlertAt     Millis      `json:"lastFailureAlertAtMs,omitempty"`
	CheckAt     Millis      `json:"lastTriggerEvalAtMs,omitempty"`
	Checks      int64       `json:"triggerEvalCount,omitempty"`
	FiredAt     Millis      `json:"lastTriggerFireAtMs,omitempty"`
	Seen        string      `json:"triggerState,omitempty"` // what the check of the trigger has seen last
	Run         chela.RunID `json:"runId,omitempty"`        // the open run; never sent to clients
	// missed slots that Next stands for; 0: Next is a slot of the schedule
	Missed int `json:"missedRuns,omitempty"`
	// the one missed slot that Next stands for; 0: there is none, or several
	Due Millis `json:"missedAtMs,omitempty"`
}

// Disabled is why a job was disabled by itself.
type Disabled struct {
	Reason string `json:"reason"` // consecutive-failures or schedule-errors
	At     Millis `json:"atMs"`
	Errors int    `json:"consecutiveErrors"`
}

// The reasons of [Disabled].
const (
	ReasonFailures = "consecutive-failures"
	ReasonSchedule = "schedule-errors"
)

// Status is the outcome of a run of a job.
type Status string

// The outcomes.
const (
	OK      Status = "ok"
	Failed  Status = "error"
	Skipped Status = "skipped" // the slot was due, and nothing ran
)

// Delivered is what is known about the delivery of a run's answer.
type Delivered string

// The states of a delivery.
const (
	WasDelivered Delivered = "delivered"
	NotDelivered Delivered = "not-delivered"
	Unknown      Delivered = "unknown" // it is in progress, or its outcome is not known
	NotRequested Delivered = "not-requested"
)

// ForAgent returns the agent that the job is for.
func (j Job) ForAgent() chela.AgentID {
	return cmp.Or(j.Agent, chela.SessionKey(j.Session).Agent(), chela.DefaultAgent)
}

// OneShot reports whether the job is due at one instant only.
func (j Job) OneShot() bool { return j.Schedule.Kind == KindAt }

// Deletes reports whether the job is deleted after a successful run.
func (j Job) Deletes() bool {
	return j.OneShot() && j.DeleteAfterRun != nil && *j.DeleteAfterRun
}

// Isolated reports whether the job's turns have a session of their own.
func (j Job) Isolated() bool { return j.Target == TargetIsolated }

// Title returns the name of the job for people.
func (j Job) Title() string {
	if j.DisplayName != "" {
		return j.DisplayName
	}
	return j.Name
}
