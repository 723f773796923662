// Package acp describes coding agents: programs that speak the Agent Client Protocol on
// their standard input and output, and that can answer in a session instead of a model.
// The configuration names them in the section acp. What a session has to do with one is
// session.External; the client is in package plugin/tool/acp.
package acp

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// Provider is the provider of the models that stand for coding agents.
const Provider = "acp"

// Config is the section acp.
type Config struct {
	Enabled bool     `json:"enabled"`
	Default string   `json:"defaultAgent"`  // empty: the only one that is configured, else none
	Allowed []string `json:"allowedAgents"` // none: all
	Most    int      `json:"maxConcurrentSessions"`
	Runtime struct {
		Minutes float64 `json:"ttlMinutes"`
	} `json:"runtime"`
	Agents map[string]Program `json:"agents"`
}

// Program is how an agent is started.
type Program struct {
	Command string                `json:"command"` // name of the program in PATH, or its path
	Args    []string              `json:"args"`
	Vars    map[string]secret.Ref `json:"env"` // variables, in addition to those that all programs get
	Env     map[string]string     `json:"-"`   // Vars, resolved
	Dir     string                `json:"cwd"` // where its sessions work; empty: the workspace of the assistant
	// Install is what a person types to get the program; empty: unknown.
	Install string `json:"-"`
}

// Defaults of [Config].
const (
	defaultMost = 4
	maxMost     = 32
	defaultIdle = 30 * time.Minute
)

// Concurrent returns how many agents may run at the same time.
func (c Config) Concurrent() int { return cmp.Or(c.Most, defaultMost) }

// Idle returns the time without a message after which the program of a session is ended.
func (c Config) Idle() time.Duration {
	return cmp.Or(time.Duration(c.Runtime.Minutes*float64(time.Minute)), defaultIdle)
}

// known are agents that need no configuration.
var known = map[string]Program{
	"claude":   {Command: "claude-agent-acp", Install: "npm install -g @agentclientprotocol/claude-agent-acp"},
	"codex":    {Command: "codex-acp", Install: "npm install -g @agentclientprotocol/codex-acp"},
	"gemini":   {Command: "gemini", Args: []string{"--acp"}, Install: "npm install -g @google/gemini-cli"},
	"opencode": {Command: "opencode", Args: []string{"acp"}, Install: "npm install -g opencode-ai"},
}

// Check returns what is wrong with the section.
func (c Config) Check() error {
	switch {
	case c.Most < 0 || c.Most > maxMost:
		return fmt.Errorf("acp.maxConcurrentSessions: %d is not between 1 and %d", c.Most, maxMost)
	case c.Runtime.Minutes < 0:
		return fmt.Errorf("acp.runtime.ttlMinutes must not be negative")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		p := c.Agents[name]
		switch {
		case !chela.ValidAgentID(name):
			return fmt.Errorf("acp.agents.%s: want a name of lower-case letters, digits, - and _", name)
		case p.Command == "" && known[name].Command == "":
			return fmt.Errorf("acp.agents.%s.command is missing", name)
		}
	}
	return nil
}

// Names returns the agents that may be used, sorted.
func (c Config) Names() []string {
	all := map[string]bool{}
	for name := range known {
		all[name] = true
	}
	for name := range c.Agents {
		all[name] = true
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name string) bool { return !c.allows(name) })
}

// allows reports whether the list of allowed agents has the name.
func (c Config) allows(name string) bool {
	return len(c.Allowed) == 0 ||
		slices.ContainsFunc(c.Allowed, func(a string) bool { return a == "*" || strings.EqualFold(a, name) })
}

// On returns an error if agents are switched off.
func (c Config) On() error {
	if c.Enabled {
		return nil
	}
	return &chela.Error{
		Code:    chela.CodeForbidden,
		Message: "coding agents are switched off (acp.enabled): they are programs that run with all rights of yours",
		Hint:    "chela config set acp.enabled true",
	}
}

// Find returns the agent with a name, which may be empty if there is a default. An error
// says why it cannot be used.
func (c Config) Find(name string) (string, Program, error) {
	if err := c.On(); err != nil {
		return "", Program{}, err
	}
	name = strings.ToLower(strings.TrimSpace(name))
	if name == "" {
		name = strings.ToLower(c.Default)
	}
	if name == "" && len(c.Agents) == 1 {
		for name = range c.Agents {
		}
	}
	names := strings.Join(c.Names(), ", ")
	if name == "" {
		return "", Program{}, &chela.Error{
			Code: chela.CodeInvalid, Message: "no coding agent was named, and acp.defaultAgent is not set; there are: " + names,
			Hint: "chela config set acp.defaultAgent NAME",
		}
	}
	p, configured := c.Agents[name]
	if _, is := known[name]; !is && !configured {
		return "", Program{}, chela.Errorf(chela.CodeNotFound, "there is no coding agent %q; there are: %s", name, names)
	}
	if !c.allows(name) {
		return "", Program{}, &chela.Error{
			Code: chela.CodeForbidden, Message: fmt.Sprintf("the coding agent %q is not in acp.allowedAgents (%s)", name,
				strings.Join(c.Allowed, ", ")),
			Hint: "chela config set acp.allowedAgents",
		}
	}
	if p.Command == "" {
		k := known[name]
		if p.Command, p.Install = k.Command, k.Install; p.Args == nil {
			p.Args = k.Args
		}
	}
	return name, p, nil
}

// Folder returns the absolute path of a folder that a person named: ~ stands for home,
// and other relative paths are below dir.
func Folder(path, home, dir string) string {
	path = strings.TrimSpace(path)
	switch {
	case path == "":
		return dir
	case path == "~":
		return home
	case strings.HasPrefix(path, "~/"):
		return filepath.Join(home, path[2:])
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// State is the state of the program of a session.
type State struct {
	Running bool     // the program runs
	Busy    bool     // it answers
	Waits   bool     // it waits for a decision
	Name    string   // of the agent, in the configuration
	Version string   // as the program says
	Modes   []string // ids of the modes that it offers
	Mode    string   // the present one
}

// Check is whether an agent can be used.
type Check struct {
	Name    string
	Command string // with its arguments
	Default bool
	Err     error // why it cannot be used; nil: it can
}

// Line returns the command with its arguments.
func (p Program) Line() string { return strings.Join(append([]string{p.Command}, p.Args...), " ") }
