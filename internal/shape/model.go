package shape

import (
	"cmp"

	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/wire"
)

// Levels returns the thinking levels of a model; off is always one.
func Levels(m llm.Model) []wire.Level {
	out := []wire.Level{{ID: string(llm.Off), Label: string(llm.Off)}}
	for _, l := range m.Levels {
		if l != llm.Off {
			out = append(out, wire.Level{ID: string(l), Label: string(l)})
		}
	}
	return out
}

// Model returns a model as clients see it: think is the level of sessions that
// set none, and ready that its provider can be asked.
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
