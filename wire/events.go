package wire

import "encoding/json"

// States of a [Chat] event. Each run ends with exactly one of the last three.
const (
	StateDelta   = "delta"
	StateFinal   = "final"
	StateAborted = "aborted"
	StateError   = "error"

	StopLimit      = "limit"      // Chat.Stop: a limit of the run ended it, not the model
	StopSuperseded = "superseded" // Chat.Stop: a newer message took the place of the run
	StopUnable     = "unable"     // Chat.Stop, RunMeta.Stop: the answer says what could not be done
)

// Chat is the payload of chat: a run's answer as shown to people.
type Chat struct {
	RunID      string `json:"runId"`
	SessionKey string `json:"sessionKey"`
	AgentID    string `json:"agentId,omitempty"`
	Seq        int64  `json:"seq"` // within the run; may skip numbers
	State      string `json:"state"`

	// Delta is the text added since the previous delta of the run; with
	// Replace it is the complete new text. Message holds the text so far.
	Delta   string   `json:"deltaText,omitempty"`
	Replace bool     `json:"replace,omitempty"`
	Message *Message `json:"message,omitempty"`

	Stop         string       `json:"stopReason,omitempty"`
	ErrorMessage string       `json:"errorMessage,omitempty"`
	ErrorKind    string       `json:"errorKind,omitempty"` // ErrorKindTimeout; empty: another error
	ErrorDetail  *ErrorDetail `json:"errorDetail,omitempty"`
}

// ErrorKindTimeout is the kind of error of a run that reached its time limit.
const ErrorKindTimeout = "timeout"

// ErrorDetail names the model that failed.
type ErrorDetail struct {
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`
}

// Agent is the payload of agent and session.tool: one step of a run.
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

// Streams of an [Agent] event.
const (
	StreamLifecycle = "lifecycle"
	StreamAssistant = "assistant"
	StreamThinking  = "thinking"
	StreamTool      = "tool"
	StreamNotice    = "notice"
	StreamPlan      = "plan"
)

// Phases of [Lifecycle] and [ToolStep].
const (
	PhaseStart      = "start"
	PhaseModel      = "model"
	PhaseSuspended  = "suspended"
	PhaseResume     = "resume"
	PhaseUpdate     = "update"
	PhaseCompaction = "compaction" // the history was shortened, and the run goes on
	PhaseResult     = "result"
	PhaseEnd        = "end"
	PhaseError      = "error"
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

// Reply says whether a run ended with visible output.
type Reply struct {
	Disposition string `json:"disposition"` // visible, silent, empty
	Text        string `json:"text,omitempty"`
}

// Assistant is the data of streams assistant and thinking.
type Assistant struct {
	Text    string `json:"text"` // of the message so far
	Delta   string `json:"delta"`
	Replace bool   `json:"replace,omitempty"` // Delta is the complete text
}

// ToolStep is the data of stream tool.
type ToolStep struct {
	Phase   string          `json:"phase"` // start, update, result
	Name    string          `json:"name"`
	CallID  string          `json:"toolCallId"`
	Args    json.RawMessage `json:"args,omitempty"` // at start; at result if they were changed
	Meta    string          `json:"meta,omitempty"` // one line for people
	IsError bool            `json:"isError,omitempty"`
	Partial *ToolOutput     `json:"partialResult,omitempty"` // on update: new output
	Result  *ToolOutput     `json:"result,omitempty"`
	Ms      int64           `json:"durationMs,omitempty"` // on result
}

// ToolOutput is the output of a tool.
type ToolOutput struct {
	Content Contents        `json:"content"`
	Details json.RawMessage `json:"details,omitempty"`
}

// Notice is the data of stream notice: one line for the person.
type Notice struct {
	Text string `json:"text"`
}

// Plan is the data of stream plan, and the plan of a session in the history: the steps
// of the work that the model has set out to do. Without steps there is no plan.
type Plan struct {
	Phase     string     `json:"phase"` // PhaseUpdate
	Title     string     `json:"title"` // one line: how far it is
	Steps     []PlanStep `json:"steps"`
	UpdatedAt Millis     `json:"updatedAt,omitempty"`
}

// PlanStep is a step of a [Plan].
type PlanStep struct {
	ID     string   `json:"id"`
	Step   string   `json:"step"`            // its title
	Status string   `json:"status"`          // PlanPending, …
	After  []string `json:"after,omitempty"` // ids of the steps that it depends on
}

// States of a [PlanStep]. The last three are final.
const (
	PlanPending    = "pending"
	PlanInProgress = "in_progress"
	PlanCompleted  = "completed"
	PlanFailed     = "failed"
	PlanCancelled  = "cancelled"
)

// SessionMessage is the payload of session.message: a stored message. The
// session is in Row and, once more, inlined beside the other properties.
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

// SessionsChanged is the payload of sessions.changed. The session is in Row
// and, once more, inlined beside the other properties.
type SessionsChanged struct {
	SessionKey string   `json:"sessionKey"`
	AgentID    string   `json:"agentId"`
	Reason     string   `json:"reason,omitempty"` // ChangeCreate, …
	Phase      string   `json:"phase,omitempty"`  // of a run: start, end, error
	RunID      string   `json:"runId,omitempty"`
	Time       Millis   `json:"ts"`
	Active     bool     `json:"hasActiveRun"`
	Runs       []string `json:"activeRunIds"`
	Row        *Session `json:"session,omitempty"` // nil: the session is gone
	*Session
}

// The reasons of SessionsChanged.
const (
	ChangeCreate  = "create"
	ChangeSend    = "send" // a message waits
	ChangePatch   = "patch"
	ChangeReset   = "reset"
	ChangeCompact = "compact"
	ChangeDelete  = "delete"
	ChangeSettled = "agent.input.settled" // a message was answered, or joined another run
)

// SessionOperation is the payload of session.operation: work on a session other
// than a run.
type SessionOperation struct {
	ID         string `json:"operationId"`
	Operation  string `json:"operation"` // compact
	Phase      string `json:"phase"`     // PhaseStart, PhaseEnd
	SessionKey string `json:"sessionKey"`
	AgentID    string `json:"agentId,omitempty"`
	Time       Millis `json:"ts"`
	Completed  bool   `json:"completed,omitempty"` // at the end: it succeeded
	Reason     string `json:"reason,omitempty"`    // why it did not succeed
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

// Approval is a pending tool call: an element of the result of
// exec.approval.list and the payload of exec.approval.requested.
type Approval struct {
	ID      string          `json:"id"`
	Request ApprovalRequest `json:"request"`
	Created Millis          `json:"createdAtMs"`
	Expires Millis          `json:"expiresAtMs"`
}

// ApprovalRequest describes what is to be allowed.
type ApprovalRequest struct {
	Command    string `json:"command"` // the complete plan, as shown
	Reason     string `json:"reason,omitempty"`
	Tool       string `json:"tool,omitempty"`
	AgentID    string `json:"agentId,omitempty"`
	SessionKey string `json:"sessionKey,omitempty"`
	RunID      string `json:"runId,omitempty"`
	// RootRunID is the run from which the work of RunID was started, through subagents.
	// It is not in OpenClaw's protocol.
	RootRunID string `json:"rootRunId,omitempty"`
	// AskedKey is the session of RootRunID, where a person is asked. It is not in OpenClaw's
	// protocol; "": SessionKey.
	AskedKey string `json:"askedSessionKey,omitempty"`
	// Once says that "allow always" is not available.
	Once bool `json:"once,omitempty"`
}

// PluginApproval is a pending approval in the form of one that a plug-in asks for.
type PluginApproval struct {
	ID      string                `json:"id"`
	Request PluginApprovalRequest `json:"request"`
	Created Millis                `json:"createdAtMs"`
	Expires Millis                `json:"expiresAtMs"`
}

// PluginApprovalRequest describes what is to be allowed.
type PluginApprovalRequest struct {
	Title       string   `json:"title"`
	Description string   `json:"description"` // the complete plan, as shown
	Severity    string   `json:"severity"`    // warning
	Tool        string   `json:"toolName,omitempty"`
	Allowed     []string `json:"allowedDecisions"`
	AgentID     string   `json:"agentId"`
	SessionKey  string   `json:"sessionKey"` // where a person is asked
}

// ApprovalResolved is the payload of exec.approval.resolved.
type ApprovalResolved struct {
	ID       string          `json:"id"`
	Decision string          `json:"decision"`
	By       string          `json:"resolvedBy,omitempty"`
	Time     Millis          `json:"ts"`
	Request  ApprovalRequest `json:"request"`
}

// Decisions on approvals.
const (
	AllowOnce    = "allow-once"
	AllowSession = "allow-session" // for the session; not in OpenClaw's protocol
	AllowAlways  = "allow-always"
	Deny         = "deny"
	DenyUnasked  = "deny-unasked" // nobody could be asked; not in OpenClaw's protocol
)

// ApprovalID holds the parameters of exec.approval.get.
type ApprovalID struct {
	ID string `json:"id"`
}

// ApprovalResolve holds the parameters of exec.approval.resolve.
type ApprovalResolve struct {
	ID       string `json:"id"`
	Decision string `json:"decision"`
}

// Questions is the result of question.list: questions a model asked other than
// approvals.
type Questions struct {
	Questions []json.RawMessage `json:"questions"`
}

// OK is the result of methods without other output.
type OK struct {
	OK bool `json:"ok"`
}

// None is the type of absent parameters.
type None struct{}

// PresenceChanged is the payload of presence: all connected clients.
type PresenceChanged struct {
	Presence []Presence `json:"presence"`
}
