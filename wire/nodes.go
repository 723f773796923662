package wire

// Methods about nodes: devices that offer commands to agents.
const (
	MethodNodeList        = "node.list"
	MethodNodeDescribe    = "node.describe"
	MethodNodeRename      = "node.rename"
	MethodNodePairList    = "node.pair.list"
	MethodNodePairApprove = "node.pair.approve"
	MethodNodePairReject  = "node.pair.reject"
	MethodNodePairRemove  = "node.pair.remove"
)

// Events about nodes that request approval.
const (
	EventNodePairRequested = "node.pair.requested"
	EventNodePairResolved  = "node.pair.resolved"
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
