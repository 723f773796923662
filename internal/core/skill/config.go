package skill

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/chela-ai/chela/internal/kit/secret"
)

// Config is the section skills.
type Config struct {
	Load struct {
		Dirs []string `json:"extraDirs"`
	} `json:"load"`
	AllowBundled []string         `json:"allowBundled"` // names of bundled skills that are used; nil: all
	Entries      map[string]Entry `json:"entries"`      // by key or name
	Limits       struct {
		MaxChars int `json:"maxSkillsPromptChars"` // 0: 18000
		MaxCount int `json:"maxSkillsInPrompt"`    // 0: 150
	} `json:"limits"`
	Registry struct {
		URL   string     `json:"url"` // "": there is none
		Token secret.Ref `json:"token"`
	} `json:"registry"`
}

// Entry is skills.entries.<key>.
type Entry struct {
	Enabled *bool                 `json:"enabled"` // nil: true
	Key     secret.Ref            `json:"apiKey"`  // value of the skill's primaryEnv
	Env     map[string]secret.Ref `json:"env"`     // variables of commands
	Config  json.RawMessage       `json:"config"`  // of the skill's own

	key  secret.Value
	vars map[string]secret.Value
}

// entry returns the configuration of a skill.
func (c *Config) entry(s *Skill) Entry {
	if e, ok := c.Entries[s.EntryKey()]; ok {
		return e
	}
	return c.Entries[s.Name]
}

// Host is the machine and the configuration that skills are checked against.
type Host struct {
	OS     string                    // runtime.GOOS
	Look   func(program string) bool // reports whether a program is installed
	Getenv func(name string) string  // variables of this process
	Set    func(path string) bool    // reports whether the configuration has a value that is not false, 0 or empty
	// Names are the skills that the agent may use; nil: all.
	Names []string
}

// Status is whether a skill is used, and why not.
type Status struct {
	Disabled   bool     // by skills.entries
	NotAllowed bool     // it is not in skills.allowBundled
	NotOfAgent bool     // it is not in the list of the agent
	WrongOS    bool     // it is for another operating system
	Missing    Requires // what it needs and there is not
}

// Ok reports whether the skill is used.
func (s Status) Ok() bool { return len(s.Reasons()) == 0 }

// Reasons says why the skill is not used; empty: it is.
func (s Status) Reasons() (out []string) {
	if s.Disabled {
		out = append(out, "it is switched off")
	}
	if s.NotAllowed {
		out = append(out, "skills.allowBundled does not name it")
	}
	if s.NotOfAgent {
		out = append(out, "the agent does not have it")
	}
	if s.WrongOS {
		out = append(out, "it is for another operating system")
	}
	for _, m := range [...]struct {
		names []string
		what  string
	}{
		{s.Missing.Bins, "missing program: "}, {s.Missing.AnyBins, "missing one of the programs: "},
		{s.Missing.Env, "missing variable: "}, {s.Missing.Config, "not set in the configuration: "},
	} {
		if len(m.names) > 0 {
			out = append(out, m.what+strings.Join(m.names, ", "))
		}
	}
	return out
}

// Check returns whether a skill is used.
func (c *Config) Check(s *Skill, h Host) Status {
	e := c.entry(s)
	st := Status{
		Disabled: e.Enabled != nil && !*e.Enabled,
		NotAllowed: s.Source == Bundled && c.AllowBundled != nil && !slices.Contains(c.AllowBundled, s.Name) &&
			!slices.Contains(c.AllowBundled, s.EntryKey()),
		NotOfAgent: h.Names != nil && !slices.Contains(h.Names, s.Name),
		WrongOS:    len(s.OS) > 0 && !slices.Contains(s.OS, h.OS) && !(h.OS == "windows" && slices.Contains(s.OS, "win32")),
	}
	if s.Always {
		return st
	}
	lacks := func(names []string, has func(string) bool) []string {
		return slices.DeleteFunc(slices.Clone(names), has)
	}
	st.Missing.Bins = lacks(s.Requires.Bins, h.Look)
	if any := s.Requires.AnyBins; len(any) > 0 && !slices.ContainsFunc(any, h.Look) {
		st.Missing.AnyBins = any
	}
	st.Missing.Env = lacks(s.Requires.Env, func(name string) bool {
		ref, ok := e.Env[name]
		return h.Getenv(name) != "" || ok && !ref.IsZero() || name == s.Variable && !e.Key.IsZero()
	})
	st.Missing.Config = lacks(s.Requires.Config, h.Set)
	return st
}

// Use returns the skills that are used.
func (c *Config) Use(all []*Skill, h Host) []*Skill {
	out := make([]*Skill, 0, len(all))
	for _, s := range all {
		if c.Check(s, h).Ok() {
			out = append(out, s)
		}
	}
	return out
}

// Resolve reads the secrets of the entries, and returns which cannot be used.
func (c *Config) Resolve(getenv func(string) string) (problems []error) {
	entries := map[string]Entry{}
	for _, key := range slices.Sorted(maps.Keys(c.Entries)) {
		e := c.Entries[key]
		e.vars = map[string]secret.Value{}
		var err error
		if e.key, err = e.Key.Resolve(getenv); err != nil {
			problems = append(problems, fmt.Errorf("skills.entries.%s.apiKey: %w", key, err))
		}
		for _, name := range slices.Sorted(maps.Keys(e.Env)) {
			v, err := e.Env[name].Resolve(getenv)
			if err == nil && !variable().MatchString(name) {
				err = errors.New("it is not the name of a variable")
			}
			if err != nil {
				problems = append(problems, fmt.Errorf("skills.entries.%s.env.%s: %w", key, name, err))
				continue
			}
			e.vars[name] = v
		}
		entries[key] = e
	}
	c.Entries = entries
	return problems
}

// Environ returns the variables that the configuration has for skills; see
// [Config.Resolve]. The first skill that sets a variable wins.
func (c *Config) Environ(skills []*Skill) map[string]string {
	vars := map[string]string{}
	set := func(name string, v secret.Value) {
		if _, ok := vars[name]; !ok && !v.IsZero() && variable().MatchString(name) {
			vars[name] = v.Reveal()
		}
	}
	for _, s := range skills {
		e := c.entry(s)
		for name, v := range e.vars {
			set(name, v)
		}
		set(s.Variable, e.key)
	}
	return vars
}

var variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`) })
