package sandbox

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Mode says which sessions are sandboxed.
type Mode string

// The modes.
const (
	Off     Mode = "off"      // none
	NonMain Mode = "non-main" // all but the agents' main sessions
	All     Mode = "all"
)

// Scope says which sessions share a sandbox.
type Scope string

// The scopes.
const (
	PerSession Scope = "session" // none
	PerAgent   Scope = "agent"   // those of an agent
	Shared     Scope = "shared"  // all
)

// Access is what the tools of a sandboxed session may do with the agent's
// workspace.
type Access string

// The kinds of access.
const (
	NoAccess  Access = "none" // nothing: they work in a private folder
	ReadOnly  Access = "ro"
	ReadWrite Access = "rw"
)

// Native is the backend that confines commands with the means of the kernel.
const Native = "native"

// backends are the values of Config.Backend. OpenClaw's last two do not exist
// here: the commands of sessions that need them are refused.
var backends = []string{Native, "docker", "podman", "ssh", "openshell"}

// Config is agents.defaults.sandbox, or the section sandbox of one agent.
type Config struct {
	Mode    Mode            `json:"mode"`            // "": off
	Scope   Scope           `json:"scope"`           // "": agent
	Backend string          `json:"backend"`         // "": docker if Docker is set, else native
	Access  Access          `json:"workspaceAccess"` // "": none
	Root    string          `json:"workspaceRoot"`   // of the private folders; "": sandboxes in the state directory
	Docker  json.RawMessage `json:"docker"`          // settings of containers, which the backend reads
	Prune   json.RawMessage `json:"prune"`           // when unused containers are removed; as above
}

// Or returns the configuration with what it lacks taken from the defaults.
func (c Config) Or(defaults Config) Config {
	c.Mode, c.Scope, c.Access = cmp.Or(c.Mode, defaults.Mode, Off), cmp.Or(c.Scope, defaults.Scope, PerAgent),
		cmp.Or(c.Access, defaults.Access, NoAccess)
	c.Root = cmp.Or(c.Root, defaults.Root)
	if c.Scope == Shared { // one container has one configuration
		c.Docker, c.Prune = nil, nil
	}
	c.Docker, c.Prune = merged(defaults.Docker, c.Docker), merged(defaults.Prune, c.Prune)
	c.Backend = cmp.Or(c.Backend, defaults.Backend)
	switch {
	case c.Backend != "":
	case len(c.Docker) > 0:
		c.Backend = "docker"
	default:
		c.Backend = Native
	}
	return c
}

// merged returns a JSON object with the members of both. Those of the second
// replace those of the first, and objects in them are merged likewise.
func merged(a, b json.RawMessage) json.RawMessage {
	var old, own map[string]json.RawMessage
	if len(b) == 0 || bytes.Equal(b, []byte("null")) {
		return a
	}
	if json.Unmarshal(a, &old) != nil || json.Unmarshal(b, &own) != nil || old == nil {
		return b
	}
	for name, v := range own {
		old[name] = merged(old[name], v)
	}
	out, err := json.Marshal(old)
	if err != nil {
		return b
	}
	return out
}

// Check returns the error in the configuration at a path.
func (c Config) Check(at string) error {
	for _, f := range [...]struct {
		name, value string
		of          []string
	}{
		{"mode", string(c.Mode), []string{string(Off), string(NonMain), string(All)}},
		{"scope", string(c.Scope), []string{string(PerSession), string(PerAgent), string(Shared)}},
		{"backend", c.Backend, backends},
		{"workspaceAccess", string(c.Access), []string{string(NoAccess), string(ReadOnly), string(ReadWrite)}},
	} {
		if f.value != "" && !slices.Contains(f.of, f.value) {
			return fmt.Errorf("%s.%s: %q is not one of %s", at, f.name, f.value, strings.Join(f.of, ", "))
		}
	}
	return nil
}

// Applies reports whether a session is sandboxed.
func (c Config) Applies(key chela.SessionKey) bool {
	return c.Mode == All || c.Mode == NonMain && key != chela.MainSession(key.Agent())
}

// Session is the sandbox of a session. The tools of an unsandboxed session get
// none.
type Session struct {
	Backend string
	Scope   Scope
	Key     string // of the sandbox: a session's key, agent:ID, or shared
	Access  Access

	Workspace      string // folder that the tools work in
	AgentWorkspace string // the agent's workspace
	Private        string // folder of this sandbox alone; the Workspace if the tools have no access to the agent's

	Container string // name of the container; "": the backend has none
	Workdir   string // the Workspace as commands see it
	// folder in the container, outside of the Workspace, where commands start; "": they start in the
	// Workdir
	Scratch  string
	Settings json.RawMessage // configuration of the container
	Prune    json.RawMessage // when it is removed

	Allow, Deny []string // the rules about tools that apply because of the sandbox
	Elevated    Elevated // whether commands may leave it
}

// New returns the sandbox of a session. workspace is the agent's, root is where
// private folders are unless the configuration says otherwise.
func New(c Config, key chela.SessionKey, workspace, root string) *Session {
	s := &Session{
		Backend:        c.Backend,
		Scope:          c.Scope,
		Access:         c.Access,
		AgentWorkspace: workspace,
		Workspace:      workspace,
		Settings:       c.Docker,
		Prune:          c.Prune,
	}
	switch c.Scope {
	case PerSession:
		s.Key = string(key)
	case Shared:
		s.Key = string(Shared)
	default:
		s.Key = "agent:" + string(key.Agent())
	}
	s.Private = filepath.Join(cmp.Or(c.Root, root), Slug(s.Key))
	if c.Access == NoAccess {
		s.Workspace = s.Private
	}
	s.Workdir = s.Workspace
	return s
}

// Writable reports whether the tools may change the Workspace.
func (s *Session) Writable() bool { return s.Access != ReadOnly }

// HostPath returns the path on the host of a file in the Workspace that has
// another path in the container. It is what file tools work with.
func (s *Session) HostPath(name string) (string, bool) {
	if s.Container == "" || !path.IsAbs(name) {
		return "", false
	}
	rel, err := filepath.Rel(s.Workdir, path.Clean(name))
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	return filepath.Join(s.Workspace, rel), true
}

// InScratch reports whether a path of the container is in the folder that is not
// in the Workspace.
func (s *Session) InScratch(name string) bool {
	rel, err := filepath.Rel(s.Scratch, path.Clean(name))
	return s.Scratch != "" && path.IsAbs(name) && err == nil && filepath.IsLocal(rel)
}

// ContainerPath returns the path in the container of a file in the Workspace.
func (s *Session) ContainerPath(name string) (string, bool) {
	rel, err := filepath.Rel(s.Workspace, name)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	if s.Container == "" {
		return name, true
	}
	return path.Join(s.Workdir, filepath.ToSlash(rel)), true
}

// Slug returns a short name for a sandbox that is safe in names of files and
// containers.
func Slug(key string) string {
	sum := sha256.Sum256([]byte(key))
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(key))
	return strings.Trim(name[:min(len(name), 32)], "-") + "-" + hex.EncodeToString(sum[:4])
}

// Elevated is whether the commands of a sandboxed session may run on the host.
type Elevated struct {
	Level  string // on, ask or full: they do; off: only where a call asks for it
	Reason string // why the sender may not; "": the sender may
}

// Leaves reports whether a command runs on the host.
func (e Elevated) Leaves(asked bool) bool {
	return e.Reason == "" && (asked || e.Level != "" && e.Level != "off")
}

// ElevatedLevels are the levels.
var ElevatedLevels = []string{"off", "on", "ask", "full"}
