// Package models is the method that says which models can be asked.
package models

import (
	"cmp"
	"context"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/rpc"
	"github.com/chela-ai/chela/wire"
)

// Options is what the method works with.
type Options struct {
	// List returns the models that can be asked, and the name
	// (provider/model) of the one that is asked when nobody chose.
	List func(context.Context) (all []llm.Model, main string, err error)
}

// Methods returns the method.
func Methods(o Options) []rpc.Method {
	list := func(ctx context.Context, _ rpc.Peer, _ wire.ModelsGet) (wire.ModelsList, error) {
		all, main, err := o.List(ctx)
		out := wire.ModelsList{Models: []wire.Model{}}
		for _, m := range all {
			out.Models = append(out.Models, model(m, main))
		}
		return out, err
	}
	return []rpc.Method{
		rpc.New(wire.MethodModelsList, wire.RoleOperator, chela.ScopeRead, list).
			Accepting("view", "includeDetails", "preparedOnly", "refresh"),
	}
}

func model(m llm.Model, main string) wire.Model {
	w := wire.Model{
		ID: m.ID, Name: cmp.Or(m.Name, m.ID), Provider: m.Provider, Context: m.Context,
		Reasoning: len(m.Levels) > 0, Available: true, Levels: []wire.Level{{ID: string(llm.Off), Label: string(llm.Off)}},
	}
	for _, l := range m.Levels {
		if l != llm.Off {
			w.Levels = append(w.Levels, wire.Level{ID: string(l), Label: string(l)})
		}
	}
	if m.Ref() == main {
		w.Tags = []string{"default"}
	}
	if p := m.Price; p != nil {
		w.Cost = &wire.Price{Input: p.Input, Output: p.Output, CacheRead: p.CacheRead, CacheWrite: p.CacheWrite}
	}
	return w
}
