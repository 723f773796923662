package subagent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Config is agents.defaults.subagents, or subagents of an agent. Nil and zero fields
// are unset.
type Config struct {
	MaxDepth       *int     `json:"maxSpawnDepth"`       // 1 to 5
	MaxChildren    *int     `json:"maxChildrenPerAgent"` // open children of one session, 1 to 20
	MaxConcurrent  *int     `json:"maxConcurrent"`       // runs of children at once
	TimeoutSeconds *int     `json:"runTimeoutSeconds"`   // 0: none
	ArchiveMinutes *int     `json:"archiveAfterMinutes"` // 0: never
	MaxRounds      *int     `json:"maxToolRounds"`       // 0: the parent's
	AnnounceMS     *int     `json:"announceTimeoutMs"`   // of an attempt to send the answer that reports a result
	Model          ModelRef `json:"model"`
	Think          string   `json:"thinking"`
	AllowAgents    []string `json:"allowAgents"` // "*": every agent; empty: only the same one
	RequireAgent   *bool    `json:"requireAgentId"`
	SkillsSection  *bool    `json:"skillsSection"` // children are told of the skills
}

// ModelRef is a model in the configuration: "provider/model", or an object whose
// primary is one.
type ModelRef string

// UnmarshalJSON accepts both forms.
func (m *ModelRef) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, (*string)(m)) == nil {
		return nil
	}
	var o struct {
		Primary string `json:"primary"`
	}
	err := json.Unmarshal(b, &o)
	*m = ModelRef(o.Primary)
	return err
}

// The defaults of [Config], and the ranges of its limits.
const (
	defaultMaxDepth       = 1
	maxMaxDepth           = 5
	defaultMaxChildren    = 5
	maxMaxChildren        = 20
	defaultMaxConcurrent  = 8
	defaultArchiveMinutes = 60
	defaultAnnounceMS     = 120_000
)

// Check returns an error that names the first value out of its range. key is the path
// of the section.
func (c Config) Check(key string) error {
	for _, v := range []struct {
		name     string
		value    *int
		min, max int
	}{
		{"maxSpawnDepth", c.MaxDepth, 1, maxMaxDepth},
		{"maxChildrenPerAgent", c.MaxChildren, 1, maxMaxChildren},
		{"maxConcurrent", c.MaxConcurrent, 1, 256},
		{"runTimeoutSeconds", c.TimeoutSeconds, 0, 30 * 24 * 3600},
		{"archiveAfterMinutes", c.ArchiveMinutes, 0, 365 * 24 * 60},
		{"maxToolRounds", c.MaxRounds, 0, 10_000},
		{"announceTimeoutMs", c.AnnounceMS, 1000, 3_600_000},
	} {
		if v.value != nil && (*v.value < v.min || *v.value > v.max) {
			path := key + "." + v.name
			return &chela.Error{
				Code: chela.CodeInvalid, Message: fmt.Sprintf("%s: %d is out of range, it must be between %d and %d", path,
					*v.value, v.min, v.max),
				Hint: fmt.Sprintf("chela config set %s %d", path, max(v.min, min(v.max, *v.value))),
			}
		}
	}
	return nil
}

// Or returns c with its unset fields taken from d.
func (c Config) Or(d Config) Config {
	return Config{
		MaxDepth:       cmp.Or(c.MaxDepth, d.MaxDepth),
		MaxChildren:    cmp.Or(c.MaxChildren, d.MaxChildren),
		MaxConcurrent:  cmp.Or(c.MaxConcurrent, d.MaxConcurrent),
		TimeoutSeconds: cmp.Or(c.TimeoutSeconds, d.TimeoutSeconds),
		ArchiveMinutes: cmp.Or(c.ArchiveMinutes, d.ArchiveMinutes),
		MaxRounds:      cmp.Or(c.MaxRounds, d.MaxRounds),
		AnnounceMS:     cmp.Or(c.AnnounceMS, d.AnnounceMS),
		Model:          cmp.Or(c.Model, d.Model),
		Think:          cmp.Or(c.Think, d.Think),
		AllowAgents:    slices.Clone(firstSet(c.AllowAgents, d.AllowAgents)),

		RequireAgent:  cmp.Or(c.RequireAgent, d.RequireAgent),
		SkillsSection: cmp.Or(c.SkillsSection, d.SkillsSection),
	}
}

func firstSet(a, b []string) []string {
	if a != nil {
		return a
	}
	return b
}

func value(v *int, def int) int {
	if v == nil {
		return def
	}
	return *v
}

// Depth returns the greatest depth at which a child may exist.
func (c Config) Depth() int { return value(c.MaxDepth, defaultMaxDepth) }

// Children returns the greatest number of open children of one session.
func (c Config) Children() int { return value(c.MaxChildren, defaultMaxChildren) }

// Concurrent returns the number of runs of children that may be in progress at once.
func (c Config) Concurrent() int { return value(c.MaxConcurrent, defaultMaxConcurrent) }

// Timeout returns the time limit of a child's run; 0: none.
func (c Config) Timeout() time.Duration {
	return time.Duration(value(c.TimeoutSeconds, 0)) * time.Second
}

// Archive returns how long the session of a child that has ended stays in lists;
// 0: for ever.
func (c Config) Archive() time.Duration {
	return time.Duration(value(c.ArchiveMinutes, defaultArchiveMinutes)) * time.Minute
}

// Rounds returns the greatest number of tool rounds in a run of a child; 0: that of
// other runs.
func (c Config) Rounds() int { return value(c.MaxRounds, 0) }

// AnnounceTimeout returns the time limit for an attempt to send the answer that
// reports the result of a child to a channel.
func (c Config) AnnounceTimeout() time.Duration {
	return time.Duration(value(c.AnnounceMS, defaultAnnounceMS)) * time.Millisecond
}

// Requires reports whether a spawn must name the agent.
func (c Config) Requires() bool { return c.RequireAgent != nil && *c.RequireAgent }

// Skills reports whether children are told of the skills.
func (c Config) Skills() bool { return c.SkillsSection != nil && *c.SkillsSection }

// Allows reports whether a session of the agent from may start children of the agent
// to.
func (c Config) Allows(from, to chela.AgentID) bool {
	return from == to || slices.Contains(c.AllowAgents, "*") || slices.Contains(c.AllowAgents, string(to))
}

// Role is the position of a session in its tree.
type Role string

// The roles.
const (
	Main         Role = "main"         // not a child
	Orchestrator Role = "orchestrator" // a child that may spawn
	Leaf         Role = "leaf"         // a child that may not spawn
)

// RoleAt returns the role at a depth.
func (c Config) RoleAt(depth int) Role {
	switch {
	case depth == 0:
		return Main
	case depth < c.Depth():
		return Orchestrator
	}
	return Leaf
}

// Controls reports whether a session with the role may stop and steer children.
func (r Role) Controls() bool { return r != Leaf }

// ControlScope returns which children a session with the role may stop and steer:
// "children" or "none".
func (r Role) ControlScope() string {
	if r.Controls() {
		return "children"
	}
	return "none"
}
