package wire

import "encoding/json"

// Methods about which commands run without a question.
const (
	MethodExecPolicy    = "exec.approvals.get"
	MethodExecPolicySet = "exec.approvals.set"
)

// ExecPolicySnapshot is the result of exec.approvals.get and exec.approvals.set.
type ExecPolicySnapshot struct {
	Path     string       `json:"path"` // of the file that says so
	Exists   bool         `json:"exists"`
	Hash     string       `json:"hash"` // changes with the rules
	File     ExecPolicy   `json:"file"`
	Resolved ExecDefaults `json:"resolvedDefaults"`
}

// ExecPolicySet is the parameters of exec.approvals.set: rules in place of
// those of BaseHash.
type ExecPolicySet struct {
	File     ExecPolicy `json:"file"`
	BaseHash string     `json:"baseHash,omitempty"`
}

// ExecPolicy is rules about commands.
type ExecPolicy struct {
	Version  int                  `json:"version"` // 1
	Socket   *ExecSocket          `json:"socket,omitempty"`
	Defaults ExecSettings         `json:"defaults"`
	Agents   map[string]ExecAgent `json:"agents"` // by id; "*" for all
}

// ExecSocket is where another program asks for decisions.
type ExecSocket struct {
	Path  string `json:"path,omitempty"`
	Token string `json:"token,omitempty"` // is never told
}

// ExecSettings is what rules say of the policy; what is empty they leave to the
// configuration.
type ExecSettings struct {
	Security string `json:"security,omitempty"`
	Ask      string `json:"ask,omitempty"`
	Fallback string `json:"askFallback,omitempty"`
	Skills   *bool  `json:"autoAllowSkills,omitempty"`
}

// ExecAgent is the rules for one agent.
type ExecAgent struct {
	ExecSettings
	Allowlist []ExecEntry     `json:"allowlist,omitempty"`
	MCPTools  json.RawMessage `json:"mcpTools,omitempty"`
}

// ExecEntry lets a program run, or, when its source is allow-always, a command
// that a person allowed.
type ExecEntry struct {
	ID       string `json:"id,omitempty"`
	Pattern  string `json:"pattern"`
	Source   string `json:"source,omitempty"`
	Text     string `json:"commandText,omitempty"`
	Args     string `json:"argPattern,omitempty"`
	LastUsed Millis `json:"lastUsedAt,omitempty"`
	Command  string `json:"lastUsedCommand,omitempty"`
	Resolved string `json:"lastResolvedPath,omitempty"`
}

// ExecDefaults says which commands run, when a person is asked, and what
// becomes of a command when nobody can be.
type ExecDefaults struct {
	Security string `json:"security"`    // deny, allowlist, full
	Ask      string `json:"ask"`         // off, on-miss, always
	Fallback string `json:"askFallback"` // deny, allowlist, full
	Skills   bool   `json:"autoAllowSkills"`
}
