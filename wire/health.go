package wire

// Health is the result of health and the payload of the event of that name.
type Health struct {
	OK               bool                    `json:"ok"`
	Time             Millis                  `json:"ts"`
	DurationMs       int64                   `json:"durationMs"`
	Channels         map[string]ChannelState `json:"channels"`
	ChannelOrder     []string                `json:"channelOrder"`
	ChannelLabels    map[string]string       `json:"channelLabels"`
	HeartbeatSeconds int                     `json:"heartbeatSeconds"`
	DefaultAgent     string                  `json:"defaultAgentId"`
	Agents           []AgentHealth           `json:"agents"`
	Sessions         SessionsHealth          `json:"sessions"`
}

// AgentHealth is one agent in [Health].
type AgentHealth struct {
	AgentID   string         `json:"agentId"`
	Default   bool           `json:"isDefault"`
	Heartbeat AgentPulse     `json:"heartbeat"`
	Sessions  SessionsHealth `json:"sessions"`
}

// AgentPulse says whether an agent wakes by itself.
type AgentPulse struct {
	Enabled bool   `json:"enabled"`
	Every   string `json:"every"`
	EveryMs *int64 `json:"everyMs"` // nil: never
	Prompt  string `json:"prompt"`
	Target  string `json:"target"`
	AckMax  int    `json:"ackMaxChars"`
}

// SessionsHealth counts sessions and names the newest.
type SessionsHealth struct {
	Path   string          `json:"path"`
	Count  int             `json:"count"`
	Recent []RecentSession `json:"recent"`
}

// RecentSession is a session in [SessionsHealth].
type RecentSession struct {
	Key       string `json:"key"`
	UpdatedAt Millis `json:"updatedAt"`
	AgeMs     int64  `json:"age"`
}

// Status is the result of status.
type Status struct {
	Version      string          `json:"runtimeVersion"`
	UptimeMs     int64           `json:"uptimeMs"`
	Heartbeat    HeartbeatStatus `json:"heartbeat"`
	Channels     []string        `json:"channelSummary"`
	SystemEvents []string        `json:"queuedSystemEvents"`
	Sessions     StatusSessions  `json:"sessions"`
	Runs         []ActiveRun     `json:"activeRuns"`
	Queued       int             `json:"queuedMessages"`
	Approvals    int             `json:"pendingApprovals"`
	Undelivered  int             `json:"undeliveredParts"`
	Memory       int64           `json:"memoryBytes"` // held by the process
	Workspace    string          `json:"workspaceDir"`
	URL          string          `json:"gatewayUrl,omitempty"` // of the port; "": there is none
}

// HeartbeatStatus says which agents wake by themselves.
type HeartbeatStatus struct {
	DefaultAgent string           `json:"defaultAgentId"`
	Agents       []AgentHeartbeat `json:"agents"`
}

// AgentHeartbeat is one agent in [HeartbeatStatus].
type AgentHeartbeat struct {
	AgentID string `json:"agentId"`
	Enabled bool   `json:"enabled"`
	Every   string `json:"every"`
	EveryMs int64  `json:"everyMs"`
}

// StatusSessions is the sessions in [Status].
type StatusSessions struct {
	Paths    []string       `json:"paths"`
	Count    int            `json:"count"`
	Defaults StatusDefaults `json:"defaults"`
	Recent   []Session      `json:"recent"`
	ByAgent  []AgentHealth  `json:"byAgent"`
}

// StatusDefaults is the model of new sessions.
type StatusDefaults struct {
	Model         string `json:"model"`
	Provider      string `json:"modelProvider,omitempty"`
	Reason        string `json:"modelReason,omitempty"` // why this model is the one, in a few words
	ContextWindow int64  `json:"contextTokens"`
}

// ActiveRun is a run that goes on.
type ActiveRun struct {
	RunID      string `json:"runId"`
	SessionKey string `json:"sessionKey"`
	State      string `json:"state"` // running, suspended
	StartedAt  Millis `json:"startedAt"`
}

// BackupCreate is the parameters of backup.create, a method of our own: the
// gateway writes a complete copy of its database.
type BackupCreate struct {
	Path string `json:"path"` // absolute; nothing may be there
}
