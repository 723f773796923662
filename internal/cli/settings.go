package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

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
	var edits []config.Edit
	for _, path := range slices.Sorted(maps.Keys(values)) {
		e := config.Edit{Path: path}
		if v := values[path]; v == nil && t.Section(path) == nil {
			continue // it is away already
		} else if v != nil {
			if e.Value, err = json.Marshal(v); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		edits = append(edits, e)
	}
	if len(edits) == 0 {
		return nil
	}
	return s.c.change(context.Background(), edits...)
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
