package app

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/llm/failover"
	"github.com/chela-ai/chela/internal/method/agents"
	"github.com/chela-ai/chela/internal/method/models"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/wire"
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
		Status:    e.modelsStatus,
	}
}

// modelsStatus says which model answers, which do when it does not, and which
// keys rest.
func (e *Engine) modelsStatus() wire.ModelsStatus {
	e.models.Look(context.Background()) // it does not wait long
	ref, why := e.models.Default()
	out := wire.ModelsStatus{
		Default: ref.String(), Reason: why, Fallbacks: []string{}, Aliases: map[string]string{}, Providers: []wire.ProviderStatus{},
	}
	for _, f := range e.models.Fallbacks() {
		out.Fallbacks = append(out.Fallbacks, f.String())
	}
	for name, s := range e.profile.opts.Agent.Models {
		if s.Alias != "" {
			out.Aliases[s.Alias] = name
		}
	}
	rests := e.models.Rests()
	for _, s := range e.models.Providers() {
		p := wire.ProviderStatus{ID: s.ID, Ready: s.Err == nil, Keys: []wire.KeyStatus{}}
		if s.Err != nil {
			p.Error, p.Hint = s.Err.Error(), chela.HintOf(s.Err)
		}
		for _, id := range s.Keys {
			p.Keys = append(p.Keys, wire.KeyStatus{ID: id, Rests: restsOf(rests, id)})
		}
		out.Providers = append(out.Providers, p)
	}
	return out
}

// restsOf returns the rests of one key.
func restsOf(rests map[failover.Place]failover.Rest, id string) []wire.KeyRest {
	var out []wire.KeyRest
	for place, r := range rests {
		if place.Key == id {
			out = append(out, wire.KeyRest{Model: place.Model, Until: wire.At(r.Until), Reason: string(r.Reason)})
		}
	}
	slices.SortFunc(out, func(a, b wire.KeyRest) int { return strings.Compare(a.Model, b.Model) })
	return out
}

// providers says which providers can be asked.
func (e *Engine) providers() []models.Provider {
	e.models.Look(context.Background()) // it does not wait long
	var out []models.Provider
	for _, s := range e.models.Providers() {
		out = append(out, models.Provider{ID: s.ID, Ready: s.Err == nil, Key: s.Key, Env: s.Env, From: s.From, Known: s.Service})
	}
	return out
}
