package chela

import (
	"encoding/json"
	"time"
)

// Stream names what an event is about.
type Stream string

// The streams. The comments list the phases, and the type of Event.Data if it is set.
const (
	// start and resume with the run's Address, model with a ModelRef, compaction, suspended, end,
	// error
	StreamLifecycle Stream = "lifecycle"
	StreamAssistant Stream = "assistant" // text as it is generated
	StreamThinking  Stream = "thinking"
	StreamTool      Stream = "tool"      // start, update, result
	StreamNotice    Stream = "notice"    // a line for the person, for example about a retry
	StreamPlan      Stream = "plan"      // the session has another plan, without a phase; plan.Plan
	StreamMessage   Stream = "message"   // an entry was stored, without a phase; session.Entry
	StreamCommand   Stream = "command"   // the answer to a slash command, in Text
	StreamApproval  Stream = "approval"  // requested, resolved; approval.Request
	StreamOperation Stream = "operation" // start, end; work on a session other than a run; Operation
	// tasks may have changed: the one with the id Text, or those that belong to Run; without a phase
	StreamTask      Stream = "task"
	StreamCron      Stream = "cron"      // a scheduled job has changed, without a phase and outside a session; job.Event
	StreamHeartbeat Stream = "heartbeat" // a heartbeat ended or was skipped, without a phase; heartbeat.Result
	StreamCanvas    Stream = "canvas"    // the canvas of the session shows something else, without a phase; canvas.Changed
	// created, reset, patched (perhaps with session.Meta), deleted, queued, absorbed, compacted
	StreamSession Stream = "session"
)

// Phase is the kind of an event within its stream.
type Phase string

// The phases.
const (
	PhaseStart  Phase = "start"
	PhaseModel  Phase = "model" // a model call begins
	PhaseUpdate Phase = "update"
	// PhaseCompaction is published after the history was shortened during a run, before
	// the model is called again.
	PhaseCompaction Phase = "compaction"
	PhaseResult     Phase = "result"
	PhaseSuspended  Phase = "suspended" // the run waits for a decision
	PhaseResume     Phase = "resume"    // the run continues under the same id
	PhaseEnd        Phase = "end"
	PhaseError      Phase = "error"
	PhaseRequested  Phase = "requested"
	PhaseResolved   Phase = "resolved"
	PhaseCreated    Phase = "created"
	PhaseReset      Phase = "reset" // the session has a new transcript
	PhasePatched    Phase = "patched"
	PhaseDeleted    Phase = "deleted"
	PhaseCompacted  Phase = "compacted"
	PhaseQueued     Phase = "queued" // a message waits
	// the message with the id Run joined another run or was dropped; it gets no separate answer
	PhaseAbsorbed Phase = "absorbed"
)

// Event is an event of a run, published to observers after it was committed. Observers
// must not modify the values it points to.
type Event struct {
	Run     RunID      `json:"runId,omitempty"`
	Session SessionKey `json:"sessionKey,omitempty"`
	Seq     int64      `json:"seq,omitempty"` // 1..n per run without gaps; 0 on events outside a run
	Stream  Stream     `json:"stream"`
	Phase   Phase      `json:"phase,omitempty"`
	Time    time.Time  `json:"ts"`

	Delta string `json:"delta,omitempty"` // assistant, thinking: the new text
	Text  string `json:"text,omitempty"`  // assistant: the message so far; notice, command, error: the text

	Transcript string `json:"transcript,omitempty"` // message: id of the transcript that contains the entry

	Tool *ToolEvent `json:"tool,omitempty"` // tool
	End  *EndEvent  `json:"end,omitempty"`  // lifecycle, end and error
	Data Payload    `json:"data,omitempty"` // see the constants of Stream
}

// Payload is the data of an event. Only the types listed with the streams implement it.
type Payload interface{ EventPayload() }

// ModelRef identifies the called model as provider/model.
type ModelRef string

// Operation is work on a session other than a run.
type Operation struct {
	ID        string
	Name      string // compact
	Completed bool   // in the end phase: the operation succeeded
	Reason    string // why the operation failed
}

// EventPayload marks the address as a payload.
func (Address) EventPayload() {}

// EventPayload marks the reference as a payload.
func (ModelRef) EventPayload() {}

// EventPayload marks the operation as a payload.
func (Operation) EventPayload() {}

// ToolEvent describes a tool call on the stream tool.
type ToolEvent struct {
	ID       string          `json:"toolCallId"`
	Name     string          `json:"name"`
	Args     json.RawMessage `json:"args,omitempty"`    // on start
	Label    string          `json:"label,omitempty"`   // one line for people: "read main.go"
	Output   string          `json:"output,omitempty"`  // on update: new output; on result: the result for the model
	Details  json.RawMessage `json:"details,omitempty"` // on result; for surfaces only
	IsError  bool            `json:"isError,omitempty"`
	Duration time.Duration   `json:"durationNs,omitempty"`
	Verbose  string          `json:"verbose,omitempty"` // on, full: channels display a line for the call
	Private  bool            `json:"-"`                 // the label shows a command, which may contain anything
}

// StopLimit is the stop reason of a run that reached one of its limits. It is not an
// error of the model.
const StopLimit = "limit"

// Outcome is how a run ended.
type Outcome string

// The outcomes.
const (
	OutcomeOK         Outcome = "ok"
	OutcomeError      Outcome = "error"
	OutcomeTimeout    Outcome = "timeout"
	OutcomeAborted    Outcome = "aborted"
	OutcomeSuperseded Outcome = "superseded" // another run with the same items replaced it
)

// EndEvent describes the end of a run.
type EndEvent struct {
	Outcome  Outcome   `json:"outcome"`
	Text     string    `json:"text,omitempty"`   // the final answer; empty if silent
	Footer   string    `json:"footer,omitempty"` // one line about usage that follows the answer
	Error    string    `json:"error,omitempty"`  // one sentence for people
	Started  time.Time `json:"startedAt"`
	Ended    time.Time `json:"endedAt"`
	Stop     string    `json:"stopReason,omitempty"` // StopLimit, or the reason that a client gave
	Model    string    `json:"model,omitempty"`      // provider/model of the answer
	Input    int64     `json:"inputTokens,omitempty"`
	Output   int64     `json:"outputTokens,omitempty"`
	Silent   bool      `json:"silent,omitempty"` // the model chose not to answer
	NanoUSD  int64     `json:"nanoUSD,omitempty"`
	HasPrice bool      `json:"hasPrice,omitempty"`
}
