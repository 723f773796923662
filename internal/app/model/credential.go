package model

import (
	"slices"

	"github.com/chela-ai/chela/internal/core/llm"
)

// Credential is a key of a provider, with a model that can be used with it.
type Credential struct {
	Key      string // its id; that of the provider when it needs no key
	Saved    bool   // it is a saved key
	Model    llm.Model
	Provider llm.Provider
}

// Credentials returns the credentials of a provider; none when it cannot be used.
func (m *Set) Credentials(id string) []Credential {
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
	var out []Credential
	for _, k := range c.Keys {
		isSaved := slices.ContainsFunc(saved, func(s key) bool { return s.id == k.ID && s.from == inSaved })
		out = append(out, Credential{k.ID, isSaved, c.Model, k.Provider})
	}
	return out
}

// sample returns a model for a test of a provider: one that is in use, else the
// first known model.
func (m *Set) sample(id string) (llm.Ref, bool) {
	for _, r := range m.line() {
		if r.Provider == id {
			return r, true
		}
	}
	if own := m.o.Providers[id].Models; len(own) > 0 {
		return llm.Ref{Provider: id, Model: own[0].ID}, true
	}
	if s := serviceOf(id); s.model != "" {
		return llm.Ref{Provider: id, Model: s.model}, true
	}
	for _, k := range m.Catalog().Models {
		if k.Provider == id {
			return llm.Ref{Provider: id, Model: k.ID}, true
		}
	}
	return llm.Ref{}, false
}
