package settings

import (
	"cmp"
	"maps"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/secret"
	"github.com/chela-ai/chela/internal/plugin/memory/index"
)

// Memory is agents.defaults.memorySearch, or that of an agent.
type Memory struct {
	Enabled *bool    `json:"enabled"`    // nil: true
	Extra   []string `json:"extraPaths"` // further files and folders with notes
	// of vectors; none: notes are found by their words; auto: the first one with a key
	Provider string `json:"provider"`
	Model    string `json:"model"`    // that makes the vectors; "": that of the provider
	Fallback string `json:"fallback"` // provider that is used when the other one fails; "" or none: there is none
	Remote   struct {
		BaseURL string            `json:"baseUrl"`
		APIKey  secret.Ref        `json:"apiKey"`
		Headers map[string]string `json:"headers"`
	} `json:"remote"` // how the provider is reached
	Query struct {
		Max      int     `json:"maxResults"` // 0: 6
		MinScore float64 `json:"minScore"`   // 0: 0.35
		Hybrid   struct {
			Enabled      *bool    `json:"enabled"` // nil: true
			VectorWeight *float64 `json:"vectorWeight"`
			TextWeight   *float64 `json:"textWeight"`
			Multiplier   int      `json:"candidateMultiplier"`
			Diversity    struct {
				Enabled *bool    `json:"enabled"` // nil: true
				Lambda  *float64 `json:"lambda"`
			} `json:"mmr"`
			Decay struct {
				Enabled  *bool   `json:"enabled"` // nil: true
				HalfLife float64 `json:"halfLifeDays"`
			} `json:"temporalDecay"`
		} `json:"hybrid"`
	} `json:"query"`
	Cache struct {
		Enabled *bool `json:"enabled"`    // nil: true
		Max     *int  `json:"maxEntries"` // nil: 50,000
	} `json:"cache"`
}

// Providers of memorySearch.provider and fallback that are not names of services.
const (
	NoVectors   = "none"
	AutoVectors = "auto"
)

// Memory returns the settings of an agent's memory. Those that the agent does not have
// come from agents.defaults.
func (o *Settings) Memory(id chela.AgentID) Memory {
	a, _ := o.Agents.find(id)
	m := a.Memory.or(o.Agent.Memory)
	if m.Provider == "" {
		m.Provider = NoVectors
		if o.Compat == "openclaw" {
			m.Provider = AutoVectors
		}
	}
	return m
}

// or returns m with the values of all where it has none.
func (m Memory) or(all Memory) Memory {
	m.Enabled = cmp.Or(m.Enabled, all.Enabled)
	if m.Extra == nil {
		m.Extra = all.Extra
	}
	m.Provider, m.Model, m.Fallback = cmp.Or(m.Provider, all.Provider), cmp.Or(m.Model, all.Model),
		cmp.Or(m.Fallback, all.Fallback)
	m.Remote.BaseURL = cmp.Or(m.Remote.BaseURL, all.Remote.BaseURL)
	if m.Remote.APIKey.IsZero() {
		m.Remote.APIKey = all.Remote.APIKey
	}
	if m.Remote.Headers == nil {
		m.Remote.Headers = maps.Clone(all.Remote.Headers)
	}
	q, d := &m.Query, all.Query
	q.Max, q.MinScore = cmp.Or(q.Max, d.Max), cmp.Or(q.MinScore, d.MinScore)
	h, e := &q.Hybrid, d.Hybrid
	h.Enabled, h.VectorWeight, h.TextWeight = cmp.Or(h.Enabled, e.Enabled), cmp.Or(h.VectorWeight, e.VectorWeight),
		cmp.Or(h.TextWeight, e.TextWeight)
	h.Multiplier = cmp.Or(h.Multiplier, e.Multiplier)
	h.Diversity.Enabled, h.Diversity.Lambda = cmp.Or(h.Diversity.Enabled, e.Diversity.Enabled),
		cmp.Or(h.Diversity.Lambda, e.Diversity.Lambda)
	h.Decay.Enabled, h.Decay.HalfLife = cmp.Or(h.Decay.Enabled, e.Decay.Enabled),
		cmp.Or(h.Decay.HalfLife, e.Decay.HalfLife)
	m.Cache.Enabled, m.Cache.Max = cmp.Or(m.Cache.Enabled, all.Cache.Enabled), cmp.Or(m.Cache.Max, all.Cache.Max)
	return m
}

// Off reports whether there is no memory.
func (m Memory) Off() bool { return isOff(m.Enabled) }

func isOff(b *bool) bool { return b != nil && !*b }

// Ranking returns how notes are ranked.
func (m Memory) Ranking() index.Ranking {
	r, h := index.DefaultRanking(), m.Query.Hybrid
	if h.VectorWeight != nil || h.TextWeight != nil {
		v, t := max(*cmp.Or(h.VectorWeight, &r.VectorWeight), 0), max(*cmp.Or(h.TextWeight, &r.TextWeight), 0)
		if v+t > 0 {
			r.VectorWeight, r.TextWeight = v, t
		}
	}
	r.VectorsAlone, r.Diversity, r.Decay = isOff(h.Enabled), !isOff(h.Diversity.Enabled), !isOff(h.Decay.Enabled)
	if h.Multiplier > 0 {
		r.Multiplier = min(h.Multiplier, 20)
	}
	if l := h.Diversity.Lambda; l != nil {
		r.Lambda = min(max(*l, 0), 1)
	}
	if h.Decay.HalfLife > 0 {
		r.HalfLife = h.Decay.HalfLife
	}
	return r
}

// Unused returns how many vectors are kept of texts that are not in the notes any more.
func (m Memory) Unused() int {
	switch {
	case isOff(m.Cache.Enabled):
		return 0
	case m.Cache.Max != nil:
		return max(*m.Cache.Max, 0)
	}
	return 50_000
}

// MemoryURLs returns the addresses of the servers that make vectors, of all agents.
func (o *Settings) MemoryURLs() (out []string) {
	for _, id := range o.Roster() {
		if u := o.Memory(id).Remote.BaseURL; u != "" {
			out = append(out, u)
		}
	}
	return out
}
