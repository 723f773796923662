package settings

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/chela-ai/chela/internal/app/model"
	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/canvas"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/compact"
	"github.com/chela-ai/chela/internal/core/drawing"
	"github.com/chela-ai/chela/internal/core/exchange"
	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/node"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/prompt"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/route"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/skill"
	"github.com/chela-ai/chela/internal/core/speech"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/talk"
	"github.com/chela-ai/chela/internal/core/window"
	"github.com/chela-ai/chela/internal/engine/deliver"
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
	Nodes    node.Policy
	Reload   Reload
	Slash    Slash
	Cron     job.Config
	Skills   skill.Config
	Money    Money
	Undo     journal.Options
	Speech   speech.Config
	Talk     talk.Config
	Canvas   canvas.Config
	Drawing  drawing.Config
	Logging  Logging
	Channels map[string]Channel
	Bindings []route.Binding

	contexts map[chela.AgentID]agentContext // of agents with settings of their own
	accounts map[string]map[string]account  // by channel and account; account "": all others
}

// Slash is commands: what slash commands may do.
type Slash struct {
	Text    *bool    `json:"text"`   // commands in chat apps; nil: true
	Config  bool     `json:"config"` // /config shows and changes the configuration
	Debug   bool     `json:"debug"`  // /debug overrides it
	Bash    bool     `json:"bash"`
	BashMS  *int     `json:"bashForegroundMs"` // nil: 2000
	MCP     bool     `json:"mcp"`
	Plugins bool     `json:"plugins"`
	Restart *bool    `json:"restart"`        // nil: true
	Owners  []Person `json:"ownerAllowFrom"` // ids of people, or channel:id, who may use every command
	// who may use commands and directives, by channel or "*"; nil: who is listed on the channel
	AllowFrom map[string][]Person `json:"allowFrom"`
}

// Allowed returns which commands are permitted.
func (s Slash) Allowed() inbound.Allowed {
	return inbound.Allowed{
		Text: s.Text == nil || *s.Text, Bash: s.Bash, MCP: s.MCP, Plugins: s.Plugins, Restart: s.Restart == nil || *s.Restart,
	}
}

// Foreground is the time after which a command of /bash continues in the background.
func (s Slash) Foreground() time.Duration {
	if s.BashMS == nil {
		return 2 * time.Second
	}
	return time.Duration(*s.BashMS) * time.Millisecond
}

// IsOwner reports whether somebody who writes on a channel is listed as an owner.
func (s Slash) IsOwner(who chela.Principal) bool {
	from, ok := chela.ParseChannelSender(who.ID)
	return ok && lists(s.Owners, from)
}

// lists reports whether a list contains the sender.
func lists(list []Person, from chela.ChannelSender) bool {
	return slices.ContainsFunc(list, func(p Person) bool {
		return string(p) == from.ID || string(p) == from.Channel+":"+from.ID
	})
}

// Rights returns the principal as which somebody who may write on a channel uses slash
// commands.
func (s Slash) Rights(who chela.Principal, in chela.Inbound) chela.Principal {
	from, ok := chela.ParseChannelSender(who.ID)
	if !ok || in.Address.Local() {
		return who
	}
	if lists(s.Owners, from) {
		return chela.Principal{ID: who.ID, Credential: who.Credential, Scopes: []chela.Scope{chela.ScopeAdmin}}
	}
	if s.AllowFrom == nil {
		return who
	}
	list, named := s.AllowFrom[from.Channel]
	if !named {
		list = s.AllowFrom["*"]
	}
	if !lists(list, from) && !slices.Contains(list, "*") {
		who.Scopes = nil
	}
	return who
}

// Channel is the part of channels.<name> that the engine reads. The channel reads
// the rest.
type Channel struct {
	AllowFrom []Person                   `json:"allowFrom"` // "*" for everybody
	Default   chela.AccountID            `json:"defaultAccount"`
	Accounts  map[string]json.RawMessage `json:"accounts"`
	Heartbeat heartbeat.Visibility       `json:"heartbeat"`
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

// Senders returns the ids of the people whom the configuration lists, by channel.
func (o *Settings) Senders() map[string][]string {
	s := map[string][]string{}
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
	Workspace      string            `json:"workspace"`
	MaxConcurrent  int               `json:"maxConcurrent"` // 0: 4 × cores
	MaxRounds      int               `json:"maxToolRounds"`
	MaxCalls       int               `json:"maxToolCallsPerTurn"`
	MaxLoops       int               `json:"maxRunLoopIterations"`
	TimeoutSeconds *int              `json:"timeoutSeconds"` // nil: 48 h; 0: none
	Think          string            `json:"thinkingDefault"`
	Fast           llm.Fast          `json:"fastModeDefault"` // "": off
	Verbose        string            `json:"verboseDefault"`
	Reasoning      string            `json:"reasoningDefault"`
	ContextTokens  int               `json:"contextTokens"`
	MaxHistory     int               `json:"maxHistoryMessages"` // 0: all
	Pruning        window.Pruning    `json:"contextPruning"`
	Limits         ContextLimits     `json:"contextLimits"`
	FileChars      int               `json:"bootstrapMaxChars"`
	TotalChars     int               `json:"bootstrapTotalMaxChars"`
	SkipBootstrap  bool              `json:"skipBootstrap"`
	Truncation     prompt.Truncation `json:"bootstrapPromptTruncationWarning"` // "": once
	Startup        prompt.Startup    `json:"startupContext"`
	RepoRoot       string            `json:"repoRoot"` // "": found from the workspace
	Timezone       string            `json:"userTimezone"`
	ImageSide      int               `json:"imageMaxDimensionPx"` // 0: 1200
	Budget         Budget            `json:"budget"`
	Sandbox        sandbox.Config    `json:"sandbox"`
	Elevated       string            `json:"elevatedDefault"` // "": off
	Subagents      subagent.Config   `json:"subagents"`
	Heartbeat      *heartbeat.Config `json:"heartbeat"`
	Compaction     compact.Config    `json:"compaction"`
	Memory         Memory            `json:"memorySearch"`
	Delivery
	Blocks
	Skills []string `json:"skills"` // names of the skills that agents use; nil: all
}

// ContextLimits is agents.defaults.contextLimits.
type ContextLimits struct {
	MaxResult int `json:"toolResultMaxChars"` // of one result of a tool; 0: by the window
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
	Send    session.SendPolicy    `json:"sendPolicy"`

	AgentToAgent exchange.Config `json:"agentToAgent"`

	Typing        deliver.Typing `json:"typingMode"` // older place of agents.defaults.typingMode
	TypingSeconds int            `json:"typingIntervalSeconds"`

	ParentForkMaxTokens *int64 `json:"parentForkMaxTokens"` // nil: 100,000; 0: no limit
}

// ForkTokens returns the tokens of the longest conversation that a subagent inherits; 0:
// no limit.
func (s *Session) ForkTokens() int64 {
	if s.ParentForkMaxTokens == nil {
		return 100_000
	}
	return max(0, *s.ParentForkMaxTokens)
}

// Messages is messages.
type Messages struct {
	Queue struct {
		Mode       string `json:"mode"`
		DebounceMS *int   `json:"debounceMs"`
		Cap        int    `json:"cap"`
		Drop       string `json:"drop"`

		ByChannel map[string]string `json:"byChannel"` // modes
	} `json:"queue"`
	Inbound struct {
		DebounceMS int            `json:"debounceMs"`
		ByChannel  map[string]int `json:"byChannel"`
	} `json:"inbound"`
	ResponseUsage string `json:"responseUsage"`
	Prefix        string `json:"responsePrefix"` // before answers in chats
	Acknowledgement
	GroupChat GroupChat `json:"groupChat"`
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
		{"gateway.nodes.commands", &o.Nodes},
		{"channels", &o.Channels},
		{"commands", &o.Slash},
		{"bindings", &o.Bindings},
		{"cron", &o.Cron},
		{"skills", &o.Skills},
		{"budget", &o.Money},
		{"undo", &o.Undo},
		{"logging", &o.Logging},
	} {
		raw := s.Section(part.path)
		if raw == nil {
			continue
		}
		if err := json.Unmarshal(raw, part.into); err != nil {
			return o, fmt.Errorf("configuration, %s: %w", part.path, err)
		}
	}
	var err error
	if o.Speech, err = speech.Parse(s.Section("tts"), s.Section("messages.tts")); err != nil {
		return o, err
	}
	if o.Talk, err = talk.Parse(s.Section("talk")); err != nil {
		return o, err
	}
	if o.Drawing, err = drawing.Parse(s.Section("agents.defaults.mediaModels.image"),
		s.Section("agents.defaults.imageGenerationModel")); err != nil {
		return o, err
	}
	if o.Canvas, err = canvas.ParseConfig(s.Section("canvasHost"), s.Section("plugins")); err != nil {
		return o, err
	}
	return o, errors.Join(o.joinAccounts(s), o.joinContexts(), o.checkDelivery(), o.checkReset(), o.Logging.check(),
		o.Cron.Check(), o.checkMoney())
}

// Logging is the part of the section logging that is checked here; the command line has
// the log.
type Logging struct {
	Patterns []string `json:"redactPatterns"`
}

// check returns the error with which no log could be opened.
func (l *Logging) check() error {
	for _, p := range l.Patterns {
		if _, err := regexp.Compile(p); err != nil {
			return &chela.Error{Code: chela.CodeInvalid, Message: "logging.redactPatterns", Err: err,
				Hint: "chela config set logging.redactPatterns '[]'"}
		}
	}
	return nil
}

// checkReset returns what is wrong with session.reset.
func (o *Settings) checkReset() error {
	r := o.Session.Reset
	if r.AtHour != nil && (*r.AtHour < 0 || *r.AtHour > 23) {
		return invalid("session.reset.atHour", strconv.Itoa(*r.AtHour), "an hour from 0 to 23", "4")
	}
	if r.IdleMinutes < 0 {
		return invalid("session.reset.idleMinutes", strconv.Itoa(r.IdleMinutes), "minutes", "120")
	}
	return nil
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

// Queueing is the queue policy of sessions that set none, for messages of a channel.
func (o *Settings) Queueing(channel string) queue.Policy {
	p := queue.Policy{Cap: o.Messages.Queue.Cap, Debounce: time.Second}
	if m, ok := queue.ParseMode(cmp.Or(o.Messages.Queue.ByChannel[channel], o.Messages.Queue.Mode)); ok {
		p.Mode = m
	}
	if d, ok := queue.ParseDrop(o.Messages.Queue.Drop); ok {
		p.Drop = d
	}
	if ms := o.Messages.Queue.DebounceMS; ms != nil {
		p.Debounce = time.Duration(*ms) * time.Millisecond
	}
	ms, ok := o.Messages.Inbound.ByChannel[channel]
	if !ok {
		ms = o.Messages.Inbound.DebounceMS
	}
	p.Inbound = time.Duration(ms) * time.Millisecond
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
			Code: chela.CodeInvalid, Message: "agents.defaults.userTimezone",
			Hint: "chela config set agents.defaults.userTimezone Europe/Berlin", Err: err,
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
