package session

import (
	"slices"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Visibility says which other sessions the tools of a session may name.
type Visibility string

// The visibilities. Each includes those before it.
const (
	VisibleSelf  Visibility = "self"  // only the session itself
	VisibleTree  Visibility = "tree"  // those that were started from it, directly or not
	VisibleAgent Visibility = "agent" // all of its agent
	VisibleAll   Visibility = "all"   // those of other agents that [Sharing.Agents] permits
)

// Sharing is the rule about the sessions that a session may see. The zero Sharing is
// that of VisibleTree.
type Sharing struct {
	Visibility Visibility    // empty: VisibleTree
	Sandboxed  bool          // the session is sandboxed: it sees at most what was started from it
	Agents     []string      // agents that share their sessions with each other; "*": all
	Viewer     chela.AgentID // agent of the session
}

// May reports whether the session with the key viewer may see the session target. above
// are the ancestors of target: the session that started it, the one that started that,
// and so on.
func (s Sharing) May(viewer chela.SessionKey, target Meta, above []chela.SessionKey) bool {
	switch {
	case target.Key == viewer:
		return true
	case s.Visibility == VisibleSelf:
		return false
	case slices.Contains(above, viewer):
		return true
	case s.Sandboxed || s.Visibility != VisibleAgent && s.Visibility != VisibleAll:
		return false
	case target.Agent == s.Viewer:
		return true
	}
	shares := func(id chela.AgentID) bool {
		return slices.Contains(s.Agents, "*") || slices.Contains(s.Agents, string(id))
	}
	return s.Visibility == VisibleAll && shares(s.Viewer) && shares(target.Agent)
}

// maxAbove bounds the length of a chain of ancestors.
const maxAbove = 16

// Above returns the ancestors of a session, the nearest first. A cycle or a missing
// session ends the list.
func Above(r Reader, m Meta) ([]chela.SessionKey, error) {
	var keys []chela.SessionKey
	for key := m.Bounds.SpawnedBy; key != "" && !slices.Contains(keys, key) && len(keys) < maxAbove; {
		keys = append(keys, key)
		above, err := Lookup(r, key)
		if err != nil {
			return nil, err
		}
		key = above.Bounds.SpawnedBy
	}
	return keys, nil
}

// Sees reports whether a session may see another one.
func (s Sharing) Sees(r Reader, viewer, target Meta) (bool, error) {
	above, err := Above(r, target)
	return err == nil && s.May(viewer.Key, target, above), err
}

// Find returns a session that viewer may see. Sessions that it may not see and those
// that do not exist give the same error.
func (s Sharing) Find(r Reader, viewer Meta, key chela.SessionKey) (Meta, error) {
	m, err := Lookup(r, key)
	if err != nil {
		return m, err
	}
	if ok, err := s.Sees(r, viewer, m); m.ID != "" && ok || err != nil {
		return m, err
	}
	return m, Unseen(key)
}

// Unseen returns the error about a session that does not exist or that may not be seen.
func Unseen(key chela.SessionKey) error {
	return chela.Errorf(chela.CodeNotFound,
		"there is no session %s, or this session may not see it (tools.sessions.visibility, tools.agentToAgent)", key)
}
