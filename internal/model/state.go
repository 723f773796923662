package model

import "slices"

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
	_, err := m.config(id, m.first(id))
	s := State{ID: id, Err: err, Key: len(keys) > 0, Service: needsKey(id)}
	for _, k := range keys {
		s.Keys = append(s.Keys, k.id)
	}
	from := m.first(id).from
	s.Where = from
	switch {
	case from == inConfig:
		s.From = FromConfig
	case from == inSaved:
		s.From = FromSaved
	case s.Key:
		s.From, s.Env = FromEnv, from
	}
	return s
}

// Providers returns the state of the providers: those that are configured, the
// known services, the model server that was found on this machine, and the
// built-in assistant.
func (m *Set) Providers() []State {
	var ids []string
	for id := range sorted(m.o.Providers) {
		ids = append(ids, id)
	}
	for _, s := range services {
		ids = append(ids, s.id)
	}
	ids = append(ids, m.choice.Provider, Offline.Provider)
	var out []State
	for i, id := range ids {
		if slices.Index(ids, id) == i {
			out = append(out, m.Provider(id))
		}
	}
	return out
}
