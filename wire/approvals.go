package wire

// The methods of a client that asks for a decision about something of its own.
const (
	MethodApprovalAsk  = "exec.approval.request"
	MethodApprovalWait = "exec.approval.waitDecision"
)

// ApprovalAsk is the parameters of exec.approval.request. With TwoPhase it is
// answered twice, first with [ApprovalAsked].
type ApprovalAsk struct {
	ID         string            `json:"id,omitempty"` // "": one is made
	Command    string            `json:"command,omitempty"`
	Argv       []string          `json:"commandArgv,omitempty"` // instead of a command
	Env        map[string]string `json:"env,omitempty"`
	Dir        string            `json:"cwd,omitempty"`
	Host       string            `json:"host,omitempty"`
	Node       string            `json:"nodeId,omitempty"`
	Warning    string            `json:"warningText,omitempty"`
	AgentID    string            `json:"agentId,omitempty"`
	SessionKey string            `json:"sessionKey,omitempty"` // in which it is shown; "": the main one
	TimeoutMs  int64             `json:"timeoutMs,omitempty"`  // 0: 30 minutes
	TwoPhase   bool              `json:"twoPhase,omitempty"`
}

// ApprovalAsked is the first answer to exec.approval.request.
type ApprovalAsked struct {
	Status  string `json:"status"` // accepted
	ID      string `json:"id"`
	Created Millis `json:"createdAtMs"`
	Expires Millis `json:"expiresAtMs"`
}

// ApprovalShown is the result of exec.approval.get.
type ApprovalShown struct {
	Approval
	Command string   `json:"commandText"`
	Allowed []string `json:"allowedDecisions"`
	AgentID string   `json:"agentId"`
}

// ApprovalDecided is the result of exec.approval.request and of
// exec.approval.waitDecision.
type ApprovalDecided struct {
	ID       string  `json:"id"`
	Decision *string `json:"decision"` // nil: nobody decided in time
	Created  Millis  `json:"createdAtMs"`
	Expires  Millis  `json:"expiresAtMs"`
}
