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

	"github.com/chela-ai/chela/internal/allowlist"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/model"
	"github.com/chela-ai/chela/internal/policy"
)

// Agents is agents: what is said of single ones.
type Agents struct {
	Entries map[string]Agent `json:"entries"`
	List    []Agent          `json:"list"`
}

// Agent is agents.entries.<id>, or one of agents.list.
type Agent struct {
	ID        string       `json:"id"`
	Older     string       `json:"agentId"` // the older spelling of ID
	Name      string       `json:"name"`
	Workspace string       `json:"workspace"` // "": workspace-<id> in the state directory
	Model     model.Choice `json:"model"`     // "": that of agents.defaults
	Think     string       `json:"thinkingDefault"`
	Verbose   string       `json:"verboseDefault"`
	Identity  struct {
		Name  string `json:"name"`
		Emoji string `json:"emoji"`
	} `json:"identity"`
	Params json.RawMessage `json:"params"`
	Tools  struct {
		policy.Config
		Exec allowlist.Config `json:"exec"`
		FS   FS               `json:"fs"`
	} `json:"tools"`
}

// find returns what is said of an agent, and where.
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

// entry is the path of one of agents.entries.
func entry(name string) string {
	if strings.ContainsAny(name, ".[]\"'\\ ") {
		return "agents.entries[" + strconv.Quote(name) + "]"
	}
	return "agents.entries." + name
}

// At returns the path that describes an agent, or where one that nothing is said
// of yet is to be described: beside the others. listed says that it is an
// element of agents.list, which names its id.
func (o *Settings) At(id chela.AgentID) (path string, listed bool) {
	_, path = o.Agents.find(id)
	known := strings.HasPrefix(path, "agents.list[")
	for name := range o.Agents.Entries {
		known = known || chela.AgentIDOf(name) == id
	}
	if n := len(o.Agents.List); !known && n > 0 {
		path = fmt.Sprintf("agents.list[%d]", n)
	}
	return path, strings.HasPrefix(path, "agents.list[")
}

// named is the id of one of agents.list; "": it has none.
func (a Agent) named() chela.AgentID { return chela.AgentIDOf(cmp.Or(a.ID, a.Older)) }

// Roster returns the ids of all agents: the default one first, which is always
// there, then those of agents.list in their order and those of agents.entries.
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

// Has reports whether there is such an agent.
func (o *Settings) Has(id chela.AgentID) bool { return slices.Contains(o.Roster(), id) }

// Of returns what holds for an agent, and the path of the configuration where
// it is, or would be, described: where nothing is said of it alone, what is said
// of all. Its model stays empty then.
func (o *Settings) Of(id chela.AgentID) (Agent, string) {
	a, at := o.Agents.find(id)
	a.Think, a.Verbose = cmp.Or(a.Think, o.Agent.Think), cmp.Or(a.Verbose, o.Agent.Verbose)
	return a, at
}

// Workspace is an agent's home and working directory: what the configuration
// says, below the state directory unless it is absolute.
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
