package wire

import "encoding/json"

// The states of a [Chat] event. Each run ends with exactly one of the last
// three.
const (
	StateDelta   = "delta"
	StateFinal   = "final"
	StateAborted = "aborted"
	StateError   = "error"

	StopLimit = "limit" // of Chat.Stop: a limit of the run's own ended it, which is no fault of the model
)

// Chat is the payload of chat: the answer of a run as people see it.
type Chat struct {
	RunID      string `json:"runId"`
	SessionKey string `json:"sessionKey"`
	AgentID    string `json:"agentId,omitempty"`
	Seq        int64  `json:"seq"` // within the run; numbers may be skipped
	State      string `json:"state"`

	// Delta is what is new since the last delta of the run; with Replace it is
	// the whole text, which is another one now. Message holds the text so far.
	Delta   string   `json:"deltaText,omitempty"`
	Replace bool     `json:"replace,omitempty"`
	Message *Message `json:"message,omitempty"`

	Stop         string       `json:"stopReason,omitempty"`
	ErrorMessage string       `json:"errorMessage,omitempty"`
	ErrorKind    string       `json:"errorKind,omitempty"`
	ErrorDetail  *ErrorDetail `json:"errorDetail,omitempty"`
}

// ErrorDetail says which model failed.
type ErrorDetail struct {
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`
}

// Agent is the payload of agent and session.tool: a step of a run.
type Agent struct {
	RunID      string          `json:"runId"`
	SessionKey string          `json:"sessionKey"`
	SessionID  string          `json:"sessionId,omitempty"`
	AgentID    string          `json:"agentId,omitempty"`
	Stream     string          `json:"stream"`
	Data       json.RawMessage `json:"data"` // Lifecycle, Assistant, ToolStep, Notice, by Stream
	Seq        int64           `json:"seq"`  // within the run, shared with chat
	Time       Millis          `json:"ts"`
	Heartbeat  bool            `json:"isHeartbeat"`
}

// The streams of [Agent].
const (
	StreamLifecycle = "lifecycle"
	StreamAssistant = "assistant"
	StreamThinking  = "thinking"
	StreamTool      = "tool"
	StreamNotice    = "notice"
)

// The phases of [Lifecycle] and [ToolStep].
const (
	PhaseStart     = "start"
	PhaseModel     = "model"
	PhaseSuspended = "suspended"
	PhaseResume    = "resume"
	PhaseUpdate    = "update"
	PhaseResult    = "result"
	PhaseEnd       = "end"
	PhaseError     = "error"
)

// Lifecycle is the data of stream lifecycle.
type Lifecycle struct {
	Phase     string `json:"phase"`
	StartedAt Millis `json:"startedAt,omitempty"`
	EndedAt   Millis `json:"endedAt,omitempty"`
	Provider  string `json:"provider,omitempty"`
	Model     string `json:"model,omitempty"`
	Stop      string `json:"stopReason,omitempty"`
	Aborted   bool   `json:"aborted,omitempty"`
	Status    string `json:"status,omitempty"` // cancelled
	Error     string `json:"error,omitempty"`
	Reply     *Reply `json:"terminalReply,omitempty"`
}

// Reply says whether a run ended with something to show.
type Reply struct {
	Disposition string `json:"disposition"` // visible, silent, empty
	Text        string `json:"text,omitempty"`
}

// Assistant is the data of streams assistant and thinking.
type Assistant struct {
	Text    string `json:"text"` // of the message so far
	Delta   string `json:"delta"`
	Replace bool   `json:"replace,omitempty"` // Delta is the whole text
}

// ToolStep is the data of stream tool.
type ToolStep struct {
	Phase   string          `json:"phase"` // start, update, result
	Name    string          `json:"name"`
	CallID  string          `json:"toolCallId"`
	Args    json.RawMessage `json:"args,omitempty"` // on start; on result when others were used
	Meta    string          `json:"meta,omitempty"` // one line for people
	IsError bool            `json:"isError,omitempty"`
	Partial *ToolOutput     `json:"partialResult,omitempty"` // on update: new output
	Result  *ToolOutput     `json:"result,omitempty"`
	Ms      int64           `json:"durationMs,omitempty"` // on result
}

// ToolOutput is what a tool gave.
type ToolOutput struct {
	Content Contents        `json:"content"`
	Details json.RawMessage `json:"details,omitempty"`
}

// Notice is the data of stream notice: a line for the person.
type Notice struct {
	Text string `json:"text"`
}

// SessionMessage is the payload of session.message: a stored message. What is
// known of its session stands in Row, and again beside what is above it.
type SessionMessage struct {
	SessionKey string   `json:"sessionKey"`
	SessionID  string   `json:"sessionId"`
	AgentID    string   `json:"agentId"`
	Message    Message  `json:"message"`
	MessageID  string   `json:"messageId"`
	Seq        int64    `json:"messageSeq"`
	UpdatedAt  Millis   `json:"updatedAt"`
	Row        *Session `json:"session,omitempty"`
	*Session
}

// SessionsChanged is the payload of sessions.changed. The session stands in Row,
// and its properties again beside those above it.
type SessionsChanged struct {
	SessionKey string   `json:"sessionKey"`
	AgentID    string   `json:"agentId"`
	Reason     string   `json:"reason,omitempty"` // create, send, patch, reset, delete, agent.run.started, agent.input.settled
	Phase      string   `json:"phase,omitempty"`  // of a run: start, end, error
	RunID      string   `json:"runId,omitempty"`
	Time       Millis   `json:"ts"`
	Active     bool     `json:"hasActiveRun"`
	Runs       []string `json:"activeRunIds"`
	Row        *Session `json:"session,omitempty"` // nil: there is none any more
	*Session
}

// SessionOperation is the payload of session.operation: work on a session that
// is no run.
type SessionOperation struct {
	ID         string `json:"operationId"`
	Operation  string `json:"operation"` // compact
	Phase      string `json:"phase"`     // PhaseStart, PhaseEnd
	SessionKey string `json:"sessionKey"`
	AgentID    string `json:"agentId,omitempty"`
	Time       Millis `json:"ts"`
	Completed  bool   `json:"completed,omitempty"` // at the end: it was done
	Reason     string `json:"reason,omitempty"`    // why it was not
}

// Tick is the payload of tick.
type Tick struct {
	Time Millis `json:"ts"`
}

// Shutdown is the payload of shutdown.
type Shutdown struct {
	Reason    string `json:"reason"`
	RestartMs int64  `json:"restartExpectedMs,omitempty"`
}

// Approval is a call that waits for a person: an element of the result of
// exec.approval.list and the payload of exec.approval.requested.
type Approval struct {
	ID      string          `json:"id"`
	Request ApprovalRequest `json:"request"`
	Created Millis          `json:"createdAtMs"`
	Expires Millis          `json:"expiresAtMs"`
}

// ApprovalRequest says what is to be allowed.
type ApprovalRequest struct {
	Command    string `json:"command"` // the whole plan, as it is shown
	Reason     string `json:"reason,omitempty"`
	Tool       string `json:"tool,omitempty"`
	AgentID    string `json:"agentId,omitempty"`
	SessionKey string `json:"sessionKey,omitempty"`
	RunID      string `json:"runId,omitempty"`
	// Once says that it is not offered to allow it always.
	Once bool `json:"once,omitempty"`
}

// ApprovalResolved is the payload of exec.approval.resolved.
type ApprovalResolved struct {
	ID       string          `json:"id"`
	Decision string          `json:"decision"`
	By       string          `json:"resolvedBy,omitempty"`
	Time     Millis          `json:"ts"`
	Request  ApprovalRequest `json:"request"`
}

// Decisions of approvals.
const (
	AllowOnce   = "allow-once"
	AllowAlways = "allow-always"
	Deny        = "deny"
)

// ApprovalID is the parameters of exec.approval.get.
type ApprovalID struct {
	ID string `json:"id"`
}

// ApprovalResolve is the parameters of exec.approval.resolve.
type ApprovalResolve struct {
	ID       string `json:"id"`
	Decision string `json:"decision"`
}

// Questions is the result of question.list: what a model asked a person, beside
// decisions.
type Questions struct {
	Questions []json.RawMessage `json:"questions"`
}

// OK is the result of methods that have nothing else to say.
type OK struct {
	OK bool `json:"ok"`
}

// None is the parameters of methods that take none.
type None struct{}

// PresenceChanged is the payload of presence: the whole roster.
type PresenceChanged struct {
	Presence []Presence `json:"presence"`
}
