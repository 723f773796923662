package model

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/chela-ai/chela/internal/secret"
)

// Where a key was found, unless in a variable.
const (
	inConfig = "the configuration"
	inSaved  = "the saved keys"
)

// Keys returns the keys of providers that are known.
func (m *Set) Keys() []secret.Value {
	var out []secret.Value
	for _, s := range services {
		key, _ := m.key(s.id)
		out = append(out, key)
	}
	for id := range m.o.Providers {
		key, _ := m.key(id)
		out = append(out, key)
	}
	return out
}

// key returns the provider's key and where it was found; empty: nowhere.
func (m *Set) key(id string) (secret.Value, string) {
	// A variable that is not set stays in the text as it was written.
	if v, err := m.o.Providers[id].APIKey.Resolve(m.o.Env); err == nil && !v.IsZero() && !strings.Contains(v.Reveal(), "${") {
		return v, inConfig
	}
	for _, s := range services {
		if s.id != id {
			continue
		}
		for _, name := range s.env {
			if v := m.o.Env(name); v != "" {
				return secret.New(v), name
			}
		}
	}
	if b, err := os.ReadFile(filepath.Join(m.o.Keys, id+".key")); err == nil {
		if v := strings.TrimSpace(string(b)); v != "" {
			return secret.New(v), inSaved
		}
	}
	return secret.Value{}, ""
}
