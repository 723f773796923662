package tui

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/internal/surface/tui/feed"
)

// View returns the current drawing.
func (s *screen) View() tea.View { return s.view }

// draw returns the parts that still change: the end of the turn, the approval
// question, the input, and a status line.
func (s *screen) draw() tea.View {
	if s.quitting {
		return tea.NewView("")
	}
	below := []string{s.header()}
	input := strings.Split(strings.ReplaceAll(s.input.View(), tab, " "), "\n")
	below = append(below, input...)
	if lines := s.menu.view(s.styles, s.width); lines != nil {
		below = append(below, lines...)
	} else {
		below = append(below, s.footer())
	}
	if q := s.question(); q != "" {
		below = append(strings.Split(q, "\n"), below...)
	}
	if plan := s.planLines(min(s.height-s.room()-len(below)-2, max(s.height/3, 2))); plan != nil {
		below = append(plan, below...)
	}
	above := s.tailLines(s.height - s.room() - len(below) - 1)
	v := tea.NewView(strings.Join(append(above, below...), "\n"))
	if c := s.input.Cursor(); c != nil {
		rule := len(below) - len(input) - len(s.menu.view(s.styles, s.width))
		if !s.menu.open() {
			rule--
		}
		c.Y += len(above) + rule
		v.Cursor = c
	}
	return v
}

// tailLines returns up to most of the last lines that are not printed yet, and
// the progress line.
func (s *screen) tailLines(most int) []string {
	var lines []string
	for _, it := range s.live {
		lines = append(lines, s.itemLines(it)...)
	}
	if s.busy() {
		if len(lines) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, s.progress())
	}
	lines = lines[max(len(lines)-max(most, 0), 0):]
	if s.scroll.last != 0 {
		lines = append([]string{""}, lines...)
	}
	return lines
}

func (s *screen) itemLines(it *item) []string {
	switch {
	case it.tool != nil:
		return s.running(it)
	case it.think:
		text := strings.Fields(ansi.Clean(it.text[max(len(it.text)-400, 0):]))
		line := ansi.Truncate("✻ thinking  "+elapsed(time.Since(it.began))+"  "+
			strings.Join(text[max(len(text)-12, 0):], " "), s.columns())
		return []string{s.styles.Dim.Paint(line)}
	}
	if it.stale || it.lines == nil {
		it.lines, it.stale = nil, false
		if rest := it.text[it.shown:]; strings.TrimSpace(rest) != "" {
			it.lines = strings.Split(s.markdown(rest), "\n")
		}
	}
	return it.lines
}

// running returns the line of a tool call, with the end of its output if
// details are shown.
func (s *screen) running(it *item) []string {
	if it.tool.Name == feed.PlanTool && !it.tool.Failed {
		return nil // the plan itself is shown
	}
	if it.done {
		return strings.Split(s.toolLine(*it.tool), "\n")
	}
	if s.suspended {
		return []string{s.waiting(it)}
	}
	took := "  " + elapsed(time.Since(it.began))
	line := s.styles.Accent.Paint(s.spinner()) + " " + ansi.Truncate(ansi.Line(it.tool.Label), s.columns()-2-len(took)) +
		s.styles.Dim.Paint(took)
	lines := []string{line}
	if s.detail && it.out != "" {
		out := strings.Split(strings.TrimRight(it.out, "\n"), "\n")
		lines = append(lines, strings.Split(s.output(strings.Join(out[max(len(out)-6, 0):], "\n"), 6), "\n")...)
	}
	return lines
}

// waiting returns the line of a tool call that waits for an approval.
func (s *screen) waiting(it *item) string {
	return s.styles.Warn.Paint("?") + " " + ansi.Truncate(ansi.Line(it.tool.Label), s.columns()-2)
}

// progress returns the line shown while an answer is expected.
func (s *screen) progress() string {
	state := "working"
	switch {
	case s.lost:
		state = "connecting"
	case s.active == "":
		state = "waiting"
	}
	line := s.styles.Accent.Paint(s.spinner()) + " " + state +
		s.styles.Dim.Paint("  "+elapsed(time.Since(s.startedAt))+"  esc to stop")
	if n := len(s.sent); n > 0 && s.active != "" {
		line += s.styles.Dim.Paint("  " + strconv.Itoa(n) + " queued")
	}
	return ansi.Truncate(line, s.width)
}

func (s *screen) spinner() string {
	frames := [...]string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}
	return frames[s.frame%len(frames)]
}

// tickMsg updates the spinner and the elapsed time.
type tickMsg struct{}

// tick schedules the next tickMsg while something is in progress.
func (s *screen) tick() tea.Cmd {
	if s.ticking || s.quitting || !s.busy() && (len(s.live) == 0 || s.suspended) {
		return nil
	}
	s.ticking = true
	return tea.Tick(100*time.Millisecond, func(time.Time) tea.Msg { return tickMsg{} })
}

// maxRule is the width of the line above the input. It is short: while no row above the
// cursor is wider than a terminal that becomes narrower, it does not matter whether the
// terminal breaks rows.
const maxRule = 40

// header is the line above the input: the session and its model.
func (s *screen) header() string {
	name := strings.TrimPrefix(s.feed.Session, "agent:main:")
	label := ""
	provider, model := s.model.Provider, s.model.Model
	if s.session != nil {
		provider, model = cmp.Or(s.session.Provider, provider), cmp.Or(s.session.Model, model)
		label = s.session.Label
	}
	text := ansi.Line(cmp.Or(label, name))
	if m := strings.Trim(provider+"/"+model, "/"); m != "" {
		text += " · " + ansi.Line(m)
	}
	text = ansi.Truncate("── "+text+" ", s.width)
	return s.styles.Dim.Paint(text + strings.Repeat("─", max(min(s.width, maxRule)-ansi.Width(text), 0)))
}

// footer is the line below the input.
func (s *screen) footer() string {
	if s.note != "" {
		return ansi.Truncate(s.styles.Warn.Paint(s.note), s.width)
	}
	var parts []string
	switch {
	case s.lost:
		parts = append(parts, "disconnected")
	case s.stopping && s.inProgress() && s.quits():
		return ansi.Truncate(s.styles.Warn.Paint("stopping; press ctrl+c again to quit"), s.width)
	case s.stopping && s.inProgress():
		parts = append(parts, "stopping")
	case s.suspended:
		parts = append(parts, "waiting for approval")
	case s.busy():
		parts = append(parts, "answering")
	case len(s.asked) > 0: // another session's, or a command's in the background
		parts = append(parts, "a question waits")
	default:
		parts = append(parts, "ready")
	}
	if n := len(s.subagents); n > 0 {
		parts = append(parts, humanize.Many(n, "subagent")+" at work")
	}
	parts = append(parts, s.usage()...)
	parts = append(parts, "ctrl+o details", "ctrl+c "+map[bool]string{true: "stop", false: "quit"}[s.inProgress()])
	return s.styles.Dim.Paint(ansi.Truncate(strings.Join(parts, " · "), s.width))
}

// usage returns the size of the context and the cost of the session.
func (s *screen) usage() []string {
	x := s.session
	if x == nil || x.TotalTokens == 0 {
		return nil
	}
	parts := []string{"context " + humanize.Count(x.TotalTokens)}
	if x.ContextWindow > 0 {
		parts[0] += fmt.Sprintf("/%s (%d%%)", humanize.Count(x.ContextWindow), x.TotalTokens*100/x.ContextWindow)
	}
	if x.Cost != nil && *x.Cost > 0 {
		parts = append(parts, fmt.Sprintf("$%.4f", *x.Cost))
	}
	return parts
}
