package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/chela-ai/chela/internal/core/config"
)

// section returns the configured JSON value at a path; nil if none is set.
func (c *commands) section(path string) (json.RawMessage, error) {
	t, err := c.tree()
	if err != nil {
		return nil, err
	}
	return t.Section(path), nil
}

// setValues changes values of the configuration, by their paths, and prints
// what was changed. A nil value removes the setting.
func (c *commands) setValues(ctx context.Context, values map[string]any) error {
	t, err := c.tree()
	if err != nil {
		return err
	}
	var edits []config.Edit
	for _, path := range slices.Sorted(maps.Keys(values)) {
		e := config.Edit{Path: path}
		if v := values[path]; v == nil && t.Section(path) == nil {
			continue // not set
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
	return c.change(ctx, edits...)
}

// providers returns the known and the configured model providers.
func (c *commands) providers() ([]string, error) {
	t, err := c.tree()
	if err != nil {
		return nil, err
	}
	var section struct {
		Mode      string
		Providers map[string]json.RawMessage
	}
	if raw := t.Section("models"); raw != nil {
		if err := json.Unmarshal(raw, &section); err != nil {
			return nil, c.suggest(fmt.Errorf("models: %w", err), "config validate")
		}
	}
	names := slices.Sorted(maps.Keys(section.Providers))
	if section.Mode != "replace" {
		names = append(names, c.app.Providers...)
	}
	return names, nil
}
