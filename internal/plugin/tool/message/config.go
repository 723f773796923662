package message

import (
	"encoding/json"

	"github.com/chela-ai/chela/internal/core/action"
	"github.com/chela-ai/chela/internal/core/tool"
)

// Config is the section tools.message of the configuration.
type Config struct {
	CrossContext action.CrossContext `json:"crossContext"`
}

// Configured returns the tool for a section of the configuration. nil means
// the defaults.
func Configured(raw json.RawMessage, o Options) (tool.Tool, error) {
	var c Config
	if raw != nil {
		if err := json.Unmarshal(raw, &c); err != nil {
			return nil, err
		}
	}
	o.CrossContext = c.CrossContext
	return New(o), nil
}
