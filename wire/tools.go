package wire

// The methods about tools.
const (
	MethodToolsCatalog   = "tools.catalog"
	MethodToolsEffective = "tools.effective"
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
	ID    string `json:"id"` // full
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
	Profile string           `json:"profile"` // full
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
