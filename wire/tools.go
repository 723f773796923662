package wire

// The methods about tools.
const (
	MethodToolsCatalog   = "tools.catalog"
	MethodToolsEffective = "tools.effective"
	MethodToolsExplain   = "tools.explain" // not in OpenClaw
)

// ToolsGet holds the parameters of tools.catalog.
type ToolsGet struct {
	AgentID string `json:"agentId,omitempty"`
}

// ToolsCatalog is the result of tools.catalog: all tools available to an agent.
type ToolsCatalog struct {
	AgentID  string        `json:"agentId"`
	Profiles []ToolProfile `json:"profiles"`
	Groups   []ToolGroup   `json:"groups"`
}

// ToolProfile is a predefined set of tools.
type ToolProfile struct {
	ID    string `json:"id"` // minimal, coding, messaging, full
	Label string `json:"label"`
}

// ToolGroup is a group of related tools.
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
	Source      string   `json:"source"` // core, plugin
	PluginID    string   `json:"pluginId,omitempty"`
	Optional    bool     `json:"optional,omitempty"` // the configuration must allow it by name
	Risk        string   `json:"risk"`               // low, medium, high
	Profiles    []string `json:"defaultProfiles"`
}

// ToolsEffectiveGet holds the parameters of tools.effective.
type ToolsEffectiveGet struct {
	AgentID    string `json:"agentId,omitempty"`
	SessionKey string `json:"sessionKey"`
}

// ToolsEffective is the result of tools.effective: the tools of the session's
// next run.
type ToolsEffective struct {
	AgentID string           `json:"agentId"`
	Profile string           `json:"profile"` // minimal, coding, messaging, full
	Groups  []EffectiveGroup `json:"groups"`
}

// EffectiveGroup is the tools from one source.
type EffectiveGroup struct {
	ID     string          `json:"id"` // core, plugin, mcp
	Label  string          `json:"label"`
	Source string          `json:"source"`
	Tools  []EffectiveTool `json:"tools"`
}

// EffectiveTool is a tool of a run.
type EffectiveTool struct {
	ID          string `json:"id"`
	Label       string `json:"label"`
	Description string `json:"description"`    // one line
	Raw         string `json:"rawDescription"` // as the model gets it
	Source      string `json:"source"`
	PluginID    string `json:"pluginId,omitempty"`
	Risk        string `json:"risk"`
}

// ToolsExplainGet holds the parameters of tools.explain. The fields after
// SessionKey describe a hypothetical run.
type ToolsExplainGet struct {
	Name       string `json:"name,omitempty"` // "": all tools
	AgentID    string `json:"agentId,omitempty"`
	SessionKey string `json:"sessionKey,omitempty"` // "": the agent's main session
	Model      string `json:"model,omitempty"`      // provider/model; "": the session's
	Sender     string `json:"sender,omitempty"`     // channel:id, or an id
	Sandboxed  bool   `json:"sandboxed,omitempty"`
	Depth      int    `json:"subagent,omitempty"` // depth of the subagent; 0: not a subagent
	MaxDepth   int    `json:"maxSpawnDepth,omitempty"`
	Type       string `json:"agentType,omitempty"` // of a subagent; "": general
}

// ToolsExplained is the result of tools.explain.
type ToolsExplained struct {
	AgentID  string          `json:"agentId"`
	Model    string          `json:"model"`
	Profile  string          `json:"profile"`
	Tools    []ToolExplained `json:"tools"`
	Warnings []string        `json:"warnings,omitempty"` // about the configuration
	ReadOnly bool            `json:"readOnly,omitempty"` // calls that could change something are refused
}

// ToolExplained says whether a tool is allowed, and which rules decided.
type ToolExplained struct {
	Name    string     `json:"name"`
	Summary string     `json:"summary"`
	Allowed bool       `json:"offered"`
	By      string     `json:"by,omitempty"`  // the rule that removed it
	Key     string     `json:"key,omitempty"` // configuration key of that rule
	Steps   []ToolRule `json:"steps"`
}

// ToolRule is the verdict of one rule on a tool.
type ToolRule struct {
	Label   string `json:"label"`
	Key     string `json:"key,omitempty"`
	Allows  bool   `json:"keeps"`
	Pattern string `json:"pattern,omitempty"` // the pattern that matched
}
