package wire

// The methods about plug-ins and MCP servers. Those from plugins.info on are not in
// OpenClaw.
const (
	MethodPluginsList       = "plugins.list"
	MethodPluginsInspect    = "plugins.inspect"
	MethodPluginsSetEnabled = "plugins.setEnabled"
	MethodPluginsRefresh    = "plugins.refresh"

	MethodPluginsInfo   = "plugins.info"
	MethodPluginsAdd    = "plugins.add"
	MethodPluginsRemove = "plugins.remove"
	MethodMCPStatus     = "mcp.status"
	MethodMCPProbe      = "mcp.probe"
)

// PluginsList is the result of plugins.list.
type PluginsList struct {
	Plugins     []PluginEntry      `json:"plugins"`
	Diagnostics []PluginDiagnostic `json:"diagnostics"`
	Mutable     bool               `json:"mutationAllowed"`
}

// PluginDiagnostic is something that is wrong with a plug-in.
type PluginDiagnostic struct {
	Level    string `json:"level"` // warn, error
	PluginID string `json:"pluginId,omitempty"`
	Message  string `json:"message"`
}

// PluginEntry is a plug-in in a list.
type PluginEntry struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Version     string `json:"version,omitempty"`
	Origin      string `json:"origin,omitempty"` // installed, path, workspace
	Installed   bool   `json:"installed"`
	Enabled     bool   `json:"enabled"`
	State       string `json:"state"` // enabled, disabled, error
	Error       string `json:"error,omitempty"`
	Removable   bool   `json:"removable"`
}

// PluginGet holds the parameters of plugins.inspect, plugins.info and plugins.remove.
type PluginGet struct {
	ID string `json:"pluginId"`
}

// PluginInfo is the result of plugins.info.
type PluginInfo struct {
	PluginEntry
	Format      string      `json:"format"` // openclaw, agent, claude, codex
	Homepage    string      `json:"homepage,omitempty"`
	Dir         string      `json:"dir"`
	File        string      `json:"file"`              // the manifest
	Agent       string      `json:"agentId,omitempty"` // in whose workspace it is
	Hash        string      `json:"sha256,omitempty"`  // of the folder
	Abilities   []string    `json:"abilities"`         // what it may do, for people
	Tools       []string    `json:"tools"`             // that it declares
	Skills      []string    `json:"skills"`            // folders
	Unsupported []string    `json:"unsupported"`       // what it asks for and Chela does not do
	Reasons     []string    `json:"reasons"`           // why it is not used
	Warnings    []string    `json:"warnings"`
	Servers     []MCPServer `json:"servers"`
}

// PluginInspected is the result of plugins.inspect.
type PluginInspected struct {
	OK     bool `json:"ok"`
	Plugin struct {
		ID          string `json:"id"`
		Name        string `json:"name"`
		Version     string `json:"version,omitempty"`
		Description string `json:"description,omitempty"`
		Origin      string `json:"origin,omitempty"`
		Installed   bool   `json:"installed"`
		Enabled     bool   `json:"enabled"`
	} `json:"plugin"`
	Declared    PluginDeclared `json:"declared"`
	ReviewToken string         `json:"reviewToken"` // the hash of its folder
	Grants      struct {
		Hooks struct {
			Prompt       PluginGrant `json:"allowPromptInjection"`
			Conversation PluginGrant `json:"allowConversationAccess"`
		} `json:"hooks"`
	} `json:"grants"`
}

// PluginDeclared is what a plug-in says that it adds.
type PluginDeclared struct {
	Channels    []string `json:"channels"`
	Providers   []string `json:"providers"`
	Tools       []string `json:"tools"`
	Contracts   []string `json:"contracts"`
	Hooks       []string `json:"hooks"`
	Servers     []string `json:"mcpServers"`
	Commands    []string `json:"cliCommands"`
	CLIBackends []string `json:"cliBackends"`
	Skills      []string `json:"skills"`
	Dangerous   []string `json:"dangerousConfigFlags"`
}

// PluginGrant is a right of the hooks of a plug-in.
type PluginGrant struct {
	Effective  bool  `json:"effective"`
	Configured *bool `json:"configured,omitempty"`
}

// PluginsAdd holds the parameters of plugins.add.
type PluginsAdd struct {
	Path    string `json:"path"`              // a folder or an archive on the gateway's machine, absolute
	Replace bool   `json:"replace,omitempty"` // an installed plug-in with the same id
}

// PluginChanged is the result of plugins.add and plugins.setEnabled.
type PluginChanged struct {
	OK       bool        `json:"ok"`
	Plugin   PluginEntry `json:"plugin"`
	Restart  bool        `json:"restartRequired"`
	Warnings []string    `json:"warnings,omitempty"`
}

// PluginsSetEnabled holds the parameters of plugins.setEnabled.
type PluginsSetEnabled struct {
	ID          string        `json:"pluginId"`
	Enabled     bool          `json:"enabled"`
	Acknowledge *PluginReview `json:"acknowledgeCapabilities,omitempty"`
}

// PluginReview says which state of a plug-in a person has read.
type PluginReview struct {
	Token string `json:"reviewToken"`
}

// PluginRemoved is the result of plugins.remove.
type PluginRemoved struct {
	OK      bool     `json:"ok"`
	ID      string   `json:"pluginId"`
	Removed []string `json:"removed"` // folders
}

// MCPStatus is the result of mcp.status.
type MCPStatus struct {
	Servers []MCPServer `json:"servers"`
}

// MCPServer is the state of an MCP server.
type MCPServer struct {
	Name      string   `json:"name"`
	Plugin    string   `json:"pluginId,omitempty"` // whose it is; "": the configuration has it
	Transport string   `json:"transport"`
	Enabled   bool     `json:"enabled"`
	State     string   `json:"state"` // stopped, starting, running, failed, paused, needs-auth
	PID       int      `json:"pid,omitempty"`
	Tools     []string `json:"tools"` // names for models
	Error     string   `json:"error,omitempty"`
	Problems  []string `json:"problems,omitempty"`
	LastUsed  int64    `json:"lastUsedAtMs,omitempty"`
}

// MCPProbe holds the parameters of mcp.probe.
type MCPProbe struct {
	Name string `json:"name"`
}

// MCPProbed is the result of mcp.probe: what a server offered when it was started.
type MCPProbed struct {
	Name     string    `json:"name"`
	Server   string    `json:"server,omitempty"` // name and version that the server gives itself
	Tools    []MCPTool `json:"tools"`
	Problems []string  `json:"problems,omitempty"` // why other tools are not among them
	TookMS   int64     `json:"tookMs"`
}

// MCPTool is a tool of an MCP server.
type MCPTool struct {
	Name        string `json:"name"` // at the server
	Exposed     string `json:"tool"` // for models; "": the filter excludes it, or the plug-in does not declare it
	Description string `json:"description,omitempty"`
}
