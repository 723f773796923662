package methods

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/app/model"
	"github.com/chela-ai/chela/internal/app/profile"
	"github.com/chela-ai/chela/internal/app/settings"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/failover"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/surface/method/agents"
	"github.com/chela-ai/chela/internal/surface/method/models"
	"github.com/chela-ai/chela/wire"
)

// agents returns the agents as clients see them, the default one first.
func (o *Options) agents() []agents.Agent {
	var out []agents.Agent
	g := o.Current.Load()
	for _, id := range g.Settings.Roster() {
		out = append(out, agent(g, id))
	}
	return out
}

// agent returns an agent as clients see it. Its name and emoji come from the
// configuration or, if that has none, from its workspace.
func agent(g *profile.Generation, id chela.AgentID) agents.Agent {
	set, _ := g.Settings.Of(id)
	main := g.Model(session.Meta{Agent: id})
	a := agents.Agent{
		ID: id, Name: string(id), Source: "default", Files: g.Folder(g.Workspace(id)), Model: main, Think: g.Think(id, main),
	}
	if id == chela.DefaultAgent {
		a.Name, a.Emoji = "Chela", "🦀"
	}
	if name, emoji := a.Files.Identity(); name != "" || emoji != "" {
		a.Name, a.Emoji, a.Source = cmp.Or(name, a.Name), cmp.Or(emoji, a.Emoji), "workspace"
	}
	if name := cmp.Or(set.Identity.Name, set.Name); name != "" || set.Identity.Emoji != "" {
		a.Name, a.Emoji, a.Source = cmp.Or(name, a.Name), cmp.Or(set.Identity.Emoji, a.Emoji), "config"
	}
	for _, f := range g.AgentModels(id).Fallbacks() {
		a.Fallbacks = append(a.Fallbacks, f.String())
	}
	_, err := os.Lstat(filepath.Join(a.Files.Dir(), ".git"))
	a.Git = err == nil
	return a
}

// catalog is what the methods about models work with.
func (o *Options) catalog() models.Options {
	return models.Options{
		Default: chela.DefaultAgent, Agent: o.Current.HasAgent,
		Catalog:   o.Current.Catalog,
		Main:      func() llm.Ref { ref, _ := o.Current.Load().Models.Default(); return ref },
		Think:     func(m llm.Model) llm.Level { return o.Current.Load().Think(chela.DefaultAgent, m) },
		Providers: o.providers,
		Status:    o.modelsStatus,
		Keys: func(provider string) (out []models.Key) {
			for _, c := range o.Current.Load().Models.Credentials(provider) {
				out = append(out, models.Key{ID: c.Key, Saved: c.Saved, Model: c.Model, Provider: c.Provider})
			}
			return out
		},
		Forget: o.removeKeys,
	}
}

// removeKeys removes saved keys of a provider. Runs that begin later do not use
// them.
func (o *Options) removeKeys(ctx context.Context, provider string, ids []string) ([]string, error) {
	removed, err := model.RemoveKeys(settings.KeyDir(o.State), provider, ids)
	o.Config.KeysChanged(context.WithoutCancel(ctx))
	return removed, err
}

// modelsStatus returns the default model, its fallbacks, and the keys with their
// cooldowns.
func (o *Options) modelsStatus() wire.ModelsStatus {
	g := o.Current.Load()
	g.Models.Probe(context.Background()) // has a short time limit of its own
	ref, why := g.Models.Default()
	out := wire.ModelsStatus{
		Default:   ref.String(),
		Reason:    why,
		Fallbacks: []string{},
		Aliases:   map[string]string{},
		Providers: []wire.ProviderStatus{},
	}
	for _, f := range g.Models.Fallbacks() {
		out.Fallbacks = append(out.Fallbacks, f.String())
	}
	for name, s := range g.Settings.Agent.Models {
		if s.Alias != "" {
			out.Aliases[s.Alias] = name
		}
	}
	cooldowns := g.Models.Cooldowns()
	for _, s := range g.Models.Providers() {
		w := wire.ProviderStatus{ID: s.ID, Ready: s.Err == nil, Keys: []wire.KeyStatus{}}
		if s.Err != nil {
			w.Error, w.Hint = s.Err.Error(), chela.HintOf(s.Err)
		}
		for _, id := range s.Keys {
			w.Keys = append(w.Keys, wire.KeyStatus{ID: id, Cooldowns: cooldownsOf(cooldowns, id)})
		}
		out.Providers = append(out.Providers, w)
	}
	return out
}

// cooldownsOf returns the cooldowns of one key.
func cooldownsOf(all map[failover.Target]failover.Cooldown, id string) []wire.KeyCooldown {
	var out []wire.KeyCooldown
	for target, c := range all {
		if target.Key == id {
			out = append(out, wire.KeyCooldown{Model: target.Model, Until: wire.At(c.Until), Reason: string(c.Reason)})
		}
	}
	slices.SortFunc(out, func(a, b wire.KeyCooldown) int { return strings.Compare(a.Model, b.Model) })
	return out
}

// providers returns the model providers and whether they can be used.
func (o *Options) providers() []models.Provider {
	set := o.Current.Load().Models
	set.Probe(context.Background()) // has a short time limit of its own
	var out []models.Provider
	for _, s := range set.Providers() {
		out = append(out, models.Provider{
			ID:    s.ID,
			Ready: s.Err == nil,
			Key:   s.Key,
			Env:   s.Env,
			From:  s.From,
			Known: s.Service,
			Local: s.Local,
		})
	}
	return out
}
