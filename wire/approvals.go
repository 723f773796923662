package wire

// Methods for clients that request an approval themselves.
const (
	MethodApprovalAsk  = "exec.approval.request"
	MethodApprovalWait = "exec.approval.waitDecision"
)

// ApprovalAsk holds the parameters of exec.approval.request. With TwoPhase the
// method answers twice, first with [ApprovalAsked].
type ApprovalAsk struct {
	ID         string            `json:"id,omitempty"` // "": generated
	Command    string            `json:"command,omitempty"`
	Argv       []string          `json:"commandArgv,omitempty"` // instead of Command
	Env        map[string]string `json:"env,omitempty"`
	Dir        string            `json:"cwd,omitempty"`
	Host       string            `json:"host,omitempty"`
	Node       string            `json:"nodeId,omitempty"`
	Warning    string            `json:"warningText,omitempty"`
	AgentID    string            `json:"agentId,omitempty"`
	SessionKey string            `json:"sessionKey,omitempty"` // session that shows it; "": the main session
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

// ApprovalDecided is the result of exec.approval.request and
// exec.approval.waitDecision.
type ApprovalDecided struct {
	ID       string  `json:"id"`
	Decision *string `json:"decision"` // nil: timed out
	Created  Millis  `json:"createdAtMs"`
	Expires  Millis  `json:"expiresAtMs"`
}

// Methods for approvals of any kind. Every approval of this gateway has kind
// [ApprovalExec]; lists of other kinds are empty.
const (
	MethodAnyApprovalGet        = "approval.get"
	MethodAnyApprovalResolve    = "approval.resolve"
	MethodApprovalHistory       = "approval.history"
	MethodPluginApprovals       = "plugin.approval.list"
	MethodPluginApprovalResolve = "plugin.approval.resolve"
	MethodSystemApprovals       = "openclaw.approval.list"
)

// ApprovalExec is the kind of a tool call's approval.
const ApprovalExec = "exec"

// ApprovalAlreadyResolved is the reason, in the details of an error, that an
// approval was already resolved.
const ApprovalAlreadyResolved = "APPROVAL_ALREADY_RESOLVED"

// States of an approval.
const (
	ApprovalPending   = "pending"
	ApprovalAllowed   = "allowed"
	ApprovalDenied    = "denied"
	ApprovalExpired   = "expired"
	ApprovalCancelled = "cancelled"
	ApprovalWithdrawn = "withdrawn" // cancelled, as events report it
)

// ApprovalFound is the result of approval.get.
type ApprovalFound struct {
	Approval ApprovalSnapshot `json:"approval"`
}

// AnyApprovalResolve holds the parameters of approval.resolve.
type AnyApprovalResolve struct {
	ID       string `json:"id"`
	Kind     string `json:"kind"`
	Decision string `json:"decision"`
}

// ApprovalResolution is the result of approval.resolve.
type ApprovalResolution struct {
	Applied  bool             `json:"applied"` // false: already decided
	Approval ApprovalSnapshot `json:"approval"`
}

// ApprovalHistoryGet holds the parameters of approval.history.
type ApprovalHistoryGet struct {
	Cursor string `json:"cursor,omitempty"` // from the previous page; "": the latest
	Limit  int    `json:"limit,omitempty"`  // 1 to 100; 0: 50
	Kind   string `json:"kind,omitempty"`
}

// ApprovalHistory is the result of approval.history: resolved approvals, latest
// first.
type ApprovalHistory struct {
	Items []ApprovalSnapshot `json:"items"`
	Next  string             `json:"nextCursor,omitempty"` // "": last page
}

// ApprovalSnapshot is an approval and its outcome.
type ApprovalSnapshot struct {
	ID       string            `json:"id"`
	Path     string            `json:"urlPath"` // page of the Control UI
	Created  Millis            `json:"createdAtMs"`
	Expires  Millis            `json:"expiresAtMs"`
	Shown    ApprovalPresented `json:"presentation"`
	Status   string            `json:"status"`
	Session  string            `json:"sourceSessionKey,omitempty"` // while pending
	Resolved Millis            `json:"resolvedAtMs,omitempty"`     // the fields from here on are set once resolved
	Decision string            `json:"decision,omitempty"`
	Reason   string            `json:"reason,omitempty"` // user, timeout, run-aborted
	Source   *ApprovalSource   `json:"source,omitempty"`
	Resolver *ApprovalResolver `json:"resolver,omitempty"`
	// of a permission that does not last for ever: session, revoked; not in OpenClaw's protocol
	Extent string `json:"extent,omitempty"`
}

// Extents of a permission, see ApprovalSnapshot.Extent.
const (
	ExtentSession = "session" // for the rest of its session
	ExtentRevoked = "revoked" // it was revoked since
)

// ApprovalPresented is the part of an approval that is shown to a person.
type ApprovalPresented struct {
	Kind    string   `json:"kind"`
	Command string   `json:"commandText"` // the complete plan
	Warning string   `json:"warningText,omitempty"`
	AgentID string   `json:"agentId,omitempty"`
	Allowed []string `json:"allowedDecisions"`
}

// ApprovalSource names the origin of an approval.
type ApprovalSource struct {
	AgentID string `json:"agentId,omitempty"`
	Session string `json:"sessionKey,omitempty"`
}

// ApprovalResolver names who resolved an approval.
type ApprovalResolver struct {
	Kind string `json:"kind"` // device, channel, system
	ID   string `json:"id,omitempty"`
}
