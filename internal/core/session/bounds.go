package session

import (
	"cmp"
	"errors"
	"slices"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/run"
)

// Bounds limits every run of a session, whatever starts the run. A spawned session
// inherits the bounds of its parent, narrowed by the limits given when it was spawned.
// The zero Bounds limits nothing.
type Bounds struct {
	Tools     []run.Tools      `json:"tools,omitempty"`    // every element must permit a tool
	ReadOnly  bool             `json:"readOnly,omitempty"` // calls that could change something are refused
	Lane      string           `json:"lane,omitempty"`
	Sandbox   string           `json:"sandbox,omitempty"` // sandbox mode; empty: the agent's
	Folder    string           `json:"folder,omitempty"`  // in the workspace, where commands start; empty: the workspace
	Exec      run.Exec         `json:"exec,omitzero"`
	SpawnedBy chela.SessionKey `json:"spawnedBy,omitempty"`
	Depth     int              `json:"depth,omitempty"` // number of ancestors
	// Agents are the agents of the ancestors that are not the session's own. Their rules
	// about tools apply, too.
	Agents []chela.AgentID `json:"agents,omitempty"`
	// Chat is the chat of the first ancestor that has one. Its rules about tools apply, too.
	Chat chela.Address `json:"chat,omitzero"`
	// Shared says that others than one person read what comes of the session, as in a
	// group: it gets no private notes.
	Shared bool `json:"shared,omitempty"`
}

// Shared reports whether others than one person read what comes of a run in the session,
// which gets no private notes then.
func (m Meta) Shared(r run.Run) bool {
	return m.Bounds.Shared || r.Overrides.Shared || !m.Address.Private() || !r.Address.Private()
}

// Depth returns the depth of the session in its tree, as far as its own record says:
// the stored one, else that of its key. [DepthIn] also looks at its ancestors.
func (m Meta) Depth() int { return cmp.Or(m.Bounds.Depth, m.Key.Depth()) }

// IsChild reports whether the session is that of a subagent.
func (m Meta) IsChild() bool { return m.Bounds.IsChild() || m.Key.IsChild() }

// IsChild reports whether the bounds are those of the session of a subagent.
func (b Bounds) IsChild() bool { return b.SpawnedBy != "" || b.Depth > 0 }

// DepthIn returns the depth of a session in its tree: the stored one, else one more
// than that of the session that it was spawned by. If that one does not exist, or if
// the ancestors form a cycle, it is the depth of the key.
func DepthIn(r Reader, m Meta) (int, error) {
	seen := map[chela.SessionKey]bool{}
	for n, at := 0, m; ; n++ {
		if at.Bounds.Depth > 0 || at.Bounds.SpawnedBy == "" {
			return n + at.Depth(), nil
		}
		if seen[at.Key] || n > maxAbove {
			return m.Key.Depth(), nil
		}
		seen[at.Key] = true
		above, err := r.Get(at.Bounds.SpawnedBy)
		if errors.Is(err, chela.ErrNotFound) {
			return m.Key.Depth(), nil
		}
		if err != nil {
			return 0, err
		}
		at = above
	}
}

// ForChild returns the bounds of a child of m, which has the tools t of those that m
// may use. It may be one of another agent.
func (m Meta) ForChild(agent chela.AgentID, t run.Tools) Bounds {
	b := m.Bounds.Narrow(m.Key, t)
	b.Exec = m.Exec.Within(b.Exec).ForChild()
	b.Agents = slices.Clone(b.Agents)
	if b.Chat.Local() {
		b.Chat = m.Address
	}
	if m.Agent != agent && !slices.Contains(b.Agents, m.Agent) {
		b.Agents = append(b.Agents, m.Agent)
	}
	return b
}

// Narrow returns the bounds of a child session. b are the bounds of the parent, key is
// the key of the parent, and t are the tools given to the child.
func (b Bounds) Narrow(key chela.SessionKey, t run.Tools) Bounds {
	b.Tools = slices.Clone(b.Tools)
	if !t.IsZero() {
		b.Tools = append(b.Tools, t)
	}
	b.SpawnedBy, b.Depth = key, b.Depth+1
	return b
}

// Permitted returns the tools that a run may use: the tools in granted that both the
// bounds of the session and the overrides of the run permit, in the order of granted.
// match reports whether one of the patterns matches the tool name.
func Permitted(granted []string, b Bounds, o run.Overrides, match func(patterns []string, name string) bool) []string {
	var names []string
	for _, name := range granted {
		permits := func(t run.Tools) bool { return t.Permits(name, match) }
		if o.Tools.Permits(name, match) && !slices.ContainsFunc(b.Tools, func(t run.Tools) bool { return !permits(t) }) {
			names = append(names, name)
		}
	}
	return names
}
