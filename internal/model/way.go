package model

import (
	"slices"

	"github.com/chela-ai/chela/internal/llm"
)

// Way is one of a provider's keys, with a model that can be asked under it.
type Way struct {
	Key      string // its id; of a provider that needs none, the provider's
	Saved    bool   // it is one that was saved
	Model    llm.Model
	Provider llm.Provider
}

// Ways returns how a provider can be asked; none when it cannot be.
func (m *Set) Ways(id string) []Way {
	ref, ok := m.sample(id)
	if !ok {
		return nil
	}
	saved := m.keys(id)
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.candidateLocked(ref)
	if c.Err != nil {
		return nil
	}
	var out []Way
	for _, k := range c.Keys {
		kept := slices.ContainsFunc(saved, func(s key) bool { return s.id == k.ID && s.from == inSaved })
		out = append(out, Way{k.ID, kept, c.Model, k.Provider})
	}
	return out
}

// sample returns the model that a provider is tried with: one that is in use,
// else the first that is known of it.
func (m *Set) sample(id string) (llm.Ref, bool) {
	for _, r := range m.line() {
		if r.Provider == id {
			return r, true
		}
	}
	if own := m.o.Providers[id].Models; len(own) > 0 {
		return llm.Ref{Provider: id, Model: own[0].ID}, true
	}
	for _, s := range services {
		if s.id == id {
			return llm.Ref{Provider: id, Model: s.model}, true
		}
	}
	for _, k := range m.Catalog().Models {
		if k.Provider == id {
			return llm.Ref{Provider: id, Model: k.ID}, true
		}
	}
	return llm.Ref{}, false
}
