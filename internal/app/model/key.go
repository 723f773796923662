package model

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/atomicfile"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// Sources of keys other than environment variables.
const (
	inConfig = "the configuration"
	inSaved  = "the saved keys"
	inOwn    = "the saved keys of the agent"
)

// key is a key of a provider.
type key struct {
	id    string // stable, and not secret: openai:OPENAI_API_KEY; cooldowns are stored under it
	value secret.Value
	from  string // inConfig, inSaved, or the name of the variable
}

// Keys returns the known keys of all providers.
func (m *Set) Keys() []secret.Value {
	var out []secret.Value
	saved := sync.OnceValue(m.saved)
	ids := m.ids()
	for _, s := range embedders {
		ids = append(ids, s.id)
	}
	for _, id := range ids {
		for _, k := range m.keysWith(id, saved) {
			out = append(out, k.value)
		}
	}
	return out
}

// maxNumbered is the highest number of a numbered variable.
const maxNumbered = 9

// keys returns the provider's keys: the agent's own, then the configured one, else
// those of the environment and then the saved ones.
func (m *Set) keys(id string) []key { return m.keysWith(id, m.saved) }

// keysWith is keys with a function that lists the files of saved keys.
func (m *Set) keysWith(id string, saved func() map[string][]string) []key {
	own := m.own(id)
	if len(own) == 0 {
		return m.shared(id, saved)
	}
	names := map[string]bool{} // of the keys that replace a shared one
	for _, file := range savedIn(m.o.Own)[id] {
		names[savedID(id, file)] = true
	}
	for _, k := range m.shared(id, saved) {
		if !names[k.id] && !slices.ContainsFunc(own, func(o key) bool { return o.value.Equal(k.value) }) {
			own = append(own, k)
		}
	}
	return own
}

// own returns the saved keys of the agent. Their ids differ from those of the shared
// ones, so that each has a cooldown of its own.
func (m *Set) own(id string) (out []key) {
	for _, file := range savedIn(m.o.Own)[id] {
		b, err := os.ReadFile(file)
		if v := secret.New(strings.TrimSpace(string(b))); err == nil && !v.IsZero() {
			out = append(out, key{savedID(id, file) + "@" + filepath.Base(m.o.Own), v, inOwn})
		}
	}
	return out
}

// shared returns the keys of all agents.
func (m *Set) shared(id string, saved func() map[string][]string) []key {
	// a variable that is not set remains in the text
	if v, err := m.o.Providers[id].APIKey.Resolve(m.o.Env); err == nil && !v.IsZero() &&
		!strings.Contains(v.Reveal(), "${") {
		return []key{{id + ":config", v, inConfig}}
	}
	var out []key
	add := func(keyID, text, from string) {
		v := secret.New(strings.TrimSpace(text))
		if !v.IsZero() && !slices.ContainsFunc(out, func(k key) bool { return k.value.Equal(v) }) {
			out = append(out, key{keyID, v, from})
		}
	}
	for _, name := range serviceOf(id).env {
		for i, text := range strings.FieldsFunc(m.o.Env(name+"S"),
			func(r rune) bool { return strings.ContainsRune(",; \n", r) }) {
			add(fmt.Sprintf("%s:%sS/%d", id, name, i+1), text, name+"S")
		}
		add(id+":"+name, m.o.Env(name), name)
		for i := 1; i <= maxNumbered; i++ {
			numbered := fmt.Sprintf("%s_%d", name, i)
			add(id+":"+numbered, m.o.Env(numbered), numbered)
		}
	}
	for _, file := range saved()[id] {
		if b, err := os.ReadFile(file); err == nil {
			add(savedID(id, file), string(b), inSaved)
		}
	}
	return out
}

// saved returns the files of saved keys by provider: ID.key, then ID.NAME.key in the
// order of the names.
func (m *Set) saved() map[string][]string { return savedIn(m.o.Keys) }

// savedIn is saved for a directory; "": there are none.
func savedIn(dir string) map[string][]string {
	if dir == "" {
		return nil
	}
	all := map[string][]string{}
	entries, _ := os.ReadDir(dir) // there may be none
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name(), ".key")
		if !ok {
			continue
		}
		id, _, named := strings.Cut(base, ".")
		at := 0
		if named {
			at = len(all[id])
		}
		all[id] = slices.Insert(all[id], at, filepath.Join(dir, e.Name()))
	}
	return all
}

// savedID returns the id of the saved key in a file.
func savedID(provider, file string) string {
	_, name, named := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".key"), ".")
	if !named {
		name = "default"
	}
	return provider + ":" + name
}

// first returns the provider's first key; the zero key: there is none.
func (m *Set) first(id string) key {
	if keys := m.keys(id); len(keys) > 0 {
		return keys[0]
	}
	return key{}
}

// SaveKey saves a key of a provider in dir, readable for its owner only. Keys with
// different names exist side by side.
func SaveKey(dir, provider, name, key string) error {
	if provider == "" || strings.ContainsAny(provider, "/\\.*?[") {
		return fmt.Errorf("provider %q: invalid name", provider)
	}
	if strings.ContainsAny(name, "/\\.*?[: ") {
		return fmt.Errorf("key %q: invalid name", name)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	file := provider + ".key"
	if name != "" {
		file = provider + "." + name + ".key"
	}
	return atomicfile.Write(filepath.Join(dir, file), []byte(strings.TrimSpace(key)+"\n"), 0o600)
}

// RemoveKeys removes the saved keys of a provider with the ids, or all of them when
// there are no ids, and returns the ids of the removed keys. When an id is not that of
// a saved key, nothing is removed.
func RemoveKeys(dir, provider string, ids []string) ([]string, error) {
	files := map[string]string{}
	for _, file := range savedIn(dir)[provider] {
		files[savedID(provider, file)] = file
	}
	if len(ids) == 0 {
		ids = slices.Sorted(maps.Keys(files))
	}
	for _, id := range ids {
		if files[id] == "" {
			return nil, chela.Errorf(chela.CodeInvalid, "there is no saved key %q", id)
		}
	}
	removed := []string{}
	for _, id := range ids {
		if slices.Contains(removed, id) {
			continue
		}
		if err := os.Remove(files[id]); err != nil {
			return removed, fmt.Errorf("key %s: %w", id, err)
		}
		removed = append(removed, id)
	}
	return removed, nil
}
