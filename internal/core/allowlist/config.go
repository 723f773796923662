package allowlist

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Config is the part of tools.exec, of all agents or of one, that decides
// which commands run.
type Config struct {
	Mode     string             `json:"mode"`     // sets security and ask together; see ParseMode
	Security string             `json:"security"` // deny, allowlist, full, or a legacy value
	Ask      askValue           `json:"ask"`      // off, on-miss, always, or true
	SafeBins []string           `json:"safeBins"` // nil: DefaultBins
	Profiles map[string]Profile `json:"safeBinProfiles"`
	Dirs     []string           `json:"safeBinTrustedDirs"`
	Strict   *bool              `json:"strictInlineEval"`
}

// askValue is a string or a boolean.
type askValue struct{ v any }

// UnmarshalJSON accepts any JSON value.
func (w *askValue) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &w.v) }

// isSet reports whether a value is given and not false.
func (w askValue) isSet() bool { return w.v != nil && w.v != "" && w.v != false }

// IsSet reports whether c says which commands run, or when a person is asked.
func (c Config) IsSet() bool { return c.Mode != "" || c.Security != "" || c.Ask.isSet() }

// WithDefaults returns the configuration of an agent, with settings it leaves
// open taken from o, the configuration of all agents.
func (c Config) WithDefaults(o Config) Config {
	if c.Mode == "" {
		c.Mode, c.Security = o.Mode, cmp.Or(c.Security, o.Security)
		if !c.Ask.isSet() {
			c.Ask = o.Ask
		}
	}
	if c.SafeBins == nil {
		c.SafeBins = o.SafeBins
	}
	if all := maps.Clone(o.Profiles); all != nil {
		maps.Copy(all, c.Profiles)
		c.Profiles = all
	}
	c.Dirs = slices.Concat(o.Dirs, c.Dirs)
	c.Strict = cmp.Or(c.Strict, o.Strict)
	return c
}

// Policy returns the policy of c. Settings that c leaves open are taken from
// base. If c has both a mode and security or ask, the stricter setting
// applies.
func (c Config) Policy(base Policy) (Policy, error) {
	p := base
	if c.Mode != "" {
		var err error
		if p, err = ParseMode(c.Mode); err != nil {
			return p, fmt.Errorf("mode: %w", err)
		}
	}
	pair, err := p.WithSecurity(c.Security)
	if err != nil {
		return p, fmt.Errorf("security: %w", err)
	}
	if pair, err = pair.WithAsk(c.Ask.v); err != nil {
		return p, fmt.Errorf("ask: %w", err)
	}
	if c.Mode != "" {
		return p.Stricter(pair), nil
	}
	return pair, nil
}

// Check returns an error for each invalid setting of c. The errors name the
// key.
func (c Config) Check() error {
	_, err := c.Policy(Default())
	for name, p := range c.Profiles {
		if p.Min < 0 || p.Max < p.Min {
			err = errors.Join(err, errors.New("safeBinProfiles."+name+": maxPositional is less than minPositional"))
		}
	}
	return err
}

// Bins returns the safe bins configured in c.
func (c Config) Bins() Bins { return Bins{Names: c.SafeBins, Profiles: c.Profiles, Dirs: c.Dirs} }

// Rules combines c with the document's rules for an agent.
func (c Config) Rules(base Policy, d *Document, id chela.AgentID, home string) (*Rules, error) {
	p, err := c.Policy(base)
	if err != nil {
		return nil, err
	}
	r := newRules(p, c.Bins(), d, id, home)
	r.StrictInline = c.Strict != nil && *c.Strict
	return r, nil
}
