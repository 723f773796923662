package chela

import (
	"encoding/json"
	"time"
)

// Stream names what a run event is about.
type Stream string

// The streams of run events.
const (
	StreamLifecycle Stream = "lifecycle" // phases: start and resume (Data: the run's Address), model, suspended, end, error
	StreamAssistant Stream = "assistant" // text as it comes
	StreamThinking  Stream = "thinking"
	StreamTool      Stream = "tool"      // phases: start, update, result
	StreamNotice    Stream = "notice"    // a line for the person: a cut history, a resumed run
	StreamMessage   Stream = "message"   // an entry was stored; phase is its role
	StreamCommand   Stream = "command"   // the answer to a slash command; final text in Text
	StreamApproval  Stream = "approval"  // phases: requested, resolved
	StreamOperation Stream = "operation" // phases: start, end; work on a session that is no run, in Data
	StreamSession   Stream = "session"   // phases: created, reset, patched, deleted, queued, absorbed
)

// Phases of events.
const (
	PhaseStart     = "start"
	PhaseModel     = "model"
	PhaseUpdate    = "update"
	PhaseResult    = "result"
	PhaseSuspended = "suspended" // a call waits for a decision
	PhaseResume    = "resume"    // the run goes on, under its id
	PhaseEnd       = "end"
	PhaseAbsorbed  = "absorbed"  // on session: the message Run was taken into another run or dropped; it has no answer of its own
	PhaseRequested = "requested" // on approval
	PhaseResolved  = "resolved"  // on approval
	PhaseError     = "error"
)

// Event is what observers see of a run: the loop's events after they were
// committed. Observers must not change what it points to.
type Event struct {
	Run     RunID      `json:"runId,omitempty"`
	Session SessionKey `json:"sessionKey,omitempty"`
	Seq     int64      `json:"seq,omitempty"` // 1..n per run without gaps; 0 on events outside a run
	Stream  Stream     `json:"stream"`
	Phase   string     `json:"phase,omitempty"`
	Time    time.Time  `json:"ts"`

	Delta string `json:"delta,omitempty"` // assistant, thinking: what is new
	Text  string `json:"text,omitempty"`  // assistant: all of this message so far; notice, command, error: the text

	Transcript string `json:"transcript,omitempty"` // on message: the id of the one that the entry is in

	Tool *ToolEvent `json:"tool,omitempty"` // on stream tool
	End  *EndEvent  `json:"end,omitempty"`  // on lifecycle end and error
	Data any        `json:"data,omitempty"` // what else the stream carries; see the publisher
}

// ToolEvent describes a tool call on stream tool.
type ToolEvent struct {
	ID       string          `json:"toolCallId"`
	Name     string          `json:"name"`
	Args     json.RawMessage `json:"args,omitempty"`    // on start
	Label    string          `json:"label,omitempty"`   // one line for people: "read main.go"
	Output   string          `json:"output,omitempty"`  // on update: new output; on result: what the model gets
	Details  json.RawMessage `json:"details,omitempty"` // on result; for surfaces only
	IsError  bool            `json:"isError,omitempty"`
	Duration time.Duration   `json:"durationNs,omitempty"`
	Verbose  string          `json:"verbose,omitempty"` // on, full: channels get a line for the call
}

// StopLimit says that a run was ended by one of its limits, which is no fault of
// its model.
const StopLimit = "limit"

// EndEvent says how a run ended.
type EndEvent struct {
	Outcome  string    `json:"outcome"`          // ok, error, timeout, aborted, superseded, suspended
	Text     string    `json:"text,omitempty"`   // the final answer; empty when silent
	Footer   string    `json:"footer,omitempty"` // one line about usage that follows the answer
	Error    string    `json:"error,omitempty"`  // one sentence for people
	Started  time.Time `json:"startedAt"`
	Ended    time.Time `json:"endedAt"`
	Stop     string    `json:"stopReason,omitempty"` // StopLimit, or what a client said
	Model    string    `json:"model,omitempty"`      // provider/model that answered
	Input    int64     `json:"inputTokens,omitempty"`
	Output   int64     `json:"outputTokens,omitempty"`
	Silent   bool      `json:"silent,omitempty"` // the model chose to say nothing
	NanoUSD  int64     `json:"nanoUSD,omitempty"`
	HasPrice bool      `json:"hasPrice,omitempty"`
}
