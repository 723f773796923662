package app

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/method/agents"
	"github.com/chela-ai/chela/internal/method/models"
	"github.com/chela-ai/chela/internal/session"
)

// agents is what clients are told of the agents: there is one.
func (e *Engine) agents() []agents.Agent {
	a := agents.Agent{
		ID: chela.DefaultAgent, Name: "Chela", Source: "default", Emoji: "🦀",
		Files: e.profile.folder(e.profile.workspace(chela.DefaultAgent)),
		Model: e.profile.model(session.Meta{Agent: chela.DefaultAgent}), Think: llm.Level(e.profile.opts.Agent.Think),
	}
	if name, emoji := a.Files.Identity(); name != "" || emoji != "" {
		a.Name, a.Emoji, a.Source = cmp.Or(name, a.Name), cmp.Or(emoji, a.Emoji), "workspace"
	}
	_, err := os.Lstat(filepath.Join(a.Files.Dir(), ".git"))
	a.Git = err == nil
	return []agents.Agent{a}
}

// catalog is what clients are told of the models.
func (e *Engine) catalog() models.Options {
	return models.Options{
		Default: chela.DefaultAgent, Agent: func(id chela.AgentID) bool { return id == chela.DefaultAgent },
		Catalog:   func() llm.Catalog { return e.models.catalog },
		Main:      func() llm.Ref { return e.models.choice },
		Think:     llm.Level(e.profile.opts.Agent.Think),
		Providers: e.models.providers,
	}
}

// providers says which providers can be asked: those that are configured, the
// known services, the model server that was found on this machine and the
// built-in assistant.
func (m *modelSet) providers() []models.Provider {
	var ids []string
	for id := range sortedProviders(m.opts.Providers) {
		ids = append(ids, id)
	}
	for _, s := range services {
		ids = append(ids, s.id)
	}
	ids = append(ids, m.choice.Provider, offlineRef.Provider)
	var out []models.Provider
	for i, id := range ids {
		if slices.Index(ids, id) != i {
			continue
		}
		key, from := m.key(id)
		_, err := m.config(id)
		p := models.Provider{ID: id, Ready: err == nil, Key: !key.IsZero(), Known: needsKey(id)}
		switch {
		case from == fromConfig:
			p.From = "config"
		case from == fromSaved:
			p.From = "profile"
		case p.Key:
			p.From, p.Env = "env", from
		}
		out = append(out, p)
	}
	return out
}
