package tui

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/chela-ai/chela/internal/figure"
	"github.com/chela-ai/chela/internal/tui/ansi"
)

// View returns what was drawn last.
func (s *screen) View() tea.View { return s.drawing.view }

// draw draws what still changes: the tail of the turn, what is asked, the
// input, and a line about the session.
func (s *screen) draw() tea.View {
	if s.leaving {
		v := tea.NewView(" ") // one row: of none the renderer loses the place
		v.Cursor = tea.NewCursor(0, 0)
		return v
	}
	below := []string{s.rule()}
	input := strings.Split(s.input.View(), "\n")
	below = append(below, input...)
	if lines := s.menu.view(s.styles, s.width); lines != nil {
		below = append(below, lines...)
	} else {
		below = append(below, s.footer())
	}
	if q := s.question(); q != "" {
		below = append(strings.Split(q, "\n"), below...)
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

// tailLines returns the end of what is not printed yet, at most so many lines,
// and how long it has been going on.
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
		line := ansi.Truncate("✻ thinking  "+elapsed(time.Since(it.began))+"  "+strings.Join(text[max(len(text)-12, 0):], " "), s.columns())
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

// running returns the line of a call, with the end of its output when details
// are shown.
func (s *screen) running(it *item) []string {
	if it.done {
		return []string{s.toolLine(*it.tool)}
	}
	if s.waits {
		return []string{s.styles.Warn.Paint("?") + " " + ansi.Truncate(ansi.Line(it.tool.Label), s.columns()-2)}
	}
	took := "  " + elapsed(time.Since(it.began))
	line := s.styles.Accent.Paint(s.spinner()) + " " + ansi.Truncate(ansi.Line(it.tool.Label), s.columns()-2-len(took)) + s.styles.Dim.Paint(took)
	lines := []string{line}
	if s.detail && it.out != "" {
		out := strings.Split(strings.TrimRight(it.out, "\n"), "\n")
		lines = append(lines, strings.Split(s.output(strings.Join(out[max(len(out)-6, 0):], "\n"), 6), "\n")...)
	}
	return lines
}

// progress says that an answer is awaited, since when, and how to stop it.
func (s *screen) progress() string {
	what := "working"
	switch {
	case s.lost:
		what = "connecting"
	case s.active == "":
		what = "waiting"
	}
	line := s.styles.Accent.Paint(s.spinner()) + " " + what + s.styles.Dim.Paint("  "+elapsed(time.Since(s.since))+"  esc stops")
	if n := len(s.sent); n > 0 && s.active != "" {
		line += s.styles.Dim.Paint("  " + strconv.Itoa(n) + " to come")
	}
	return ansi.Truncate(line, s.width)
}

func (s *screen) spinner() string {
	frames := [...]string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}
	return frames[s.frame%len(frames)]
}

// tick moves the spinner and the time.
type tick struct{}

// spin returns the next tick while something is in progress.
func (s *screen) spin() tea.Cmd {
	if s.spins || s.leaving || !s.busy() && (len(s.live) == 0 || s.waits) {
		return nil
	}
	s.spins = true
	return tea.Tick(100*time.Millisecond, func(time.Time) tea.Msg { return tick{} })
}

// rule is the line above the input: the session and its model.
func (s *screen) rule() string {
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
	return s.styles.Dim.Paint(text + strings.Repeat("─", max(s.width-ansi.Width(text), 0)))
}

// footer is the line below the input.
func (s *screen) footer() string {
	if s.note != "" {
		return ansi.Truncate(s.styles.Warn.Paint(s.note), s.width)
	}
	var parts []string
	switch {
	case s.lost:
		parts = append(parts, "no connection")
	case s.waits:
		parts = append(parts, "waits for a decision")
	case s.busy():
		parts = append(parts, "answering")
	default:
		parts = append(parts, "ready")
	}
	parts = append(parts, s.usage()...)
	parts = append(parts, "ctrl+o details", "ctrl+c "+map[bool]string{true: "stops", false: "leaves"}[s.turn()])
	return s.styles.Dim.Paint(ansi.Truncate(strings.Join(parts, " · "), s.width))
}

// usage is how full the context is and what the session cost.
func (s *screen) usage() []string {
	x := s.session
	if x == nil || x.TotalTokens == 0 {
		return nil
	}
	parts := []string{"context " + figure.Count(x.TotalTokens)}
	if x.ContextWindow > 0 {
		parts[0] += fmt.Sprintf("/%s (%d%%)", figure.Count(x.ContextWindow), x.TotalTokens*100/x.ContextWindow)
	}
	if x.Cost != nil && *x.Cost > 0 {
		parts = append(parts, fmt.Sprintf("$%.4f", *x.Cost))
	}
	return parts
}
