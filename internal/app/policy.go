package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/invoke"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/policy"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/tool"
)

// rules are the rules about tools that hold for who in the session.
func (p *profiles) rules(m session.Meta, model llm.Model, who chela.Principal) policy.Pipeline {
	return p.pipeline(m.Agent, policy.Conversation{Provider: model.Provider, Model: model.ID, Sender: sender(who)})
}

// pipeline is the rules that hold for a conversation of an agent.
func (p *profiles) pipeline(id chela.AgentID, c policy.Conversation) policy.Pipeline {
	a, key := p.opts.Of(id)
	rules := policy.New(p.opts.Tools.Config, a.Tools.Config, key, c)
	models := p.opts.Tools.Exec.Patch.Models
	if len(models) == 0 || slices.Contains(models, c.Model) || slices.Contains(models, c.Provider+"/"+c.Model) {
		return rules
	}
	return append(rules, policy.Step{Label: "model", Key: "tools.exec.applyPatch.allowModels", Deny: []string{"apply_patch"}})
}

// sender is who a principal is on a channel: its id is channel:account:sender.
func sender(who chela.Principal) policy.Sender {
	parts := strings.SplitN(who.ID, ":", 3)
	if len(parts) < 3 {
		return policy.Sender{}
	}
	return policy.Sender{Channel: parts[0], ID: parts[2]}
}

// ask returns the rules for a run that who starts in the session, and the
// model that answers; what c says goes before what the session says.
func (p *profiles) ask(ctx context.Context, st store.Store, who chela.Principal, key chela.SessionKey, c policy.Conversation) (policy.Pipeline, llm.Ref, error) {
	var m session.Meta
	err := st.View(ctx, func(r store.Reader) error {
		var err error
		m, err = session.Lookup(r.Sessions(), key)
		return err
	})
	if err != nil {
		return nil, llm.Ref{}, fmt.Errorf("session %s: %w", key, err)
	}
	if c.Provider == "" {
		model := p.model(m)
		c.Provider, c.Model = model.Provider, model.ID
	}
	if c.Sender == (policy.Sender{}) {
		c.Sender = sender(who)
	}
	return p.pipeline(m.Agent, c), llm.Ref{Provider: c.Provider, Model: c.Model}, nil
}

// offered is the tools of a run that who starts in the session.
func (e *Engine) offered(ctx context.Context, who chela.Principal, key chela.SessionKey) ([]tool.Spec, error) {
	rules, _, err := e.now().ask(ctx, e.store, who, key, policy.Conversation{})
	set, _ := invoke.Offered(e.now().tools[key.Agent()], rules, who)
	return set.Specs(), err
}
