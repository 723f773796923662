package app

import (
	"cmp"
	"os"
	"path/filepath"

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
		Catalog:   e.models.Catalog,
		Main:      func() llm.Ref { ref, _ := e.models.Default(); return ref },
		Think:     llm.Level(e.profile.opts.Agent.Think),
		Providers: e.providers,
	}
}

// providers says which providers can be asked.
func (e *Engine) providers() []models.Provider {
	var out []models.Provider
	for _, s := range e.models.Providers() {
		out = append(out, models.Provider{ID: s.ID, Ready: s.Err == nil, Key: s.Key, Env: s.Env, From: s.From, Known: s.Service})
	}
	return out
}
