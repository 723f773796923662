package allowlist

import (
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Source returns the current rules for any agent. It is safe for concurrent
// use.
type Source struct {
	File  *File
	Base  Policy // settings that neither the configuration nor the document has
	All   Config
	Agent func(chela.AgentID) Config // nil: agents have no configuration of their own
	Home  string

	mu    sync.Mutex
	cache map[chela.AgentID]cachedRules
}

// cachedRules are rules built from a document.
type cachedRules struct {
	doc   *Document
	rules *Rules
}

// Rules returns the rules for the commands of an agent.
func (s *Source) Rules(id chela.AgentID) (*Rules, error) {
	d, _, err := s.File.Load()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, ok := s.cache[id]; ok && m.doc == d {
		return m.rules, nil
	}
	r, err := s.Config(id).Rules(s.Base, d, id, s.Home)
	if err != nil {
		return nil, err
	}
	if s.cache == nil || len(s.cache) > maxAgents {
		s.cache = map[chela.AgentID]cachedRules{}
	}
	s.cache[id] = cachedRules{d, r}
	return r, nil
}

// Config returns the configuration of an agent.
func (s *Source) Config(id chela.AgentID) Config {
	if s.Agent == nil {
		return s.All
	}
	return s.Agent(id).WithDefaults(s.All)
}

// recordInterval is the minimum time between two records of the use of an
// entry. Each one writes the file.
const recordInterval = time.Minute

// RecordUse records that entries allowed a command.
func (s *Source) RecordUse(uses []Use, command string, now time.Time) error {
	d, exists, err := s.File.Load()
	if err != nil || !exists || !d.stale(uses, now.Add(-recordInterval).UnixMilli()) {
		return err
	}
	_, err = s.File.Update("", func(d *Document) error {
		d.RecordUse(uses, command, now.UnixMilli())
		return nil
	})
	return err
}

// stale reports whether one of the entries was last used before a time.
func (d *Document) stale(uses []Use, before int64) bool {
	for _, u := range uses {
		for _, e := range d.Agents[u.Agent].Allowlist {
			if e.ID == u.ID && e.LastUsed < before {
				return true
			}
		}
	}
	return false
}
