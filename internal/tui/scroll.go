package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/chela-ai/chela/internal/tui/ansi"
)

// kind says what stands in the scrollback, which decides where empty lines
// are.
type kind int

const (
	bare  kind = iota + 1 // lines that stand together
	block                 // a message
	tools                 // a line for a tool
)

// scroll is what waits to be printed above the screen. It is printed in
// pieces, one after the other: prints that overlap would be in no order.
type scroll struct {
	lines []string
	last  kind // of what was added last
	busy  bool // a piece is on its way
}

// printed says that a piece is printed.
type printed struct{}

// add queues a text. Blocks stand apart from everything else.
func (s *scroll) add(k kind, text string) {
	if s.last != 0 && (k != s.last || k == block) {
		s.lines = append(s.lines, "")
	}
	s.last = k
	s.lines = append(s.lines, strings.Split(text, "\n")...)
}

// more queues a text that goes on with what was added last.
func (s *scroll) more(text string) { s.lines = append(s.lines, strings.Split(text, "\n")...) }

func (s *scroll) empty() bool { return len(s.lines) == 0 && !s.busy }

// flush returns what prints the next lines, at most room of at most width
// columns; nil: nothing is to be printed now.
func (s *scroll) flush(room, width int) tea.Cmd {
	if s.busy || len(s.lines) == 0 {
		return nil
	}
	for i := 0; i < min(room, len(s.lines)); i++ {
		if ansi.Width(s.lines[i]) > width { // the terminal became narrower, or nobody knew how wide it is
			s.lines = slices.Replace(s.lines, i, i+1, strings.Split(ansi.Wrap(s.lines[i], width), "\n")...)
		}
	}
	n := min(room, len(s.lines))
	text := strings.Join(s.lines[:n], "\n")
	s.lines = s.lines[n:]
	s.busy = true
	if text == "" {
		text = " " // an empty print prints nothing
	}
	return tea.Sequence(tea.Println(text), func() tea.Msg { return printed{} })
}
