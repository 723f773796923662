package wireview

import (
	"cmp"

	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/wire"
)

// Levels returns the thinking levels of a model, always including off.
func Levels(m llm.Model) []wire.Level {
	out := []wire.Level{{ID: string(llm.Off), Label: string(llm.Off)}}
	for _, l := range m.Levels {
		if l != llm.Off {
			out = append(out, wire.Level{ID: string(l), Label: string(l)})
		}
	}
	return out
}

// Model returns a model; think is the default level, and ready says that its
// provider is usable.
func Model(m llm.Model, think llm.Level, ready bool) wire.Model {
	w := wire.Model{
		ID: m.ID, Name: cmp.Or(m.Name, m.ID), Provider: m.Provider, Context: m.Context, Reasoning: len(m.Levels) > 0,
		Available: ready, Levels: Levels(m), DefaultLevel: string(cmp.Or(think, llm.Off)), Input: []string{"text"},
	}
	if !ready {
		w.Unavailable = wire.MissingAuth
	}
	if m.Images {
		w.Input = append(w.Input, "image")
	}
	return w
}
