package model

import (
	"slices"

	"github.com/chela-ai/chela/internal/llm"
)

// State says whether a provider can be asked. Its key is not part of it.
type State struct {
	ID      string
	Err     error    // why it cannot be asked; nil: it can
	Key     bool     // it has a key
	From    string   // where the key is: FromConfig, FromEnv, FromSaved
	Env     string   // the variable, FromEnv
	Where   string   // the same in words
	Keys    []string // the ids of its keys
	Service bool     // it is known: a key is all that it needs
}

// Where a key is.
const (
	FromConfig = "config"
	FromEnv    = "env"
	FromSaved  = "profile"
)

// Provider returns the state of a provider.
func (m *Set) Provider(id string) State {
	keys := m.keys(id)
	var first key // none: some need none
	if len(keys) > 0 {
		first = keys[0]
	}
	_, err := m.config(id, first)
	s := State{ID: id, Err: err, Key: len(keys) > 0, Where: first.from, Service: needsKey(id)}
	for _, k := range keys {
		s.Keys = append(s.Keys, k.id)
	}
	switch {
	case first.from == inConfig:
		s.From = FromConfig
	case first.from == inSaved:
		s.From = FromSaved
	case s.Key:
		s.From, s.Env = FromEnv, first.from
	}
	return s
}

// Providers returns the state of the providers.
func (m *Set) Providers() []State {
	var out []State
	for _, id := range m.ids() {
		out = append(out, m.Provider(id))
	}
	return out
}

// ids are the providers: those that are configured, the known services, the
// model servers that were found on this machine, and the built-in assistant.
func (m *Set) ids() []string {
	var ids []string
	for id := range sorted(m.o.Providers) {
		ids = append(ids, id)
	}
	for _, s := range services {
		ids = append(ids, s.id)
	}
	known := m.Catalog().Models
	for _, l := range locals {
		if slices.ContainsFunc(known, func(k llm.Model) bool { return k.Provider == l.id }) {
			ids = append(ids, l.id)
		}
	}
	ids = append(ids, m.choice.Provider, Offline.Provider)
	var out []string
	for _, id := range ids {
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}
