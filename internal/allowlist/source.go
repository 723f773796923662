package allowlist

import (
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/chela"
)

// Source gives the rules that hold now, for any agent. It is safe for
// concurrent use.
type Source struct {
	File  *File
	Base  Policy // what neither says
	All   Config
	Agent func(chela.AgentID) Config // nil: no agent has its own
	Home  string

	mu   sync.Mutex
	made map[chela.AgentID]made
}

// made is rules that were made of a document.
type made struct {
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
	if m, ok := s.made[id]; ok && m.doc == d {
		return m.rules, nil
	}
	r, err := s.Config(id).Rules(s.Base, d, id, s.Home)
	if err != nil {
		return nil, err
	}
	if s.made == nil || len(s.made) > maxAgents {
		s.made = map[chela.AgentID]made{}
	}
	s.made[id] = made{d, r}
	return r, nil
}

// Config is what the configuration says for an agent.
func (s *Source) Config(id chela.AgentID) Config {
	if s.Agent == nil {
		return s.All
	}
	return s.Agent(id).Over(s.All)
}

// noteEvery is how often it is noted that an entry is used: each note writes
// the file.
const noteEvery = time.Minute

// Used notes that entries let a command run.
func (s *Source) Used(uses []Use, command string, now time.Time) error {
	d, exists, err := s.File.Load()
	if err != nil || !exists || !d.stale(uses, now.Add(-noteEvery).UnixMilli()) {
		return err
	}
	_, err = s.File.Update("", func(d *Document) error {
		d.Used(uses, command, now.UnixMilli())
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
