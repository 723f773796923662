package wire

// The methods about hooks of the person. hooks.install is not in OpenClaw.
const (
	MethodHooksStatus  = "hooks.status"
	MethodHooksInstall = "hooks.install"
)

// HooksGet holds the parameters of hooks.status.
type HooksGet struct {
	AgentID string `json:"agentId,omitempty"` // whose workspace is named; "": the default agent
}

// HooksStatus is the result of hooks.status.
type HooksStatus struct {
	Workspace string `json:"workspaceDir"`
	Managed   string `json:"managedHooksDir"` // folder of the hooks that the person installed
	Hooks     []Hook `json:"hooks"`
}

// Hook is a hook that is part of Chela, or a folder with a HOOK.md.
type Hook struct {
	Name        string           `json:"name"`
	Description string           `json:"description"`
	Source      string           `json:"source"` // bundled, extra, managed, plugin, workspace
	File        string           `json:"filePath"`
	Dir         string           `json:"baseDir"`
	Handler     string           `json:"handlerPath"`
	Key         string           `json:"hookKey"` // of its entry in hooks.internal.entries
	Emoji       string           `json:"emoji,omitempty"`
	Homepage    string           `json:"homepage,omitempty"`
	Events      []string         `json:"events"`
	Always      bool             `json:"always"`
	AgentID     string           `json:"agentId,omitempty"` // whose workspace it is in
	Enabled     bool             `json:"enabledByConfig"`
	Satisfied   bool             `json:"requirementsSatisfied"`
	Loadable    bool             `json:"loadable"` // it is used
	Blocked     string           `json:"blockedReason,omitempty"`
	Warnings    []string         `json:"warnings,omitempty"`
	Hash        string           `json:"sha256,omitempty"` // of the folder, if it is in a workspace
	Managed     bool             `json:"managedByPlugin"`
	Requires    HookRequirements `json:"requirements"`
	Missing     HookRequirements `json:"missing"`
}

// HookRequirements is what a hook requires.
type HookRequirements struct {
	Bins    []string `json:"bins"`
	AnyBins []string `json:"anyBins"`
	Env     []string `json:"env"`
	Config  []string `json:"config"`
	OS      []string `json:"os"`
}

// HooksInstall holds the parameters of hooks.install.
type HooksInstall struct {
	Path    string `json:"path"`              // a folder on the gateway's machine, absolute
	Replace bool   `json:"replace,omitempty"` // an installed hook with the same name
}

// HookInstalled is the result of hooks.install.
type HookInstalled struct {
	Name string `json:"name"`
	Dir  string `json:"baseDir"`
}
