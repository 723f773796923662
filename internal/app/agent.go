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
	"github.com/chela-ai/chela/internal/model"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/wire"
)

// agents is what clients are told of the agents, the default one first.
func (e *Engine) agents() []agents.Agent {
	var out []agents.Agent
	for _, id := range e.now().opts.Roster() {
		out = append(out, e.now().agent(id))
	}
	return out
}

// agent is what clients are told of one. What the configuration says of who it
// is goes before what its workspace says.
func (p *profiles) agent(id chela.AgentID) agents.Agent {
	said, _ := p.opts.Of(id)
	a := agents.Agent{
		ID: id, Name: string(id), Source: "default", Files: p.folder(p.workspace(id)),
		Model: p.model(session.Meta{Agent: id}), Think: llm.Level(said.Think),
	}
	if id == chela.DefaultAgent {
		a.Name, a.Emoji = "Chela", "🦀"
	}
	if name, emoji := a.Files.Identity(); name != "" || emoji != "" {
		a.Name, a.Emoji, a.Source = cmp.Or(name, a.Name), cmp.Or(emoji, a.Emoji), "workspace"
	}
	if name := cmp.Or(said.Identity.Name, said.Name); name != "" || said.Identity.Emoji != "" {
		a.Name, a.Emoji, a.Source = cmp.Or(name, a.Name), cmp.Or(said.Identity.Emoji, a.Emoji), "config"
	}
	for _, f := range p.voice(id).Fallbacks() {
		a.Fallbacks = append(a.Fallbacks, f.String())
	}
	_, err := os.Lstat(filepath.Join(a.Files.Dir(), ".git"))
	a.Git = err == nil
	return a
}

// catalog is what clients are told of the models.
func (e *Engine) catalog() models.Options {
	return models.Options{
		Default: chela.DefaultAgent, Agent: e.knows,
		Catalog:   func() llm.Catalog { return e.now().models.Catalog() },
		Main:      func() llm.Ref { ref, _ := e.now().models.Default(); return ref },
		Think:     func() llm.Level { return llm.Level(e.now().opts.Agent.Think) },
		Providers: e.providers,
		Status:    e.modelsStatus,
		Keys: func(provider string) (out []models.Key) {
			for _, w := range e.now().models.Ways(provider) {
				out = append(out, models.Key{ID: w.Key, Saved: w.Saved, Model: w.Model, Provider: w.Provider})
			}
			return out
		},
		Forget: e.forget,
	}
}

// forget takes saved keys of a provider away; the next run does without them.
func (e *Engine) forget(ctx context.Context, provider string, ids []string) ([]string, error) {
	gone, err := model.RemoveKeys(keyDir(e.o.State), provider, ids)
	if e.tree() != nil {
		e.reread(context.WithoutCancel(ctx))
	}
	return gone, err
}

// modelsStatus says which model answers, which do when it does not, and which
// keys rest.
func (e *Engine) modelsStatus() wire.ModelsStatus {
	p := e.now()
	p.models.Look(context.Background()) // it does not wait long
	ref, why := p.models.Default()
	out := wire.ModelsStatus{
		Default: ref.String(), Reason: why, Fallbacks: []string{}, Aliases: map[string]string{}, Providers: []wire.ProviderStatus{},
	}
	for _, f := range p.models.Fallbacks() {
		out.Fallbacks = append(out.Fallbacks, f.String())
	}
	for name, s := range p.opts.Agent.Models {
		if s.Alias != "" {
			out.Aliases[s.Alias] = name
		}
	}
	rests := p.models.Rests()
	for _, s := range p.models.Providers() {
		w := wire.ProviderStatus{ID: s.ID, Ready: s.Err == nil, Keys: []wire.KeyStatus{}}
		if s.Err != nil {
			w.Error, w.Hint = s.Err.Error(), chela.HintOf(s.Err)
		}
		for _, id := range s.Keys {
			w.Keys = append(w.Keys, wire.KeyStatus{ID: id, Rests: restsOf(rests, id)})
		}
		out.Providers = append(out.Providers, w)
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
	set := e.now().models
	set.Look(context.Background()) // it does not wait long
	var out []models.Provider
	for _, s := range set.Providers() {
		out = append(out, models.Provider{ID: s.ID, Ready: s.Err == nil, Key: s.Key, Env: s.Env, From: s.From, Known: s.Service})
	}
	return out
}
