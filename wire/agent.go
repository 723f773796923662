package wire

// AgentRun is the parameters of agent. It is answered twice: first with
// [Accepted], at the run's end with [AgentResult].
type AgentRun struct {
	Message        string       `json:"message"`
	IdempotencyKey string       `json:"idempotencyKey"`
	AgentID        string       `json:"agentId,omitempty"`
	SessionKey     string       `json:"sessionKey,omitempty"` // "": the agent's main session
	Thinking       string       `json:"thinking,omitempty"`
	Timeout        int          `json:"timeout,omitempty"` // seconds to wait for the end; 0: as long as it takes
	Attachments    []Attachment `json:"attachments,omitempty"`
}

// Accepted is the first answer to agent.
type Accepted struct {
	RunID      string `json:"runId"`
	SessionKey string `json:"sessionKey"`
	AgentID    string `json:"agentId"`
	Status     string `json:"status"` // accepted
	AcceptedAt Millis `json:"acceptedAt"`
}

// AgentResult is the last answer to agent.
type AgentResult struct {
	RunID   string       `json:"runId"`
	Status  string       `json:"status"` // ok, error, timeout
	Summary string       `json:"summary"`
	Result  *AgentOutput `json:"result,omitempty"`
}

// AgentOutput is what a run answered.
type AgentOutput struct {
	Payloads []Payload `json:"payloads"`
	Meta     RunMeta   `json:"meta"`
}

// Payload is one message of an answer.
type Payload struct {
	Text     string  `json:"text"`
	MediaURL *string `json:"mediaUrl"` // nil: none
}

// RunMeta is how a run went.
type RunMeta struct {
	DurationMs int64     `json:"durationMs"`
	Aborted    bool      `json:"aborted,omitempty"`
	Stop       string    `json:"stopReason,omitempty"`
	Agent      AgentMeta `json:"agentMeta"`
}

// AgentMeta says who answered.
type AgentMeta struct {
	SessionID string `json:"sessionId"`
	Provider  string `json:"provider,omitempty"`
	Model     string `json:"model,omitempty"`
	Usage     *Usage `json:"usage,omitempty"`
}

// AgentWait is the parameters of agent.wait.
type AgentWait struct {
	RunID     string `json:"runId"`
	TimeoutMs int64  `json:"timeoutMs,omitempty"` // 0: 30 s
}

// Waited is the result of agent.wait. A run that is not known, or still goes
// on, is status timeout.
type Waited struct {
	RunID     string `json:"runId"`
	Status    string `json:"status"`
	StartedAt Millis `json:"startedAt,omitempty"`
	EndedAt   Millis `json:"endedAt,omitempty"`
	Error     string `json:"error,omitempty"`
	Stop      string `json:"stopReason,omitempty"`
	Reply     *Reply `json:"terminalReply,omitempty"`
}

// AgentsList is the result of agents.list.
type AgentsList struct {
	DefaultID string      `json:"defaultId"`
	MainKey   string      `json:"mainKey"`
	Scope     string      `json:"scope"`
	Agents    []AgentInfo `json:"agents"`
}

// AgentInfo describes an agent.
type AgentInfo struct {
	ID        string     `json:"id"`
	Name      string     `json:"name,omitempty"`
	Kind      string     `json:"kind"` // agent
	Workspace string     `json:"workspace,omitempty"`
	Model     AgentModel `json:"model"`
}

// AgentModel is the model that an agent asks first.
type AgentModel struct {
	Primary   string   `json:"primary"`
	Fallbacks []string `json:"fallbacks,omitempty"`
}

// AgentIdentityGet is the parameters of agent.identity.get.
type AgentIdentityGet struct {
	AgentID    string `json:"agentId,omitempty"`
	SessionKey string `json:"sessionKey,omitempty"`
}

// AgentIdentity is the result of agent.identity.get.
type AgentIdentity struct {
	AgentID string `json:"agentId"`
	Name    string `json:"name"`
	Avatar  string `json:"avatar"`
}

// ModelsGet is the parameters of models.list.
type ModelsGet struct {
	AgentID    string `json:"agentId,omitempty"`
	SessionKey string `json:"sessionKey,omitempty"`
}

// ModelsList is the result of models.list.
type ModelsList struct {
	Models []Model `json:"models"`
}

// Model describes a model.
type Model struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Provider  string   `json:"provider"`
	Context   int      `json:"contextWindow,omitempty"`
	Reasoning bool     `json:"reasoning"`
	Tags      []string `json:"tags,omitempty"` // default, configured, local
	Levels    []Level  `json:"thinkingLevels,omitempty"`
	Available bool     `json:"available"`
	Cost      *Price   `json:"cost,omitempty"`
}

// Level is a thinking level.
type Level struct {
	ID    string `json:"id"`
	Label string `json:"label"`
}

// Price is what a model costs, in US dollars per million tokens.
type Price struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cacheRead,omitempty"`
	CacheWrite float64 `json:"cacheWrite,omitempty"`
}

// CommandsGet is the parameters of commands.list.
type CommandsGet struct {
	SessionKey  string `json:"sessionKey,omitempty"`
	AgentID     string `json:"agentId,omitempty"`
	IncludeArgs bool   `json:"includeArgs,omitempty"`
}

// CommandsList is the result of commands.list.
type CommandsList struct {
	Commands []Command `json:"commands"`
}

// Command describes a slash command.
type Command struct {
	Name        string       `json:"name"`
	NativeName  string       `json:"nativeName"`
	Aliases     []string     `json:"textAliases"`
	Description string       `json:"description"`
	Category    string       `json:"category"`
	Source      string       `json:"source"` // native
	Scope       string       `json:"scope"`  // both
	AcceptsArgs bool         `json:"acceptsArgs"`
	Args        []CommandArg `json:"args,omitempty"`
}

// CommandArg describes an argument of a command.
type CommandArg struct {
	Name     string   `json:"name"`
	Choices  []string `json:"choices,omitempty"`
	Required bool     `json:"required,omitempty"`
}

// ToolsGet is the parameters of tools.catalog.
type ToolsGet struct {
	AgentID string `json:"agentId,omitempty"`
}

// ToolsCatalog is the result of tools.catalog.
type ToolsCatalog struct {
	AgentID string      `json:"agentId"`
	Groups  []ToolGroup `json:"groups"`
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
	ID          string `json:"id"`
	Label       string `json:"label"`
	Description string `json:"description"`
	Source      string `json:"source"` // core
	Effect      string `json:"effect,omitempty"`
}
