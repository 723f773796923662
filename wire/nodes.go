package wire

import "encoding/json"

// Methods about nodes: devices that offer commands to agents.
const (
	MethodNodeList        = "node.list"
	MethodNodeDescribe    = "node.describe"
	MethodNodeRename      = "node.rename"
	MethodNodePairList    = "node.pair.list"
	MethodNodePairApprove = "node.pair.approve"
	MethodNodePairReject  = "node.pair.reject"
	MethodNodePairRemove  = "node.pair.remove"
	MethodNodeInvoke      = "node.invoke"

	// Nodes call these.
	MethodNodeInvokeResult   = "node.invoke.result"
	MethodNodeInvokeProgress = "node.invoke.progress"
	MethodNodeEvent          = "node.event"
)

// Events about nodes that request approval.
const (
	EventNodePairRequested = "node.pair.requested"
	EventNodePairResolved  = "node.pair.resolved"
)

// Events that only the node of a call gets.
const (
	EventNodeInvokeRequest = "node.invoke.request"
	EventNodeInvokeCancel  = "node.invoke.cancel" // nobody waits for the answer any more
)

// Commands of nodes that Chela uses itself. A node declares those that it has.
const (
	NodeRun     = "system.run"         // runs a program
	NodePrepare = "system.run.prepare" // what system.run would run, and the rules for it
	NodeWhich   = "system.which"       // finds programs
	NodeNotify  = "system.notify"      // shows a notification
)

// Codes of the errors of calls of nodes.
const (
	NodeNotConnected = "NOT_CONNECTED"     // the command was not sent
	NodeDisconnected = "NODE_DISCONNECTED" // the connection ended before the answer
	NodeTimeout      = "TIMEOUT"           // there was no answer in time
	NodeUnknown      = "OUTCOME_UNKNOWN"   // an earlier call with the key has no answer
	NodeRunDenied    = "SYSTEM_RUN_DENIED" // the node's own rules forbid the program
)

// Approval states of a node.
const (
	NodeUnapproved = "unapproved"
	NodePending    = "pending-approval"
	NodeReapproval = "pending-reapproval" // approved, and requests more
	NodeApproved   = "approved"
)

// Nodes is the result of node.list.
type Nodes struct {
	Time  Millis `json:"ts"`
	Nodes []Node `json:"nodes"`
}

// Node describes a node. Caps and Commands list the approved part of what it
// declares.
type Node struct {
	NodeClient
	Caps       []string `json:"caps"`
	Commands   []string `json:"commands"`
	Approval   string   `json:"approvalState"`
	Pending    string   `json:"pendingRequestId,omitempty"`
	LastSeenAt Millis   `json:"lastSeenAtMs,omitempty"`
	LastSeen   string   `json:"lastSeenReason,omitempty"` // connect
	ApprovedAt Millis   `json:"approvedAtMs,omitempty"`
	Paired     bool     `json:"paired"`
	Connected  bool     `json:"connected"`
}

// NodeClient is a node's description of itself.
type NodeClient struct {
	ID          string `json:"nodeId"`
	DisplayName string `json:"displayName,omitempty"`
	Platform    string `json:"platform,omitempty"`
	Version     string `json:"version,omitempty"`
	ClientID    string `json:"clientId,omitempty"`
	ClientMode  string `json:"clientMode,omitempty"`
	Family      string `json:"deviceFamily,omitempty"`
}

// NodeID holds the parameters of node.describe and node.pair.remove, and is the
// result of the latter.
type NodeID struct {
	ID string `json:"nodeId"`
}

// NodeDescription is the result of node.describe.
type NodeDescription struct {
	Time Millis `json:"ts"`
	Node
}

// NodeRename holds the parameters and the result of node.rename.
type NodeRename struct {
	ID   string `json:"nodeId"`
	Name string `json:"displayName"`
}

// NodePairs is the result of node.pair.list.
type NodePairs struct {
	Pending []NodeRequest `json:"pending"`
	Paired  []PairedNode  `json:"paired"`
}

// NodeRequest is a node's request for approval: the payload of
// node.pair.requested.
type NodeRequest struct {
	ID string `json:"requestId"`
	NodeClient
	Caps     []string `json:"caps"`
	Commands []string `json:"commands"`
	Required []string `json:"requiredApproveScopes"` // scopes needed to approve it
	Time     Millis   `json:"ts"`
}

// PairedNode is an approved node.
type PairedNode struct {
	NodeClient
	Caps       []string `json:"caps"`
	Commands   []string `json:"commands"`
	CreatedAt  Millis   `json:"createdAtMs"`
	ApprovedAt Millis   `json:"approvedAtMs"`
	LastSeenAt Millis   `json:"lastSeenAtMs,omitempty"`
	LastSeen   string   `json:"lastSeenReason,omitempty"`
}

// NodeApprovedResult is the result of node.pair.approve.
type NodeApprovedResult struct {
	ID   string     `json:"requestId"`
	Node PairedNode `json:"node"`
}

// NodeRejected is the result of node.pair.reject.
type NodeRejected struct {
	ID   string `json:"requestId"`
	Node string `json:"nodeId"`
}

// NodePairResolved is the payload of node.pair.resolved.
type NodePairResolved struct {
	ID       string `json:"requestId"`
	Node     string `json:"nodeId"`
	Decision string `json:"decision"` // approved, rejected
	Time     Millis `json:"ts"`
}

// NodeInvoke holds the parameters of node.invoke.
type NodeInvoke struct {
	Node    string          `json:"nodeId"`
	Command string          `json:"command"`
	Params  json.RawMessage `json:"params,omitempty"`
	Timeout int64           `json:"timeoutMs,omitempty" min:"0"` // 0: 30 s
	Key     string          `json:"idempotencyKey"`              // a command runs once for each key
	Session string          `json:"sessionKey,omitempty"`
}

// NodeInvoked is the result of node.invoke.
type NodeInvoked struct {
	OK          bool            `json:"ok"`
	Node        string          `json:"nodeId"`
	Command     string          `json:"command"`
	Payload     json.RawMessage `json:"payload,omitempty"`
	PayloadJSON *string         `json:"payloadJSON"`
}

// NodeInvokeRequest is the payload of node.invoke.request.
type NodeInvokeRequest struct {
	ID         string  `json:"id"`
	Node       string  `json:"nodeId"`
	Command    string  `json:"command"`
	ParamsJSON *string `json:"paramsJSON"`
	Timeout    int64   `json:"timeoutMs,omitempty"`
	Key        string  `json:"idempotencyKey,omitempty"`
	Session    string  `json:"sessionKey,omitempty"`
}

// NodeInvokeCancel is the payload of node.invoke.cancel.
type NodeInvokeCancel struct {
	ID   string `json:"invokeId"`
	Node string `json:"nodeId"`
}

// NodeInvokeResult holds the parameters of node.invoke.result: the node's answer.
type NodeInvokeResult struct {
	ID          string          `json:"id"`
	Node        string          `json:"nodeId"`
	OK          bool            `json:"ok"`
	Payload     json.RawMessage `json:"payload,omitempty"`
	PayloadJSON json.RawMessage `json:"payloadJSON,omitempty"` // a string with JSON; some nodes send the value
	Error       *NodeError      `json:"error,omitempty"`
}

// NodeError is why a node did not carry out a command.
type NodeError struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// NodeInvokeProgress holds the parameters of node.invoke.progress: output of a
// command that is still running.
type NodeInvokeProgress struct {
	ID    string `json:"invokeId"`
	Node  string `json:"nodeId"`
	Seq   int64  `json:"seq"`
	Chunk string `json:"chunk"`
}

// NodeEvent holds the parameters of node.event.
type NodeEvent struct {
	Event       string          `json:"event"`
	Payload     json.RawMessage `json:"payload,omitempty"`
	PayloadJSON json.RawMessage `json:"payloadJSON,omitempty"`
}

// NodeEventVoice is the event of what a person said to a node after a wake word; its payload
// is a [NodeVoice].
const NodeEventVoice = "voice.transcript"

// NodeVoice is what a person said to a node.
type NodeVoice struct {
	Text    string `json:"text"`
	Session string `json:"sessionKey,omitempty"` // "": main
	ID      string `json:"eventId,omitempty"`    // the same id is the same event
}

// NodeEventResult is the result of node.event.
type NodeEventResult struct {
	OK      bool   `json:"ok"`
	Event   string `json:"event"`
	Handled bool   `json:"handled"`
	Reason  string `json:"reason,omitempty"` // why not
}

// NodeAck is the result of the methods that nodes call.
type NodeAck struct {
	OK      bool `json:"ok"`
	Ignored bool `json:"ignored,omitempty"` // nobody waits for it, or Chela does nothing with it
}

// NodeRunParams holds the parameters of system.run. Those of system.run.prepare are
// a part of them.
type NodeRunParams struct {
	Command    []string          `json:"command"`              // the program and its arguments
	RawCommand string            `json:"rawCommand,omitempty"` // the line that a shell among them runs
	Plan       json.RawMessage   `json:"systemRunPlan,omitempty"`
	Dir        string            `json:"cwd,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	Timeout    int64             `json:"timeoutMs,omitempty"`
	Agent      string            `json:"agentId,omitempty"`
	Session    string            `json:"sessionKey,omitempty"`
	Approved   bool              `json:"approved,omitempty"` // a person allowed it at the gateway
	Decision   string            `json:"approvalDecision,omitempty"`
	RunID      string            `json:"runId,omitempty"`
	Quiet      bool              `json:"suppressNotifyOnExit,omitempty"`
}

// NodePrepared is the answer to system.run.prepare.
type NodePrepared struct {
	Plan   json.RawMessage `json:"plan"`       // a [NodePlan] with properties of the node
	Policy NodeExecPolicy  `json:"execPolicy"` // the rules of the node
}

// NodePlan is what a node would run.
type NodePlan struct {
	Argv    []string `json:"argv"`
	Dir     string   `json:"cwd,omitempty"`
	Text    string   `json:"commandText,omitempty"`
	Agent   string   `json:"agentId,omitempty"`
	Session string   `json:"sessionKey,omitempty"`
}

// NodeExecPolicy is a node's own rules about programs.
type NodeExecPolicy struct {
	Security string `json:"security,omitempty"` // deny, allowlist, full
	Ask      string `json:"ask,omitempty"`      // off, on-miss, always
}

// NodeRunResult is the answer to system.run.
type NodeRunResult struct {
	ExitCode  *int   `json:"exitCode,omitempty"` // absent: it was not started, or ended by a signal
	TimedOut  bool   `json:"timedOut"`
	Success   bool   `json:"success"`
	Stdout    string `json:"stdout"`
	Stderr    string `json:"stderr"`
	Error     string `json:"error,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
}

// NodeWhichParams holds the parameters of system.which, NodeWhichResult is its answer.
type NodeWhichParams struct {
	Bins []string `json:"bins"`
}

// NodeWhichResult holds the paths of the programs that were found.
type NodeWhichResult struct {
	Bins map[string]string `json:"bins"`
}
