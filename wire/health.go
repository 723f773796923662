package wire

// Health is the result of health and the payload of the event health.
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
	AgentID   string                 `json:"agentId"`
	Default   bool                   `json:"isDefault"`
	Heartbeat AgentHeartbeatInterval `json:"heartbeat"`
	Sessions  SessionsHealth         `json:"sessions"`
}

// AgentHeartbeatInterval is the heartbeat of an agent.
type AgentHeartbeatInterval struct {
	Enabled bool   `json:"enabled"`
	Every   string `json:"every"`
	EveryMs *int64 `json:"everyMs"` // nil: never
	Prompt  string `json:"prompt"`
	Target  string `json:"target"`
	AckMax  int    `json:"ackMaxChars"`
}

// SessionsHealth counts the sessions and lists the newest.
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

// StatusGet holds the parameters of status.
type StatusGet struct {
	CLI bool `json:"includeCliProjection,omitempty"` // the result has CLI
}

// CLIProjection is what OpenClaw's command line would read of the configuration.
type CLIProjection struct {
	Agents  CLIAgents `json:"agents"`
	Channel *string   `json:"updateChannel"` // nil: there are no updates
}

// CLIAgents is the agents in [CLIProjection].
type CLIAgents struct {
	Default   string     `json:"defaultId"`
	Ownership string     `json:"ownership"` // sole: one gateway serves them
	Select    bool       `json:"selectionRequired"`
	Rows      []CLIAgent `json:"rows"`
}

// CLIAgent is an agent in [CLIAgents].
type CLIAgent struct {
	ID string `json:"id"`
}

// Status is the result of status.
type Status struct {
	CLI          *CLIProjection  `json:"cliProjection,omitempty"`
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
	Memory       int64           `json:"memoryBytes"` // memory of the process
	Workspace    string          `json:"workspaceDir"`
	URL          string          `json:"gatewayUrl,omitempty"` // "": not listening on a port
}

// HeartbeatStatus lists the heartbeats of the agents.
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
	Paths    []string        `json:"paths"`
	Count    int             `json:"count"`
	Defaults StatusDefaults  `json:"defaults"`
	Recent   []Session       `json:"recent"`
	ByAgent  []AgentSessions `json:"byAgent"`
}

// AgentSessions is the sessions of one agent in [StatusSessions].
type AgentSessions struct {
	AgentID string `json:"agentId"`
	SessionsHealth
}

// StatusDefaults is the model of new sessions.
type StatusDefaults struct {
	Model         string `json:"model"`
	Provider      string `json:"modelProvider,omitempty"`
	Reason        string `json:"modelReason,omitempty"` // why this model is the default
	ContextWindow int64  `json:"contextTokens"`
}

// ActiveRun is a run in progress.
type ActiveRun struct {
	RunID      string `json:"runId"`
	SessionKey string `json:"sessionKey"`
	State      string `json:"state"` // running, suspended
	StartedAt  Millis `json:"startedAt"`
}

// BackupCreate holds the parameters of backup.create, which OpenClaw does not
// have: the gateway writes a complete copy of its database.
type BackupCreate struct {
	Path string `json:"path"` // absolute; must not exist
}
