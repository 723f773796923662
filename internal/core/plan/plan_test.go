package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestNew(t *testing.T) {
	t.Parallel()
	many := make([]Step, MaxSteps+1)
	for i := range many {
		many[i].Title = "x"
	}
	long := make([]Step, MaxSteps)
	for i := range long {
		long[i].Title = strings.Repeat("x", MaxTitle)
	}
	for _, tt := range []struct {
		name  string
		steps []Step
		want  string // part of the error
	}{
		{"a plan with dependencies",
			[]Step{{ID: "a", Title: "A", State: Completed}, {ID: "b", Title: "B", After: []string{"a"}}}, ""},
		{"a dependency on a later step", []Step{{ID: "a", Title: "A", After: []string{"b"}}, {ID: "b", Title: "B"}}, ""},
		{"two steps in progress", []Step{{Title: "A", State: InProgress}, {Title: "B", State: InProgress}}, ""},
		{"no steps", nil, ""},
		{"no title", []Step{{ID: "a", Title: " \n"}}, `the step "a" has no title`},
		{"an unknown state", []Step{{Title: "A", State: "done"}}, `the unknown state "done"`},
		{"an id twice", []Step{{ID: "a", Title: "A"}, {ID: "a", Title: "B"}}, `two steps have the id "a"`},
		{"an id that is the position of another step", []Step{{ID: "2", Title: "A"}, {Title: "B"}},
			`two steps have the id "2"`},
		{"an unknown dependency", []Step{{ID: "a", Title: "A", After: []string{"z"}}}, `the step "a" depends on "z"`},
		{"a dependency on itself", []Step{{ID: "a", Title: "A", After: []string{"a"}}}, "a cycle: a → a"},
		{"a cycle", []Step{{ID: "x", Title: "X", After: []string{"a"}}, {ID: "a", Title: "A", After: []string{"b"}},
			{ID: "b", Title: "B", After: []string{"c"}}, {ID: "c", Title: "C", After: []string{"a"}}}, "a cycle: a → b → c → a"},
		{"too many steps", many, "at most 50 steps"},
		{"too long an id", []Step{{ID: strings.Repeat("i", MaxID+1), Title: "A"}}, "an id has at most"},
		{"too long a title", []Step{{Title: strings.Repeat("t", MaxTitle+1)}}, "a title has at most"},
		{"too many bytes", long, "at most 8192 bytes"},
	} {
		_, err := New(tt.steps, time.Now())
		if got := fmt.Sprint(err); tt.want == "" && err != nil || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	p, err := New([]Step{
		{ID: "read", Title: "read\nthe  code", State: Completed},
		{ID: "write", Title: "write", State: InProgress, After: []string{"read", "read"}},
		{Title: "test", After: []string{"write", "read"}},
		{ID: "ship", Title: "ship", State: Cancelled},
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	want := "Your plan in this session (2 of 4 steps are done). Keep it up to date with the tool plan. What is still open:\n" +
		"- write: write (in_progress)\n- 3: test (pending, after write)\n"
	if got := p.Prompt(); got != want {
		t.Errorf("the prompt is\n%s", got)
	}
	if p.Steps[0].Title != "read the code" || len(p.Steps[1].After) != 1 {
		t.Errorf("the steps are %+v", p.Steps)
	}
	done, err := New([]Step{{Title: "a", State: Completed}, {Title: "b", State: Failed}}, time.Now())
	if err != nil || done.Open() || done.Prompt() != "" || p.Equal(done) || !p.Equal(p) {
		t.Errorf("a finished plan: %+v, %v", done, err)
	}
	if none, err := New(nil, time.Now()); err != nil || none.Open() || !none.Updated.IsZero() {
		t.Errorf("no plan: %+v, %v", none, err)
	}
}
