package wire

// The methods about tools.
const (
	MethodToolsCatalog   = "tools.catalog"
	MethodToolsEffective = "tools.effective"
	MethodToolsExplain   = "tools.explain" // our own
)

// ToolsGet is the parameters of tools.catalog.
type ToolsGet struct {
	AgentID string `json:"agentId,omitempty"`
}

// ToolsCatalog is the result of tools.catalog: all tools that an agent may be
// given.
type ToolsCatalog struct {
	AgentID  string        `json:"agentId"`
	Profiles []ToolProfile `json:"profiles"`
	Groups   []ToolGroup   `json:"groups"`
}

// ToolProfile is a set of tools to begin with.
type ToolProfile struct {
	ID    string `json:"id"` // minimal, coding, messaging, full
	Label string `json:"label"`
}

// ToolGroup is tools that belong together.
type ToolGroup struct {
	ID     string     `json:"id"`
	Label  string     `json:"label"`
	Source string     `json:"source"` // core
	Tools  []ToolInfo `json:"tools"`
}

// ToolInfo describes a tool.
type ToolInfo struct {
	ID          string   `json:"id"`
	Label       string   `json:"label"`
	Description string   `json:"description"`
	Source      string   `json:"source"` // core
	Risk        string   `json:"risk"`   // low, medium, high
	Profiles    []string `json:"defaultProfiles"`
}

// ToolsEffectiveGet is the parameters of tools.effective.
type ToolsEffectiveGet struct {
	AgentID    string `json:"agentId,omitempty"`
	SessionKey string `json:"sessionKey"`
}

// ToolsEffective is the result of tools.effective: the tools that the next run
// of a session is given.
type ToolsEffective struct {
	AgentID string           `json:"agentId"`
	Profile string           `json:"profile"` // minimal, coding, messaging, full
	Groups  []EffectiveGroup `json:"groups"`
}

// EffectiveGroup is the tools of one source.
type EffectiveGroup struct {
	ID     string          `json:"id"` // core
	Label  string          `json:"label"`
	Source string          `json:"source"`
	Tools  []EffectiveTool `json:"tools"`
}

// EffectiveTool is a tool that a run is given.
type EffectiveTool struct {
	ID          string `json:"id"`
	Label       string `json:"label"`
	Description string `json:"description"`    // in one line
	Raw         string `json:"rawDescription"` // as the model is told of it
	Source      string `json:"source"`
	Risk        string `json:"risk"`
}

// ToolsExplainGet is the parameters of tools.explain. Beside the session it
// describes a conversation that there need not be.
type ToolsExplainGet struct {
	Name       string `json:"name,omitempty"` // of one tool; "": all
	AgentID    string `json:"agentId,omitempty"`
	SessionKey string `json:"sessionKey,omitempty"` // "": the agent's main session
	Model      string `json:"model,omitempty"`      // provider/model; "": the session's
	Sender     string `json:"sender,omitempty"`     // channel:id, or an id
	Sandboxed  bool   `json:"sandboxed,omitempty"`
	Depth      int    `json:"subagent,omitempty"` // of a subagent; 0: not one
	MaxDepth   int    `json:"maxSpawnDepth,omitempty"`
}

// ToolsExplained is the result of tools.explain.
type ToolsExplained struct {
	AgentID  string          `json:"agentId"`
	Model    string          `json:"model"`
	Profile  string          `json:"profile"`
	Tools    []ToolExplained `json:"tools"`
	Warnings []string        `json:"warnings,omitempty"` // about the configuration
}

// ToolExplained says whether a tool is offered, and which steps looked at it.
type ToolExplained struct {
	Name    string     `json:"name"`
	Summary string     `json:"summary"`
	Offered bool       `json:"offered"`
	By      string     `json:"by,omitempty"`  // the step that removed it
	Key     string     `json:"key,omitempty"` // of the configuration that said so
	Steps   []ToolRule `json:"steps"`
}

// ToolRule is what one rule says of a tool.
type ToolRule struct {
	Label   string `json:"label"`
	Key     string `json:"key,omitempty"`
	Keeps   bool   `json:"keeps"`
	Pattern string `json:"pattern,omitempty"` // that matched
}
