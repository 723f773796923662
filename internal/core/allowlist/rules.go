package allowlist

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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
}

// Use is an entry that allowed a program.
type Use struct {
	Agent string // key in the document
	ID    string // of the entry
	Path  string // of the program
}

// Entries returns the number of entries.
func (r *Rules) Entries() int { return len(r.patterns) }

// Match matches a script against the allowlist, under a policy that may be
// stricter than that of the rules. plan is the verdict on the same command.
// The error says what is not on the allowlist.
func (r *Rules) Match(p Policy, plan shell.Plan, s shell.Script, pl Env) (Match, error) {
	if s.Redirects && !p.Reads {
		return Match{}, shell.Undecidable("it redirects")
	}
	m := matcher{rules: r, reads: p.Reads, env: pl, found: map[string]string{}}
	if err := m.script(s); err != nil {
		return Match{}, err
	}
	if err := m.checkPlan(plan); p.Reads && err != nil {
		return Match{}, err
	}
	return Match{
		Command: s.Render(func(name string) string { return m.found[name] }),
		Used:    m.used,
	}, nil
}

// matcher is the state of a Match.
type matcher struct {
	rules *Rules
	reads bool
	env   Env
	found map[string]string // path of each matched program, by name
	used  []Use

	listed bool // at least one program matched an entry or a safe bin
}

func (m *matcher) script(s shell.Script) error {
	for _, st := range s.Steps {
		if m.reads && st.ReadOnly {
			continue
		}
		for _, c := range st.Calls {
			if err := m.call(st, c); err != nil {
				return err
			}
		}
		if st.Text != nil {
			if err := m.script(*st.Text); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkPlan compares the matched programs with the verdict on the whole
// command. A step that only reads by itself may do more in context, for
// example because of its input, so every segment that is not read-only must
// be on the list. A transparent wrapper counts as listed only around a listed
// program.
func (m *matcher) checkPlan(plan shell.Plan) error {
	if plan.Verdict > shell.ReadOnly && !m.listed {
		return missError(strings.Join(plan.Reasons, "; "))
	}
	for _, seg := range plan.Segments {
		if seg.Verdict == shell.ReadOnly {
			continue
		}
		argv := seg.Argv
		for len(argv) > 0 && !argv[0].Literal && strings.Contains(argv[0].Text, "=") {
			argv = argv[1:] // a variable
		}
		if len(argv) == 0 || m.found[argv[0].Text] == "" {
			return missError(seg.Reason)
		}
	}
	return nil
}

func (m *matcher) call(st shell.Step, c shell.Call) error {
	name := st.Words[c.At].Text
	p, ok := m.env.find(name)
	if !ok {
		return missError(shell.Escape(name) + " is not a program that could be on the allowlist")
	}
	if c.Transparent && m.rules.Bins.trusted(p) || !c.Transparent && m.allows(p, c.Argv) {
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
		m.listed = true
		return true
	}
	i := slices.IndexFunc(m.rules.patterns, func(c pattern) bool { return c.matches(p, argv) })
	if i < 0 {
		return false
	}
	m.listed = true
	c := m.rules.patterns[i]
	m.used = append(m.used, Use{Agent: c.agent, ID: c.ID, Path: p.path})
	return true
}
