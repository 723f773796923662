package tui

import (
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/internal/surface/tui/feed"
	"github.com/chela-ai/chela/wire"
)

// planChanged shows the new plan of the session. An open plan is part of the drawing and
// is updated in place. A finished plan is printed, once.
func (s *screen) planChanged(p wire.Plan) {
	s.plan = wire.Plan{}
	switch {
	case feed.PlanOpen(p):
		s.plan = p
	case len(p.Steps) > 0:
		s.printSteps(p)
	}
}

// printSteps prints a plan: one line, and its steps if details are shown.
func (s *screen) printSteps(p wire.Plan) {
	s.scroll.add(tools, s.planTitle(p))
	if s.detail {
		for _, st := range p.Steps {
			s.scroll.extend(strings.Join(s.planStep(p, st), "\n"))
		}
	}
}

// planLines returns the open plan for the drawing, in at most that many lines: one line
// or, if details are shown, also its steps. If there is no room for all of them, steps
// that are done are left out first, then the last ones.
func (s *screen) planLines(most int) []string {
	if len(s.plan.Steps) == 0 || most < 1 {
		return nil
	}
	lines := []string{s.planTitle(s.plan)}
	if !s.detail || most < 2 {
		return lines
	}
	done, open := [][]string{}, [][]string{}
	for _, st := range s.plan.Steps {
		if l := s.planStep(s.plan, st); feed.PlanStepDone(st) {
			done = append(done, l)
		} else {
			open = append(open, l)
		}
	}
	if all := len(flat(done)) + len(flat(open)); all < most {
		for _, st := range s.plan.Steps {
			lines = append(lines, s.planStep(s.plan, st)...)
		}
		return lines
	}
	left, room := len(done), most-2 // a line for the number of the others
	for i, l := range open {
		if len(l) > room {
			left += len(open) - i
			break
		}
		lines, room = append(lines, l...), room-len(l)
	}
	return append(lines, s.styles.Dim.Paint(fmt.Sprintf("  … %d more", left)))
}

func flat(steps [][]string) (lines []string) {
	for _, l := range steps {
		lines = append(lines, l...)
	}
	return lines
}

// planTitle returns the line of a plan: how much of it is done, and, if it is folded,
// what is in progress.
func (s *screen) planTitle(p wire.Plan) string {
	mark, now := "▸", ansi.Line(feed.PlanNow(p))
	if s.detail {
		mark, now = "▾", ""
	}
	line := s.styles.Accent.Paint(mark) + " " + feed.PlanCount(p)
	if now != "" {
		line += s.styles.Dim.Paint(" · " + now)
	}
	return ansi.Truncate(line, s.columns())
}

// planStep returns the lines of a step: its state, its title, and what it depends on.
func (s *screen) planStep(p wire.Plan, st wire.PlanStep) []string {
	title, after := feed.PlanStepText(p, st)
	text := ansi.Line(title)
	if after != "" {
		text += s.styles.Dim.Paint(" (" + ansi.Line(after) + ")")
	}
	mark := "○"
	switch st.Status {
	case wire.PlanInProgress:
		mark = s.styles.Accent.Paint("●")
	case wire.PlanCompleted:
		mark = s.styles.Good.Paint("✓")
	case wire.PlanFailed:
		mark = s.styles.Bad.Paint("✗")
	case wire.PlanCancelled:
		mark, text = s.styles.Dim.Paint("–"), s.styles.Dim.Paint(ansi.Line(title))
	}
	lines := strings.Split(ansi.Wrap(text, s.columns()-4), "\n")
	for i, l := range lines {
		if i == 0 {
			lines[i] = "  " + mark + " " + l
		} else {
			lines[i] = "    " + l
		}
	}
	return lines
}
