package app

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
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/tool/exec"
	"github.com/chela-ai/chela/internal/tool/fs"
	"github.com/chela-ai/chela/internal/tool/message"
	"github.com/chela-ai/chela/internal/tool/web"
	"github.com/chela-ai/chela/internal/usage"
)

// sections is where an option struct takes its values from: config.Tree, or a
// map in tests.
type sections interface {
	// Section returns the JSON at a path of the configuration; nil: absent.
	Section(path string) json.RawMessage
}

// options is the configuration as the parts need it. The keys are OpenClaw's.
type options struct {
	Compat   string // "openclaw": its permissive defaults
	Agent    agentOptions
	Agents   agentsOptions
	Session  sessionOptions
	Messages messageOptions
	Models   model.Config
	Tools    toolOptions
	Plugins  web.Plugins
	Direct   directOptions
	Channels map[string]channelOptions
}

// channelOptions is what Chela itself reads of channels.<name>; the rest is
// the channel's own.
type channelOptions struct {
	AllowFrom []person `json:"allowFrom"` // "*" for everybody
}

// person is the id of a person on a channel.
type person string

// UnmarshalJSON accepts texts, and numbers as they are written.
func (p *person) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, (*string)(p)) == nil {
		return nil
	}
	var n json.Number
	err := json.Unmarshal(b, &n)
	*p = person(n)
	return err
}

// senders is who may write on channels.
func (o *options) senders() inbound.Senders {
	s := inbound.Senders{}
	for name, c := range o.Channels {
		for _, id := range c.AllowFrom {
			s[name] = append(s[name], string(id))
		}
	}
	return s
}

// agentOptions is agents.defaults.
type agentOptions struct {
	Workspace      string                    `json:"workspace"`
	Model          model.Choice              `json:"model"`
	Models         map[string]model.Settings `json:"models"`
	ModelPolicy    modelPolicy               `json:"modelPolicy"`
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
	Budget         budgetOptions             `json:"budget"`
}

// modelPolicy is which models people may choose; none: all.
type modelPolicy struct {
	Allow []string `json:"allow"`
}

// agentsOptions is agents: what is said of single ones.
type agentsOptions struct {
	Entries map[string]namedOptions `json:"entries"`
	List    []namedOptions          `json:"list"`
}

// namedOptions is agents.entries.<id>, or one of agents.list.
type namedOptions struct {
	ID     string          `json:"id"`
	Older  string          `json:"agentId"` // the older spelling of ID
	Params json.RawMessage `json:"params"`
	Tools  struct {
		policy.Config
		Exec allowlist.Config `json:"exec"`
	} `json:"tools"`
}

// agent returns what is said of an agent, and where.
func (a agentsOptions) agent(id chela.AgentID) (namedOptions, string) {
	if o, ok := a.Entries[string(id)]; ok {
		return o, "agents.entries." + string(id)
	}
	for i, o := range a.List {
		if cmp.Or(o.ID, o.Older) == string(id) {
			return o, fmt.Sprintf("agents.list[%d]", i)
		}
	}
	return namedOptions{}, "agents.entries." + string(id)
}

// params are the fields of an agent's requests.
func (a agentsOptions) params(id chela.AgentID) json.RawMessage {
	o, _ := a.agent(id)
	return o.Params
}

// budgetOptions bounds a run. 0 stands for the default; what is negative does
// not bound.
type budgetOptions struct {
	Calls     int     `json:"toolCalls"`
	Failures  int     `json:"failures"`
	Identical int     `json:"identicalCalls"`
	Minutes   int     `json:"minutes"`
	Tokens    int64   `json:"tokens"`
	USD       float64 `json:"usd"` // 0: no bound
}

// directOptions is gateway.tools: what may be called without a model.
type directOptions struct {
	Deny  []string `json:"deny"`
	Allow []string `json:"allow"`
}

// sessionOptions is session.
type sessionOptions struct {
	DMScope string              `json:"dmScope"`
	Reset   session.ResetPolicy `json:"reset"`
}

// messageOptions is messages.
type messageOptions struct {
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

// toolOptions is tools.
type toolOptions struct {
	policy.Config
	Exec execOptions        `json:"exec"`
	Loop invoke.LoopOptions `json:"loopDetection"`
	Web  web.Config         `json:"web"`
	FS   struct {
		Inside *bool `json:"workspaceOnly"` // nil: yes, but with compat
	} `json:"fs"`
	Send sendOptions `json:"message"`
}

// sendOptions is tools.message.
type sendOptions struct {
	Cross message.Cross `json:"crossContext"`
}

// execOptions is tools.exec.
type execOptions struct {
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

// readOptions decodes the sections that the parts need.
func readOptions(s sections) (options, error) {
	var o options
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
		{"channels", &o.Channels},
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

// policy is how sessions treat messages, unless they say otherwise.
func (o *options) policy() queue.Policy {
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

// concurrent is how many runs may be in progress at once.
func (o *options) concurrent() int {
	if o.Agent.MaxConcurrent > 0 {
		return o.Agent.MaxConcurrent
	}
	return 4 * runtime.NumCPU()
}

// timeout bounds a run.
func (o *options) timeout() time.Duration {
	if o.Agent.TimeoutSeconds == nil {
		return 48 * time.Hour
	}
	return time.Duration(*o.Agent.TimeoutSeconds) * time.Second
}

// budget bounds what a run may use, also where nothing is configured: nobody
// may be there to stop it.
func (o *options) budget() usage.Budget {
	b := o.Agent.Budget
	return usage.Budget{
		ToolCalls: cmp.Or(b.Calls, 500), Failures: cmp.Or(b.Failures, 20), Identical: cmp.Or(b.Identical, 100),
		Time: time.Duration(cmp.Or(b.Minutes, 240)) * time.Minute, Tokens: cmp.Or(b.Tokens, 20_000_000), NanoUSD: int64(b.USD * 1e9),
	}
}

// files is what the file tools may do.
func (o *options) files(a Options) fs.Options {
	patch, inside := o.Tools.Exec.Patch, o.Tools.FS.Inside
	f := fs.Options{
		NoPatch: patch.Enabled != nil && !*patch.Enabled,
		Outside: o.Compat == "openclaw", PatchOutside: patch.Inside != nil && !*patch.Inside,
		Own: []string{a.State},
	}
	if inside != nil {
		f.Outside = !*inside
	}
	return f
}

// exec is what the exec tool may do.
func (o *options) exec(a Options) exec.Options {
	e := o.Tools.Exec
	return exec.Options{
		Interactive: true, MaxTimeout: time.Duration(e.TimeoutSeconds) * time.Second,
		Yield: time.Duration(e.BackgroundMS) * time.Millisecond, MaxOutput: e.MaxOutput, DangerousPatterns: e.Dangerous, PathPrepend: e.PathPrepend, Environ: a.Environ,
	}
}
