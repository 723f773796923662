package settings

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/chela-ai/chela/internal/app/model"
	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/subagent"
)

// Agents is agents: the configuration of single agents.
type Agents struct {
	Entries map[string]Agent `json:"entries"`
	List    []Agent          `json:"list"`
}

// Identity is the name and emoji of an agent.
type Identity struct {
	Name  string `json:"name"`
	Emoji string `json:"emoji"`
}

// Agent is agents.entries.<id>, or one of agents.list.
type Agent struct {
	ID        string       `json:"id"`
	Older     string       `json:"agentId"` // the older spelling of ID
	Default   bool         `json:"default"` // see [Settings.DefaultAgent]
	Name      string       `json:"name"`
	Workspace string       `json:"workspace"`       // "": workspace-<id> in the state directory
	Model     model.Choice `json:"model"`           // "": the model of agents.defaults
	Think     string       `json:"thinkingDefault"` // see [Settings.Think]
	Fast      llm.Fast     `json:"fastModeDefault"` // see [Settings.Fast]
	Verbose   string       `json:"verboseDefault"`
	Reasoning string       `json:"reasoningDefault"`
	Identity  Identity     `json:"identity"`
	Delivery
	GroupChat GroupChat         `json:"groupChat"`
	Params    json.RawMessage   `json:"params"`
	Budget    Budget            `json:"budget"`
	Subagents subagent.Config   `json:"subagents"` // see [Settings.Subagents]
	Sandbox   sandbox.Config    `json:"sandbox"`
	Heartbeat *heartbeat.Config `json:"heartbeat"`    // see [Settings.Heartbeats]
	Memory    Memory            `json:"memorySearch"` // see [Settings.Memory]
	Skills    []string          `json:"skills"`       // see [Settings.SkillNames]
	// Own values of the sections of agents.defaults; see [Settings.Compaction] and
	// [Settings.Pruning].
	OwnCompaction json.RawMessage `json:"compaction"`
	OwnPruning    json.RawMessage `json:"contextPruning"`
	Tools         struct {
		policy.Config
		Exec allowlist.Config `json:"exec"`
		FS   FS               `json:"fs"`

		Elevated Elevated `json:"elevated"`
	} `json:"tools"`
}

// Subagents returns the settings for the children of an agent's sessions. Settings that
// the agent does not have come from agents.defaults.
func (o *Settings) Subagents(id chela.AgentID) subagent.Config {
	a, _ := o.Agents.find(id)
	return a.Subagents.Or(o.Agent.Subagents)
}

// SkillNames returns the names of the skills that an agent uses; nil: all. Its own list
// replaces that of agents.defaults.
func (o *Settings) SkillNames(id chela.AgentID) []string {
	if a, _ := o.Agents.find(id); a.Skills != nil {
		return a.Skills
	}
	return o.Agent.Skills
}

// find returns the configuration of an agent and its path.
func (a Agents) find(id chela.AgentID) (Agent, string) {
	for name, o := range a.Entries {
		if chela.AgentIDOf(name) == id {
			return o, entry(name)
		}
	}
	for i, o := range a.List {
		if o.named() == id {
			return o, fmt.Sprintf("agents.list[%d]", i)
		}
	}
	return Agent{}, entry(string(id))
}

// has reports whether an agent is configured.
func (a Agents) has(id chela.AgentID) bool {
	for name := range a.Entries {
		if chela.AgentIDOf(name) == id {
			return true
		}
	}
	return slices.ContainsFunc(a.List, func(o Agent) bool { return o.named() == id })
}

// entry is the path of one of agents.entries.
func entry(name string) string {
	if strings.ContainsAny(name, ".[]\"'\\ ") {
		return "agents.entries[" + strconv.Quote(name) + "]"
	}
	return "agents.entries." + name
}

// At returns the path of an agent's configuration, or, for an agent that is not
// configured, the path where it would be added. listed reports whether that is an
// element of agents.list, which must contain the agent's id.
func (o *Settings) At(id chela.AgentID) (path string, listed bool) {
	_, path = o.Agents.find(id)
	if n := len(o.Agents.List); !o.Agents.has(id) && n > 0 {
		path = fmt.Sprintf("agents.list[%d]", n)
	}
	return path, strings.HasPrefix(path, "agents.list[")
}

// named returns the id of an element of agents.list; "": it has none.
func (a Agent) named() chela.AgentID { return chela.AgentIDOf(cmp.Or(a.ID, a.Older)) }

// Roster returns the ids of all agents: the default agent, which always exists,
// then those of agents.list in their order, then those of agents.entries.
func (o *Settings) Roster() []chela.AgentID {
	ids := []chela.AgentID{chela.DefaultAgent}
	add := func(id chela.AgentID) {
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, a := range o.Agents.List {
		add(a.named())
	}
	for _, name := range slices.Sorted(maps.Keys(o.Agents.Entries)) {
		add(Agent{ID: name}.named())
	}
	return ids
}

// Has reports whether the agent exists.
func (o *Settings) Has(id chela.AgentID) bool { return slices.Contains(o.Roster(), id) }

// Of returns the configuration of an agent and its path. Settings that the agent
// does not have come from agents.defaults, except the model, the
// thinking level and the fast mode, which stay empty.
func (o *Settings) Of(id chela.AgentID) (Agent, string) {
	a, at := o.Agents.find(id)
	a.Verbose = cmp.Or(a.Verbose, o.Agent.Verbose)
	a.Reasoning = cmp.Or(a.Reasoning, o.Agent.Reasoning)
	return a, at
}

// Think returns the thinking level of an agent's sessions that set none themselves:
// that of the agent, else that of the model, which may be empty, else that of all.
func (o *Settings) Think(id chela.AgentID, model llm.Level) llm.Level {
	a, _ := o.Agents.find(id)
	return cmp.Or(llm.Level(a.Think), model, llm.Level(o.Agent.Think))
}

// Fast returns when the sessions of an agent that set nothing themselves ask for the faster
// tier of a service: as the agent says, else as params of the model say, else as for all.
func (o *Settings) Fast(id chela.AgentID, model llm.Fast) llm.Fast {
	a, _ := o.Agents.find(id)
	return cmp.Or(a.Fast, model, o.Agent.Fast)
}

// Workspace is an agent's home and working directory. A relative path in the
// configuration is below the state directory.
func (o *Settings) Workspace(id chela.AgentID, state, home string) string {
	a, _ := o.Agents.find(id)
	dir := a.Workspace
	switch {
	case dir != "":
	case id != chela.DefaultAgent:
		dir = "workspace-" + string(id)
	default:
		dir = cmp.Or(o.Agent.Workspace, "workspace")
	}
	switch {
	case dir == "~" || len(dir) > 1 && dir[:2] == "~/":
		return filepath.Join(home, dir[1:])
	case !filepath.IsAbs(dir):
		return filepath.Join(state, dir)
	}
	return dir
}
