package browser

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/egress"
)

// DefaultProfile is the profile that is used if neither a call nor the configuration
// names one. OpenClaw's name for it is accepted, too.
const DefaultProfile = "chela"

const openclawProfile = "openclaw"

// Config is the section browser of the configuration.
type Config struct {
	Enabled    *bool              `json:"enabled"` // nil: true
	Headless   *bool              `json:"headless"`
	NoSandbox  bool               `json:"noSandbox"`
	Executable string             `json:"executablePath"`
	ExtraArgs  []string           `json:"extraArgs"`
	Evaluate   *bool              `json:"evaluateEnabled"` // nil: true
	Default    string             `json:"defaultProfile"`
	Profiles   map[string]Profile `json:"profiles"`
	AttachOnly bool               `json:"attachOnly"`
	Policy     struct {
		Private  bool     `json:"dangerouslyAllowPrivateNetwork"`
		Private2 bool     `json:"allowPrivateNetwork"`
		Hosts    []string `json:"allowedHostnames"` // host names or networks
		Blocked  []string `json:"blockedHostnames"` // host names
	} `json:"ssrfPolicy"`
	Cleanup struct {
		Enabled *bool    `json:"enabled"`           // nil: true
		Minutes *float64 `json:"idleMinutes"`       // nil: 15
		Tabs    *int     `json:"maxTabsPerSession"` // nil: 8
	} `json:"tabCleanup"`
	Snapshot struct {
		Mode string `json:"mode"`
	} `json:"snapshotDefaults"`
}

// Profile is a profile of the configuration.
type Profile struct {
	URL        string `json:"cdpUrl"`
	UserData   string `json:"userDataDir"`
	Executable string `json:"executablePath"`
	Headless   *bool  `json:"headless"`
	Driver     string `json:"driver"`
}

const (
	defaultIdle = 15 * time.Minute
	defaultTabs = 8
	maxTabs     = 64 // of a browser
)

// ParseConfig reads the section (nil: the defaults).
func ParseConfig(raw json.RawMessage) (Config, error) {
	var c Config
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &c); err != nil {
			return c, err
		}
	}
	for _, arg := range c.ExtraArgs {
		if name := reserved(arg); name != "" {
			return c, fmt.Errorf("extraArgs: %s is set by Chela and cannot be changed", name)
		}
	}
	if c.Snapshot.Mode != "" && c.Snapshot.Mode != efficient {
		return c, fmt.Errorf("snapshotDefaults.mode: %q is unknown; want %q", c.Snapshot.Mode, efficient)
	}
	profiles := map[string]Profile{}
	for name, p := range c.Profiles {
		if !validProfile(name) {
			return c, fmt.Errorf("profiles: %q is no name; use lower case letters, digits and dashes", name)
		}
		name = canonical(name)
		if _, taken := profiles[name]; taken {
			return c, fmt.Errorf("profiles: %s and %s are the same", DefaultProfile, openclawProfile)
		}
		profiles[name] = p
	}
	c.Profiles = profiles
	return c, nil
}

var profileName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`) })

func validProfile(name string) bool { return profileName().MatchString(name) }

// canonical returns the name under which a profile is known.
func canonical(name string) string {
	if name == openclawProfile {
		return DefaultProfile
	}
	return name
}

// On reports whether the tool is offered.
func (c *Config) On() bool { return c.Enabled == nil || *c.Enabled }

// evaluates reports whether scripts may be run in pages.
func (c *Config) evaluates() bool { return c.Evaluate == nil || *c.Evaluate }

// idle returns the time after which an unused tab is closed, and a browser without tabs
// stopped; 0: never.
func (c *Config) idle() time.Duration {
	switch {
	case c.Cleanup.Enabled != nil && !*c.Cleanup.Enabled:
		return 0
	case c.Cleanup.Minutes == nil:
		return defaultIdle
	}
	return time.Duration(max(0, *c.Cleanup.Minutes) * float64(time.Minute))
}

// tabs returns how many tabs a session may have.
func (c *Config) tabs() int {
	n := defaultTabs
	if c.Cleanup.Tabs != nil && *c.Cleanup.Tabs > 0 {
		n = *c.Cleanup.Tabs
	}
	return min(n, maxTabs)
}

// profile returns a profile by name ("": the default one).
func (c *Config) profile(name string) (string, Profile, error) {
	name = canonical(cmp.Or(name, c.Default, DefaultProfile))
	p, ok := c.Profiles[name]
	switch {
	case !ok && name != DefaultProfile:
		return name, p, fmt.Errorf("there is no browser profile %q; there are: %s", name, strings.Join(c.names(), ", "))
	case p.Driver == "existing-session" || p.Driver == "extension":
		return name, p,
			fmt.Errorf("browser profile %s: the driver %s is not supported yet; use a profile that Chela manages: %s", name,
				p.Driver, DefaultProfile)
	case p.URL != "":
		return name, p, fmt.Errorf("browser profile %s: cdpUrl is not supported yet; remove it, and Chela starts a browser: chela config unset browser.profiles.%s.cdpUrl", name, name)
	case c.AttachOnly:
		return name, p,
			fmt.Errorf("browser profile %s: browser.attachOnly is set, so that no browser is started, and the profile has no cdpUrl", name)
	}
	if p.Executable == "" {
		p.Executable = c.Executable
	}
	if p.Headless == nil {
		p.Headless = c.Headless
	}
	return name, p, nil
}

// names returns the names of the profiles, sorted.
func (c *Config) names() []string {
	names := slices.Collect(maps.Keys(c.Profiles))
	if !slices.Contains(names, DefaultProfile) {
		names = append(names, DefaultProfile)
	}
	slices.Sort(names)
	return names
}

// same reports whether a browser that runs need not be started anew.
func (c *Config) same(o *Config) bool {
	launch := func(c *Config) any {
		return []any{c.Headless, c.NoSandbox, c.Executable, c.ExtraArgs, c.Profiles, c.AttachOnly, c.Policy}
	}
	return reflect.DeepEqual(launch(c), launch(o))
}

// policy returns the addresses that pages may reach.
func (c *Config) policy() egress.Policy {
	p := egress.Policy{Private: c.Policy.Private || c.Policy.Private2}
	for _, h := range c.Policy.Hosts {
		if network, err := netip.ParsePrefix(h); err == nil {
			p.Networks = append(p.Networks, network)
		} else {
			p.Hosts = append(p.Hosts, h)
		}
	}
	return p
}
