package allowlist

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/chela-ai/chela/internal/chela"
)

// Config is the part of tools.exec, for all agents or one, that says which
// commands run.
type Config struct {
	Mode     string             `json:"mode"`     // one word for the pair; see ParseMode
	Security string             `json:"security"` // deny, allowlist, full, or an older word
	Ask      wish               `json:"ask"`      // off, on-miss, always, or true
	SafeBins []string           `json:"safeBins"` // nil: DefaultBins
	Profiles map[string]Profile `json:"safeBinProfiles"`
	Dirs     []string           `json:"safeBinTrustedDirs"`
	Strict   *bool              `json:"strictInlineEval"`
}

// wish is a word or a boolean.
type wish struct{ v any }

// UnmarshalJSON reads any value.
func (w *wish) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &w.v) }

// set reports whether there is a wish. false is none.
func (w wish) set() bool { return w.v != nil && w.v != "" && w.v != false }

// Over returns what holds for an agent that says c, where all say o.
func (c Config) Over(o Config) Config {
	if c.Mode == "" {
		c.Mode, c.Security = o.Mode, cmp.Or(c.Security, o.Security)
		if !c.Ask.set() {
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

// Policy returns the policy that c says; base is what it leaves open. Of a mode
// and a pair the stricter holds.
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

// Check returns what is wrong with c, with the key that it is about.
func (c Config) Check() error {
	_, err := c.Policy(Default())
	for name, p := range c.Profiles {
		if p.Min < 0 || p.Max < p.Min {
			err = errors.Join(err, errors.New("safeBinProfiles."+name+": maxPositional is less than minPositional"))
		}
	}
	return err
}

// Bins returns the safe bins that c names.
func (c Config) Bins() Bins { return Bins{Names: c.SafeBins, Profiles: c.Profiles, Dirs: c.Dirs} }

// Rules joins c with what a document says for an agent.
func (c Config) Rules(base Policy, d *Document, id chela.AgentID, home string) (*Rules, error) {
	p, err := c.Policy(base)
	if err != nil {
		return nil, err
	}
	r := newRules(p, c.Bins(), d, id, home)
	r.StrictInline = c.Strict != nil && *c.Strict
	return r, nil
}
