package app

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/allowlist"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/dispatch"
	"github.com/chela-ai/chela/internal/inbound"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/model"
	"github.com/chela-ai/chela/internal/policy"
	"github.com/chela-ai/chela/internal/prompt"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/settings"
	"github.com/chela-ai/chela/internal/standard"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/tool"
	"github.com/chela-ai/chela/internal/tool/exec"
	"github.com/chela-ai/chela/internal/tool/status"
)

// profiles makes the profile of a session's next run from one state of the
// configuration; another state of it has another one.
type profiles struct {
	opts    *settings.Settings
	conf    settings.Sections
	models  *model.Set
	voices  map[chela.AgentID]*model.Set // of agents that ask in a way of their own
	state   string
	home    string
	host    string
	zone    *time.Location
	started time.Time
	tools   map[chela.AgentID]tool.Set
	allowed *allowlist.Source
	prompt  prompt.Builder
	*kept
}

// kept is what goes on when the configuration changes.
type kept struct {
	commands *exec.Commands // that go on in the background
	ruleFile *allowlist.File

	mu    sync.Mutex
	files map[string]*prompt.Workspace // by directory
}

// openModels chooses the model that answers. The keys that rest before it rest
// on.
func openModels(ctx context.Context, o *settings.Settings, a Options, image model.Image, before *model.Set) (*model.Set, error) {
	main, _ := o.Of(chela.DefaultAgent)
	return model.Open(ctx, model.Options{
		Image: image, Before: before,
		Params: o.Agent.Params, AgentParams: main.Params,
		Config: o.Models, Default: main.Model.Or(o.Agent.Model), Allow: o.Agent.ModelPolicy.Allow, Looks: o.Agent.ImageModel, Models: o.Agent.Models, Env: a.Env, HTTP: a.HTTP,
		Keys: keyDir(a.State), Rests: filepath.Join(a.State, "cache", "rests.json"), Log: a.Log, NoProbe: a.NoProbe, Made: a.Providers,
	})
}

func newProfiles(opts *settings.Settings, m *model.Set, st store.Store, o Options, leaves standard.ToolConfig, k *kept) (*profiles, error) {
	p := &profiles{
		opts: opts, conf: o.Config, models: m, voices: map[chela.AgentID]*model.Set{}, state: o.State, home: o.Env("HOME"), zone: time.Local,
		started: time.Now(), kept: k,
	}
	p.host, _ = os.Hostname()
	for _, id := range opts.Roster()[1:] {
		a, at := opts.Of(id)
		voice, err := m.With(a.Model, a.Params, at)
		if err != nil {
			return nil, err
		}
		p.voices[id] = voice
	}
	if name := opts.Agent.Timezone; name != "" {
		zone, err := time.LoadLocation(name)
		if err != nil {
			return nil, fmt.Errorf("agents.defaults.userTimezone: %w", err)
		}
		p.zone = zone
	}
	if err := opts.Tools.Loop.Validate(); err != nil {
		return nil, fmt.Errorf("tools.loopDetection: %w", err)
	}
	if err := opts.Check(); err != nil {
		return nil, err
	}
	if opts.Compat == "openclaw" {
		o.Log.Warn(`compat is "openclaw": commands run without a question unless tools.exec says otherwise`)
	}
	p.allowed = opts.CommandRules(k.ruleFile, p.home)
	if err := p.equip(st, o, leaves); err != nil {
		return nil, err
	}
	for _, id := range opts.Roster() {
		dir := p.workspace(id)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("workspace: %w", err)
		}
		if opts.Agent.SkipBootstrap {
			continue
		}
		if _, err := prompt.Seed(dir); err != nil {
			o.Log.Warn("workspace files", "dir", dir, "err", err) // a read-only workspace still works
		}
	}
	return p, nil
}

// equip makes the tools of the agents, which differ in what they may reach.
func (p *profiles) equip(st store.Store, o Options, c standard.ToolConfig) error {
	c.State, c.Exec, c.Files = o.State, p.opts.Commands(o.Environ), p.opts.Files()
	c.Exec.Commands, c.Exec.Rules = p.commands, p.allowed.Rules
	c.Exec.Used = func(uses []allowlist.Use, command string) {
		if err := p.allowed.Used(uses, command, time.Now()); err != nil {
			o.Log.Warn("note that an entry of the allowlist was used", "err", err)
		}
	}
	c.Fetch, c.Search = p.opts.Tools.Web.Fetch.Options(o.Log, o.Env), p.opts.Tools.Web.Search.Options(p.opts.Plugins, o.Env)
	c.Status = status.Options{Location: p.zone, Status: func(ctx context.Context, key chela.SessionKey) (status.Status, error) {
		return p.status(ctx, st, key)
	}}
	same, err := standard.Tools(c)
	if err != nil {
		return err
	}
	p.tools = map[chela.AgentID]tool.Set{}
	for _, id := range p.opts.Roster() {
		own := standard.Reaching(c, p.opts.Reach(id, o.State))
		p.tools[id] = tool.NewSet(slices.Concat(same, own, o.Tools)...)
	}
	for _, note := range p.tools[chela.DefaultAgent].Notes() {
		o.Log.Warn("tools", "note", note)
	}
	return nil
}

// workspace is the agent's home and working directory.
func (p *profiles) workspace(id chela.AgentID) string { return p.opts.Workspace(id, p.state, p.home) }

// voice is the models as an agent asks them.
func (p *profiles) voice(id chela.AgentID) *model.Set {
	if v := p.voices[id]; v != nil {
		return v
	}
	return p.models
}

// of is the dispatch.ProfileFunc.
func (p *profiles) of(m session.Meta) (*dispatch.Profile, error) {
	if !p.opts.Has(m.Agent) {
		return nil, &chela.Error{Code: chela.CodeInvalid, Message: fmt.Sprintf("there is no agent %q any more", m.Agent), Hint: "chela agents list"}
	}
	agent, _ := p.opts.Of(m.Agent)
	info, provider, err := p.voice(m.Agent).Resolve(m.Model)
	if err != nil {
		if m.Model == "" {
			return nil, err
		}
		return nil, fmt.Errorf("this session is pinned to %s (/model default takes it off): %w", m.Model, err)
	}
	if limit := p.opts.Agent.ContextTokens; limit > 0 && (info.Context == 0 || info.Context > limit) {
		info.Context = limit
	}
	tools := p.tools[m.Agent]
	if !info.Compat.Tools() {
		tools = tool.Set{} // nor is the model told of any in its prompt
	}
	dir := p.workspace(m.Agent)
	return &dispatch.Profile{
		Provider: provider, Model: info, Tools: tools, Dir: dir,
		Policy:    func(who chela.Principal) policy.Pipeline { return p.rules(m, info, who) },
		System:    func(f dispatch.Facts) []llm.Block { return p.system(dir, f) },
		Queue:     p.opts.Queueing(),
		Budget:    p.opts.RunBudget(),
		Loop:      p.opts.Tools.Loop,
		Timeout:   p.opts.Timeout(),
		MaxLoops:  p.opts.Agent.MaxLoops,
		MaxRounds: p.opts.Agent.MaxRounds,
		MaxCalls:  p.opts.Agent.MaxCalls,
		MaxTokens: info.MaxOutput,
		Think:     llm.Level(agent.Think),
		Verbose:   agent.Verbose,
		Usage:     p.opts.Messages.ResponseUsage,
	}, nil
}

// model is the model that the session's next run asks.
func (p *profiles) model(m session.Meta) llm.Model {
	info, _, err := p.voice(m.Agent).Resolve(m.Model)
	if err != nil {
		return llm.Model{ID: m.Model}
	}
	return info
}

// inherited is what a session has where it sets nothing itself.
func (p *profiles) inherited(m session.Meta) inbound.Settings {
	agent, _ := p.opts.Of(m.Agent)
	return inbound.Settings{
		Think: llm.Level(agent.Think), Verbose: agent.Verbose,
		Usage: p.opts.Messages.ResponseUsage, Queue: p.opts.Queueing(),
	}
}

// status is what the model is told of its session.
func (p *profiles) status(ctx context.Context, st store.Store, key chela.SessionKey) (status.Status, error) {
	var m session.Meta
	err := st.View(ctx, func(r store.Reader) error {
		var err error
		m, err = session.Lookup(r.Sessions(), key)
		return err
	})
	if err != nil {
		return status.Status{}, fmt.Errorf("session %s: %w", key, err)
	}
	info, _, err := p.voice(m.Agent).Resolve(m.Model)
	if err != nil {
		return status.Status{}, err
	}
	s := status.Status{
		Model: info.Ref(), Context: int(m.Context), Window: info.Context, Input: m.Tokens.Prompt(), Output: m.Tokens.Output,
		Session: key, SessionID: m.ID, Queue: cmp.Or(m.Queue.Mode, string(p.opts.Queueing().Mode), "collect"), Version: Version,
		Uptime: time.Since(p.started),
	}
	if m.Priced {
		s.Cost = float64(m.NanoUSD) / 1e9
	}
	return s, nil
}

// system is the system prompt of a run.
func (p *profiles) system(dir string, f dispatch.Facts) []llm.Block {
	private := f.Run.Address.Local() || f.Run.Address.Peer.Kind == chela.Direct
	return p.prompt.Build(prompt.Input{
		Tools: f.Tools, Dir: dir, Files: p.folder(dir).Files(private),
		MaxFile: p.opts.Agent.FileChars, MaxFiles: p.opts.Agent.TotalChars,
		Now: f.Now.In(p.zone), Zone: p.zone.String(), Agent: string(f.Session.Agent), Host: p.host,
		OS: runtime.GOOS, Arch: runtime.GOARCH, Model: f.Model.Ref(), Channel: f.Run.Address.Channel, Thinking: f.Think,
	})
}

// folder returns the files of a workspace, which remember what they read.
func (p *profiles) folder(dir string) *prompt.Workspace {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.files[dir]
	if w == nil {
		w = prompt.Open(dir)
		p.files[dir] = w
	}
	return w
}
