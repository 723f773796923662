package history

import (
	"encoding/json"
	"fmt"

	"github.com/chela-ai/chela/internal/core/store"
)

// readSetting decodes a setting that holds JSON. One that is not set leaves into unchanged.
func readSetting(r interface{ Setting(string) (string, error) }, name string, into any) error {
	text, err := r.Setting(name)
	if err != nil || text == "" {
		return err
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("setting %s: %w", name, err)
	}
	return nil
}

// writeSetting stores v as JSON in a setting. empty: the setting is removed.
func writeSetting(tx store.Tx, name string, v any, empty bool) error {
	if empty {
		return tx.SetSetting(name, "")
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return tx.SetSetting(name, string(b))
}
