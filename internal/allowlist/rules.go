package allowlist

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/shell"
)

// Rules is what holds for the commands of one agent. It is safe for concurrent
// use.
type Rules struct {
	Policy Policy
	Bins   Bins
	// StrictInline asks about code that is written in a command whatever else
	// is said, and each time.
	StrictInline bool

	patterns []pattern
	bad      []error
}

// newRules joins what the configuration says with the entries and the policy of
// a document. An entry that cannot be understood lets nothing run.
func newRules(p Policy, b Bins, d *Document, id chela.AgentID, home string) *Rules {
	r := &Rules{Policy: d.Over(p, id), Bins: b}
	for _, name := range slices.Compact([]string{AllAgents, string(id)}) {
		for _, e := range d.Agents[name].Allowlist {
			c, err := compile(name, e, home)
			if err != nil {
				r.bad = append(r.bad, fmt.Errorf("allowlist of %s, %s: %w", name, e.Pattern, err))
				continue
			}
			r.patterns = append(r.patterns, c)
		}
	}
	return r
}

// Check returns what is wrong with the entries.
func (r *Rules) Check() error { return errors.Join(r.bad...) }

// Match is a command all of which is on the allowlist.
type Match struct {
	Command string // that is to be run: each program in it is the file that was matched
	Used    []Use  // the entries that it is due to; none: it is due to what is built in
}

// Use is an entry that let a program run.
type Use struct {
	Agent string // of the document
	ID    string // of the entry
	Path  string // of the program
}

// Entries is how many entries there are.
func (r *Rules) Entries() int { return len(r.patterns) }

// Match holds a script against the allowlist, under a policy that may be
// stricter than that of the rules. plan is the judgement of the same command.
// An error says what is missing from the list.
func (r *Rules) Match(p Policy, plan shell.Plan, s shell.Script, pl Place) (Match, error) {
	if s.Redirects && !p.Reads {
		return Match{}, shell.Undecidable("it redirects")
	}
	m := matcher{rules: r, reads: p.Reads, place: pl, found: map[string]string{}}
	if err := m.script(s); err != nil {
		return Match{}, err
	}
	if err := m.agrees(plan); p.Reads && err != nil {
		return Match{}, err
	}
	return Match{
		Command: s.Render(func(name string) string { return m.found[name] }),
		Used:    m.used,
	}, nil
}

// matcher goes through a script.
type matcher struct {
	rules *Rules
	reads bool
	place Place
	found map[string]string // path of each program that was matched, by its name
	used  []Use

	listed bool // something is on the list by itself
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

// agrees holds what was matched against the judgement of the whole command. A
// step that only reads by itself may do more where it stands, by what comes in
// for one: whatever is judged so must be on the list by its own. A wrapper that
// is looked through counts as that only around something that is.
func (m *matcher) agrees(plan shell.Plan) error {
	if plan.Verdict > shell.ReadOnly && !m.listed {
		return missing(strings.Join(plan.Reasons, "; "))
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
			return missing(seg.Reason)
		}
	}
	return nil
}

func (m *matcher) call(st shell.Step, c shell.Call) error {
	name := st.Words[c.At].Text
	p, ok := m.place.find(name)
	if !ok {
		return missing(shell.Escape(name) + " is no program that could be on the allowlist")
	}
	if c.Through && m.rules.Bins.trusts(p) || !c.Through && m.allows(p, c.Argv) {
		m.found[name] = p.path
		return nil
	}
	return missing(shell.Escape(name) + " is not on the allowlist")
}

// missing says which program is not on the allowlist.
type missing string

func (m missing) Error() string { return string(m) }

// allows reports whether something lets the program run.
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
