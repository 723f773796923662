package allowlist

import (
	"errors"
	"fmt"
	"slices"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/shell"
)

// Rules decide about the commands of one agent. They are safe for concurrent
// use.
type Rules struct {
	Policy Policy
	Bins   Bins
	// StrictInline requires approval for inline code each time, regardless of
	// the other settings.
	StrictInline bool

	patterns []pattern
	invalid  []error
}

// newRules combines the policy of the configuration with the policy and the
// entries of a document. Entries that cannot be compiled allow nothing.
func newRules(p Policy, b Bins, d *Document, id chela.AgentID, home string) *Rules {
	r := &Rules{Policy: d.Effective(p, id), Bins: b}
	for _, name := range slices.Compact([]string{AllAgents, string(id)}) {
		for _, e := range d.Agents[name].Allowlist {
			c, err := compile(name, e, home)
			if err != nil {
				r.invalid = append(r.invalid, fmt.Errorf("allowlist of %s, %s: %w", name, e.Pattern, err))
				continue
			}
			r.patterns = append(r.patterns, c)
		}
	}
	return r
}

// Check returns an error for each invalid entry.
func (r *Rules) Check() error { return errors.Join(r.invalid...) }

// Match is the result for a command that is fully on the allowlist.
type Match struct {
	Command string // command to run; each program in it is the file that was matched
	Used    []Use  // entries that allowed it; empty if only built-in rules did
	Host    bool   // its entries say that it runs outside of the sandbox
}

// Use is an entry that allowed a program.
type Use struct {
	Agent string // key in the document
	ID    string // of the entry
	Path  string // of the program
}

// Entries returns the number of entries.
func (r *Rules) Entries() int { return len(r.patterns) }

// Undecidable is the reason why a command cannot be matched.
type Undecidable string

func (u Undecidable) Error() string { return string(u) }

// Match matches a command against the allowlist, under a policy that may be
// stricter than that of the rules. If reads is set, programs that only read
// need not be listed: the command must be confined. The error says what is not
// on the allowlist; it may be [Undecidable].
func (r *Rules) Match(p Policy, reads bool, sp shell.Plan, pl Env) (Match, error) {
	if sp.Undecidable != "" {
		return Match{}, Undecidable(sp.Undecidable)
	}
	m := matcher{rules: r, env: pl, found: map[string]string{}, host: true}
	for _, s := range sp.Segments {
		switch {
		case len(s.Redirects) > 0 && !p.Reads:
			return Match{}, Undecidable("it redirects")
		case reads && shell.Reads(s.Argv):
			m.host = false
		default:
			if err := m.segment(s); err != nil {
				return Match{}, err
			}
		}
	}
	return Match{
		Command: sp.Render(func(name string) string { return m.found[name] }),
		Used:    m.used,
		Host:    m.host && len(m.used) > 0,
	}, nil
}

// matcher is the state of a Match.
type matcher struct {
	rules *Rules
	env   Env
	found map[string]string // path of each matched program, by name
	used  []Use
	host  bool // every program so far may run outside of the sandbox
}

func (m *matcher) segment(s shell.Segment) error {
	name := s.Argv[0].Text
	p, ok := m.env.find(name)
	if !ok {
		return missError(shell.Escape(name) + " is not a program that could be on the allowlist")
	}
	if s.Transparent && m.rules.Bins.trusted(p) || !s.Transparent && m.allows(p, s.Argv) {
		m.found[name] = p.path
		return nil
	}
	return missError(shell.Escape(name) + " is not on the allowlist")
}

// missError says which program is not on the allowlist.
type missError string

func (m missError) Error() string { return string(m) }

// allows reports whether an entry or a safe bin allows the program.
func (m *matcher) allows(p program, argv []shell.Word) bool {
	if m.rules.Bins.match(p, argv) {
		return true
	}
	i := slices.IndexFunc(m.rules.patterns, func(c pattern) bool { return c.matches(p, argv) })
	if i < 0 {
		return false
	}
	c := m.rules.patterns[i]
	m.host = m.host && c.Host
	m.used = append(m.used, Use{Agent: c.agent, ID: c.ID, Path: p.path})
	return true
}
