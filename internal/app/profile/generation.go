package profile

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chela-ai/chela/internal/app/model"
	"github.com/chela-ai/chela/internal/app/settings"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/acp"
	"github.com/chela-ai/chela/internal/core/action"
	"github.com/chela-ai/chela/internal/core/admission"
	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/bus"
	canvasconfig "github.com/chela-ai/chela/internal/core/canvas"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/exchange"
	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/mcp"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/node"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/plugindir"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/prompt"
	"github.com/chela-ai/chela/internal/core/proposal"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/route"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/skill"
	"github.com/chela-ai/chela/internal/core/speech"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/engine/budget"
	"github.com/chela-ai/chela/internal/engine/canvas"
	"github.com/chela-ai/chela/internal/engine/cron"
	"github.com/chela-ai/chela/internal/engine/deliver"
	"github.com/chela-ai/chela/internal/engine/dispatch"
	engineheartbeat "github.com/chela-ai/chela/internal/engine/heartbeat"
	"github.com/chela-ai/chela/internal/engine/history"
	"github.com/chela-ai/chela/internal/engine/inbound"
	"github.com/chela-ai/chela/internal/engine/invoke"
	"github.com/chela-ai/chela/internal/engine/nodes"
	"github.com/chela-ai/chela/internal/engine/relay"
	"github.com/chela-ai/chela/internal/engine/runner"
	"github.com/chela-ai/chela/internal/engine/spawn"
	"github.com/chela-ai/chela/internal/kit/secret"
	acptool "github.com/chela-ai/chela/internal/plugin/tool/acp"
	"github.com/chela-ai/chela/internal/plugin/tool/browser"
	"github.com/chela-ai/chela/internal/plugin/tool/exec"
	"github.com/chela-ai/chela/internal/plugin/tool/gateway"
	mcptool "github.com/chela-ai/chela/internal/plugin/tool/mcp"
	mediatool "github.com/chela-ai/chela/internal/plugin/tool/media"
	"github.com/chela-ai/chela/internal/plugin/tool/skills"
	"github.com/chela-ai/chela/internal/plugin/understanding"
)

// Options is what all Generations of an engine have in common.
type Options struct {
	Log      *slog.Logger
	Version  string
	Instance string                   // id of this start
	State    string                   // the state directory
	Environ  []string                 // variables of commands; nil: os.Environ()
	Getenv   func(name string) string // environment variables of this process; nil: os.Getenv
	Registry *standard.Registry
	Store    store.Store
	Bus      *bus.Bus
	Files    *media.Files
	Spawner  *spawn.Spawner
	Schedule *cron.Scheduler  // nil: there is none
	Journal  *history.History // nil: changes are not recorded
	Skills   skills.Registry  // nil: there is none
	Relay    *relay.Relay
	Nodes    *nodes.Registry // nil: there are no nodes
	Canvas   *canvas.Host    // nil: there is none
	Gateway  gateway.Gateway // of the tool gateway; nil: there is none
	// Proposals holds the proposals of skills; nil: there is no tool for them.
	Proposals *proposal.Shelf
	Redact    func(string) string // removes known secrets from a text
	Hide      func(secret.Value)  // makes a secret known
	// Tell tells the owner something that no message asked about; nil: nobody is told.
	Tell func(text string) error
	// Act carries out an action on a chat.
	Act     func(context.Context, action.Request) (action.Result, error)
	Hooks   *hook.Points    // nil: there are none
	Budgets *budget.Budgets // nil: there are none
	// ToolsChanged is called when the tools of MCP servers have changed.
	ToolsChanged func()

	HTTP      *http.Client            // for model providers; nil: one under the egress rules
	Providers map[string]llm.Provider // used instead of the configured providers, by id
	NoProbe   bool                    // do not look for model servers on this machine
	NoGit     bool                    // do not make repositories of new workspaces
	// Reserved reports whether a folder is among what belongs to Chela itself, so that it can
	// be no workspace; nil: none is.
	Reserved func(dir string) bool
}

// Factory makes Generations. Some parts live longer than one of them: the
// commands in the background, and the workspace files that were read. A Factory without
// Options.Store only checks configurations; most of its parts are then nil.
type Factory struct {
	o        Options
	started  time.Time
	host     string
	commands *exec.Commands
	rules    *allowlist.File
	backends map[string]sandbox.Backend // that confine commands, by name
	mcp      *mcptool.Pool              // nil: configurations are only checked
	broker   sandbox.Broker             // likewise; runs programs of Chela itself
	browsers *browser.Browsers          // likewise
	studio   *mediatool.Studio          // likewise; where pictures are made
	deferred exec.Defer                 // of background commands and pictures
	coders   *acptool.Pool              // likewise; programs of coding agents
	fresh    chan string                // workspaces that were made, for makeRepositories

	generations atomic.Uint64 // that were made
	understood  understanding.Cache

	mu      sync.Mutex
	own     []string                     // files that the configuration was read from; see Protect
	files   map[string]*prompt.Workspace // by directory
	folders map[string]bool              // private folders of sandboxes that exist
	warned  map[string]bool              // problems of plug-ins and skills that were logged
	finder  skill.Finder

	programs *programs

	memories memories
}

// NewFactory returns a Factory. The options of background commands come from the
// configuration at the start.
func NewFactory(o Options, s settings.Sections) (*Factory, error) {
	c, err := exec.ParseConfig(s.Section("tools.exec"))
	if err != nil {
		return nil, fmt.Errorf("configuration, tools.exec: %w", err)
	}
	deferred := exec.Defer(dispatch.Defer(o.Store, o.Instance, o.Redact, func(it queue.Item) {
		o.Bus.Publish(chela.Event{Session: it.Session, Stream: chela.StreamTask, Text: it.ID})
	}))
	f := &Factory{
		deferred: deferred,
		o:        o,
		started:  time.Now(),
		rules:    allowlist.NewFile(filepath.Join(o.State, allowlist.FileName)),
		files:    map[string]*prompt.Workspace{},
		folders:  map[string]bool{},
		warned:   map[string]bool{},
		fresh:    make(chan string, maxFresh),
		commands: exec.NewCommands(c.CommandOptions(exec.CommandOptions{
			Log: o.Log, Dir: filepath.Join(o.State, "cache", "output"), Defer: deferred,
		})),
	}
	if t, ok := s.(*config.Tree); ok {
		f.Protect(t.Own()...)
	}
	f.finder.Bundled = o.Registry.BundledSkills()
	f.programs = newPrograms(f.Environ())
	f.host, _ = os.Hostname()
	home, _ := os.UserHomeDir() // without one, the sandbox has no toolchains
	getenv := o.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	f.backends = o.Registry.NewBackends(standard.SandboxEnv{
		State:  o.State,
		Home:   home,
		Never:  f.private,
		Log:    o.Log,
		Getenv: getenv,
	})
	if o.Store == nil {
		return f, nil
	}
	if err := (sandbox.Programs{Dir: attachmentDir(o.State)}).Clean(); err != nil {
		o.Log.Warn("files of programs that read attachments", "err", err)
	}
	if err := plugindir.Recover(plugindir.Dir(o.State)); err != nil {
		o.Log.Warn("plug-ins", "err", err)
	}
	if f.mcp, err = f.newPool(s); err != nil {
		return nil, err
	}
	f.browsers, f.studio = f.newBrowsers(), mediatool.NewStudio()
	f.coders = f.newCoders()
	return f, nil
}

// KillCommand ends the background command of a tool call. It reports false if no such
// command runs in this process.
func (f *Factory) KillCommand(ctx context.Context, call string) (bool, error) {
	return f.commands.Kill(ctx, call)
}

// RunCommands ends the commands in the background and the browsers when ctx ends, and
// the commands and tabs of a session when the session is deleted.
func (f *Factory) RunCommands(ctx context.Context) error {
	cancel := f.o.Bus.Subscribe(func(e chela.Event) {
		if e.Stream == chela.StreamSession && e.Phase == chela.PhaseDeleted {
			f.commands.Forget(e.Session)
			f.browsers.Forget(e.Session)
			if f.o.Canvas != nil {
				f.o.Canvas.Forget(e.Session)
			}
		}
		f.observeCoders(e)
	})
	defer cancel()
	// The last of these runs first. Programs of servers, coding agents and browsers run in
	// what the backends provide, so that the backends are closed after them.
	for _, b := range f.backends {
		defer b.Close()
	}
	defer f.closeServers()
	defer f.closeCoders()
	defer f.closeBrowsers()
	defer f.studio.Close()
	defer f.memories.close()
	var pruning sync.WaitGroup
	pruning.Go(func() { f.prune(ctx) })
	pruning.Go(func() { f.makeRepositories(ctx) })
	defer pruning.Wait()
	return f.commands.Run(ctx)
}

// Config is one state of the configuration.
type Config struct {
	Sections settings.Sections
	Env      func(name string) string // environment variables
}

// Generation makes profiles from one state of the configuration. It is immutable
// and safe for concurrent use.
type Generation struct {
	*Factory
	number   uint64 // larger than those of earlier ones; no run begins with the profile of an earlier one
	Settings *settings.Settings
	Config   settings.Sections
	Models   *model.Set
	Allowed  *allowlist.Source // rules about commands
	Plugins  []plugindir.Plugin
	Servers  map[string]mcp.Server
	Coders   acp.Config        // coding agents
	Channels []channel.Factory // of plug-ins

	routes       *route.Table
	agentModels  map[chela.AgentID]*model.Set // of agents with models of their own
	tools        map[chela.AgentID]tool.Set
	catalogs     map[chela.AgentID]policy.Catalog // of the tools
	roles        map[chela.AgentID]map[tool.Role]string
	pluginTypes  []subagent.Type
	foundPlugins []plugindir.Plugin  // as Find returned them
	refused      map[string][]string // why tools of plug-ins are not offered, by plug-in
	idle         time.Duration       // after which an MCP server without calls is stopped
	facts        facts
	skills       skillLists
	home         string
	env          func(name string) string // variables of this process
	zone         *time.Location
	mentions     map[chela.AgentID][]*regexp.Regexp
	media        understanding.Config
	reader       *understanding.Understander // of attachments
	http         *http.Client                // reaches the services of the configuration
	Speaker      speech.Speaker              // says texts aloud
	Talker       speech.Speaker              // says answers aloud when apps talk
}

// New makes a Generation. It takes over what is known of models from before,
// which may be nil.
func (f *Factory) New(ctx context.Context, c Config, opts *settings.Settings, before *Generation) (*Generation, error) {
	g, err := f.build(ctx, c, opts, before)
	if err != nil {
		return nil, err
	}
	if opts.Compat == "openclaw" {
		f.o.Log.Warn(`compat is "openclaw": commands run without approval unless tools.exec says otherwise`)
	}
	if opts.NoDefault() {
		f.o.Log.Warn("agents.list has no default agent: messages of channels without a binding are refused",
			"hint", settings.SetDefault)
	}
	for _, id := range opts.Roster() { // so that Ready succeeds for a session's first run
		_, _, _ = g.AgentModels(id).Resolve("")
	}
	return g, g.makeWorkspaces(ctx)
}

// Validate returns the error of New without an effect on the state directory and the
// workspaces, or the channels of plug-ins. It needs only Log, State, Registry and NoProbe
// of the options.
func (f *Factory) Validate(ctx context.Context, c Config, opts *settings.Settings) ([]channel.Factory, error) {
	g, err := f.build(ctx, c, opts, nil)
	if err != nil {
		return nil, err
	}
	return g.Channels, nil
}

// build makes a Generation from a configuration. It writes nothing. The order matters where a
// step reads what an earlier one found: plug-ins have channels, which routes name; tools use
// models, plug-ins and sandboxes.
func (f *Factory) build(ctx context.Context, c Config, opts *settings.Settings,
	before *Generation) (*Generation, error) {
	g := &Generation{
		Factory:     f,
		number:      f.generations.Add(1),
		Settings:    opts,
		Config:      c.Sections,
		agentModels: map[chela.AgentID]*model.Set{},
		home:        c.Env("HOME"),
		env:         c.Env,
		refused:     map[string][]string{},
	}
	if err := g.openModels(ctx, c, before); err != nil {
		return nil, err
	}
	var err error
	if g.zone, err = opts.Location(); err != nil {
		return nil, err
	}
	if err := opts.Check(); err != nil {
		return nil, err
	}
	for _, id := range opts.Roster() {
		if dir := g.Workspace(id); f.o.Reserved != nil && f.o.Reserved(dir) {
			return nil, chela.Errorf(chela.CodeInvalid,
				"the workspace of agent %s, %s, is where Chela keeps its state, which tools do not use; choose another folder", id,
				dir)
		}
	}
	g.mentions = map[chela.AgentID][]*regexp.Regexp{}
	for _, id := range opts.Roster() {
		if g.mentions[id], err = opts.Mentions(id); err != nil {
			return nil, err
		}
	}
	g.Allowed = opts.CommandRules(f.rules, g.home)
	if err := g.findCoders(c); err != nil {
		return nil, err
	}
	if err := g.findPlugins(c); err != nil {
		return nil, err
	}
	g.routes = opts.Routing(g.channelName)
	if err := g.checkSandboxes(); err != nil {
		return nil, err
	}
	for _, err := range opts.Skills.Resolve(c.Env) {
		f.o.Log.Warn("skills", "err", err)
	}
	g.facts = g.findFacts()
	return g, g.makeTools(c)
}

// channelName returns the name of a channel from its name or an alias.
func (g *Generation) channelName(name string) string {
	if c := g.channel(name); c != nil {
		return c.Name
	}
	return name
}

// channel returns the factory of a channel by its name or an alias; nil: there is none.
func (g *Generation) channel(name string) *channel.Factory {
	if c := channel.Find(g.o.Registry.Channels(), name); c != nil {
		return c
	}
	return channel.Find(g.Channels, name)
}

// openModels chooses the default model and opens the models of agents that have
// their own.
func (g *Generation) openModels(ctx context.Context, c Config, before *Generation) error {
	o := g.Settings.ModelOptions(g.o.State, c.Env)
	o.HTTP, o.Log, o.Image, o.NoProbe, o.Made, o.NewProvider = g.o.HTTP, g.o.Log, g.o.Files.Scaled, g.o.NoProbe,
		g.o.Providers, g.o.Registry.NewProvider
	if o.HTTP == nil {
		conf, err := understanding.ParseConfig(c.Sections.Section("tools.media"))
		if err != nil {
			return fmt.Errorf("configuration, tools.media: %w", err)
		}
		o.HTTP = model.HTTPClient(o.Config, c.Env,
			slices.Concat(conf.URLs(), g.Settings.MemoryURLs(), g.Settings.Speech.URLs(), g.Settings.Talk.URLs())...)
	}
	g.http = o.HTTP
	if before != nil {
		o.Before = before.Models
	}
	var err error
	if g.Models, err = model.Open(ctx, o); err != nil {
		return err
	}
	for _, id := range g.Settings.Roster()[1:] { // the first one is the default agent, whose models are g.Models
		a, at := g.Settings.Of(id)
		if g.agentModels[id], err = g.Models.With(a.Model, a.Params, at, settings.AgentKeyDir(g.o.State, id)); err != nil {
			return err
		}
	}
	return nil
}

// Home returns the home directory, which ~ stands for in paths of the configuration.
func (g *Generation) Home() string { return g.home }

// Workspace is the agent's home and working directory.
func (g *Generation) Workspace(id chela.AgentID) string {
	return g.Settings.Workspace(id, g.o.State, g.home)
}

// AgentModels returns the models as an agent asks them.
func (g *Generation) AgentModels(id chela.AgentID) *model.Set {
	if m := g.agentModels[id]; m != nil {
		return m
	}
	return g.Models
}

// Tools returns an agent's tools, before any rule about them.
func (g *Generation) Tools(id chela.AgentID) tool.Set { return g.tools[id] }

// Resolve makes the profile of a run. It may read keys from files.
func (g *Generation) Resolve(m session.Meta, r run.Run) (*runner.Profile, error) {
	if !g.Settings.Has(m.Agent) {
		return nil, &chela.Error{Code: chela.CodeInvalid, Message: fmt.Sprintf("the agent %q was deleted", m.Agent),
			Hint: "chela agents list"}
	}
	if m.External != nil {
		return g.resolveExternal(m, r)
	}
	ref := cmp.Or(r.Overrides.Model, m.Model)
	resolve := g.AgentModels(m.Agent).Resolve
	if g.pricedOnly(m.Agent) {
		resolve = g.AgentModels(m.Agent).ResolvePriced
	}
	info, provider, err := resolve(ref)
	if err != nil {
		if ref == "" || ref != m.Model {
			return nil, err
		}
		return nil, fmt.Errorf("this session is set to %s (/model default resets it): %w", m.Model, err)
	}
	box := g.Sandbox(m)
	if err := g.makeFolder(box); err != nil {
		return nil, err
	}
	return g.profile(m, r, info, provider, box), nil
}

// Ready makes the profile of a run without I/O. It reports false when Resolve
// must be used. That is when a hook must be asked, a key read from a file, a folder made, or a
// program started. It is called in the transaction that accepts a message.
func (g *Generation) Ready(m session.Meta, r run.Run) (*runner.Profile, bool) {
	if m.External != nil || !g.Settings.Has(m.Agent) || g.o.Hooks != nil && g.o.Hooks.BeforeModelResolve.Any() {
		return nil, false
	}
	info, provider, ok := g.AgentModels(m.Agent).Resolved(cmp.Or(r.Overrides.Model, m.Model))
	if !ok {
		return nil, false
	}
	if g.pricedOnly(m.Agent) {
		var err error
		if info, provider, err = model.Priced(info, provider); err != nil {
			return nil, false
		}
	}
	box := g.Sandbox(m)
	if !g.hasFolder(box) {
		return nil, false
	}
	return g.profile(m, r, info, provider, box), true
}

// profile returns the profile of a run with a resolved model. It does no I/O. What needs a file,
// or the principal of a call, is a function in the profile, which the run calls outside of
// transactions.
func (g *Generation) profile(m session.Meta, r run.Run, info llm.Model, provider llm.Provider,
	box *sandbox.Session) *runner.Profile {
	agent, _ := g.Settings.Of(m.Agent)
	window := g.window(m, info)
	if !window.Assumed() {
		info.Context = window.Tokens
	}
	tools := g.tools[m.Agent]
	if !info.Compat.Tools() {
		tools = tool.Set{} // the prompt does not mention tools either
	}
	workspace := g.Workspace(m.Agent)
	dir := workspace
	if box != nil {
		dir = box.Workspace
	}
	answer, rounds := run.AnswerTo(r.Origin), g.Settings.Agent.MaxRounds
	if r.Origin.Kind == chela.OriginHeartbeat {
		answer.MaxAck = g.Settings.Heartbeat(m.Agent).MaxAck
	}
	if m.IsChild() { // a subagent: its requester reads the answer, whatever began the run
		answer, rounds = run.AnswerTo(chela.Origin{Kind: chela.OriginAgent}),
			cmp.Or(g.Settings.Subagents(m.Agent).Rounds(), rounds)
	}
	catalog, pruning := g.catalogs[m.Agent], g.Settings.Pruning(m.Agent)
	pruning.Tools.Allow, pruning.Tools.Deny = catalog.Expand(pruning.Tools.Allow), catalog.Expand(pruning.Tools.Deny)
	p := &runner.Profile{
		Provider: provider, Model: info, Window: window, MaxHistory: g.Settings.Agent.MaxHistory,
		MaxResult: g.Settings.Agent.Limits.MaxResult, Pruning: pruning, Caches: g.caches(info),
		Tools: tools, Catalog: catalog, Dir: dir, Sandbox: g.elevate(elevatedAs(m, r), box),
		Policy:      func(who chela.Principal) policy.Pipeline { return g.rules(m, info, who) },
		Home:        func(ctx context.Context) { g.remakeWorkspace(ctx, workspace) },
		Files:       g.Folder(workspace),
		Types:       func() []subagent.Type { return g.types(m.Agent) },
		MaxDepth:    g.Settings.Subagents(m.Agent).Depth(),
		Prompt:      g.promptInput(m.Agent, dir, box),
		Skills:      func() string { return g.skillList(m.Agent, g.Settings.Chat(m.Address).Skills, dir) },
		Chat:        func(a chela.Address) string { return g.Settings.Chat(a).Prompt },
		Env:         func() map[string]string { return g.SkillEnv(m.Agent) },
		ChildSkills: g.Settings.Subagents(m.Agent).Skills(),
		Startup:     g.Settings.Agent.Startup,
		Hints:       g.hints,
		Budget:      g.Settings.RunBudget(m.Agent),
		Limits:      g.Settings.Limits(m.Agent, g.zone),
		Ladder:      g.Settings.Ladder(),
		Loop:        g.Settings.Tools.Loop,
		Answer:      answer,
		Timeout:     g.Settings.Timeout(),
		MaxAttempts: g.Settings.Agent.MaxLoops,
		MaxRounds:   rounds,
		MaxCalls:    g.Settings.Agent.MaxCalls,
		MaxTokens:   info.MaxOutput,
		Think:       g.Think(m.Agent, info),
		Fast:        g.Fast(m.Agent, info),
		Compaction:  runner.Compaction{Config: g.Settings.Compaction(m.Agent), Model: g.AgentModels(m.Agent).Resolve},
		Verbose:     agent.Verbose,
		Reasoning:   agent.Reasoning,
		Usage:       g.Settings.Messages.ResponseUsage,
		Cache:       g.AgentModels(m.Agent).Retention(info),
		For:         runner.SettingsOf(m),
		Gen:         g.number,
	}
	p.Cheaper = func() *runner.Profile {
		other, provider, ok := g.AgentModels(m.Agent).Cheapest(g.Settings.Money.Model, info)
		if !ok {
			return nil
		}
		return g.profile(m, r, other, provider, box)
	}
	p.Reads, p.Read = g.understand(m, info)
	if m.Forked() {
		from := session.Meta{Key: m.Fork.Session, Agent: m.Agent, Bounds: m.Fork.Bounds}
		p.ForkPolicy = func(who chela.Principal) policy.Pipeline { return g.rules(from, info, who) }
	}
	return p
}

// pricedOnly reports whether the runs of an agent use only models whose price is known.
func (g *Generation) pricedOnly(id chela.AgentID) bool {
	return g.Settings.PricedOnly() && g.Settings.Limits(id, g.zone).Any()
}

// elevatedAs returns the session with the elevated level of a run.
func elevatedAs(m session.Meta, r run.Run) session.Meta {
	m.Elevated = cmp.Or(r.Overrides.Elevated, m.Elevated)
	return m
}

// types returns the agent types that an agent may start, and the problems of files of
// its workspace that define none.
func (g *Generation) types(id chela.AgentID) []subagent.Type {
	own, plugins := g.Folder(g.Workspace(id)).Types(), slices.Clone(g.pluginTypes)
	for _, list := range [...][]subagent.Type{own, plugins} {
		for i := range list {
			g.checkType(id, &list[i])
		}
	}
	return subagent.MergeTypes(own, plugins)
}

// checkType notes the tools and the model of an agent type's file that do not exist. If none
// of the allowed tools exists, the type cannot be used: without the list, it would have all.
func (g *Generation) checkType(id chela.AgentID, t *subagent.Type) {
	if t.Problem != "" {
		return
	}
	catalog := g.catalogs[id]
	allow, deny := catalog.Unknown(t.Tools.Allow), catalog.Unknown(t.Tools.Deny)
	unknown := "no tool is named " + strings.Join(slices.Concat(allow, deny), ", ")
	switch err := g.AgentModels(id).Check(t.Model); {
	case len(allow) > 0 && len(allow) == len(t.Tools.Allow):
		t.Problem = t.File + ": " + unknown
	case len(allow)+len(deny) > 0:
		t.Warn(unknown)
	case err != nil:
		t.Warn(fmt.Sprintf("the configured model is used: %v", err))
	}
}

// Model returns the model of the session's next run. It does no I/O, so that
// commands may call it in their transaction.
func (g *Generation) Model(m session.Meta) llm.Model {
	if m.External != nil {
		return acptool.Model(m.External.Agent)
	}
	info, err := g.AgentModels(m.Agent).Info(m.Model)
	if err != nil {
		return llm.Model{ID: m.Model}
	}
	return info
}

// Think returns the thinking level of an agent's sessions with a model that set none
// themselves. It does no I/O.
func (g *Generation) Think(id chela.AgentID, info llm.Model) llm.Level {
	return g.Settings.Think(id, g.AgentModels(id).Think(info))
}

// Fast returns when an agent's sessions with a model that set nothing themselves ask for the
// faster tier of its service. It does no I/O.
func (g *Generation) Fast(id chela.AgentID, info llm.Model) llm.Fast {
	return g.Settings.Fast(id, g.AgentModels(id).Fast(info))
}

// Unusable returns why the model of the session's next run cannot be asked; nil: it can.
func (c *Current) Unusable(m session.Meta) error {
	g := c.Load()
	if m.External != nil {
		_, _, err := g.Coders.Find(m.External.Agent)
		return err
	}
	return g.AgentModels(m.Agent).Unusable(g.Model(m).Provider)
}

// Inherited returns the settings of a session that sets none itself.
func (g *Generation) Inherited(m session.Meta) inbound.Settings {
	agent, _ := g.Settings.Of(m.Agent)
	model := g.Model(m)
	return inbound.Settings{
		Think: g.Think(m.Agent, model), Fast: g.Fast(m.Agent, model), Verbose: agent.Verbose, Reasoning: agent.Reasoning,
		Usage: g.Settings.Messages.ResponseUsage, Queue: g.Settings.Queueing(m.Address.Channel),
	}
}

// Sends reports whether what a session says is sent to a chat.
func (g *Generation) Sends(m session.Meta, to chela.Address) bool {
	p, chat := g.Settings.Session.Send, m.Key
	if len(p.Rules) > 0 {
		chat = g.routes.Resolve(route.Query{Address: to}).Session
	}
	return to.Local() || p.Allows(m, to, chat)
}

// Folder returns the files of a workspace, which cache what they read.
func (f *Factory) Folder(dir string) *prompt.Workspace {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.files[dir]
	if w == nil {
		w = prompt.Open(dir, f.private)
		f.files[dir] = w
	}
	return w
}

// queueMode is the queue mode of a session.
func (g *Generation) queueMode(m session.Meta) string {
	return cmp.Or(m.Queue.Mode, string(g.Settings.Queueing(m.Address.Channel).Mode), "collect")
}

// Current is the Generation in force. Its methods are those of the Generation at
// the time of the call, for parts that keep a function for longer. It must have a
// Generation before a method is called.
type Current struct{ p atomic.Pointer[Generation] }

var (
	_ runner.Profiles = (*Current)(nil)
	_ spawn.Config    = (*Current)(nil)
	_ relay.Config    = (*Current)(nil)

	_ engineheartbeat.Config = (*Current)(nil)
)

// Load returns the Generation.
func (c *Current) Load() *Generation { return c.p.Load() }

// Store puts another Generation in force.
func (c *Current) Store(g *Generation) { c.p.Store(g) }

// HasAgent reports whether an agent exists.
func (c *Current) HasAgent(id chela.AgentID) bool { return c.Load().Settings.Has(id) }

// Rights returns the principal as which somebody who may write uses slash commands.
func (c *Current) Rights(who chela.Principal, in chela.Inbound) chela.Principal {
	return c.Load().Settings.Slash.Rights(who, in)
}

// Commands returns which slash commands are permitted.
func (c *Current) Commands() inbound.Allowed { return c.Load().Settings.Slash.Allowed() }

// Skills returns the skills that an agent uses.
func (c *Current) Skills(id chela.AgentID) []*skill.Skill { return c.Load().Skills(id) }

// Mentions returns the patterns of texts that address an agent in a group.
func (c *Current) Mentions(id chela.AgentID) []*regexp.Regexp {
	g := c.Load()
	if list := g.mentions[id]; list != nil {
		return list
	}
	if name := g.identity(id).Name; name != "" {
		return []*regexp.Regexp{settings.Named(name)}
	}
	return nil
}

// identity returns the identity of an agent in its workspace.
func (g *Generation) identity(id chela.AgentID) (own settings.Identity) {
	own.Name, own.Emoji = g.Folder(g.Workspace(id)).Identity()
	return own
}

// Agents returns the agents, the default one first.
func (c *Current) Agents() []chela.Agent { return c.Load().agents() }

func (g *Generation) agents() []chela.Agent {
	var out []chela.Agent
	for _, id := range g.Settings.Roster() {
		a, _ := g.Settings.Of(id)
		out = append(out, chela.Agent{ID: id, Name: cmp.Or(a.Identity.Name, a.Name),
			Model: g.Model(session.Meta{Agent: id}).Ref()})
	}
	return out
}

// Resolve implements runner.Profiles.
func (c *Current) Resolve(_ context.Context, m session.Meta, r run.Run) (*runner.Profile, error) {
	return c.Load().Resolve(m, r)
}

// Ready implements runner.Profiles.
func (c *Current) Ready(m session.Meta, r run.Run) (*runner.Profile, bool) {
	return c.Load().Ready(m, r)
}

// Policy implements runner.Profiles.
func (c *Current) Policy(m session.Meta, a chela.Address) queue.Policy {
	return c.Load().Settings.Queueing(a.Channel).With(m.Queue)
}

// Sends implements runner.Profiles, and Config of the engine's heartbeat and cron.
func (c *Current) Sends(m session.Meta, to chela.Address) bool { return c.Load().Sends(m, to) }

// Gen implements runner.Profiles.
func (c *Current) Gen() uint64 { return c.Load().number }

// Route returns the agent and the session for a message.
func (c *Current) Route(q route.Query) route.Route { return c.Load().routes.Resolve(q) }

// Access returns the principal to act as for somebody who may write.
func (c *Current) Access(who chela.Principal, in chela.Inbound) (chela.Principal, error) {
	o := c.Load().Settings
	if in.Address.Peer.Kind == chela.Direct && o.Slash.IsOwner(who) {
		who.Scopes = append(slices.Clip(who.Scopes), chela.ScopeOwnerTools)
	}
	return who, nil
}

// Admission returns who may write on the account of an address.
func (c *Current) Admission(a chela.Address) *admission.Rules { return c.Load().Settings.Admission(a) }

// Subagents implements spawn.Config.
func (c *Current) Subagents(id chela.AgentID) subagent.Config { return c.Load().Settings.Subagents(id) }

// CheckModel implements spawn.Config.
func (c *Current) CheckModel(id chela.AgentID, ref string) error {
	return c.Load().AgentModels(id).Check(ref)
}

// FindLevel implements cron.Config.
func (c *Current) FindLevel(id chela.AgentID, ref, name string) (llm.Level, error) {
	info, err := c.Load().AgentModels(id).Info(ref)
	if err != nil {
		return "", err
	}
	return llm.FindLevel(name, info.Ref(), info.LevelNames())
}

// Heartbeats implements heartbeat.Config of the engine.
func (c *Current) Heartbeats() []heartbeat.Settings {
	g := c.Load()
	return g.Settings.Heartbeats(g.zone)
}

// HeartbeatFile implements heartbeat.Config of the engine.
func (c *Current) HeartbeatFile(id chela.AgentID) (string, bool) {
	g := c.Load()
	f := g.Folder(g.Workspace(id)).File(heartbeat.FileName)
	return f.Text, !f.Missing && f.Problem == ""
}

// HeartbeatVisibility implements heartbeat.Config of the engine.
func (c *Current) HeartbeatVisibility(a chela.Address) heartbeat.Visibility {
	return c.Load().Settings.HeartbeatVisibility(a)
}

// Style returns how the answers of an agent appear in a chat.
func (c *Current) Style(id chela.AgentID, a chela.Address) deliver.Style {
	g := c.Load()
	return g.Settings.Style(id, a, g.identity(id))
}

// IsOwnerChat implements heartbeat.Config of the engine.
func (c *Current) IsOwnerChat(a chela.Address) bool { return c.Load().Settings.IsOwnerChat(a) }

// Types implements spawn.Config. Files that define none are logged.
func (c *Current) Types(id chela.AgentID) []subagent.Type {
	g := c.Load()
	types := g.types(id)
	for _, p := range subagent.Problems(types) {
		g.o.Log.Warn("agent type", "agent", id, "problem", p)
	}
	return types
}

// Workspace implements spawn.Config.
func (c *Current) Workspace(m session.Meta) (string, error) {
	g := c.Load()
	box := g.Sandbox(m)
	if box == nil {
		return g.Workspace(m.Agent), nil
	}
	return box.Workspace, g.makeFolder(box)
}

// Sandboxed implements spawn.Config.
func (c *Current) Sandboxed(m session.Meta) bool { return c.Load().isSandboxed(m) }

// canvas returns the settings of the canvas.
func (g *Generation) canvas() canvasconfig.Config { return g.Settings.Canvas.In(g.env) }

// Canvas returns the settings of the canvas.
func (c *Current) Canvas() canvasconfig.Config { return c.Load().canvas() }

// Nodes returns which commands of nodes may be called.
func (c *Current) Nodes() node.Policy { return c.Load().Settings.Nodes }

// Sharing implements relay.Config.
func (c *Current) Sharing(m session.Meta) session.Sharing { return c.Load().sharing(m) }

// Exchange implements relay.Config.
func (c *Current) Exchange() exchange.Config { return c.Load().Settings.Session.AgentToAgent }

// Reset returns when sessions start a new transcript.
func (c *Current) Reset(session.Meta) session.ResetPolicy { return c.Load().Settings.Session.Reset }

// ForkTokens implements spawn.Config.
func (c *Current) ForkTokens() int64 { return c.Load().Settings.Session.ForkTokens() }

// Focus returns whether chats may be focused on subagents.
func (c *Current) Focus() session.FocusPolicy { return c.Load().Settings.Session.Focus }

// Catalog returns the models that can be named.
func (c *Current) Catalog() llm.Catalog { return c.Load().Models.Catalog() }

// Model returns the model of the session's next run.
func (c *Current) Model(m session.Meta) llm.Model { return c.Load().Model(m) }

// Inherited returns the settings of a session that sets none itself.
func (c *Current) Inherited(m session.Meta) inbound.Settings { return c.Load().Inherited(m) }

// Limits returns the budgets of money of an agent.
func (c *Current) Limits(id chela.AgentID) usage.Limits {
	g := c.Load()
	return g.Settings.Limits(id, g.zone)
}

// Elevated returns whether commands of a principal may leave the sandbox of a
// session.
func (c *Current) Elevated(who chela.Principal, m session.Meta) sandbox.Elevated {
	return c.Load().Settings.ElevatedFor(m.Agent, who, m.Elevated)
}

// Exec returns what /exec chooses from for a principal in a session.
func (c *Current) Exec(ctx context.Context, who chela.Principal, key chela.SessionKey) (inbound.ExecRule, error) {
	return c.Load().Exec(ctx, who, key)
}

// Offered returns the tools of a run that a principal starts in a session.
func (c *Current) Offered(ctx context.Context, who chela.Principal, key chela.SessionKey) ([]tool.Spec, error) {
	return c.Load().Offered(ctx, who, key)
}

// Rules returns the rules about tools for a run that a principal starts.
func (c *Current) Rules(ctx context.Context, who chela.Principal, key chela.SessionKey,
	v policy.Conversation) (policy.Pipeline, llm.Ref, error) {
	return c.Load().Rules(ctx, who, key, v)
}

// Scope returns the tools of a session outside of its runs.
func (c *Current) Scope(ctx context.Context, who chela.Principal, key chela.SessionKey) (invoke.Scope, error) {
	return c.Load().Scope(ctx, who, key)
}

// Direct returns the tools that may be called without a model.
func (c *Current) Direct() (deny, allow []string) {
	d := c.Load().Settings.Direct
	return d.Deny, d.Allow
}

// Cron implements cron.Config.
func (c *Current) Cron() job.Config { return c.Load().Settings.Cron }

// Location implements cron.Config.
func (c *Current) Location() *time.Location { return c.Load().zone }

// Files returns which files an agent may use, and its workspace.
func (c *Current) Files(id chela.AgentID) (pathpolicy.Rule, string) {
	g := c.Load()
	return g.Settings.Paths(id, g.private), g.Workspace(id)
}
