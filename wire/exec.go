package wire

import "encoding/json"

// Methods that manage the rules for commands that run without approval.
const (
	MethodExecPolicy    = "exec.approvals.get"
	MethodExecPolicySet = "exec.approvals.set"
)

// ExecPolicySnapshot is the result of exec.approvals.get and
// exec.approvals.set.
type ExecPolicySnapshot struct {
	Path     string       `json:"path"` // of the file that holds the rules
	Exists   bool         `json:"exists"`
	Hash     string       `json:"hash"` // changes with the rules
	File     ExecPolicy   `json:"file"`
	Resolved ExecDefaults `json:"resolvedDefaults"`
}

// ExecPolicySet holds the parameters of exec.approvals.set: rules that replace
// the ones with hash BaseHash.
type ExecPolicySet struct {
	File     ExecPolicy `json:"file"`
	BaseHash string     `json:"baseHash,omitempty"`
}

// ExecPolicy is the rules for commands.
type ExecPolicy struct {
	Version  int                  `json:"version"` // 1
	Socket   *ExecSocket          `json:"socket,omitempty"`
	Defaults ExecSettings         `json:"defaults"`
	Agents   map[string]ExecAgent `json:"agents"` // by id; "*" for all
}

// ExecSocket is the address at which another program asks for approvals.
type ExecSocket struct {
	Path  string `json:"path,omitempty"`
	Token string `json:"token,omitempty"` // never returned
}

// ExecSettings overrides the configured policy; empty fields are inherited.
type ExecSettings struct {
	Security string `json:"security,omitempty"`
	Ask      string `json:"ask,omitempty"`
	Fallback string `json:"askFallback,omitempty"`
	Skills   *bool  `json:"autoAllowSkills,omitempty"`
}

// ExecAgent is the rules of one agent.
type ExecAgent struct {
	ExecSettings
	Allowlist []ExecEntry     `json:"allowlist,omitempty"`
	MCPTools  json.RawMessage `json:"mcpTools,omitempty"`
}

// ExecEntry allows a program, or, with source allow-always, one command that a
// person approved.
type ExecEntry struct {
	ID       string `json:"id,omitempty"`
	Pattern  string `json:"pattern"`
	Source   string `json:"source,omitempty"`
	Text     string `json:"commandText,omitempty"`
	Args     string `json:"argPattern,omitempty"`
	Host     bool   `json:"host,omitempty"` // it runs outside of the sandbox
	LastUsed Millis `json:"lastUsedAt,omitempty"`
	Command  string `json:"lastUsedCommand,omitempty"`
	Resolved string `json:"lastResolvedPath,omitempty"`
}

// ExecDefaults says which commands run, when approval is required, and what
// happens when nobody can approve.
type ExecDefaults struct {
	Security string `json:"security"`    // deny, allowlist, full
	Ask      string `json:"ask"`         // off, on-miss, always
	Fallback string `json:"askFallback"` // deny, allowlist, full
	Skills   bool   `json:"autoAllowSkills"`
}
