package wire

// The methods that decide which devices may connect.
const (
	MethodDevicePairList    = "device.pair.list"
	MethodDevicePairApprove = "device.pair.approve"
	MethodDevicePairReject  = "device.pair.reject"
	MethodDevicePairRemove  = "device.pair.remove"
	MethodDeviceTokenRotate = "device.token.rotate"
	MethodDeviceTokenRevoke = "device.token.revoke"
)

// PairedDevice is a device that was approved.
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

// DeviceToken says what a device may do in one role. The token itself is told
// to the device only.
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

// DeviceRequestID is the parameters of device.pair.approve and
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

// DeviceID is the parameters and the result of device.pair.remove.
type DeviceID struct {
	ID string `json:"deviceId"`
}

// The decisions of a [PairResolved].
const (
	PairApproved = "approved"
	PairRejected = "rejected"
)

// DeviceRotate is the parameters of device.token.rotate. With Scopes the grant
// is cut down to them.
type DeviceRotate struct {
	ID     string    `json:"deviceId"`
	Role   string    `json:"role"`
	Scopes *[]string `json:"scopes,omitempty"`
}

// DeviceRotated is the result of device.token.rotate. The token is there when
// the device itself asked.
type DeviceRotated struct {
	ID        string   `json:"deviceId"`
	Role      string   `json:"role"`
	Scopes    []string `json:"scopes"`
	RotatedAt Millis   `json:"rotatedAtMs"`
	Token     string   `json:"token,omitempty"`
	Delivery  string   `json:"tokenDelivery"` // TokenReturned, TokenWithheld
}

// What became of a new token.
const (
	TokenReturned = "in-band"
	TokenWithheld = "withheld-cross-device"
)

// DeviceRole is the parameters of device.token.revoke.
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

// The methods that name devices and invite new ones.
const (
	MethodDevicePairRename = "device.pair.rename"
	MethodDeviceSetupCode  = "device.pair.setupCode"
	MethodDeviceSetupState = "device.pair.setupStatus"
)

// DeviceRename is the parameters and the result of device.pair.rename.
type DeviceRename struct {
	ID    string `json:"deviceId"`
	Label string `json:"label"`
}

// What an invited device is granted.
const (
	AccessFull    = "full"    // all but deciding about devices
	AccessLimited = "limited" // reading, writing, deciding what tools may do
	AccessNode    = "node"    // the role of a node only
)

// DeviceSetup is the parameters of device.pair.setupCode.
type DeviceSetup struct {
	URL     string `json:"publicUrl,omitempty"`        // of the gateway; "": the one that it listens on
	Profile string `json:"bootstrapProfile,omitempty"` // limited, node; "": full
}

// DeviceSetupCode is the result of device.pair.setupCode: an invitation for one
// device. The code is the base64url of a [SetupPayload].
type DeviceSetupCode struct {
	ID         string `json:"setupId"`
	Code       string `json:"setupCode"`
	URL        string `json:"gatewayUrl"`
	Auth       string `json:"auth"`      // token, password
	Source     string `json:"urlSource"` // request.publicUrl, gateway.bind
	Access     string `json:"access"`
	Downgraded bool   `json:"accessDowngraded,omitempty"` // full was asked for, over a way that can be read
	Expires    Millis `json:"expiresAtMs"`
}

// SetupPayload is what a setup code tells a device.
type SetupPayload struct {
	URL     string `json:"url"`
	Token   string `json:"bootstrapToken"` // auth.bootstrapToken of its first connection
	Expires Millis `json:"expiresAtMs"`
}

// DeviceSetupID is the parameters of device.pair.setupStatus.
type DeviceSetupID struct {
	ID string `json:"setupId"`
}

// DeviceSetupState is the result of device.pair.setupStatus.
type DeviceSetupState struct {
	Done *DeviceSetupDone `json:"completion,omitempty"` // nil: nobody used the code
}

// DeviceSetupDone says who used a setup code.
type DeviceSetupDone struct {
	ID     string `json:"setupId"`
	Device string `json:"deviceId"`
	Name   string `json:"deviceName,omitempty"`
	Access string `json:"access"`
	Time   Millis `json:"ts"`
}

// The methods by which a connected device asks for more scopes.
const (
	MethodDeviceWiden     = "device.scopes.requestUpgrade"
	MethodDeviceWidenWait = "device.scopes.waitUpgrade"
)

// DeviceWiden is the parameters of device.scopes.requestUpgrade, whose result is
// a [DeviceRequestID]: that is what device.scopes.waitUpgrade takes.
type DeviceWiden struct {
	Scopes []string `json:"scopes"` // all that it wants to hold
}

// MaxWiden is how many scopes a device may name when it asks for more, and is
// told when it got them.
const MaxWiden = 8

// PairExpired is a third decision of a [DeviceWidened]: nobody decided in time.
const PairExpired = "expired"

// DeviceWidened is the result of device.scopes.waitUpgrade. With the token the
// device connects anew, and asks for the scopes.
type DeviceWidened struct {
	Status string   `json:"status"` // approved, rejected, expired
	ID     string   `json:"requestId"`
	Token  string   `json:"deviceToken,omitempty"`
	Scopes []string `json:"scopes,omitempty"`
}
