package profile

import (
	"cmp"
	"context"
	"slices"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/invoke"
)

// rules returns the rules about tools for a principal in a session.
func (g *Generation) rules(m session.Meta, model llm.Model, who chela.Principal) policy.Pipeline {
	return g.sessionRules(m, policy.Conversation{
		Provider:  model.Provider,
		Model:     model.ID,
		Sender:    sender(who),
		Sandboxed: g.isSandboxed(m),
		Depth:     m.Depth(),
		MaxDepth:  g.Settings.Subagents(m.Agent).Depth(),
	})
}

// sessionRules returns the rules about tools for a conversation in a session: those of
// its agent, and those of the agents from whose sessions it was started. A subagent of another
// agent has the rules of both, so that starting one gains nothing.
func (g *Generation) sessionRules(m session.Meta, c policy.Conversation) policy.Pipeline {
	chat := g.Settings.Chat(m.Bounds.Chat)
	if m.Bounds.Chat.Local() {
		chat = g.Settings.Chat(m.Address)
	}
	c.Chat, c.ChatKey = chat.Rules, chat.Key
	rules := g.pipeline(m.Agent, c)
	for _, id := range m.Bounds.Agents {
		rules = append(rules, g.pipeline(id, c)...)
	}
	return rules
}

// pipeline returns the rules about tools for a conversation of an agent.
func (g *Generation) pipeline(id chela.AgentID, c policy.Conversation) policy.Pipeline {
	a, key := g.Settings.Of(id)
	catalog := g.catalogs[id]
	rules := catalog.Pipeline(g.Settings.Tools.Config, a.Tools.Config, key, c)
	if box, at := g.Settings.Sandbox(id, g.home); c.Sandboxed && box.Access == sandbox.ReadOnly {
		rules = append(rules, policy.Step{Label: policy.Sandbox, Key: at + ".workspaceAccess", Deny: catalog.Writers()})
	}
	models := g.Settings.Tools.Exec.Patch.Models
	if len(models) == 0 || slices.Contains(models, c.Model) || slices.Contains(models, c.Provider+"/"+c.Model) {
		return rules
	}
	return append(rules,
		policy.Step{Label: "model", Key: "tools.exec.applyPatch.allowModels", Deny: catalog.Having(tool.PatchesFiles)})
}

// isSandboxed reports whether a session is sandboxed.
func (g *Generation) isSandboxed(m session.Meta) bool {
	c, _ := g.Settings.Sandbox(m.Agent, g.home)
	return c.Applies(sandboxKey(m, c))
}

// sender returns the sender on a channel, whose principal has the id
// channel:account:sender.
func sender(who chela.Principal) policy.Sender {
	s, ok := chela.ParseChannelSender(who.ID)
	if !ok {
		return policy.Sender{}
	}
	return policy.Sender{Channel: s.Channel, ID: s.ID}
}

// Rules returns the rules about tools for a run that a principal starts in a
// session, and the model that answers. Fields of c that are set are used instead
// of the session's.
func (g *Generation) Rules(ctx context.Context, who chela.Principal, key chela.SessionKey,
	c policy.Conversation) (policy.Pipeline, llm.Ref, error) {
	m, err := g.meta(ctx, key)
	if err != nil {
		return nil, llm.Ref{}, err
	}
	if c.Provider == "" {
		model := g.Model(m)
		c.Provider, c.Model = model.Provider, model.ID
	}
	if c.Sender == (policy.Sender{}) {
		c.Sender = sender(who)
	}
	c.Sandboxed = c.Sandboxed || g.isSandboxed(m)
	c.Depth, c.MaxDepth = cmp.Or(c.Depth, m.Depth()), cmp.Or(c.MaxDepth, g.Settings.Subagents(m.Agent).Depth())
	rules := g.sessionRules(m, c)
	for _, t := range m.Bounds.Tools {
		rules = append(rules, g.catalogs[key.Agent()].Limit("session", t.Allow, t.Deny))
	}
	return rules, llm.Ref{Provider: c.Provider, Model: c.Model}, nil
}

// Offered returns the tools of a run that a principal starts in a session.
func (g *Generation) Offered(ctx context.Context, who chela.Principal, key chela.SessionKey) ([]tool.Spec, error) {
	rules, _, err := g.Rules(ctx, who, key, policy.Conversation{})
	set, _ := invoke.Allowed(g.tools[key.Agent()], rules, who)
	return set.Specs(), err
}

// Scope returns the tools of a session outside of its runs, with the rules for a
// principal.
func (g *Generation) Scope(ctx context.Context, who chela.Principal, key chela.SessionKey) (invoke.Scope, error) {
	rules, _, err := g.Rules(ctx, who, key, policy.Conversation{})
	if err != nil {
		return invoke.Scope{}, err
	}
	m, err := g.meta(ctx, key)
	if err != nil {
		return invoke.Scope{}, err
	}
	dir, box := g.Workspace(key.Agent()), g.Sandbox(m)
	if err := g.makeFolder(box); err != nil {
		return invoke.Scope{}, err
	}
	if box != nil {
		dir, box = box.Workspace, g.elevate(m, box)(who)
	}
	return invoke.Scope{
		Env:     func() map[string]string { return g.SkillEnv(key.Agent()) },
		Agent:   key.Agent(),
		Dir:     dir,
		Folder:  m.Bounds.Folder,
		Sandbox: box,
		Private: !m.Shared(run.Run{}),
		Exec:    m.Exec.Within(m.Bounds.Exec),
		Tools:   g.tools[key.Agent()],
		Policy:  rules,
		Budget:  g.Settings.RunBudget(key.Agent()),
		Loop:    g.Settings.Tools.Loop,
	}, nil
}
