package settings

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/sandbox"
)

// Elevated is tools.elevated, of all agents or of one: who may have commands of a
// sandboxed session run on the host.
type Elevated struct {
	Enabled   *bool               `json:"enabled"`   // nil: yes
	AllowFrom map[string][]Person `json:"allowFrom"` // people by channel; of one agent, nil: all of tools.elevated
}

// Sandbox returns the configuration of an agent's sandbox and the path of the
// agent's own part.
func (o *Settings) Sandbox(id chela.AgentID, home string) (c sandbox.Config, at string) {
	a, at := o.Agents.find(id)
	c = a.Sandbox.Or(o.Agent.Sandbox)
	if c.Root == "~" || strings.HasPrefix(c.Root, "~/") {
		c.Root = filepath.Join(home, c.Root[1:])
	}
	return c, at + ".sandbox"
}

// ElevatedFor returns whether commands of a principal leave the sandbox. level is
// the session's; "": that of the configuration.
func (o *Settings) ElevatedFor(id chela.AgentID, who chela.Principal, level string) sandbox.Elevated {
	e := sandbox.Elevated{Level: cmp.Or(level, o.Agent.Elevated, "off")}
	a, at := o.Agents.find(id)
	for _, s := range [...]struct {
		at string
		Elevated
	}{{"tools.elevated", o.Tools.Elevated}, {at + ".tools.elevated", a.Tools.Elevated}} {
		if s.Enabled != nil && !*s.Enabled {
			e.Reason = s.at + ".enabled is false"
			return e
		}
	}
	if who.May(chela.ScopeAdmin) {
		return e
	}
	s, ok := chela.ParseChannelSender(who.ID)
	switch {
	case !ok:
		e.Reason = "elevated rights need the scope " + string(chela.ScopeAdmin)
	case !listed(o.Tools.Elevated.AllowFrom[s.Channel], s.ID):
		e.Reason = "the sender is not in tools.elevated.allowFrom." + s.Channel
	case a.Tools.Elevated.AllowFrom != nil && !listed(a.Tools.Elevated.AllowFrom[s.Channel], s.ID):
		e.Reason = "the sender is not in " + at + ".tools.elevated.allowFrom." + s.Channel
	}
	return e
}

// listed reports whether a list of people has the id of a sender. Names of people
// do not count: everybody can choose one.
func listed(list []Person, id string) bool {
	return slices.ContainsFunc(list, func(p Person) bool {
		name := string(p)
		for _, prefix := range [...]string{"id:", "from:", "e164:"} {
			if rest, ok := strings.CutPrefix(name, prefix); ok {
				name = rest
				break
			}
		}
		return name == "*" || name == id
	})
}

// checkElevated returns the error in agents.defaults.elevatedDefault.
func (o *Settings) checkElevated() error {
	if level := o.Agent.Elevated; level != "" && !slices.Contains(sandbox.ElevatedLevels, level) {
		return fmt.Errorf("agents.defaults.elevatedDefault: %q is not one of %s", level,
			strings.Join(sandbox.ElevatedLevels, ", "))
	}
	return nil
}

// SandboxToolKeys returns where the tools of an agent's sandboxed sessions are
// allowed and denied; "": they are the default ones.
func (o *Settings) SandboxToolKeys(id chela.AgentID) (allow, deny string) {
	a, at := o.Agents.find(id)
	for _, s := range [...]struct {
		at string
		r  policy.Rules
	}{{"tools", o.Tools.Sandbox.Tools}, {at + ".tools", a.Tools.Sandbox.Tools}} {
		switch {
		case len(s.r.Allow) > 0:
			allow = s.at + ".sandbox.tools.allow"
		case len(s.r.AlsoAllow) > 0:
			allow = s.at + ".sandbox.tools.alsoAllow"
		}
		if len(s.r.Deny) > 0 {
			deny = s.at + ".sandbox.tools.deny"
		}
	}
	return allow, deny
}

// Gate is a setting that decides about elevated rights.
type Gate struct {
	Key   string
	Value any
}

// ElevatedGates returns the settings that decide about the elevated rights of an
// agent's sessions.
func (o *Settings) ElevatedGates(id chela.AgentID) []Gate {
	a, at := o.Agents.find(id)
	gates := []Gate{{"agents.defaults.elevatedDefault", cmp.Or(o.Agent.Elevated, "off")},
		{"tools.elevated.enabled", o.Tools.Elevated.Enabled == nil || *o.Tools.Elevated.Enabled}}
	from := o.Tools.Elevated.AllowFrom
	if from == nil {
		from = map[string][]Person{}
	}
	gates = append(gates, Gate{"tools.elevated.allowFrom", from})
	if e := a.Tools.Elevated; e.Enabled != nil {
		gates = append(gates, Gate{at + ".tools.elevated.enabled", *e.Enabled})
	}
	if from := a.Tools.Elevated.AllowFrom; from != nil {
		gates = append(gates, Gate{at + ".tools.elevated.allowFrom", from})
	}
	return gates
}
