package wire

// The methods about the sandbox. They are not in OpenClaw.
const (
	MethodSandboxStatus   = "sandbox.status"
	MethodSandboxExplain  = "sandbox.explain"
	MethodSandboxTest     = "sandbox.test"
	MethodSandboxRecreate = "sandbox.recreate"
)

// SandboxGet holds the parameters of sandbox.status, sandbox.explain and
// sandbox.test.
type SandboxGet struct {
	AgentID    string `json:"agentId,omitempty"`
	SessionKey string `json:"sessionKey,omitempty"` // "": the agent's main session
}

// SandboxStatus is the result of sandbox.status.
type SandboxStatus struct {
	AgentID  string         `json:"agentId"`
	Mode     string         `json:"mode"`    // of the agent: off, non-main, all
	Backend  string         `json:"backend"` // of the agent
	Backends []SandboxLevel `json:"backends"`
}

// SandboxLevel is how well a backend confines commands on this host.
type SandboxLevel struct {
	Backend  string `json:"backend"`
	Level    string `json:"level"` // full, namespaces, container, none
	Complete bool   `json:"complete"`
	Reason   string `json:"reason,omitempty"` // why the level is not higher
	Hint     string `json:"hint,omitempty"`   // what mends it
}

// SandboxTest is the result of sandbox.test.
type SandboxTest struct {
	SandboxLevel
	Effects []SandboxEffect `json:"effects"`
}

// SandboxEffect is something that a confined program tried to do.
type SandboxEffect struct {
	Name string `json:"name"`
	Held bool   `json:"held"` // it could not
}

// SandboxExplained is the result of sandbox.explain.
type SandboxExplained struct {
	SessionKey string          `json:"sessionKey"`
	AgentID    string          `json:"agentId"`
	Sandboxed  bool            `json:"sessionIsSandboxed"`
	Mode       string          `json:"mode"`
	Scope      string          `json:"scope"`
	Access     string          `json:"workspaceAccess"`
	Backend    string          `json:"backend"`
	Level      SandboxLevel    `json:"level"`
	Workspace  string          `json:"workspaceRoot,omitempty"` // folder that the tools of a sandboxed session work in
	Container  string          `json:"containerName,omitempty"`
	Workdir    string          `json:"containerWorkdir,omitempty"`
	Tools      SandboxTools    `json:"tools"`
	Elevated   SandboxElevated `json:"elevated"`
}

// SandboxTools is the rules about the tools of sandboxed sessions.
type SandboxTools struct {
	Allow   []string `json:"allow"`
	Deny    []string `json:"deny"`
	Sources struct {
		Allow string `json:"allow"` // key of the configuration, or default
		Deny  string `json:"deny"`
	} `json:"sources"`
}

// SandboxElevated is who may have commands of the session run on the host.
type SandboxElevated struct {
	Level   string        `json:"level"`            // of the session: off, on, ask, full
	Allowed bool          `json:"allowedByGates"`   // for the caller
	Reason  string        `json:"reason,omitempty"` // why not
	Gates   []SandboxGate `json:"gates"`
}

// SandboxGate is a setting that decides about elevated rights.
type SandboxGate struct {
	Key   string `json:"key"`
	Value any    `json:"value"`
}

// SandboxRecreate holds the parameters of sandbox.recreate. One of them is
// required.
type SandboxRecreate struct {
	All        bool   `json:"all,omitempty"`
	AgentID    string `json:"agentId,omitempty"`
	SessionKey string `json:"sessionKey,omitempty"`
}

// SandboxRecreated is the result of sandbox.recreate.
type SandboxRecreated struct {
	Removed int      `json:"removed"`
	Names   []string `json:"names"` // of what was removed
	Busy    []string `json:"busy"`  // names of what was kept, because commands run in it
}
