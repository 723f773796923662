package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/chela-ai/chela/internal/chela"
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

func (s settings) Set(path string, value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	t, err := s.c.tree()
	if err != nil {
		return err
	}
	next, err := t.Set(path, b)
	if err != nil {
		return err
	}
	s.c.wrote(next)
	return nil
}

func (s settings) Unset(path string) error {
	t, err := s.c.tree()
	if err != nil {
		return err
	}
	next, err := t.Unset(path)
	switch {
	case errors.Is(err, chela.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	s.c.wrote(next)
	return nil
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
