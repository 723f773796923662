package exec

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/chela-ai/chela/internal/core/tool"
)

// Config is the section tools.exec of the configuration, without the rules
// for commands, which package allowlist reads.
type Config struct {
	TimeoutSeconds    int      `json:"timeoutSeconds"`
	TimeoutSec        int      `json:"timeoutSec"` // other name of TimeoutSeconds, which takes precedence
	Host              string   `json:"host"`
	Node              string   `json:"node"`
	Sandbox           bool     `json:"sandbox"` // same as host sandbox
	MaxOutput         int      `json:"maxOutputChars"`
	DangerousPatterns []string `json:"dangerousPatterns"`
	PathPrepend       []string `json:"pathPrepend"`
	BackgroundMS      int      `json:"backgroundMs"`
	CleanupMS         int      `json:"cleanupMs"`
	Notify            *bool    `json:"notifyOnExit"` // nil: yes
	NotifyQuiet       bool     `json:"notifyOnExitEmptySuccess"`
}

// ParseConfig decodes the section. nil means the defaults.
func ParseConfig(raw json.RawMessage) (c Config, err error) {
	if raw != nil {
		err = json.Unmarshal(raw, &c)
	}
	return c, err
}

// Options returns o with the settings of the configuration.
func (c Config) Options(o Options) Options {
	o.MaxTimeout = time.Duration(cmp.Or(c.TimeoutSeconds, c.TimeoutSec)) * time.Second
	o.Yield = time.Duration(c.BackgroundMS) * time.Millisecond
	o.Node = c.Node
	if o.Host = c.Host; c.Sandbox {
		o.Host = "sandbox"
	}
	o.MaxOutput, o.DangerousPatterns, o.PathPrepend = c.MaxOutput, c.DangerousPatterns, c.PathPrepend
	return o
}

// CommandOptions returns o with the settings for background commands.
func (c Config) CommandOptions(o CommandOptions) CommandOptions {
	o.TTL, o.NotifySilent = time.Duration(c.CleanupMS)*time.Millisecond, c.NotifyQuiet
	if c.Notify != nil && !*c.Notify {
		o.Defer = nil
	}
	return o
}

// Configured returns the tool for a section of the configuration.
func Configured(raw json.RawMessage, o Options) (tool.Tool, error) {
	c, err := ParseConfig(raw)
	if err != nil {
		return nil, err
	}
	return New(c.Options(o))
}
