// Package plan defines the plan of a session: the steps of the work that its model has
// set out to do, with their states and what they depend on.
//
// The model writes the plan as a whole each time something changes. It is a field of the
// session (session.Meta), so that compaction, a shortened history and a restart leave it
// as it is. A reset of the session removes it. A finished plan is kept until then, or
// until the next one, but the model is not told of it any more.
package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Limits of a plan.
const (
	MaxSteps = 50
	MaxID    = 40      // characters of an id
	MaxTitle = 200     // characters of a title
	MaxBytes = 8 << 10 // of the ids, titles and dependencies of all steps
)

// State is the state of a step.
type State string

// The states. The last three are final.
const (
	Pending    State = "pending"
	InProgress State = "in_progress"
	Completed  State = "completed"
	Failed     State = "failed"
	Cancelled  State = "cancelled"
)

// States returns all states.
func States() []State { return []State{Pending, InProgress, Completed, Failed, Cancelled} }

// Final reports whether nothing more is to be done for a step in the state.
func (s State) Final() bool { return s == Completed || s == Failed || s == Cancelled }

// Step is a step of a plan.
type Step struct {
	ID    string   `json:"id"` // unique in the plan
	Title string   `json:"title"`
	State State    `json:"state"`
	After []string `json:"after,omitempty"` // ids of the steps that it depends on
}

// Plan is the steps of the work in a session. The zero Plan has none. It is immutable:
// copies share the steps.
type Plan struct {
	Steps   []Step    `json:"steps,omitempty"`
	Updated time.Time `json:"updatedAt,omitzero"`
}

// EventPayload marks the plan as the data of an event.
func (Plan) EventPayload() {}

// New returns the plan with the steps. A step without an id gets its position as the id,
// and a step without a state is pending. Line breaks and repeated spaces in texts become
// single spaces. The error is for the model.
func New(steps []Step, now time.Time) (Plan, error) {
	if len(steps) > MaxSteps {
		return Plan{},
			chela.Errorf(chela.CodeInvalid,
				"a plan has at most %d steps, and this one has %d; join steps, or leave out those that are done",
				MaxSteps, len(steps))
	}
	p := Plan{Steps: make([]Step, len(steps)), Updated: now}
	size := 0
	for i, s := range steps {
		s.ID, s.Title, s.After = line(s.ID), line(s.Title), lines(s.After)
		if s.ID == "" {
			s.ID = fmt.Sprint(i + 1)
		}
		if s.State == "" {
			s.State = Pending
		}
		if err := s.check(); err != nil {
			return Plan{}, err
		}
		size += len(s.ID) + len(s.Title)
		for _, id := range s.After {
			size += len(id)
		}
		p.Steps[i] = s
	}
	if size > MaxBytes {
		return Plan{},
			chela.Errorf(chela.CodeInvalid, "the texts of a plan have at most %d bytes, and these have %d; shorten the titles",
				MaxBytes, size)
	}
	if err := p.checkDependencies(); err != nil {
		return Plan{}, err
	}
	if len(p.Steps) == 0 {
		return Plan{}, nil
	}
	return p, nil
}

// line returns the text as one line.
func line(s string) string { return strings.Join(strings.Fields(strings.ToValidUTF8(s, "")), " ") }

// lines returns the ids, each once.
func lines(ids []string) []string {
	var out []string
	for _, id := range ids {
		if id = line(id); id != "" && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// check returns what is wrong with a step by itself.
func (s Step) check() error {
	switch {
	case s.Title == "":
		return chela.Errorf(chela.CodeInvalid, "the step %q has no title", s.ID)
	case utf8.RuneCountInString(s.ID) > MaxID:
		return chela.Errorf(chela.CodeInvalid, "the id %q is too long: an id has at most %d characters",
			chela.Line(s.ID, MaxID), MaxID)
	case utf8.RuneCountInString(s.Title) > MaxTitle:
		return chela.Errorf(chela.CodeInvalid, "the title of the step %q is too long: a title has at most %d characters",
			s.ID, MaxTitle)
	case !slices.Contains(States(), s.State):
		return chela.Errorf(chela.CodeInvalid, "the step %q has the unknown state %q; use one of %v", s.ID,
			chela.Line(string(s.State), MaxID), States())
	}
	return nil
}

// checkDependencies returns an error for an id that is used twice, for a dependency on a
// step that does not exist, and for a cycle.
func (p Plan) checkDependencies() error {
	index := map[string]int{}
	for i, s := range p.Steps {
		if _, twice := index[s.ID]; twice {
			return chela.Errorf(chela.CodeInvalid, "two steps have the id %q; ids are unique in a plan", s.ID)
		}
		index[s.ID] = i
	}
	for _, s := range p.Steps {
		for _, id := range s.After {
			if _, known := index[id]; !known {
				return chela.Errorf(chela.CodeInvalid, "the step %q depends on %q, but the plan has no step with that id",
					s.ID, chela.Line(id, MaxID))
			}
		}
	}
	if c := p.cycle(index); c != nil {
		return chela.Errorf(chela.CodeInvalid, "the dependencies form a cycle: %s", strings.Join(c, " → "))
	}
	return nil
}

// cycle returns the ids of a cycle of dependencies, in which the first one is repeated at
// the end; nil if there is none.
func (p Plan) cycle(index map[string]int) []string {
	const visiting, visited = 1, 2
	state := make([]int, len(p.Steps))
	var path []string
	var visit func(i int) bool
	visit = func(i int) bool {
		id := p.Steps[i].ID
		switch state[i] {
		case visited:
			return false
		case visiting:
			path = append(path[slices.Index(path, id):], id)
			return true
		}
		state[i] = visiting
		path = append(path, id)
		if slices.ContainsFunc(p.Steps[i].After, func(on string) bool { return visit(index[on]) }) {
			return true
		}
		state[i], path = visited, path[:len(path)-1]
		return false
	}
	for i := range p.Steps {
		if visit(i) {
			return path
		}
	}
	return nil
}

// Done returns the number of steps in a final state.
func (p Plan) Done() (n int) {
	for _, s := range p.Steps {
		if s.State.Final() {
			n++
		}
	}
	return n
}

// Open reports whether the plan has a step that is not in a final state.
func (p Plan) Open() bool { return p.Done() < len(p.Steps) }

// Equal reports whether both plans have the same steps.
func (p Plan) Equal(q Plan) bool {
	return slices.EqualFunc(p.Steps, q.Steps, func(a, b Step) bool {
		return a.ID == b.ID && a.Title == b.Title && a.State == b.State && slices.Equal(a.After, b.After)
	})
}

// Waits returns the ids of the steps on which the step depends and which are not in a
// final state.
func (p Plan) Waits(s Step) (ids []string) {
	for _, on := range p.Steps {
		if slices.Contains(s.After, on.ID) && !on.State.Final() {
			ids = append(ids, on.ID)
		}
	}
	return ids
}

// Prompt returns the open steps for the system prompt; "" if there are none. It is the
// same text until the plan changes.
func (p Plan) Prompt() string {
	if !p.Open() {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b,
		"Your plan in this session (%d of %d steps are done). Keep it up to date with the tool plan. What is still open:\n",
		p.Done(), len(p.Steps))
	for _, s := range p.Steps {
		if s.State.Final() {
			continue
		}
		fmt.Fprintf(&b, "- %s: %s (%s", s.ID, s.Title, s.State)
		if w := p.Waits(s); len(w) > 0 {
			b.WriteString(", after " + strings.Join(w, ", "))
		}
		b.WriteString(")\n")
	}
	return b.String()
}
