package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Rules are the tool rules of one section of the configuration.
type Rules struct {
	Profile   string   `json:"profile"`
	Allow     []string `json:"allow"`
	AlsoAllow []string `json:"alsoAllow"` // in addition to the profile
	Deny      []string `json:"deny"`
}

// Config is the section tools, or agents.<id>.tools.
type Config struct {
	Rules
	ByProvider map[string]Rules `json:"byProvider"` // key: provider, or provider/model
	BySender   map[string]Rules `json:"toolsBySender"`
	Sandbox    struct {
		Tools Rules `json:"tools"`
	} `json:"sandbox"`
	Subagents struct {
		Tools Rules `json:"tools"`
	} `json:"subagents"`
}

// ChatRules are the tool rules of a chat's configuration.
type ChatRules struct {
	Tools    *Rules           `json:"tools"`
	BySender map[string]Rules `json:"toolsBySender"`
}

// Check returns the errors in the rules. key is the section's path.
func (c Config) Check(key string) error {
	errs := []error{c.Rules.check(key), c.Sandbox.Tools.check(key + ".sandbox.tools"),
		c.Subagents.Tools.check(key + ".subagents.tools")}
	for p, r := range c.ByProvider {
		errs = append(errs, r.check(key+".byProvider."+p))
	}
	for s, r := range c.BySender {
		errs = append(errs, r.check(key+".toolsBySender."+s))
	}
	return errors.Join(errs...)
}

func (r Rules) check(key string) error {
	if len(r.Allow) > 0 && len(r.AlsoAllow) > 0 {
		return fmt.Errorf(
			"%[1]s.allow and %[1]s.alsoAllow are mutually exclusive: allow lists all tools, alsoAllow adds to a profile", key)
	}
	if p := r.profile(); p != "" && !slices.Contains(Profiles(), p) {
		return fmt.Errorf("%s.profile: %q is not one of %s", key, r.Profile, strings.Join(Profiles(), ", "))
	}
	return nil
}

func (r Rules) profile() string { return strings.ToLower(strings.TrimSpace(r.Profile)) }

// Sender is the author of a message on a channel.
type Sender struct {
	Channel  string // telegram, …
	ID       string // on the platform
	Phone    string // E.164
	Username string
	Name     string
}

// of returns the rules for the sender and the matching entry, the most specific
// one.
func (s Sender) of(rules map[string]Rules) (Rules, string, bool) {
	if len(rules) == 0 {
		return Rules{}, "", false
	}
	for _, key := range []struct{ prefix, value string }{
		{"channel:" + s.Channel + ":", s.ID}, {s.Channel + ":", s.ID}, {"id:", s.ID}, {"", s.ID}, {"e164:", s.Phone},
		{"username:", strings.TrimPrefix(s.Username, "@")}, {"name:", s.Name},
	} {
		if key.value == "" {
			continue
		}
		if name, ok := entry(rules, key.prefix+key.value); ok {
			return rules[name], name, true
		}
	}
	r, ok := rules["*"]
	return r, "*", ok
}

// entry returns the key of rules that equals name, ignoring case.
func entry(rules map[string]Rules, name string) (string, bool) {
	if _, ok := rules[name]; ok {
		return name, true
	}
	for _, n := range slices.Sorted(maps.Keys(rules)) {
		if strings.EqualFold(n, name) {
			return n, true
		}
	}
	return "", false
}
