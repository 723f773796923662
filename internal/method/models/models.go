// Package models is the methods that say which models there are, and which of
// their providers have a key.
package models

import (
	"context"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/internal/shape"
	"github.com/chela-ai/chela/wire"
)

// Options is what the methods work with. All fields are required.
type Options struct {
	Default chela.AgentID
	Agent   func(chela.AgentID) bool // whether there is such an agent

	Catalog func() llm.Catalog
	// Main returns the model that is asked when nobody chose.
	Main func() llm.Ref
	// Think is the thinking level of sessions that set none.
	Think func() llm.Level
	// Providers returns the providers, in the order in which they are shown.
	Providers func() []Provider
	// Status returns which model answers, and which keys rest.
	Status func() wire.ModelsStatus
	// Keys returns how a provider can be asked.
	Keys func(provider string) []Key
	// Forget takes saved keys of a provider away, all when there are no ids, and
	// returns the ids of what is gone. An id of nothing is chela.CodeInvalid.
	Forget func(ctx context.Context, provider string, ids []string) ([]string, error)
}

// Provider says whether a provider can be asked. Its key is not part of it.
type Provider struct {
	ID    string
	Ready bool // it can be asked: it has a key, or needs none
	Key   bool // it has a key
	Env   string
	From  string // where the key is: config, env, profile
	Known bool   // of a service that is known: a key is all it needs
}

// Methods returns the methods.
func Methods(o Options) []rpc.Method {
	const op = wire.RoleOperator
	return []rpc.Method{
		rpc.New(wire.MethodModelsList, op, chela.ScopeRead, o.list).
			Accepting("includeDetails", "includeProviderCapabilities", "preparedOnly", "refresh"),
		rpc.New(wire.MethodModelsStatus, op, chela.ScopeRead, func(context.Context, rpc.Peer, wire.None) (wire.ModelsStatus, error) {
			return o.Status(), nil
		}),
		rpc.New(wire.MethodModelsAuthStatus, op, chela.ScopeRead, o.auth).Accepting("refresh"),
		rpc.New(wire.MethodModelsProbe, op, chela.ScopeAdmin, o.probe).Works(),
		rpc.New(wire.MethodModelsLogout, op, chela.ScopeAdmin, o.logout),
	}
}

// views are what may be asked for.
var views = []string{"", wire.ModelsDefault, wire.ModelsConfigured, wire.ModelsProvider, wire.ModelsAll}

func (o Options) list(_ context.Context, _ rpc.Peer, in wire.ModelsGet) (wire.ModelsList, error) {
	const method = wire.MethodModelsList
	if !slices.Contains(views, in.View) {
		return wire.ModelsList{}, rpc.Invalid(method, "at /view: must be equal to one of the allowed values")
	}
	if err := o.known(method, in.AgentID, in.SessionKey); err != nil {
		return wire.ModelsList{}, err
	}
	return o.List(in.View == wire.ModelsAll), nil
}

// known returns an error when there is no such agent.
func (o Options) known(method, agent, session string) error {
	id, err := shape.AgentOf(agent, session, o.Default)
	if err != nil {
		return rpc.Invalid(method, "%v", err)
	}
	if !o.Agent(id) {
		return shape.UnknownAgent(id)
	}
	return nil
}

// Snapshot returns the models for a client that asked for them when it
// connected.
func (o Options) Snapshot(_ context.Context, s wire.ModelsScope) (wire.ModelsList, error) {
	if err := o.known(wire.MethodConnect, s.AgentID, s.SessionKey); err != nil {
		return wire.ModelsList{}, err
	}
	return o.List(false), nil
}

// List returns the models that can be asked now; with all set the others too.
// The one that is asked when nobody chose is among them and comes first.
func (o Options) List(all bool) wire.ModelsList {
	ready := map[string]bool{}
	for _, p := range o.Providers() {
		ready[p.ID] = p.Ready
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
		w := shape.Model(m, o.Think(), ready[m.Provider])
		w.Alias = aliases[m.Ref()]
		if i == 0 {
			w.Tags = []string{"default"}
		}
		out.Models = append(out.Models, w)
	}
	return out
}

func (o Options) auth(_ context.Context, _ rpc.Peer, in wire.ModelsAuthGet) (wire.ModelsAuth, error) {
	if in.AgentID != "" && !o.Agent(chela.AgentID(in.AgentID)) {
		return wire.ModelsAuth{}, shape.UnknownAgent(chela.AgentID(in.AgentID))
	}
	out := wire.ModelsAuth{Time: wire.At(time.Now()), Providers: []wire.ProviderAuth{}, Capabilities: []wire.ProviderCapability{}}
	for _, p := range o.Providers() {
		a := wire.ProviderAuth{Provider: p.ID, Auth: p.ID, Name: p.ID, Status: wire.AuthMissing, Profiles: []string{}}
		if p.Key {
			a.Key = &wire.KeyPlace{Source: p.From, Env: p.Env}
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
