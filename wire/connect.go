package wire

import "encoding/json"

// Roles of a connection.
const (
	RoleOperator = "operator" // a person's client
	RoleNode     = "node"     // a device that offers commands
)

// Scopes of an operator. Admin includes all others, write includes read.
const (
	ScopeRead      = "operator.read"
	ScopeWrite     = "operator.write"
	ScopeAdmin     = "operator.admin"
	ScopeApprovals = "operator.approvals"
	ScopePairing   = "operator.pairing"
)

// Capabilities that a client names in connect.
const (
	CapToolEvents    = "tool-events"           // wants the tool stream of runs it started
	CapSessionScoped = "session-scoped-events" // wants chat and agent events of subscribed sessions only
	// CapPluginApprovals is of clients that show approvals of plug-ins and no others, such
	// as OpenClaw's terminal interface: they get all approvals in this form.
	CapPluginApprovals = "plugin-approvals"
	CapCursor          = "event-cursor" // wants cursors in events, to resume after a reconnect
)

// Challenge is the payload of connect.challenge, the first frame.
type Challenge struct {
	Nonce        string   `json:"nonce"`
	Time         Millis   `json:"ts"`
	Capabilities []string `json:"capabilities,omitempty"`
}

// Connect holds the parameters of connect, a client's first request.
type Connect struct {
	MinProtocol int             `json:"minProtocol"`
	MaxProtocol int             `json:"maxProtocol"`
	Client      ClientInfo      `json:"client"`
	Role        string          `json:"role,omitempty"` // "": operator
	Scopes      []string        `json:"scopes,omitempty"`
	Caps        []string        `json:"caps,omitempty"`
	Auth        *Auth           `json:"auth,omitempty"`
	Device      *Device         `json:"device,omitempty"`
	Catalog     json.RawMessage `json:"modelCatalog,omitempty"` // requests session models
	Commands    []string        `json:"commands,omitempty"`     // nodes only
	Permissions map[string]bool `json:"permissions,omitempty"`  // nodes only
	PathEnv     string          `json:"pathEnv,omitempty"`      // nodes only
	Resume      *Resume         `json:"resume,omitempty"`       // with CapCursor
	Locale      string          `json:"locale,omitempty"`
	UserAgent   string          `json:"userAgent,omitempty"`
}

// Resume asks to continue an earlier connection of the client: to restore its
// subscriptions and to send the events it missed.
type Resume struct {
	BootID string `json:"bootId"` // from the hello of that connection
	ConnID string `json:"connId"` // from the same hello
	Cursor int64  `json:"cursor"` // of the last event received, or of the hello
}

// Resumed is the outcome of a [Resume]. The missed events follow the hello.
// Streamed text arrives as one delta that replaces the client's copy.
type Resumed struct {
	Missed int `json:"missed"` // number of events that follow
	// why the connection cannot be resumed: ResetBoot, …; subscriptions are lost, too
	Reset string `json:"reset,omitempty"`
}

// Reasons why a connection cannot be resumed. The client must subscribe again
// and read the history.
const (
	ResetBoot = "boot" // the gateway restarted
	ResetGone = "gone" // the connection ended too long ago, or belonged to another identity
	ResetOld  = "old"  // more events were missed than the gateway retains
)

// ClientInfo describes a client.
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

// Auth is a client's credentials.
type Auth struct {
	Token       string `json:"token,omitempty"`
	Password    string `json:"password,omitempty"`
	DeviceToken string `json:"deviceToken,omitempty"`
	Bootstrap   string `json:"bootstrapToken,omitempty"`
	Approval    string `json:"approvalRuntimeToken,omitempty"`
	Runtime     string `json:"agentRuntimeIdentityToken,omitempty"`
}

// Device is a client's key pair identity, with a signature of the challenge.
type Device struct {
	ID        string `json:"id"`
	PublicKey string `json:"publicKey"`
	Signature string `json:"signature"`
	SignedAt  Millis `json:"signedAt"`
	Nonce     string `json:"nonce"`
}

// Hello is the result of connect.
type Hello struct {
	Type     string    `json:"type"` // always hello-ok
	Protocol int       `json:"protocol"`
	Server   Server    `json:"server"`
	Features Features  `json:"features"`
	Snapshot Snapshot  `json:"snapshot"`
	Auth     HelloAuth `json:"auth"`
	Policy   Policy    `json:"policy"`

	// Surfaces are the addresses of what plug-ins serve to this connection: SurfaceCanvas.
	// CanvasHost is the same for clients of version 3.
	Surfaces   map[string]string `json:"pluginSurfaceUrls,omitempty"`
	CanvasHost string            `json:"canvasHostUrl,omitempty"`

	// Set for clients with CapCursor by gateways that have this capability.
	Cursor  int64    `json:"cursor,omitempty"`  // of the last event before the hello
	Resumed *Resumed `json:"resumed,omitempty"` // if the client asked to resume
}

// HelloOK is the Type of a [Hello].
const HelloOK = "hello-ok"

// Server identifies the gateway.
type Server struct {
	Version string `json:"version"`
	ConnID  string `json:"connId"`
	BootID  string `json:"bootId"`                         // changes with each start
	UIBuild string `json:"controlUiBuildSource,omitempty"` // UIConfigured; not for clients of version 3
}

// UIConfigured says that the Control UI is not part of the gateway. Without it the page
// takes a gateway of another version for an update of its own, and stops.
const UIConfigured = "configured"

// Features lists what the gateway supports.
type Features struct {
	Methods      []string `json:"methods"`
	Events       []string `json:"events"`
	Capabilities []string `json:"capabilities,omitempty"`
}

// Snapshot is the gateway's state at the time of the hello.
type Snapshot struct {
	Presence []Presence      `json:"presence"`
	Health   json.RawMessage `json:"health"` // a Health
	State    StateVersion    `json:"stateVersion"`
	UptimeMs int64           `json:"uptimeMs"`
	Defaults SessionDefaults `json:"sessionDefaults"`
	AuthMode string          `json:"authMode,omitempty"`   // AuthMode, Config and State: with admin scope only
	Config   string          `json:"configPath,omitempty"` //
	StateDir string          `json:"stateDir,omitempty"`
}

// SessionDefaults names the session a client shows first.
type SessionDefaults struct {
	Agent      string `json:"defaultAgentId"`
	MainKey    string `json:"mainKey"`
	MainSess   string `json:"mainSessionKey"`
	Scope      string `json:"scope"`
	Configured bool   `json:"modelConfigured"`
}

// HelloAuth is the identity and the rights of the connection.
type HelloAuth struct {
	Method      string   `json:"method,omitempty"`
	Role        string   `json:"role"`
	Scopes      []string `json:"scopes"`
	DeviceToken string   `json:"deviceToken,omitempty"`
	IssuedAt    Millis   `json:"issuedAtMs,omitempty"`

	DeviceTokens []DeviceHandoff `json:"deviceTokens,omitempty"` // for further roles, after an invitation
}

// DeviceHandoff is a device token for a role other than the connection's.
type DeviceHandoff struct {
	Token    string   `json:"deviceToken"`
	Role     string   `json:"role"`
	Scopes   []string `json:"scopes"`
	IssuedAt Millis   `json:"issuedAtMs"`
}

// Policy holds the limits of a connection.
type Policy struct {
	MaxPayload     int64        `json:"maxPayload"`
	MaxBuffered    int64        `json:"maxBufferedBytes"`
	TickIntervalMs int64        `json:"tickIntervalMs"`
	Attachments    *Attachments `json:"attachments,omitempty"`
}

// Attachments holds the limits of attachments.
type Attachments struct {
	MaxBytes      int64 `json:"maxBytes"`
	MaxImageBytes int64 `json:"maxImageBytes"`
}

// Presence is one entry of the list of connected clients.
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
