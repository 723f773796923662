package spawn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/acp"
	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// Lane is the lane of the runs of children.
const Lane = "subagent"

// Options are the dependencies of a Spawner. All but Hooks are required.
type Options struct {
	Log    *slog.Logger
	Store  store.Store
	Bus    *bus.Bus
	Config Config
	// Stop stops all work of a session and of its children in a synced transaction, see
	// Spawner.Stop. It returns what is to be done after the commit.
	Stop func(store.Tx, chela.SessionKey) (after func(), err error)
	// Delete deletes a session.
	Delete func(context.Context, chela.SessionKey) error
	// Thread creates a thread in a chat and returns its address.
	Thread func(ctx context.Context, at chela.Address, name string) (chela.Address, error)
	// Hooks decide about children and are told of them; nil: there are none.
	Hooks *hook.Points
}

// Config is what a Spawner needs of the configuration in force. Its methods do no I/O
// unless stated otherwise.
type Config interface {
	// Subagents returns the settings for the children of an agent.
	Subagents(chela.AgentID) subagent.Config
	// HasAgent reports whether an agent exists.
	HasAgent(chela.AgentID) bool
	// Types returns the agent types that an agent may start. It may read files.
	Types(chela.AgentID) []subagent.Type
	// CheckModel returns why an agent cannot use a model.
	CheckModel(id chela.AgentID, ref string) error
	// ForkTokens returns the tokens of the longest conversation that a child inherits; 0:
	// no limit.
	ForkTokens() int64
	// Focus returns whether threads may be bound to children.
	Focus() session.FocusPolicy
	// Workspace returns the folder of a session's tools, which exists. It may write files.
	Workspace(session.Meta) (string, error)
	// Coder returns the coding agent with a name, which works in a folder; both may be
	// empty. It may read files.
	Coder(id chela.AgentID, name, dir string) (session.External, error)
	// Sandboxed reports whether the session is sandboxed.
	Sandboxed(session.Meta) bool
}

// Spawner starts and stops children. It is safe for concurrent use.
type Spawner struct {
	o Options

	mu     sync.Mutex
	untold map[chela.SessionKey]chan struct{} // children of whose start hooks are being told; closed when they were
}

// New returns a Spawner.
func New(o Options) *Spawner {
	if o.Hooks == nil {
		o.Hooks = hook.New(o.Log)
	}
	return &Spawner{o: o, untold: map[chela.SessionKey]chan struct{}{}}
}

// Spawn starts a child. The requester is told in the same commit: a repeated call
// returns the receipt of the child that exists. An error is for the model or the
// person who asked.
func (s *Spawner) Spawn(ctx context.Context, r subagent.Request) (subagent.Receipt, error) {
	if err := r.Check(); err != nil {
		return subagent.Receipt{}, err
	}
	p, err := s.prepare(ctx, &r)
	if err != nil {
		return subagent.Receipt{}, err
	}
	if err = s.spawning(ctx, r, &p); err == nil {
		err = s.makeThread(ctx, r, &p)
	}
	if err != nil {
		p.discard()
		return subagent.Receipt{}, err
	}
	s.telling(p.session)
	defer s.told(p.session)
	var out subagent.Receipt
	var after func()
	err = s.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		var err error
		out, after, err = s.spawnIn(tx, r, p)
		return err
	})
	if err != nil {
		p.discard()
		return subagent.Receipt{}, err
	}
	after()
	return out, nil
}

// prepared is what is read and written before the commit of a spawn.
type prepared struct {
	session chela.SessionKey // of the child; empty: a new one
	kind    subagent.Type
	history []*session.Entry  // that a fork inherits
	thread  string            // in which the child is bound, made for it; empty: that of the chat
	files   string            // folder with the attachments, absolute; empty: there are none
	coder   *session.External // that works on the task; nil: a model does
	warning string            // why the child is no fork although one was requested; empty: it is as requested
}

// prepare does for a spawn what cannot be done in its transaction.
func (s *Spawner) prepare(ctx context.Context, r *subagent.Request) (p prepared, err error) {
	var parent session.Meta
	exists := false
	err = s.o.Store.View(ctx, func(rd store.Reader) error {
		_, err := rd.Children().Get(r.ID)
		if exists = err == nil; exists || !errors.Is(err, chela.ErrNotFound) {
			return err
		}
		parent, err = session.Lookup(rd.Sessions(), r.Requester)
		return err
	})
	if err != nil || exists {
		return p, err
	}
	agent := cmp.Or(r.Agent, parent.Agent)
	p.session = r.Requester.Child(agent, uuid.NewString())
	if r.Runtime == subagent.RuntimeACP {
		x, err := s.o.Config.Coder(agent, r.Coder, r.Folder)
		p.coder, p.session, r.Folder = &x, chela.SessionKey(fmt.Sprintf("agent:%s:acp:%s", agent, uuid.NewString())), ""
		return p, err
	}
	if r.Type != "" {
		if p.kind, err = subagent.FindType(s.o.Config.Types(agent), r.Type); err != nil {
			return p, err
		}
	}
	if r.Context == subagent.Fork {
		if p.history, p.warning, err = s.history(ctx, *r, parent); err != nil {
			return p, err
		}
		if p.warning != "" {
			r.Context = subagent.Isolated
		}
	}
	if (r.Folder != "" || len(r.Files) > 0) && s.o.Config.HasAgent(agent) { // otherwise the spawn is refused
		p.files, err = s.place(session.Meta{Key: p.session, Agent: agent}, r)
	}
	return p, err
}

// Ask asks hooks about a child that SpawnIn is to start, because they cannot be asked in a
// transaction. It returns the request for SpawnIn.
func (s *Spawner) Ask(ctx context.Context, r subagent.Request) (subagent.Request, error) {
	if !s.o.Hooks.SubagentSpawning.Any() {
		return r, nil
	}
	if err := r.Check(); err != nil {
		return r, err
	}
	r = plain(r)
	p, err := s.prepare(ctx, &r)
	if err == nil {
		err = s.spawning(ctx, r, &p)
	}
	r.Session = p.session
	return r, err
}

// plain returns the request for an isolated child without a type. What the others need is
// done before the transaction.
func plain(r subagent.Request) subagent.Request {
	r.Type, r.Context, r.Folder, r.Files, r.Runtime = "", subagent.Isolated, "", nil, ""
	return r
}

// SpawnIn is [Spawner.Spawn] in a transaction, for an isolated child without a type, after
// [Spawner.Ask]. The function that it returns is to be called after the commit.
func (s *Spawner) SpawnIn(tx store.Tx, r subagent.Request) (subagent.Receipt, func(), error) {
	if err := r.Check(); err != nil {
		return subagent.Receipt{}, nil, err
	}
	// they came after Ask
	if _, err := tx.Children().Get(r.ID); err != nil && r.Session == "" && s.o.Hooks.SubagentSpawning.Any() {
		return subagent.Receipt{}, nil,
			chela.Errorf(chela.CodeUnavailable, "hooks that decide about subagents have just been added; try again")
	}
	return s.spawnIn(tx, plain(r), prepared{session: r.Session})
}

func (s *Spawner) spawnIn(tx store.Tx, r subagent.Request, p prepared) (subagent.Receipt, func(), error) {
	out, isNew, err := s.spawn(tx, r, p, time.Now())
	return out, func() {
		defer s.told(out.Child.Session)
		if isNew {
			s.o.Bus.Publish(chela.Event{Session: out.Child.Session, Stream: chela.StreamSession, Phase: chela.PhaseCreated})
			s.o.Hooks.SubagentSpawned.Notify(context.Background(),
				hook.SubagentSpawned{Subagent: aboutChild(out.Child), Task: out.Child.Task})
		}
	}, err
}

// spawn writes a child. It reports false if the child exists already.
func (s *Spawner) spawn(tx store.Tx, r subagent.Request, p prepared, now time.Time) (subagent.Receipt, bool, error) {
	switch have, err := tx.Children().Get(r.ID); {
	case err == nil:
		open, err := tx.Children().Open(r.Requester)
		return subagent.Receipt{Child: have, Running: len(open)}, false, err
	case !errors.Is(err, chela.ErrNotFound):
		return subagent.Receipt{}, false, err
	}
	in, err := s.admit(tx.Sessions(), tx.Children(), r)
	if err != nil {
		return subagent.Receipt{}, false, err
	}
	parent, agent, c := in.parent, in.agent, in.config
	child := subagent.Child{
		ID:        r.ID,
		Requester: r.Requester,
		Parent:    r.Run,
		Root:      r.ID,
		Principal: r.Principal,
		Address:   r.Address,
		Task:      r.Task,
		Label:     cmp.Or(r.Label, r.Name, fmt.Sprintf("Task %d", in.siblings+1)),
		Name:      r.Name,
		Type:      p.kind.Name,
		Timeout:   c.Timeout(),
		Cleanup:   r.Cleanup,
		Retain:    r.Retain,
		Created:   now,
		Session:   cmp.Or(p.session, r.Requester.Child(agent, uuid.NewString())),
	}
	for _, f := range r.Files {
		child.Files = append(child.Files, f.Name)
	}
	if r.Timeout != nil {
		child.Timeout = *r.Timeout
	}
	var by run.Run
	if r.Run != "" {
		if by, err = tx.Runs().Get(r.Run); err != nil {
			return subagent.Receipt{}, false, fmt.Errorf("the run that spawns: %w", err)
		}
		if by.Stop != "" || by.State.Final() { // what stopped it has stopped the children that it had then
			return subagent.Receipt{}, false, chela.Errorf(chela.CodeConflict, "the turn was stopped; no subagent was started")
		}
		// Results begin turns, which may start further subagents, and so on.
		if n, err := tx.Children().Tree(by.Tree()); err != nil {
			return subagent.Receipt{}, false, err
		} else if n >= subagent.MaxTree {
			return subagent.Receipt{}, false,
				chela.Errorf(chela.CodeForbidden, "%d subagents were started for this request already, which is the limit. "+
					"Report what there is; more can be started when the user asks again", n)
		}
		child.Root, child.Principal, child.Address = by.Tree(), by.Principal, by.Address
	}
	if r.Thread {
		if err := s.bind(tx, parent, &child, p.thread); err != nil {
			return subagent.Receipt{}, false, err
		}
	}
	out := subagent.Receipt{Running: in.open + 1}
	child.Model, out.Warning = s.model(c, agent, r.Model, p.kind.Model)
	meta, about := sessionOf(c, parent, child, p.kind, agent, r)
	if p.coder != nil {
		if err := s.handOver(&meta, parent, &child, *p.coder, !r.Thread); err != nil {
			return subagent.Receipt{}, false, err
		}
	}
	meta.Bounds.Shared = parent.Shared(by)
	meta.Bounds.Exec = by.Overrides.Exec.Within(meta.Bounds.Exec).ForChild()
	if !by.Overrides.Tools.IsZero() { // the child has at most the tools of the run
		meta.Bounds.Tools = append(meta.Bounds.Tools, by.Overrides.Tools)
	}
	text := r.Task
	if r.Context == subagent.Fork {
		if err := s.fork(&meta, parent, by, r); err != nil {
			return subagent.Receipt{}, false, err
		}
		child.Model, out.Warning, text = meta.Model, "", about.Directive()
	}
	if p.warning != "" {
		out.Warning = strings.TrimPrefix(out.Warning+"; "+p.warning, "; ")
	}
	if r.Sandbox == "require" && !s.o.Config.Sandboxed(meta) {
		return subagent.Receipt{}, false,
			chela.Errorf(chela.CodeForbidden, "the subagent would not be sandboxed, but sandbox is %q", r.Sandbox)
	}
	out.Child = child
	_, err = tx.Queue().Put(queue.Item{
		ID:        string(child.ID),
		Key:       "spawn:" + string(child.ID),
		Session:   child.Session,
		Kind:      queue.Message,
		State:     queue.Waiting,
		Created:   now,
		Origin:    chela.Origin{Kind: chela.OriginAgent, ID: string(r.Requester)},
		Principal: child.Principal,

		Parent:    r.Run,
		Root:      child.Root,
		Inbound:   chela.Inbound{Text: text, Time: now, Address: chela.Address{Channel: chela.LocalChannel}},
		Overrides: run.Overrides{Timeout: child.Timeout, Deliver: run.Delivery{Mode: run.DeliverNowhere}},
	})
	if err == nil {
		err = errors.Join(tx.Sessions().Put(meta), tx.Sessions().Append(meta.ID, p.history...), tx.Children().Put(child))
	}
	tx.Wake(store.Topic{Kind: store.TopicQueue, Session: child.Session})
	return out, err == nil, err
}

// handOver has a coding agent work in the session of a child. Its program has all rights of
// the person, so that only the owner's runs hand anything over, and none that is confined.
func (s *Spawner) handOver(m *session.Meta, parent session.Meta, c *subagent.Child,
	x session.External, once bool) error {
	switch {
	case !c.Principal.May(chela.ScopeOwnerTools):
		return chela.Errorf(chela.CodeForbidden,
			"only the owner may hand a task over to a coding agent, which runs with all rights of the owner")
	case s.o.Config.Sandboxed(parent) || m.Bounds.ReadOnly:
		return chela.Errorf(chela.CodeForbidden, "this session is confined, and a coding agent would not be")
	}
	x.By, x.Once = c.Principal.ID, once
	m.External, m.Model, m.Think, m.Prompt = &x, "", "", ""
	c.Model = acp.Provider + "/" + x.Agent
	return nil
}

// admitted is what the rights of a spawn were checked with.
type admitted struct {
	parent   session.Meta
	agent    chela.AgentID
	config   subagent.Config
	siblings int
	open     int // of the siblings
}

// admit returns an error if a session may not start a child.
func (s *Spawner) admit(sessions session.Reader, children subagent.Reader,
	r subagent.Request) (in admitted, err error) {
	if in.parent, err = withDepth(sessions, r.Requester); err != nil {
		return in, err
	}
	in.agent, in.config = cmp.Or(r.Agent, in.parent.Agent), s.o.Config.Subagents(in.parent.Agent)
	siblings, err := children.Of(r.Requester)
	if err != nil {
		return in, err
	}
	in.siblings = len(siblings)
	for _, c := range siblings {
		if c.Open() {
			in.open++
		}
	}
	return in, s.permitted(in.config, in.parent, in.agent, in.open, r)
}

// withDepth returns the session under the key, with its depth in the tree.
func withDepth(r session.Reader, key chela.SessionKey) (session.Meta, error) {
	m, err := session.Lookup(r, key)
	if err == nil {
		m.Bounds.Depth, err = session.DepthIn(r, m)
	}
	return m, err
}

// permitted returns why a session may not start a child.
func (s *Spawner) permitted(c subagent.Config, parent session.Meta, agent chela.AgentID, open int,
	r subagent.Request) error {
	switch depth := parent.Bounds.Depth; {
	case depth >= c.Depth():
		return &chela.Error{
			Code: chela.CodeForbidden,
			Message: fmt.Sprintf("a session at depth %d cannot start subagents: agents.defaults.subagents.maxSpawnDepth is %d",
				depth, c.Depth()),
		}
	case open >= c.Children():
		return chela.Errorf(chela.CodeForbidden,
			"%s of this session are running, and at most %d may (agents.defaults.subagents.maxChildrenPerAgent). "+
				"Wait for a result, or stop one", humanize.Many(open, "subagent"), c.Children())
	case r.Agent == "" && c.Requires():
		return chela.Errorf(chela.CodeInvalid, "agentId is required here (agents.defaults.subagents.requireAgentId)")
	case !s.o.Config.HasAgent(agent):
		return chela.Errorf(chela.CodeNotFound, "there is no agent %q", agent)
	case !c.Allows(parent.Agent, agent):
		return chela.Errorf(chela.CodeForbidden,
			"the agent %q may not be used for subagents of %q (agents.defaults.subagents.allowAgents)", agent, parent.Agent)
	case s.o.Config.Sandboxed(parent) &&
		!s.o.Config.Sandboxed(session.Meta{Key: parent.Key.Child(agent, uuid.NewString()), Agent: agent}):
		return chela.Errorf(chela.CodeForbidden, "this session is sandboxed, and a subagent of %q would not be", agent)
	}
	return nil
}

// model returns the model of a child, and a warning if it is not the requested one.
func (s *Spawner) model(c subagent.Config, agent chela.AgentID, asked, ofType string) (ref, warning string) {
	if asked != "" {
		err := s.o.Config.CheckModel(agent, asked)
		if err == nil {
			return asked, ""
		}
		warning = fmt.Sprintf("the model %q cannot be used (%v); the default model is used instead", asked, err)
	}
	for _, ref := range [...]string{ofType, string(c.Model)} {
		if ref != "" && s.o.Config.CheckModel(agent, ref) == nil {
			return ref, warning
		}
	}
	return "", warning
}

// sessionOf returns the session of a child, and what the child is told.
func sessionOf(c subagent.Config, parent session.Meta, child subagent.Child, kind subagent.Type, agent chela.AgentID,
	r subagent.Request) (session.Meta, subagent.Context) {
	m := session.Meta{
		Key:     child.Session,
		ID:      uuid.NewString(),
		Agent:   agent,
		Label:   child.Label,
		Title:   humanize.Truncate(secret.Mask(child.Task), subagent.MaxLabel),
		Created: child.Created,
		Started: child.Created,
		Updated: child.Created,
		Model:   child.Model,
		Think:   cmp.Or(r.Think, kind.Think, c.Think),
		Bounds:  parent.ForChild(agent, kind.Tools),
	}
	m.Bounds.Lane, m.Bounds.ReadOnly = Lane, m.Bounds.ReadOnly || kind.ReadOnly
	if m.Bounds.Folder = r.Folder; r.Folder == "" && agent == parent.Agent {
		m.Bounds.Folder = parent.Bounds.Folder
	}
	by := "the main agent"
	if parent.IsChild() {
		by = fmt.Sprintf("the subagent %q", parent.Label)
	}
	about := subagent.Context{
		Child:    child,
		Role:     c.RoleAt(m.Bounds.Depth),
		MaxDepth: c.Depth(),
		ByAgent:  by,
		Folder:   m.Bounds.Folder,
		Type:     kind.Prompt,
	}
	m.Prompt = about.Prompt()
	return m, about
}
