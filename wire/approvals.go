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

// The methods about requests for a decision of any kind. All requests of this
// gateway are of kind [ApprovalExec], so that the lists of the others are empty.
const (
	MethodAnyApprovalGet     = "approval.get"
	MethodAnyApprovalResolve = "approval.resolve"
	MethodApprovalHistory    = "approval.history"
	MethodPluginApprovals    = "plugin.approval.list"
	MethodSystemApprovals    = "openclaw.approval.list"
)

// ApprovalExec is the kind of a request of a tool.
const ApprovalExec = "exec"

// ApprovalAlreadyResolved is the reason, in the details of an error, that a
// request was decided before.
const ApprovalAlreadyResolved = "APPROVAL_ALREADY_RESOLVED"

// What became of a request.
const (
	ApprovalPending   = "pending"
	ApprovalAllowed   = "allowed"
	ApprovalDenied    = "denied"
	ApprovalExpired   = "expired"
	ApprovalCancelled = "cancelled"
	ApprovalWithdrawn = "withdrawn" // in events, for cancelled
)

// ApprovalFound is the result of approval.get.
type ApprovalFound struct {
	Approval ApprovalSnapshot `json:"approval"`
}

// AnyApprovalResolve is the parameters of approval.resolve.
type AnyApprovalResolve struct {
	ID       string `json:"id"`
	Kind     string `json:"kind"`
	Decision string `json:"decision"`
}

// ApprovalSettled is the result of approval.resolve.
type ApprovalSettled struct {
	Applied  bool             `json:"applied"` // false: it was decided before
	Approval ApprovalSnapshot `json:"approval"`
}

// ApprovalHistoryGet is the parameters of approval.history.
type ApprovalHistoryGet struct {
	Cursor string `json:"cursor,omitempty"` // of the page before; "": the latest
	Limit  int    `json:"limit,omitempty"`  // 1 to 100; 0: 50
	Kind   string `json:"kind,omitempty"`
}

// ApprovalHistory is the result of approval.history: requests that do not wait
// any more, the latest first.
type ApprovalHistory struct {
	Items []ApprovalSnapshot `json:"items"`
	Next  string             `json:"nextCursor,omitempty"` // "": there are no more
}

// ApprovalSnapshot is a request, and what became of it.
type ApprovalSnapshot struct {
	ID       string            `json:"id"`
	Path     string            `json:"urlPath"` // of the page of the Control UI
	Created  Millis            `json:"createdAtMs"`
	Expires  Millis            `json:"expiresAtMs"`
	Shown    ApprovalPresented `json:"presentation"`
	Status   string            `json:"status"`
	Session  string            `json:"sourceSessionKey,omitempty"` // while it waits
	Resolved Millis            `json:"resolvedAtMs,omitempty"`     // these: when it does not wait any more
	Decision string            `json:"decision,omitempty"`
	Reason   string            `json:"reason,omitempty"` // user, timeout, run-aborted
	Source   *ApprovalSource   `json:"source,omitempty"`
	Resolver *ApprovalResolver `json:"resolver,omitempty"`
}

// ApprovalPresented is what a person is shown of a request.
type ApprovalPresented struct {
	Kind    string   `json:"kind"`
	Command string   `json:"commandText"` // the whole plan
	Warning string   `json:"warningText,omitempty"`
	AgentID string   `json:"agentId,omitempty"`
	Allowed []string `json:"allowedDecisions"`
}

// ApprovalSource says where a request came from.
type ApprovalSource struct {
	AgentID string `json:"agentId,omitempty"`
	Session string `json:"sessionKey,omitempty"`
}

// ApprovalResolver says who decided.
type ApprovalResolver struct {
	Kind string `json:"kind"` // device, channel, system
	ID   string `json:"id,omitempty"`
}
