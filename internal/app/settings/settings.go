package settings

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"time"

	"github.com/chela-ai/chela/internal/app/model"
	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/exchange"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/route"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/engine/inbound"
	"github.com/chela-ai/chela/internal/engine/invoke"
)

// Sections is a configuration: a config.Tree, or a map in tests.
type Sections interface {
	// Section returns the JSON at a path of the configuration; nil: absent.
	Section(path string) json.RawMessage
}

// Settings is the configuration of the engine itself. Plug-ins read their own
// sections. The keys are OpenClaw's.
type Settings struct {
	Compat   string // "openclaw": its permissive defaults
	Agent    Defaults
	Agents   Agents
	Session  Session
	Messages Messages
	Models   model.Config
	Tools    Tools
	Direct   Direct
	Reload   Reload
	Slash    Slash
	Channels map[string]Channel
	Bindings []route.Binding
}

// Slash is commands: what slash commands may do.
type Slash struct {
	Config bool `json:"config"` // /config shows and changes the configuration
}

// Channel is the part of channels.<name> that the engine reads. The channel reads
// the rest.
type Channel struct {
	AllowFrom []Person                   `json:"allowFrom"` // "*" for everybody
	Default   chela.AccountID            `json:"defaultAccount"`
	Accounts  map[string]json.RawMessage `json:"accounts"`
}

// Person is the id of a person on a channel.
type Person string

// UnmarshalJSON accepts strings, and numbers as they are written.
func (p *Person) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, (*string)(p)) == nil {
		return nil
	}
	var n json.Number
	err := json.Unmarshal(b, &n)
	*p = Person(n)
	return err
}

// Senders returns the people who may write on channels.
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
	model.Defaults
	Workspace      string          `json:"workspace"`
	MaxConcurrent  int             `json:"maxConcurrent"` // 0: 4 × cores
	MaxRounds      int             `json:"maxToolRounds"`
	MaxCalls       int             `json:"maxToolCallsPerTurn"`
	MaxLoops       int             `json:"maxRunLoopIterations"`
	TimeoutSeconds *int            `json:"timeoutSeconds"` // nil: 48 h; 0: none
	Think          string          `json:"thinkingDefault"`
	Verbose        string          `json:"verboseDefault"`
	ContextTokens  int             `json:"contextTokens"`
	FileChars      int             `json:"bootstrapMaxChars"`
	TotalChars     int             `json:"bootstrapTotalMaxChars"`
	SkipBootstrap  bool            `json:"skipBootstrap"`
	Timezone       string          `json:"userTimezone"`
	ImageSide      int             `json:"imageMaxDimensionPx"` // 0: 1200
	Budget         Budget          `json:"budget"`
	Sandbox        sandbox.Config  `json:"sandbox"`
	Elevated       string          `json:"elevatedDefault"` // "": off
	Subagents      subagent.Config `json:"subagents"`
}

// Budget limits a run. 0 stands for the default, a negative number for no limit.
type Budget struct {
	Calls     int     `json:"toolCalls"`
	Failures  int     `json:"failures"`
	Identical int     `json:"identicalCalls"`
	Minutes   int     `json:"minutes"`
	Tokens    int64   `json:"tokens"`
	USD       float64 `json:"usd"` // 0: no limit
}

// Direct is gateway.tools: the tools that may be called without a model.
type Direct struct {
	Deny  []string `json:"deny"`
	Allow []string `json:"allow"`
}

// Reload is gateway.reload: how an edit is applied while the gateway runs.
type Reload struct {
	Mode       string `json:"mode"`       // off, hot, restart, hybrid; "": hybrid
	DebounceMS *int   `json:"debounceMs"` // nil: 300
}

// Session is session.
type Session struct {
	DMScope route.DMScope         `json:"dmScope"`
	Links   map[string][]route.ID `json:"identityLinks"` // addresses ("channel:id") of a person
	Reset   session.ResetPolicy   `json:"reset"`
	Focus   session.FocusPolicy   `json:"threadBindings"`

	AgentToAgent exchange.Config `json:"agentToAgent"`
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

// Tools is the part of tools that decides which calls are allowed. The tools read
// the rest.
type Tools struct {
	policy.Config
	Exec Exec               `json:"exec"`
	Loop invoke.LoopOptions `json:"loopDetection"`
	FS   FS                 `json:"fs"`

	Elevated Elevated `json:"elevated"`

	Sessions struct {
		Visibility session.Visibility `json:"visibility"`
	} `json:"sessions"`
	AgentToAgent struct {
		Enabled bool     `json:"enabled"`
		Allow   []string `json:"allow"` // none: all
	} `json:"agentToAgent"`
}

// FS is tools.fs, of all agents or of one.
type FS struct {
	Inside *bool `json:"workspaceOnly"` // nil: an agent has the value of all; of all: true, or false with compat
}

// Exec is the part of tools.exec with the rules about commands.
type Exec struct {
	allowlist.Config
	Patch struct {
		Models []string `json:"allowModels"` // that may use apply_patch; none: all
	} `json:"applyPatch"`
}

// Read decodes the sections of the engine.
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
		{"gateway.tools", &o.Direct},
		{"gateway.reload", &o.Reload},
		{"channels", &o.Channels},
		{"commands", &o.Slash},
		{"bindings", &o.Bindings},
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

// ModelOptions returns the options of the models, with the files of a state
// directory.
func (o *Settings) ModelOptions(state string, env func(string) string) model.Options {
	main, _ := o.Of(chela.DefaultAgent)
	m := model.Options{
		Config: o.Models, Defaults: o.Agent.Defaults, AgentParams: main.Params, Env: env,
		Keys: KeyDir(state), Cooldowns: filepath.Join(state, "cache", "cooldowns.json"),
	}
	m.Model = main.Model.Or(m.Model)
	return m
}

// KeyDir is the directory of the saved keys of model providers.
func KeyDir(state string) string { return filepath.Join(state, "credentials") }

// AgentKeyDir is the directory of the saved keys that only an agent uses.
func AgentKeyDir(state string, id chela.AgentID) string {
	return filepath.Join(KeyDir(state), string(id))
}

// Queueing is the queue policy of sessions that set none.
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

// Concurrent is the number of runs that may be in progress at once.
func (o *Settings) Concurrent() int {
	if o.Agent.MaxConcurrent > 0 {
		return o.Agent.MaxConcurrent
	}
	return 4 * runtime.NumCPU()
}

// Location returns the person's time zone.
func (o *Settings) Location() (*time.Location, error) {
	if o.Agent.Timezone == "" {
		return time.Local, nil
	}
	zone, err := time.LoadLocation(o.Agent.Timezone)
	if err != nil {
		return nil, &chela.Error{
			Code: chela.CodeInvalid, Message: "agents.defaults.userTimezone", Hint: "chela config set agents.defaults.userTimezone Europe/Berlin", Err: err,
		}
	}
	return zone, nil
}

// Timeout limits a run.
func (o *Settings) Timeout() time.Duration {
	if o.Agent.TimeoutSeconds == nil {
		return 48 * time.Hour
	}
	return time.Duration(*o.Agent.TimeoutSeconds) * time.Second
}

// RunBudget limits what a run may use. Without configuration there are limits
// too, because nobody may be present to stop a run.
func (o *Settings) RunBudget() usage.Budget {
	b := o.Agent.Budget
	return usage.Budget{
		ToolCalls: cmp.Or(b.Calls, 500), Failures: cmp.Or(b.Failures, 20), Identical: cmp.Or(b.Identical, 100),
		Time: time.Duration(cmp.Or(b.Minutes, 240)) * time.Minute, Tokens: cmp.Or(b.Tokens, 20_000_000), NanoUSD: int64(b.USD * 1e9),
	}
}

// Paths is the rule about the files that the tools of an agent may name. private
// returns the files and folders that are protected.
func (o *Settings) Paths(id chela.AgentID, private func() []string) pathpolicy.Rule {
	r := pathpolicy.Rule{Outside: o.Compat == "openclaw", Private: private}
	a, _ := o.Agents.find(id)
	if inside := cmp.Or(a.Tools.FS.Inside, o.Tools.FS.Inside); inside != nil {
		r.Outside = !*inside
	}
	return r
}
