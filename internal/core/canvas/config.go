package canvas

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Folder is the folder of the pages in the workspace of an agent.
const Folder = "canvas"

// The variables of the environment that switch the canvas off. The second one is OpenClaw's.
const (
	SkipVar      = "CHELA_SKIP_CANVAS_HOST"
	SkipVarOlder = "OPENCLAW_SKIP_CANVAS_HOST"
)

// Config is canvasHost.
type Config struct {
	Enabled *bool  `json:"enabled"`    // nil: on
	Root    string `json:"root"`       // folder of the pages of all agents; "": Folder in the workspace of each
	Reload  *bool  `json:"liveReload"` // pages are loaded again when their files change; nil: they are

	skip bool // the environment switches it off
}

// ParseConfig decodes canvasHost. plugins is the section plugins, whose entry canvas is the
// newer place of the same settings; it wins where it says something.
func ParseConfig(host, plugins json.RawMessage) (Config, error) {
	var c Config
	if len(host) > 0 {
		if err := json.Unmarshal(host, &c); err != nil {
			return c, fmt.Errorf("configuration, canvasHost: %w", err)
		}
	}
	var p struct {
		Entries map[string]struct {
			Enabled *bool `json:"enabled"`
			Config  struct {
				Host Config `json:"host"`
			} `json:"config"`
		} `json:"entries"`
	}
	if len(plugins) > 0 {
		var only struct {
			Entries map[string]json.RawMessage `json:"entries"`
		}
		if err := json.Unmarshal(plugins, &only); err == nil && only.Entries["canvas"] != nil {
			wrapped, err := json.Marshal(map[string]any{"entries": map[string]json.RawMessage{"canvas": only.Entries["canvas"]}})
			if err == nil {
				err = json.Unmarshal(wrapped, &p)
			}
			if err != nil {
				return c, fmt.Errorf("configuration, plugins.entries.canvas: %w", err)
			}
		}
	}
	e := p.Entries["canvas"]
	if h := e.Config.Host; h.Enabled != nil {
		c.Enabled = h.Enabled
	}
	if h := e.Config.Host; h.Root != "" {
		c.Root = h.Root
	}
	if h := e.Config.Host; h.Reload != nil {
		c.Reload = h.Reload
	}
	if off := false; e.Enabled != nil && !*e.Enabled {
		c.Enabled = &off
	}
	return c, nil
}

// In returns c with what the environment says.
func (c Config) In(env func(string) string) Config {
	for _, name := range [...]string{SkipVar, SkipVarOlder} {
		switch strings.ToLower(strings.TrimSpace(env(name))) {
		case "", "0", "false", "no", "off":
		default:
			c.skip = true
		}
	}
	return c
}

// On reports whether there is a canvas.
func (c Config) On() bool { return !c.skip && (c.Enabled == nil || *c.Enabled) }

// Reloads reports whether pages are loaded again when their files change.
func (c Config) Reloads() bool { return c.Reload == nil || *c.Reload }
