package plugindir

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/kit/secret"
)

// Config is the section plugins.
type Config struct {
	Enabled *bool    `json:"enabled"` // nil: true
	Allow   []string `json:"allow"`   // only these; none: all
	Deny    []string `json:"deny"`    // not these, whatever else is set
	Load    struct {
		Paths []string `json:"paths"` // folders of plug-ins, or folders of such folders
	} `json:"load"`
	Slots struct {
		Memory        string `json:"memory"` // none: no memory tools
		ContextEngine string `json:"contextEngine"`
	} `json:"slots"`
	Entries map[string]Entry `json:"entries"` // by id
}

// Entry is the configuration of one plug-in.
type Entry struct {
	Enabled *bool             `json:"enabled"` // nil: only plug-ins of load.paths are
	Config  json.RawMessage   `json:"config"`  // for the schema of the manifest
	Env     map[string]string `json:"env"`     // variables of its programs
	Key     secret.Ref        `json:"apiKey"`
	Hooks   struct {
		Conversation *bool `json:"allowConversationAccess"` // nil: false
		Prompt       *bool `json:"allowPromptInjection"`    // nil: false
		TimeoutMS    int   `json:"timeoutMs"`
	} `json:"hooks"`
	Hash        string      `json:"sha256"`      // of the folder, when the plug-in was enabled
	Permissions Permissions `json:"permissions"` // in addition to those of the manifest
	Sandbox     *bool       `json:"sandbox"`     // nil: true; false: the programs are not confined
}

// maxTimeout is the longest time limit of hooks that can be configured.
const maxTimeout = 10 * time.Minute

// Timeout returns the time limit of hooks; 0: that of the point.
func (e *Entry) Timeout() time.Duration {
	return min(max(0, time.Duration(e.Hooks.TimeoutMS)*time.Millisecond), maxTimeout)
}

// Allowed returns whether the hooks may see conversations and change prompts.
func (e *Entry) Allowed() (conversation, prompt bool) {
	isOn := func(p *bool) bool { return p != nil && *p }
	return isOn(e.Hooks.Conversation), isOn(e.Hooks.Prompt)
}

// Permissions is what the programs of a plug-in may use besides its folder, which they
// can read, and its data folder.
type Permissions struct {
	Hosts []string `json:"hosts"` // to connect to: NAME, NAME:PORT or *.DOMAIN
	Read  []string `json:"read"`  // files and folders; ~/ is the home directory
	Write []string `json:"write"` // files and folders that they may change
}

// with returns both permissions.
func (p Permissions) with(q Permissions) Permissions {
	join := func(a, b []string) []string {
		all := slices.Concat(a, b)
		slices.Sort(all)
		return slices.Compact(all)
	}
	return Permissions{Hosts: join(p.Hosts, q.Hosts), Read: join(p.Read, q.Read), Write: join(p.Write, q.Write)}
}
