package wire

// The methods about agents: who they are, and the files of their workspaces.
const (
	MethodAgentsList      = "agents.list"
	MethodAgentIdentity   = "agent.identity.get"
	MethodAgentsFilesList = "agents.files.list"
	MethodAgentsFilesGet  = "agents.files.get"
	MethodAgentsFilesSet  = "agents.files.set"
)

// DetailUnknownAgent is the code in the details of an error about an agent that
// does not exist.
const DetailUnknownAgent = "UNKNOWN_AGENT_ID"

// AgentsList is the result of agents.list.
type AgentsList struct {
	DefaultID string      `json:"defaultId"`
	Ownership string      `json:"ownership,omitempty"` // sole: there is one agent
	Selection bool        `json:"selectionRequired"`   // a client must name the agent
	MainKey   string      `json:"mainKey"`
	Scope     string      `json:"scope"` // per-sender, global
	Agents    []AgentInfo `json:"agents"`
}

// AgentInfo describes an agent.
type AgentInfo struct {
	ID           string         `json:"id"`
	Name         string         `json:"name,omitempty"`
	Kind         string         `json:"kind"` // agent
	Identity     *AgentPortrait `json:"identity,omitempty"`
	Workspace    string         `json:"workspace,omitempty"`
	Git          bool           `json:"workspaceGit,omitempty"` // the workspace is a Git repository
	Model        AgentModel     `json:"model"`
	Levels       []Level        `json:"thinkingLevels,omitempty"` // of its model
	Options      []string       `json:"thinkingOptions,omitempty"`
	DefaultLevel string         `json:"thinkingDefault,omitempty"`
}

// AgentPortrait is how an agent shows itself.
type AgentPortrait struct {
	Name  string `json:"name,omitempty"`
	Emoji string `json:"emoji,omitempty"`
}

// AgentModel is the model that an agent asks first.
type AgentModel struct {
	Primary   string   `json:"primary,omitempty"`
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
	Source  string `json:"nameSource,omitempty"` // config, agent, workspace, default
	Avatar  string `json:"avatar"`
	Emoji   string `json:"emoji,omitempty"`
}

// AgentID is the parameters of agents.files.list.
type AgentID struct {
	ID string `json:"agentId"`
}

// AgentFiles is the result of agents.files.list: the files that an agent's
// system prompt is made from.
type AgentFiles struct {
	AgentID   string      `json:"agentId"`
	Workspace string      `json:"workspace"`
	Files     []AgentFile `json:"files"`
}

// AgentFile is a file of an agent's workspace.
type AgentFile struct {
	Name      string  `json:"name"`
	Path      string  `json:"path"`
	Missing   bool    `json:"missing"`
	Expected  bool    `json:"expectedAbsent,omitempty"` // it is missing, and need not be there
	Size      int64   `json:"size,omitempty"`
	UpdatedAt Millis  `json:"updatedAtMs,omitempty"`
	Content   *string `json:"content,omitempty"` // agents.files.get only
}

// AgentFileGet is the parameters of agents.files.get.
type AgentFileGet struct {
	AgentID string `json:"agentId"`
	Name    string `json:"name"`
}

// AgentFileGot is the result of agents.files.get.
type AgentFileGot struct {
	AgentID   string    `json:"agentId"`
	Workspace string    `json:"workspace"`
	File      AgentFile `json:"file"`
}

// AgentFileSet is the parameters of agents.files.set.
type AgentFileSet struct {
	AgentID string `json:"agentId"`
	Name    string `json:"name"`
	Content string `json:"content"`
}

// AgentFileWritten is the result of agents.files.set.
type AgentFileWritten struct {
	OK        bool      `json:"ok"`
	AgentID   string    `json:"agentId"`
	Workspace string    `json:"workspace"`
	File      AgentFile `json:"file"`
}

// The methods that show the workspace of an agent. They change nothing.
const (
	MethodWorkspaceList = "agents.workspace.list"
	MethodWorkspaceGet  = "agents.workspace.get"
)

// WorkspaceList is the parameters of agents.workspace.list.
type WorkspaceList struct {
	AgentID string `json:"agentId"`
	Path    string `json:"path,omitempty"` // of a folder, below the workspace
	Offset  int    `json:"offset,omitempty"`
	Limit   int    `json:"limit,omitempty"` // 0: 200
}

// WorkspaceEntries is the result of agents.workspace.list.
type WorkspaceEntries struct {
	AgentID string           `json:"agentId"`
	Path    string           `json:"path"`
	Parent  *string          `json:"parentPath,omitempty"`
	Entries []WorkspaceEntry `json:"entries"` // folders first
	Total   int              `json:"totalEntries"`
	Offset  int              `json:"offset"`
}

// WorkspaceEntry is a file or a folder.
type WorkspaceEntry struct {
	Path      string `json:"path"`
	Name      string `json:"name"`
	Kind      string `json:"kind"` // file, directory
	Size      int64  `json:"size,omitempty"`
	UpdatedAt Millis `json:"updatedAtMs,omitempty"`
}

// WorkspaceGet is the parameters of agents.workspace.get.
type WorkspaceGet struct {
	AgentID string `json:"agentId"`
	Path    string `json:"path"`
}

// WorkspaceGot is the result of agents.workspace.get.
type WorkspaceGot struct {
	AgentID string        `json:"agentId"`
	File    WorkspaceFile `json:"file"`
}

// WorkspaceFile is a file with its content.
type WorkspaceFile struct {
	Path      string `json:"path"`
	Name      string `json:"name"`
	Size      int64  `json:"size"`
	UpdatedAt Millis `json:"updatedAtMs"`
	MIME      string `json:"mimeType"`
	Encoding  string `json:"encoding"` // utf8, base64
	Content   string `json:"content"`
}

// The methods that change which agents there are, and who they are.
const (
	MethodAgentsCreate = "agents.create"
	MethodAgentsUpdate = "agents.update"
	MethodAgentsDelete = "agents.delete"
)

// AgentCreate is the parameters of agents.create.
type AgentCreate struct {
	Name      string `json:"name"` // its id is made of it
	Workspace string `json:"workspace,omitempty"`
	Model     string `json:"model,omitempty"`
	Emoji     string `json:"emoji,omitempty"`
	Avatar    string `json:"avatar,omitempty"`
}

// AgentCreated is the result of agents.create.
type AgentCreated struct {
	OK        bool   `json:"ok"`
	AgentID   string `json:"agentId"`
	Name      string `json:"name"`
	Workspace string `json:"workspace"`
	Model     string `json:"model,omitempty"`
}

// AgentUpdate is the parameters of agents.update. What is empty stays as it is.
type AgentUpdate struct {
	AgentID   string           `json:"agentId"`
	Name      string           `json:"name,omitempty"`
	Workspace string           `json:"workspace,omitempty"`
	Model     Optional[string] `json:"model,omitzero"` // null: that of all agents
	Emoji     string           `json:"emoji,omitempty"`
	Avatar    string           `json:"avatar,omitempty"`
}

// AgentUpdated is the result of agents.update.
type AgentUpdated struct {
	OK      bool   `json:"ok"`
	AgentID string `json:"agentId"`
}

// AgentDelete is the parameters of agents.delete.
type AgentDelete struct {
	AgentID string `json:"agentId"`
	Files   *bool  `json:"deleteFiles,omitempty"` // move its workspace away; nil: yes
}

// AgentDeleted is the result of agents.delete.
type AgentDeleted struct {
	OK       bool          `json:"ok"`
	AgentID  string        `json:"agentId"`
	Bindings int           `json:"removedBindings"`
	Removed  []RemovedPath `json:"removed"`
	Failed   []FailedPath  `json:"failed"`
}

// RemovedPath is a folder that was moved away.
type RemovedPath struct {
	Path   string `json:"path"`
	Method string `json:"method"` // trash, missing
}

// FailedPath is a folder that stays.
type FailedPath struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}
