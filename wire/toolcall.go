package wire

import "encoding/json"

// Methods for single tool calls.
const (
	MethodToolsInvoke = "tools.invoke"
	MethodToolsCalls  = "tools.calls" // not in OpenClaw
)

// ToolsInvoke holds the parameters of tools.invoke. A repeated call with the
// same idempotency key gets the same answer.
type ToolsInvoke struct {
	Name       string          `json:"name"`
	Args       json.RawMessage `json:"args,omitempty"`
	SessionKey string          `json:"sessionKey,omitempty"` // "": the agent's main session
	AgentID    string          `json:"agentId,omitempty"`
	Key        string          `json:"idempotencyKey,omitempty"`
	Origin     string          `json:"conversationReadOrigin,omitempty"` // OriginOperator; others are refused
}

// ToolsInvoked is the result of tools.invoke, of failed calls, too.
type ToolsInvoked struct {
	OK            bool        `json:"ok"`
	Name          string      `json:"toolName"`
	Output        *ToolOutput `json:"output,omitempty"`
	NeedsApproval bool        `json:"requiresApproval,omitempty"`
	Source        string      `json:"source,omitempty"` // core
	Error         *ToolError  `json:"error,omitempty"`
}

// ToolError says why a call failed.
type ToolError struct {
	Code    string `json:"code"` // validation_error, not_found, forbidden, requires_approval, internal_error
	Message string `json:"message"`
}

// ToolsCallsGet holds the parameters of tools.calls. Its fields filter the
// calls.
type ToolsCallsGet struct {
	SessionKey string `json:"sessionKey,omitempty"`
	RunID      string `json:"runId,omitempty"`
	Tool       string `json:"tool,omitempty"`
	Decision   string `json:"decision,omitempty"`
	Outcome    string `json:"outcome,omitempty"`
	Since      int64  `json:"sinceMs,omitempty"`
	Before     int64  `json:"before,omitempty"`        // seq: older calls only
	Limit      int    `json:"limit,omitempty" min:"1"` // 0: 50
}

// ToolsCalls is the result of tools.calls: tool calls, newest first.
type ToolsCalls struct {
	Calls []ToolCalled `json:"calls"`
	More  bool         `json:"more,omitempty"` // older calls exist
}

// CallClosed is the final state of a call.
const CallClosed = "closed"

// ToolCalled is the record of one call.
type ToolCalled struct {
	Seq        int64  `json:"seq"`
	ID         string `json:"id"`
	Time       Millis `json:"ts"`
	Principal  string `json:"principal,omitempty"`
	AgentID    string `json:"agentId"`
	SessionKey string `json:"sessionKey"`
	RunID      string `json:"runId,omitempty"` // "": outside of a run
	Tool       string `json:"tool"`
	Args       string `json:"args,omitempty"` // shortened, without secrets
	State      string `json:"state"`          // planned, waiting, approved, started, denied, CallClosed
	Effect     string `json:"effect,omitempty"`
	Decision   string `json:"decision,omitempty"`
	Rule       string `json:"rule,omitempty"`
	Outcome    string `json:"outcome,omitempty"` // "": not started, or unknown
	DurationMs int64  `json:"durationMs,omitempty"`
	ApprovalID string `json:"approvalId,omitempty"`
}
