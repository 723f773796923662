package wire

// Methods of heartbeats.
const (
	MethodLastHeartbeat = "last-heartbeat"
	MethodSetHeartbeats = "set-heartbeats"
)

// EventHeartbeat reports that a heartbeat ended, or that it was skipped.
const EventHeartbeat = "heartbeat"

// Heartbeat is the payload of heartbeat, and the result of last-heartbeat, which is null
// if there was none.
type Heartbeat struct {
	Time       Millis `json:"ts"`
	Status     string `json:"status"` // sent, ok-token, ok-empty, skipped, failed
	Channel    string `json:"channel,omitempty"`
	To         string `json:"to,omitempty"`
	AccountID  string `json:"accountId,omitempty"`
	Preview    string `json:"preview,omitempty"` // beginning of the answer
	HasMedia   bool   `json:"hasMedia"`
	Reason     string `json:"reason,omitempty"` // why it was skipped or failed, or else why it began
	DurationMs int64  `json:"durationMs,omitempty"`
	Silent     bool   `json:"silent,omitempty"`        // nobody was told that nothing needs attention
	Indicator  string `json:"indicatorType,omitempty"` // ok, alert, error
	AgentID    string `json:"agentId"`
	SessionKey string `json:"sessionKey,omitempty"`
	RunID      string `json:"runId,omitempty"`
}

// SetHeartbeats holds the parameters of set-heartbeats, which enables or disables the
// intervals of all agents.
type SetHeartbeats struct {
	Enabled *bool `json:"enabled"`
}

// HeartbeatsSet is the result of set-heartbeats.
type HeartbeatsSet struct {
	OK      bool `json:"ok"`
	Enabled bool `json:"enabled"`
}
