package app

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
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
	"github.com/chela-ai/chela/internal/standard"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/tool"
	"github.com/chela-ai/chela/internal/tool/exec"
	"github.com/chela-ai/chela/internal/tool/status"
)

// profiles makes the profile of a session's next run from the configuration.
type profiles struct {
	opts    *options
	models  *model.Set
	state   string
	home    string
	host    string
	zone    *time.Location
	started time.Time
	tools   tool.Set

	commands *exec.Commands // that go on in the background
	allowed  *allowlist.Source

	prompt prompt.Builder

	mu    sync.Mutex
	files map[string]*prompt.Workspace // by directory
}

// openModels chooses the model that answers.
func openModels(ctx context.Context, o *options, a Options, image model.Image) (*model.Set, error) {
	return model.Open(ctx, model.Options{
		Image:  image,
		Params: o.Agent.Params, AgentParams: o.Agents.params(chela.DefaultAgent),
		Config: o.Models, Default: o.Agent.Model, Allow: o.Agent.ModelPolicy.Allow, Looks: o.Agent.ImageModel, Models: o.Agent.Models, Env: a.Env, HTTP: a.HTTP,
		Keys: keyDir(a.State), Rests: filepath.Join(a.State, "cache", "rests.json"), Log: a.Log, NoProbe: a.NoProbe, Made: a.Providers,
	})
}

func newProfiles(opts *options, m *model.Set, st store.Store, o Options, leaves standard.ToolConfig) (*profiles, error) {
	p := &profiles{opts: opts, models: m, state: o.State, home: o.Env("HOME"), zone: time.Local, started: time.Now(), files: map[string]*prompt.Workspace{}}
	p.host, _ = os.Hostname()
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
	if err := opts.checkTools(); err != nil {
		return nil, err
	}
	run := opts.exec(o)
	p.allowed = opts.commandRules(o.State, p.home)
	run.Rules = p.allowed.Rules
	run.Used = func(uses []allowlist.Use, command string) {
		if err := p.allowed.Used(uses, command, time.Now()); err != nil {
			o.Log.Warn("note that an entry of the allowlist was used", "err", err)
		}
	}
	if opts.Compat == "openclaw" {
		o.Log.Warn(`compat is "openclaw": commands run without a question unless tools.exec says otherwise`)
	}
	p.commands = opts.commands(st, o)
	run.Commands = p.commands
	tools, err := standard.Tools(standard.ToolConfig{
		Image: leaves.Image, Send: leaves.Send,
		State: o.State, Exec: run, Files: opts.files(o), Fetch: opts.Tools.Web.Fetch.Options(o.Log, o.Env),
		Search: opts.Tools.Web.Search.Options(opts.Plugins, o.Env),
		Status: status.Options{Location: p.zone, Status: func(ctx context.Context, key chela.SessionKey) (status.Status, error) {
			return p.status(ctx, st, key)
		}},
	})
	if err != nil {
		return nil, err
	}
	p.tools = tool.NewSet(append(tools, o.Tools...)...)
	for _, note := range p.tools.Notes() {
		o.Log.Warn("tools", "note", note)
	}
	dir := p.workspace(chela.DefaultAgent)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	if !opts.Agent.SkipBootstrap {
		if _, err := prompt.Seed(dir); err != nil {
			o.Log.Warn("workspace files", "dir", dir, "err", err) // a read-only workspace still works
		}
	}
	return p, nil
}

// workspace is the agent's home and working directory.
func (p *profiles) workspace(id chela.AgentID) string {
	if id != chela.DefaultAgent {
		return filepath.Join(p.state, "workspace-"+string(id))
	}
	dir := p.opts.Agent.Workspace
	switch {
	case dir == "":
		return filepath.Join(p.state, "workspace")
	case dir == "~" || len(dir) > 1 && dir[:2] == "~/":
		return filepath.Join(p.home, dir[1:])
	case !filepath.IsAbs(dir):
		return filepath.Join(p.state, dir)
	}
	return dir
}

// of is the dispatch.ProfileFunc.
func (p *profiles) of(m session.Meta) (*dispatch.Profile, error) {
	info, provider, err := p.models.Resolve(m.Model)
	if err != nil {
		if m.Model == "" {
			return nil, err
		}
		return nil, fmt.Errorf("this session is pinned to %s (/model default takes it off): %w", m.Model, err)
	}
	if limit := p.opts.Agent.ContextTokens; limit > 0 && (info.Context == 0 || info.Context > limit) {
		info.Context = limit
	}
	tools := p.tools
	if !info.Compat.Tools() {
		tools = tool.Set{} // nor is the model told of any in its prompt
	}
	dir := p.workspace(m.Agent)
	return &dispatch.Profile{
		Provider: provider, Model: info, Tools: tools, Dir: dir,
		Policy:    func(who chela.Principal) policy.Pipeline { return p.rules(m, info, who) },
		System:    func(f dispatch.Facts) []llm.Block { return p.system(dir, f) },
		Queue:     p.opts.policy(),
		Budget:    p.opts.budget(),
		Loop:      p.opts.Tools.Loop,
		Timeout:   p.opts.timeout(),
		MaxLoops:  p.opts.Agent.MaxLoops,
		MaxRounds: p.opts.Agent.MaxRounds,
		MaxCalls:  p.opts.Agent.MaxCalls,
		MaxTokens: info.MaxOutput,
		Think:     llm.Level(p.opts.Agent.Think),
		Verbose:   p.opts.Agent.Verbose,
		Usage:     p.opts.Messages.ResponseUsage,
	}, nil
}

// model is the model that the session's next run asks.
func (p *profiles) model(m session.Meta) llm.Model {
	info, _, err := p.models.Resolve(m.Model)
	if err != nil {
		return llm.Model{ID: m.Model}
	}
	return info
}

// inherited is what a session has where it sets nothing itself.
func (p *profiles) inherited(session.Meta) inbound.Settings {
	return inbound.Settings{
		Think: llm.Level(p.opts.Agent.Think), Verbose: p.opts.Agent.Verbose,
		Usage: p.opts.Messages.ResponseUsage, Queue: p.opts.policy(),
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
	info, _, err := p.models.Resolve(m.Model)
	if err != nil {
		return status.Status{}, err
	}
	s := status.Status{
		Model: info.Ref(), Context: int(m.Context), Window: info.Context, Input: m.Tokens.Prompt(), Output: m.Tokens.Output,
		Session: key, SessionID: m.ID, Queue: cmp.Or(m.Queue.Mode, string(p.opts.policy().Mode), "collect"), Version: Version,
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
