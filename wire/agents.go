package wire

// Methods that read agents and the files of their workspaces.
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
	Ownership string      `json:"ownership,omitempty"` // "sole" when there is one agent
	Selection bool        `json:"selectionRequired"`   // clients must name the agent
	MainKey   string      `json:"mainKey"`
	Scope     string      `json:"scope"` // per-sender, global
	Agents    []AgentInfo `json:"agents"`
}

// AgentInfo describes an agent.
type AgentInfo struct {
	ID           string        `json:"id"`
	Name         string        `json:"name,omitempty"`
	Kind         string        `json:"kind"` // always agent
	Identity     *AgentProfile `json:"identity,omitempty"`
	Workspace    string        `json:"workspace,omitempty"`
	Git          bool          `json:"workspaceGit,omitempty"` // the workspace is a Git repository
	Model        AgentModel    `json:"model"`
	Levels       []Level       `json:"thinkingLevels,omitempty"` // of the agent's model
	Options      []string      `json:"thinkingOptions,omitempty"`
	DefaultLevel string        `json:"thinkingDefault,omitempty"`
}

// AgentProfile is an agent's display name and emoji.
type AgentProfile struct {
	Name  string `json:"name,omitempty"`
	Emoji string `json:"emoji,omitempty"`
}

// AgentModel is an agent's primary model and its fallbacks.
type AgentModel struct {
	Primary   string   `json:"primary,omitempty"`
	Fallbacks []string `json:"fallbacks,omitempty"`
}

// AgentIdentityGet holds the parameters of agent.identity.get.
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

// AgentID holds the parameters of agents.files.list.
type AgentID struct {
	ID string `json:"agentId"`
}

// AgentFiles is the result of agents.files.list: the files an agent's system
// prompt is built from.
type AgentFiles struct {
	AgentID   string      `json:"agentId"`
	Workspace string      `json:"workspace"`
	Files     []AgentFile `json:"files"`
}

// AgentFile is a file of an agent's workspace.
type AgentFile struct {
	Name      string `json:"name"`
	Path      string `json:"path"`
	Missing   bool   `json:"missing"`
	Expected  bool   `json:"expectedAbsent,omitempty"` // missing and optional
	Size      int64  `json:"size,omitempty"`
	UpdatedAt Millis `json:"updatedAtMs,omitempty"`
	// hex SHA-256 of the content; with Content only, "" if that is not complete
	Hash    string  `json:"hash,omitempty"`
	Content *string `json:"content,omitempty"` // agents.files.get and set only
}

// AgentFileGet holds the parameters of agents.files.get.
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

// AgentFileSet holds the parameters of agents.files.set.
type AgentFileSet struct {
	AgentID string `json:"agentId"`
	Name    string `json:"name"`
	Content string `json:"content"`
	Hash    string `json:"expectedHash,omitempty"` // refuse if the present content has another one
}

// AgentFileWritten is the result of agents.files.set.
type AgentFileWritten struct {
	OK        bool      `json:"ok"`
	AgentID   string    `json:"agentId"`
	Workspace string    `json:"workspace"`
	File      AgentFile `json:"file"`
}

// Methods that read an agent's workspace. They change nothing.
const (
	MethodWorkspaceList = "agents.workspace.list"
	MethodWorkspaceGet  = "agents.workspace.get"
)

// WorkspaceList holds the parameters of agents.workspace.list.
type WorkspaceList struct {
	AgentID string `json:"agentId"`
	Path    string `json:"path,omitempty"` // folder, relative to the workspace
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

// WorkspaceGet holds the parameters of agents.workspace.get.
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

// Methods that create, change and delete agents.
const (
	MethodAgentsCreate = "agents.create"
	MethodAgentsUpdate = "agents.update"
	MethodAgentsDelete = "agents.delete"
)

// AgentCreate holds the parameters of agents.create.
type AgentCreate struct {
	Name      string `json:"name"` // the agent's id is derived from it
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

// AgentUpdate holds the parameters of agents.update. Empty fields are left
// unchanged.
type AgentUpdate struct {
	AgentID   string           `json:"agentId"`
	Name      string           `json:"name,omitempty"`
	Workspace string           `json:"workspace,omitempty"`
	Model     Optional[string] `json:"model,omitzero"` // null: the default model
	Emoji     string           `json:"emoji,omitempty"`
	Avatar    string           `json:"avatar,omitempty"`
}

// AgentUpdated is the result of agents.update.
type AgentUpdated struct {
	OK      bool   `json:"ok"`
	AgentID string `json:"agentId"`
}

// AgentDelete holds the parameters of agents.delete.
type AgentDelete struct {
	AgentID string `json:"agentId"`
	Files   *bool  `json:"deleteFiles,omitempty"` // move the workspace to the trash; nil: yes
}

// AgentDeleted is the result of agents.delete.
type AgentDeleted struct {
	OK       bool          `json:"ok"`
	AgentID  string        `json:"agentId"`
	Bindings int           `json:"removedBindings"`
	Removed  []RemovedPath `json:"removed"`
	Failed   []FailedPath  `json:"failed"`
}

// RemovedPath is a folder that was moved to the trash.
type RemovedPath struct {
	Path   string `json:"path"`
	Method string `json:"method"` // trash, missing
}

// FailedPath is a folder that could not be moved.
type FailedPath struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}
