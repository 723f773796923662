package settings

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"time"

	"github.com/chela-ai/chela/internal/allowlist"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/inbound"
	"github.com/chela-ai/chela/internal/invoke"
	"github.com/chela-ai/chela/internal/model"
	"github.com/chela-ai/chela/internal/policy"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/reach"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/tool/exec"
	"github.com/chela-ai/chela/internal/tool/fs"
	"github.com/chela-ai/chela/internal/tool/message"
	"github.com/chela-ai/chela/internal/tool/web"
	"github.com/chela-ai/chela/internal/usage"
)

// Sections is where an option struct takes its values from: config.Tree, or a
// map in tests.
type Sections interface {
	// Section returns the JSON at a path of the configuration; nil: absent.
	Section(path string) json.RawMessage
}

// Settings is the configuration as the parts need it. The keys are OpenClaw's.
type Settings struct {
	Compat   string // "openclaw": its permissive defaults
	Agent    Defaults
	Agents   Agents
	Session  Session
	Messages Messages
	Models   model.Config
	Tools    Tools
	Plugins  web.Plugins
	Direct   Direct
	Reload   Reload
	Slash    Slash
	Channels map[string]Channel
}

// Slash is commands: what slash commands may do.
type Slash struct {
	Config bool `json:"config"` // /config shows and changes the configuration
}

// Channel is what Chela itself reads of channels.<name>; the rest is
// the channel's own.
type Channel struct {
	AllowFrom []Person `json:"allowFrom"` // "*" for everybody
}

// Person is the id of a person on a channel.
type Person string

// UnmarshalJSON accepts texts, and numbers as they are written.
func (p *Person) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, (*string)(p)) == nil {
		return nil
	}
	var n json.Number
	err := json.Unmarshal(b, &n)
	*p = Person(n)
	return err
}

// Senders is who may write on channels.
func (o *Settings) Senders() inbound.Senders {
	s := inbound.Senders{}
	for name, c := range o.Channels {
		for _, id := range c.AllowFrom {
			s[name] = append(s[name], string(id))
		}
	}
	return s
}

// Defaults is agents.defaults.
type Defaults struct {
	Workspace      string                    `json:"workspace"`
	Model          model.Choice              `json:"model"`
	Models         map[string]model.Settings `json:"models"`
	ModelPolicy    ModelPolicy               `json:"modelPolicy"`
	MaxConcurrent  int                       `json:"maxConcurrent"` // 0: 4 × cores
	MaxRounds      int                       `json:"maxToolRounds"`
	MaxCalls       int                       `json:"maxToolCallsPerTurn"`
	MaxLoops       int                       `json:"maxRunLoopIterations"`
	TimeoutSeconds *int                      `json:"timeoutSeconds"` // nil: 48 h; 0: none
	Think          string                    `json:"thinkingDefault"`
	Verbose        string                    `json:"verboseDefault"`
	ContextTokens  int                       `json:"contextTokens"`
	FileChars      int                       `json:"bootstrapMaxChars"`
	TotalChars     int                       `json:"bootstrapTotalMaxChars"`
	SkipBootstrap  bool                      `json:"skipBootstrap"`
	Timezone       string                    `json:"userTimezone"`
	ImageModel     model.Choice              `json:"imageModel"`
	ImageSide      int                       `json:"imageMaxDimensionPx"` // 0: 1200
	Params         json.RawMessage           `json:"params"`
	Budget         Budget                    `json:"budget"`
}

// ModelPolicy is which models people may choose; none: all.
type ModelPolicy struct {
	Allow []string `json:"allow"`
}

// Budget bounds a run. 0 stands for the default; what is negative does
// not bound.
type Budget struct {
	Calls     int     `json:"toolCalls"`
	Failures  int     `json:"failures"`
	Identical int     `json:"identicalCalls"`
	Minutes   int     `json:"minutes"`
	Tokens    int64   `json:"tokens"`
	USD       float64 `json:"usd"` // 0: no bound
}

// Direct is gateway.tools: what may be called without a model.
type Direct struct {
	Deny  []string `json:"deny"`
	Allow []string `json:"allow"`
}

// Reload is gateway.reload: what becomes of an edit while the gateway runs.
type Reload struct {
	Mode       string `json:"mode"`       // off, hot, restart, hybrid; "": hybrid
	DebounceMS *int   `json:"debounceMs"` // nil: 300
}

// Session is session.
type Session struct {
	DMScope string              `json:"dmScope"`
	Reset   session.ResetPolicy `json:"reset"`
}

// Messages is messages.
type Messages struct {
	Queue struct {
		Mode       string `json:"mode"`
		DebounceMS *int   `json:"debounceMs"`
		Cap        int    `json:"cap"`
		Drop       string `json:"drop"`
	} `json:"queue"`
	Inbound struct {
		DebounceMS int `json:"debounceMs"`
	} `json:"inbound"`
	ResponseUsage string `json:"responseUsage"`
}

// Tools is tools.
type Tools struct {
	policy.Config
	Exec Exec               `json:"exec"`
	Loop invoke.LoopOptions `json:"loopDetection"`
	Web  web.Config         `json:"web"`
	FS   FS                 `json:"fs"`
	Send Send               `json:"message"`
}

// FS is tools.fs, of all agents or of one.
type FS struct {
	Inside *bool `json:"workspaceOnly"` // nil: of one what is said of all; of all yes, but with compat
}

// Send is tools.message.
type Send struct {
	Cross message.Cross `json:"crossContext"`
}

// Exec is tools.exec.
type Exec struct {
	allowlist.Config
	TimeoutSeconds int      `json:"timeoutSeconds"`
	MaxOutput      int      `json:"maxOutputChars"`
	Dangerous      []string `json:"dangerousPatterns"`
	PathPrepend    []string `json:"pathPrepend"`
	Patch          struct {
		Enabled *bool    `json:"enabled"` // nil: yes
		Models  []string `json:"allowModels"`
		Inside  *bool    `json:"workspaceOnly"` // nil: yes
	} `json:"applyPatch"`
	BackgroundMS int   `json:"backgroundMs"`
	CleanupMS    int   `json:"cleanupMs"`
	Notify       *bool `json:"notifyOnExit"` // nil: yes
	NotifyQuiet  bool  `json:"notifyOnExitEmptySuccess"`
}

// Read decodes the sections that the parts need.
func Read(s Sections) (Settings, error) {
	var o Settings
	for _, part := range [...]struct {
		path string
		into any
	}{
		{"compat", &o.Compat},
		{"agents.defaults", &o.Agent},
		{"agents", &o.Agents},
		{"session", &o.Session},
		{"messages", &o.Messages},
		{"models", &o.Models},
		{"tools", &o.Tools},
		{"plugins", &o.Plugins},
		{"gateway.tools", &o.Direct},
		{"gateway.reload", &o.Reload},
		{"channels", &o.Channels},
		{"commands", &o.Slash},
	} {
		raw := s.Section(part.path)
		if raw == nil {
			continue
		}
		if err := json.Unmarshal(raw, part.into); err != nil {
			return o, fmt.Errorf("configuration, %s: %w", part.path, err)
		}
	}
	return o, nil
}

// Queueing is how sessions treat messages, unless they say otherwise.
func (o *Settings) Queueing() queue.Policy {
	p := queue.Policy{Cap: o.Messages.Queue.Cap, Debounce: time.Second}
	if m, ok := queue.ParseMode(o.Messages.Queue.Mode); ok {
		p.Mode = m
	}
	if d, ok := queue.ParseDrop(o.Messages.Queue.Drop); ok {
		p.Drop = d
	}
	if ms := o.Messages.Queue.DebounceMS; ms != nil {
		p.Debounce = time.Duration(*ms) * time.Millisecond
	}
	p.Inbound = time.Duration(o.Messages.Inbound.DebounceMS) * time.Millisecond
	return p
}

// Concurrent is how many runs may be in progress at once.
func (o *Settings) Concurrent() int {
	if o.Agent.MaxConcurrent > 0 {
		return o.Agent.MaxConcurrent
	}
	return 4 * runtime.NumCPU()
}

// Timeout bounds a run.
func (o *Settings) Timeout() time.Duration {
	if o.Agent.TimeoutSeconds == nil {
		return 48 * time.Hour
	}
	return time.Duration(*o.Agent.TimeoutSeconds) * time.Second
}

// RunBudget bounds what a run may use, also where nothing is configured: nobody
// may be there to stop it.
func (o *Settings) RunBudget() usage.Budget {
	b := o.Agent.Budget
	return usage.Budget{
		ToolCalls: cmp.Or(b.Calls, 500), Failures: cmp.Or(b.Failures, 20), Identical: cmp.Or(b.Identical, 100),
		Time: time.Duration(cmp.Or(b.Minutes, 240)) * time.Minute, Tokens: cmp.Or(b.Tokens, 20_000_000), NanoUSD: int64(b.USD * 1e9),
	}
}

// Files is what the file tools may do, for all agents alike.
func (o *Settings) Files() fs.Options {
	patch := o.Tools.Exec.Patch
	return fs.Options{NoPatch: patch.Enabled != nil && !*patch.Enabled, PatchOutside: patch.Inside != nil && !*patch.Inside}
}

// Reach is what the tools of an agent may reach; the files of the state
// directory are Chela's own.
func (o *Settings) Reach(id chela.AgentID, state string) reach.Rule {
	r := reach.Rule{Outside: o.Compat == "openclaw", Own: []string{state}}
	a, _ := o.Agents.find(id)
	if inside := cmp.Or(a.Tools.FS.Inside, o.Tools.FS.Inside); inside != nil {
		r.Outside = !*inside
	}
	return r
}

// Commands is what the exec tool may do.
func (o *Settings) Commands(environ []string) exec.Options {
	e := o.Tools.Exec
	return exec.Options{
		Interactive: true, MaxTimeout: time.Duration(e.TimeoutSeconds) * time.Second,
		Yield: time.Duration(e.BackgroundMS) * time.Millisecond, MaxOutput: e.MaxOutput, DangerousPatterns: e.Dangerous, PathPrepend: e.PathPrepend, Environ: environ,
	}
}
