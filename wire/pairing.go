package wire

// Events about devices that request pairing.
const (
	EventPairRequested = "device.pair.requested"
	EventPairResolved  = "device.pair.resolved"
)

// PairRequest is a device that waits for approval: the payload of
// device.pair.requested.
type PairRequest struct {
	ID          string   `json:"requestId"`
	Device      string   `json:"deviceId"`
	PublicKey   string   `json:"publicKey"`
	DisplayName string   `json:"displayName,omitempty"`
	Platform    string   `json:"platform,omitempty"`
	Family      string   `json:"deviceFamily,omitempty"`
	ClientID    string   `json:"clientId,omitempty"`
	ClientMode  string   `json:"clientMode,omitempty"`
	Role        string   `json:"role,omitempty"`
	Roles       []string `json:"roles,omitempty"`
	Scopes      []string `json:"scopes,omitempty"`
	Silent      bool     `json:"silent,omitempty"`
	Repair      bool     `json:"isRepair,omitempty"`
	Time        Millis   `json:"ts"`
}

// PairResolved is the payload of device.pair.resolved.
type PairResolved struct {
	ID       string `json:"requestId"`
	Device   string `json:"deviceId"`
	Decision string `json:"decision"` // approved, rejected
	Time     Millis `json:"ts"`
}
