package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/config"
)

// settings is the configuration and the keys, as commands of other packages
// change them.
type settings struct{ c *commands }

func (s settings) Section(path string) (json.RawMessage, error) {
	t, err := s.c.tree()
	if err != nil {
		return nil, err
	}
	return t.Section(path), nil
}

func (s settings) Set(values map[string]any) error {
	t, err := s.c.tree()
	if err != nil {
		return err
	}
	old := t
	for _, path := range slices.Sorted(maps.Keys(values)) {
		if t, err = set(t, path, values[path]); err != nil {
			return err
		}
	}
	if t != old {
		s.c.wrote(t)
	}
	return nil
}

// set writes one value, or takes it away.
func set(t *config.Tree, path string, value any) (*config.Tree, error) {
	if value == nil {
		next, err := t.Unset(path)
		if errors.Is(err, chela.ErrNotFound) {
			return t, nil
		}
		return next, err
	}
	b, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t.Set(path, b)
}

// Providers returns the providers that a model can be of.
func (s settings) Providers() ([]string, error) {
	t, err := s.c.tree()
	if err != nil {
		return nil, err
	}
	var of struct {
		Mode      string
		Providers map[string]json.RawMessage
	}
	if raw := t.Section("models"); raw != nil {
		if err := json.Unmarshal(raw, &of); err != nil {
			return nil, s.c.Hint(fmt.Errorf("models: %w", err), "config validate")
		}
	}
	names := slices.Sorted(maps.Keys(of.Providers))
	if of.Mode != "replace" {
		names = append(names, s.c.app.Providers...)
	}
	return names, nil
}

func (s settings) SaveKey(provider, name, key string) error {
	at, err := s.c.start()
	if err != nil {
		return err
	}
	return s.c.app.SaveKey(at, provider, name, key)
}
