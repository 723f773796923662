package wire

// AgentRun holds the parameters of agent. The method answers twice: with
// [Accepted] at once and with [AgentResult] when the run ends.
type AgentRun struct {
	Message        string `json:"message"`
	IdempotencyKey string `json:"idempotencyKey"`
	AgentID        string `json:"agentId,omitempty"`
	SessionKey     string `json:"sessionKey,omitempty"` // "": the agent's main session
	// instead of SessionKey: the session's transcript
	SessionID string `json:"sessionId,omitempty"`
	// refused if the session has another transcript
	Expected string `json:"expectedExistingSessionId,omitempty"`
	// recipient of the answer, which is not delivered
	To          string       `json:"to,omitempty"`
	Model       string       `json:"model,omitempty"`    // for this run; "": that of the session
	Provider    string       `json:"provider,omitempty"` // of Model
	Thinking    string       `json:"thinking,omitempty"`
	Timeout     int          `json:"timeout,omitempty" min:"0"` // seconds to wait for the end; 0: no limit
	Attachments []Attachment `json:"attachments,omitempty"`
	// how much the system prompt contains: full, minimal, none; "": as usual in the session
	PromptMode string `json:"promptMode,omitempty"`
	// full; lightweight: without the files of the workspace
	ContextMode string `json:"bootstrapContextMode,omitempty"`
}

// Accepted is the first answer to agent.
type Accepted struct {
	RunID      string `json:"runId"`
	SessionKey string `json:"sessionKey"`
	AgentID    string `json:"agentId"`
	Status     string `json:"status"` // accepted
	AcceptedAt Millis `json:"acceptedAt"`
}

// AgentResult is the final answer to agent.
type AgentResult struct {
	RunID   string       `json:"runId"`
	Status  string       `json:"status"` // ok, error, timeout
	Summary string       `json:"summary"`
	Result  *AgentOutput `json:"result,omitempty"`
}

// AgentOutput is the output of a run.
type AgentOutput struct {
	Payloads []Payload `json:"payloads"`
	Meta     RunMeta   `json:"meta"`
}

// Payload is one message of an answer.
type Payload struct {
	Text     string  `json:"text"`
	MediaURL *string `json:"mediaUrl"` // nil: none
}

// RunMeta describes how a run ended.
type RunMeta struct {
	DurationMs int64     `json:"durationMs"`
	Aborted    bool      `json:"aborted,omitempty"`
	Stop       string    `json:"stopReason,omitempty"`
	Agent      AgentMeta `json:"agentMeta"`
}

// AgentMeta names the session and the model that answered.
type AgentMeta struct {
	SessionID string `json:"sessionId"`
	Provider  string `json:"provider,omitempty"`
	Model     string `json:"model,omitempty"`
	Usage     *Usage `json:"usage,omitempty"`
}

// AgentWait holds the parameters of agent.wait.
type AgentWait struct {
	RunID     string `json:"runId"`
	TimeoutMs int64  `json:"timeoutMs,omitempty" min:"0"` // 0: 30 s
}

// AgentWaited is the result of agent.wait. An unknown run and a run still in
// progress both have status timeout.
type AgentWaited struct {
	RunID     string `json:"runId"`
	TakenBy   string `json:"takenBy,omitempty"` // not in OpenClaw: the run that took the message, if it is another one
	Status    string `json:"status"`
	StartedAt Millis `json:"startedAt,omitempty"`
	EndedAt   Millis `json:"endedAt,omitempty"`
	Error     string `json:"error,omitempty"`
	Stop      string `json:"stopReason,omitempty"`
	Reply     *Reply `json:"terminalReply,omitempty"`
}
