package wire

import "encoding/json"

// The roles of a connection.
const (
	RoleOperator = "operator" // a person's client
	RoleNode     = "node"     // a device that offers abilities
)

// The scopes of an operator. Admin holds all, write holds read.
const (
	ScopeRead      = "operator.read"
	ScopeWrite     = "operator.write"
	ScopeAdmin     = "operator.admin"
	ScopeApprovals = "operator.approvals"
	ScopePairing   = "operator.pairing"
)

// Abilities that a client names at connect.
const (
	CapToolEvents    = "tool-events"           // wants the tool stream of the runs it started
	CapSessionScoped = "session-scoped-events" // wants chat and agent events of sessions it subscribed to only
	CapCursor        = "event-cursor"          // wants to be told with each event where it stands, to go on from there
)

// Challenge is the payload of connect.challenge, the first frame.
type Challenge struct {
	Nonce        string   `json:"nonce"`
	Time         Millis   `json:"ts"`
	Capabilities []string `json:"capabilities,omitempty"`
}

// Connect is the parameters of connect, a client's first request.
type Connect struct {
	MinProtocol int             `json:"minProtocol"`
	MaxProtocol int             `json:"maxProtocol"`
	Client      ClientInfo      `json:"client"`
	Role        string          `json:"role,omitempty"` // "": operator
	Scopes      []string        `json:"scopes,omitempty"`
	Caps        []string        `json:"caps,omitempty"`
	Auth        *Auth           `json:"auth,omitempty"`
	Device      *Device         `json:"device,omitempty"`
	Catalog     json.RawMessage `json:"modelCatalog,omitempty"` // of which session models are asked for
	Commands    []string        `json:"commands,omitempty"`     // of a node
	Permissions map[string]bool `json:"permissions,omitempty"`  // of a node
	PathEnv     string          `json:"pathEnv,omitempty"`      // of a node
	Resume      *Resume         `json:"resume,omitempty"`       // goes with CapCursor
	Locale      string          `json:"locale,omitempty"`
	UserAgent   string          `json:"userAgent,omitempty"`
}

// Resume asks to go on where an earlier connection of the client ended: with
// its subscriptions, and with the events that it would have got since.
type Resume struct {
	BootID string `json:"bootId"` // of the hello of that connection
	ConnID string `json:"connId"` // of the same
	Cursor int64  `json:"cursor"` // of the last event that the client has, or of the hello
}

// Resumed says what became of a [Resume]. Events that were missed follow the
// hello; the text of an answer that grows comes as one delta that replaces what
// the client has of it.
type Resumed struct {
	Missed int    `json:"missed"`          // events that follow
	Reset  string `json:"reset,omitempty"` // why nothing can be gone on with: ResetBoot, …; subscriptions are gone, too
}

// Why nothing can be gone on with: the client subscribes again, and reads the
// history.
const (
	ResetBoot = "boot" // the gateway was started again
	ResetGone = "gone" // the connection ended too long ago, or was let in as somebody else
	ResetOld  = "old"  // more was missed than is kept
)

// ClientInfo says what a client is.
type ClientInfo struct {
	ID          string `json:"id"`
	Version     string `json:"version"`
	Platform    string `json:"platform"`
	Mode        string `json:"mode"`
	Family      string `json:"deviceFamily,omitempty"`
	Instance    string `json:"instanceId,omitempty"`
	DisplayName string `json:"displayName,omitempty"`
	Build       string `json:"buildId,omitempty"`
	TimeZone    string `json:"timeZone,omitempty"`
	Model       string `json:"modelIdentifier,omitempty"`
}

// Modes of clients.
const (
	ModeCLI     = "cli"
	ModeUI      = "ui"
	ModeWebchat = "webchat"
	ModeBackend = "backend"
	ModeProbe   = "probe"
	ModeNode    = "node"
)

// Auth is what a client shows to be let in.
type Auth struct {
	Token       string `json:"token,omitempty"`
	Password    string `json:"password,omitempty"`
	DeviceToken string `json:"deviceToken,omitempty"`
	Bootstrap   string `json:"bootstrapToken,omitempty"`
	Approval    string `json:"approvalRuntimeToken,omitempty"`
	Runtime     string `json:"agentRuntimeIdentityToken,omitempty"`
}

// Device is a client's own identity: a key pair, with a signature over the
// challenge.
type Device struct {
	ID        string `json:"id"`
	PublicKey string `json:"publicKey"`
	Signature string `json:"signature"`
	SignedAt  Millis `json:"signedAt"`
	Nonce     string `json:"nonce"`
}

// Hello is the result of connect.
type Hello struct {
	Type     string    `json:"type"` // hello-ok
	Protocol int       `json:"protocol"`
	Server   Server    `json:"server"`
	Features Features  `json:"features"`
	Snapshot Snapshot  `json:"snapshot"`
	Auth     HelloAuth `json:"auth"`
	Policy   Policy    `json:"policy"`

	// For clients with CapCursor, of a gateway that has it among its
	// capabilities.
	Cursor  int64    `json:"cursor,omitempty"`  // of the last event before the hello
	Resumed *Resumed `json:"resumed,omitempty"` // when the client asked for it
}

// HelloOK is the Type of a [Hello].
const HelloOK = "hello-ok"

// Server says who answers.
type Server struct {
	Version string `json:"version"`
	ConnID  string `json:"connId"`
	BootID  string `json:"bootId"` // differs after each start
}

// Features says what the gateway can do.
type Features struct {
	Methods      []string `json:"methods"`
	Events       []string `json:"events"`
	Capabilities []string `json:"capabilities,omitempty"`
}

// Snapshot is the state at the time of the hello.
type Snapshot struct {
	Presence []Presence      `json:"presence"`
	Health   json.RawMessage `json:"health"` // a Health
	State    StateVersion    `json:"stateVersion"`
	UptimeMs int64           `json:"uptimeMs"`
	Defaults SessionDefaults `json:"sessionDefaults"`
	AuthMode string          `json:"authMode,omitempty"`   // these three: for admin scope only
	Config   string          `json:"configPath,omitempty"` //
	StateDir string          `json:"stateDir,omitempty"`
}

// SessionDefaults says which session a client shows first.
type SessionDefaults struct {
	Agent      string `json:"defaultAgentId"`
	MainKey    string `json:"mainKey"`
	MainSess   string `json:"mainSessionKey"`
	Scope      string `json:"scope"`
	Configured bool   `json:"modelConfigured"`
}

// HelloAuth says as whom the client was let in.
type HelloAuth struct {
	Method      string   `json:"method,omitempty"`
	Role        string   `json:"role"`
	Scopes      []string `json:"scopes"`
	DeviceToken string   `json:"deviceToken,omitempty"`
	IssuedAt    Millis   `json:"issuedAtMs,omitempty"`

	DeviceTokens []DeviceHandoff `json:"deviceTokens,omitempty"` // of further roles, for a device that was invited
}

// DeviceHandoff is a token of a device for a role other than the connection's.
type DeviceHandoff struct {
	Token    string   `json:"deviceToken"`
	Role     string   `json:"role"`
	Scopes   []string `json:"scopes"`
	IssuedAt Millis   `json:"issuedAtMs"`
}

// Policy is the limits of a connection.
type Policy struct {
	MaxPayload     int64        `json:"maxPayload"`
	MaxBuffered    int64        `json:"maxBufferedBytes"`
	TickIntervalMs int64        `json:"tickIntervalMs"`
	Attachments    *Attachments `json:"attachments,omitempty"`
}

// Attachments is the limits of attachments.
type Attachments struct {
	MaxBytes      int64 `json:"maxBytes"`
	MaxImageBytes int64 `json:"maxImageBytes"`
}

// Presence is one entry of the roster of clients.
type Presence struct {
	Host     string   `json:"host,omitempty"`
	Version  string   `json:"version,omitempty"`
	Platform string   `json:"platform,omitempty"`
	Family   string   `json:"deviceFamily,omitempty"`
	Mode     string   `json:"mode,omitempty"`
	Reason   string   `json:"reason,omitempty"` // self, connect, disconnect
	Text     string   `json:"text,omitempty"`
	Time     Millis   `json:"ts"`
	Instance string   `json:"instanceId,omitempty"`
	Roles    []string `json:"roles,omitempty"`
	Scopes   []string `json:"scopes,omitempty"`
}
