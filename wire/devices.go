package wire

// Methods that manage paired devices.
const (
	MethodDevicePairList    = "device.pair.list"
	MethodDevicePairApprove = "device.pair.approve"
	MethodDevicePairReject  = "device.pair.reject"
	MethodDevicePairRemove  = "device.pair.remove"
	MethodDeviceTokenRotate = "device.token.rotate"
	MethodDeviceTokenRevoke = "device.token.revoke"
)

// PairedDevice is an approved device.
type PairedDevice struct {
	ID          string        `json:"deviceId"`
	PublicKey   string        `json:"publicKey"`
	DisplayName string        `json:"displayName,omitempty"`
	Platform    string        `json:"platform,omitempty"`
	Family      string        `json:"deviceFamily,omitempty"`
	ClientID    string        `json:"clientId,omitempty"`
	ClientMode  string        `json:"clientMode,omitempty"`
	Role        string        `json:"role,omitempty"`
	Roles       []string      `json:"roles"`
	Scopes      []string      `json:"scopes"`
	ApprovedVia string        `json:"approvedVia,omitempty"` // owner, silent
	CreatedAt   Millis        `json:"createdAtMs"`
	ApprovedAt  Millis        `json:"approvedAtMs"`
	LastSeenAt  Millis        `json:"lastSeenAtMs,omitempty"`
	LastSeen    string        `json:"lastSeenReason,omitempty"` // connect
	Connected   bool          `json:"connected"`
	Tokens      []DeviceToken `json:"tokens"`
}

// DeviceToken describes a device's token for one role. The token's value is
// sent to the device only.
type DeviceToken struct {
	Role      string   `json:"role"`
	Scopes    []string `json:"scopes"`
	CreatedAt Millis   `json:"createdAtMs"`
	RotatedAt Millis   `json:"rotatedAtMs,omitempty"`
	RevokedAt Millis   `json:"revokedAtMs,omitempty"`
	UsedAt    Millis   `json:"lastUsedAtMs,omitempty"`
}

// DevicePairs is the result of device.pair.list.
type DevicePairs struct {
	Pending []PairRequest  `json:"pending"`
	Paired  []PairedDevice `json:"paired"`
}

// DeviceRequestID holds the parameters of device.pair.approve and
// device.pair.reject.
type DeviceRequestID struct {
	ID string `json:"requestId"`
}

// DeviceApproved is the result of device.pair.approve.
type DeviceApproved struct {
	ID     string       `json:"requestId"`
	Device PairedDevice `json:"device"`
}

// DeviceRejected is the result of device.pair.reject.
type DeviceRejected struct {
	ID     string `json:"requestId"`
	Device string `json:"deviceId"`
}

// DeviceID holds the parameters and the result of device.pair.remove.
type DeviceID struct {
	ID string `json:"deviceId"`
}

// Decisions in a [PairResolved].
const (
	PairApproved = "approved"
	PairRejected = "rejected"
)

// DeviceRotate holds the parameters of device.token.rotate. Scopes, if set,
// reduces the granted scopes.
type DeviceRotate struct {
	ID     string    `json:"deviceId"`
	Role   string    `json:"role"`
	Scopes *[]string `json:"scopes,omitempty"`
}

// DeviceRotated is the result of device.token.rotate. Token is set when the
// device itself asked.
type DeviceRotated struct {
	ID        string   `json:"deviceId"`
	Role      string   `json:"role"`
	Scopes    []string `json:"scopes"`
	RotatedAt Millis   `json:"rotatedAtMs"`
	Token     string   `json:"token,omitempty"`
	Delivery  string   `json:"tokenDelivery"` // TokenReturned, TokenWithheld
}

// Delivery of a rotated token.
const (
	TokenReturned = "in-band"
	TokenWithheld = "withheld-cross-device"
)

// DeviceRole holds the parameters of device.token.revoke.
type DeviceRole struct {
	ID   string `json:"deviceId"`
	Role string `json:"role"`
}

// DeviceRevoked is the result of device.token.revoke.
type DeviceRevoked struct {
	ID        string `json:"deviceId"`
	Role      string `json:"role"`
	RevokedAt Millis `json:"revokedAtMs"`
}

// Methods that rename and invite devices.
const (
	MethodDevicePairRename = "device.pair.rename"
	MethodDeviceSetupCode  = "device.pair.setupCode"
	MethodDeviceSetupState = "device.pair.setupStatus"
)

// DeviceRename holds the parameters and the result of device.pair.rename.
type DeviceRename struct {
	ID    string `json:"deviceId"`
	Label string `json:"label"`
}

// Access profiles of an invited device.
const (
	AccessFull    = "full"    // everything except managing devices
	AccessLimited = "limited" // reading, writing and resolving approvals
	AccessNode    = "node"    // the node role only
	AccessPage    = "page"    // everything, as an operator only: for the gateway's web page; not in OpenClaw
)

// DetailNoPage is the code in the details of an error of device.pair.setupCode: the gateway serves no
// web page.
const DetailNoPage = "NO_WEB_PAGE"

// DeviceSetup holds the parameters of device.pair.setupCode.
type DeviceSetup struct {
	URL     string `json:"publicUrl,omitempty"`        // of the gateway; "": its listening address
	Profile string `json:"bootstrapProfile,omitempty"` // limited, node, page; "": full, or node with Join
	Join    bool   `json:"joinUrl,omitempty"`          // for a node; the result has no such URL
}

// DeviceSetupCode is the result of device.pair.setupCode: an invitation for one
// device. Code is the base64url encoding of a [SetupPayload].
type DeviceSetupCode struct {
	ID         string `json:"setupId"`
	Code       string `json:"setupCode"`
	URL        string `json:"gatewayUrl"`
	Auth       string `json:"auth"`      // token, password
	Source     string `json:"urlSource"` // request.publicUrl, gateway.bind
	Access     string `json:"access"`
	Downgraded bool   `json:"accessDowngraded,omitempty"` // full access was requested over an unencrypted connection
	Expires    Millis `json:"expiresAtMs"`
	// of AccessPage: the address of the page, with the code if the page takes one
	Page string `json:"pageUrl,omitempty"`
}

// SetupPayload is the content of a setup code.
type SetupPayload struct {
	URL     string `json:"url"`
	Token   string `json:"bootstrapToken"` // auth.bootstrapToken of the first connection
	Expires Millis `json:"expiresAtMs"`
}

// DeviceSetupID holds the parameters of device.pair.setupStatus.
type DeviceSetupID struct {
	ID string `json:"setupId"`
}

// DeviceSetupState is the result of device.pair.setupStatus.
type DeviceSetupState struct {
	Done *DeviceSetupDone `json:"completion,omitempty"` // nil: the code is unused
}

// DeviceSetupDone describes the device that used a setup code.
type DeviceSetupDone struct {
	ID     string `json:"setupId"`
	Device string `json:"deviceId"`
	Name   string `json:"deviceName,omitempty"`
	Access string `json:"access"`
	Time   Millis `json:"ts"`
}

// Methods by which a connected device requests more scopes.
const (
	MethodDeviceUpgrade     = "device.scopes.requestUpgrade"
	MethodDeviceUpgradeWait = "device.scopes.waitUpgrade"
)

// DeviceUpgrade holds the parameters of device.scopes.requestUpgrade. The
// result is the [DeviceRequestID] that device.scopes.waitUpgrade takes.
type DeviceUpgrade struct {
	Scopes []string `json:"scopes"` // all scopes the device wants to hold
}

// MaxUpgradeScopes is the maximum number of scopes that a request for more
// scopes may name.
const MaxUpgradeScopes = 8

// PairExpired is the decision in a [DeviceUpgraded] when nobody decided in
// time.
const PairExpired = "expired"

// DeviceUpgraded is the result of device.scopes.waitUpgrade. The device must
// reconnect with the token and request the scopes.
type DeviceUpgraded struct {
	Status string   `json:"status"` // approved, rejected, expired
	ID     string   `json:"requestId"`
	Token  string   `json:"deviceToken,omitempty"`
	Scopes []string `json:"scopes,omitempty"`
}
