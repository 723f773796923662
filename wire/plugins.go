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
	MethodMCPLoginStart = "mcp.login.start"
	MethodMCPLoginEnd   = "mcp.login.finish"
	MethodMCPLogout     = "mcp.logout"
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

// DetailNeedsLogin is the code in the details of an error about an MCP server that wants the
// person to log in, with mcp.login.start.
const DetailNeedsLogin = "MCP_LOGIN_NEEDED"

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

	Login *MCPLogin `json:"login,omitempty"` // nil: nobody has logged in
}

// MCPLogin is the login at an MCP server.
type MCPLogin struct {
	State   string   `json:"state"`            // pending, in, or lost: it has ended
	Issuer  string   `json:"issuer,omitempty"` // where the person logged in
	Scopes  []string `json:"scopes,omitempty"`
	Expires Millis   `json:"expiresAtMs,omitempty"` // of the token
	Renews  bool     `json:"renews,omitempty"`      // a new token is got before
	Problem string   `json:"problem,omitempty"`
}

// MCPLoginStart holds the parameters of mcp.login.start.
type MCPLoginStart struct {
	Name     string `json:"name"`
	Redirect string `json:"redirectUrl"` // on the machine of the person; the configuration can replace it
}

// MCPLoginStarted is the result of mcp.login.start: the person agrees at URL, and mcp.login.finish
// gets the address to which their browser goes then.
type MCPLoginStarted struct {
	Name     string   `json:"name"`
	URL      string   `json:"url"`
	Redirect string   `json:"redirectUrl"`
	Issuer   string   `json:"issuer"`
	Scopes   []string `json:"scopes"`
	Expires  Millis   `json:"expiresAtMs"`
}

// MCPLoginFinish holds the parameters of mcp.login.finish.
type MCPLoginFinish struct {
	Name   string `json:"name"`
	Answer string `json:"answer"` // the address to which the browser went, or the code in it
}

// MCPLoginFinished is the result of mcp.login.finish.
type MCPLoginFinished struct {
	Name  string   `json:"name"`
	Login MCPLogin `json:"login"`
}

// MCPLogout holds the parameters of mcp.logout.
type MCPLogout struct {
	Name string `json:"name"`
}

// MCPLoggedOut is the result of mcp.logout.
type MCPLoggedOut struct {
	Name    string `json:"name"`
	Removed bool   `json:"removed"`           // there was a login
	Problem string `json:"problem,omitempty"` // why the service was not told
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
