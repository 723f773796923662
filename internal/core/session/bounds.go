package session

import (
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
	SpawnedBy chela.SessionKey `json:"spawnedBy,omitempty"`
	Depth     int              `json:"depth,omitempty"` // number of ancestors
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
