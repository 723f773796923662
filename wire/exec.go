package wire

// MethodExecPolicy asks what commands may do without a question.
const MethodExecPolicy = "exec.approvals.get"

// ExecPolicySnapshot is the result of exec.approvals.get.
type ExecPolicySnapshot struct {
	Path     string       `json:"path"` // of the file that says so
	Exists   bool         `json:"exists"`
	Hash     string       `json:"hash"` // changes with the rules
	File     ExecPolicy   `json:"file"`
	Resolved ExecDefaults `json:"resolvedDefaults"`
}

// ExecPolicy is rules about commands. There are none for single agents.
type ExecPolicy struct {
	Version  int                 `json:"version"` // 1
	Defaults ExecDefaults        `json:"defaults"`
	Agents   map[string]struct{} `json:"agents"`
}

// ExecDefaults says which commands run, when a person is asked, and what
// becomes of a command when nobody can be.
type ExecDefaults struct {
	Security string `json:"security"`    // deny, allowlist, full
	Ask      string `json:"ask"`         // off, on-miss, always
	Fallback string `json:"askFallback"` // deny, allowlist, full
	Skills   bool   `json:"autoAllowSkills"`
}
