// Package models implements the methods that list models and the credentials of
// their providers.
package models

import (
	"context"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/surface/rpc"
	"github.com/chela-ai/chela/internal/surface/wireview"
	"github.com/chela-ai/chela/wire"
)

// Options configures the methods. All fields are required.
type Options struct {
	Default chela.AgentID
	Agent   func(chela.AgentID) bool // reports whether the agent exists

	Catalog func() llm.Catalog
	// Main returns the default model.
	Main func() llm.Ref
	// Think returns the default thinking level of a model.
	Think func(llm.Model) llm.Level
	// Providers returns the providers in display order.
	Providers func() []Provider
	// Status returns the default model, its fallbacks and the keys on
	// cooldown.
	Status func() wire.ModelsStatus
	// Keys returns the keys of a provider.
	Keys func(provider string) []Key
	// Forget deletes saved keys of a provider, all if ids is empty, and
	// returns the ids deleted. An unknown id is chela.CodeInvalid.
	Forget func(ctx context.Context, provider string, ids []string) ([]string, error)
}

// Provider describes a provider, without its key.
type Provider struct {
	ID    string
	Ready bool // usable: it has a key or needs none
	Key   bool // it has a key
	Env   string
	From  string // where the key is stored: config, env, profile
	Known bool   // a known service that only needs a key
	Local *bool  // its models run on this machine; nil: unknown
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	const op = wire.RoleOperator
	return []rpc.Method{
		rpc.New(wire.MethodModelsList, op, chela.ScopeRead, o.list),
		rpc.New(wire.MethodModelsStatus, op, chela.ScopeRead,
			func(context.Context, rpc.Peer, wire.None) (wire.ModelsStatus, error) {
				return o.Status(), nil
			}),
		rpc.New(wire.MethodModelsAuthStatus, op, chela.ScopeRead, o.auth),
		rpc.New(wire.MethodModelsProbe, op, chela.ScopeAdmin, o.probe).StartsWork(),
		rpc.New(wire.MethodModelsLogout, op, chela.ScopeAdmin, o.logout),
	}
}

// views are the allowed views.
var views = []string{"", wire.ModelsDefault, wire.ModelsConfigured, wire.ModelsProvider, wire.ModelsAll}

func (o Options) list(_ context.Context, _ rpc.Peer, in wire.ModelsGet) (wire.ModelsList, error) {
	if !slices.Contains(views, in.View) {
		return wire.ModelsList{}, rpc.Invalid("at /view: must be equal to one of the allowed values")
	}
	if err := o.known(in.AgentID, in.SessionKey); err != nil {
		return wire.ModelsList{}, err
	}
	return o.List(in.View == wire.ModelsAll), nil
}

// known returns an error if the agent does not exist.
func (o Options) known(agent, session string) error {
	_, err := rpc.AgentOf(agent, session, o.Default, o.Agent)
	return err
}

// Snapshot returns the models for a client that requested them in connect.
func (o Options) Snapshot(_ context.Context, s wire.ModelsScope) (wire.ModelsList, error) {
	if err := o.known(s.AgentID, s.SessionKey); err != nil {
		return wire.ModelsList{}, err
	}
	return o.List(false), nil
}

// List returns the usable models, or all models. The default model is always
// included and comes first.
func (o Options) List(all bool) wire.ModelsList {
	ready, local := map[string]bool{}, map[string]*bool{}
	for _, p := range o.Providers() {
		ready[p.ID], local[p.ID] = p.Ready, p.Local
	}
	catalog, main := o.Catalog(), o.Main()
	aliases := map[string]string{}
	for alias, ref := range catalog.Aliases {
		if old, ok := aliases[ref]; !ok || alias < old {
			aliases[ref] = alias
		}
	}
	first, ok := catalog.Lookup(main.String())
	if !ok {
		first = llm.Model{Provider: main.Provider, ID: main.Model}
	}
	out := wire.ModelsList{Models: []wire.Model{}}
	for i, m := range slices.Concat([]llm.Model{first}, catalog.Models) {
		if m.ID == "" || i > 0 && (m.Ref() == first.Ref() || !all && (!ready[m.Provider] || !catalog.Allows(m))) {
			continue
		}
		w := wireview.Model(m, o.Think(m), ready[m.Provider])
		w.Alias, w.Local = aliases[m.Ref()], local[m.Provider]
		if i == 0 {
			w.Tags = []string{"default"}
		}
		out.Models = append(out.Models, w)
	}
	return out
}

func (o Options) auth(_ context.Context, _ rpc.Peer, in wire.ModelsAuthGet) (wire.ModelsAuth, error) {
	if in.AgentID != "" && !o.Agent(chela.AgentID(in.AgentID)) {
		return wire.ModelsAuth{}, rpc.UnknownAgent(chela.AgentID(in.AgentID))
	}
	out := wire.ModelsAuth{Time: wire.At(time.Now()), Providers: []wire.ProviderAuth{},
		Capabilities: []wire.ProviderCapability{}}
	for _, p := range o.Providers() {
		a := wire.ProviderAuth{Provider: p.ID, Auth: p.ID, Name: p.ID, Status: wire.AuthMissing, Profiles: []string{}}
		if p.Key {
			a.Key = &wire.KeySource{Source: p.From, Env: p.Env}
		}
		if p.Ready {
			a.Status = wire.AuthStatic
		}
		if p.Ready || p.Key {
			out.Providers = append(out.Providers, a)
		}
		out.Capabilities = append(out.Capabilities, wire.ProviderCapability{Provider: p.ID, Key: true, Quick: p.Known})
	}
	return out, nil
}
