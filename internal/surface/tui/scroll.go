package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/chela-ai/chela/internal/surface/tui/ansi"
)

// kind is the kind of a printed text. It determines where empty lines go.
type kind int

const (
	bare  kind = iota + 1 // lines without empty lines between them
	block                 // a message
	tools                 // a line of a tool call
)

// scroll queues the text to print above the screen. It is printed in pieces,
// one after the other, because concurrent prints are not ordered.
type scroll struct {
	lines []string
	last  kind // kind of the last text
	busy  bool // a piece is being printed
}

// printed reports that a piece was printed.
type printed struct{}

// add queues a text. An empty line separates blocks from everything else.
func (s *scroll) add(k kind, text string) {
	if s.last != 0 && (k != s.last || k == block) {
		s.lines = append(s.lines, "")
	}
	s.last = k
	s.lines = append(s.lines, strings.Split(text, "\n")...)
}

// extend queues a text that continues the last one.
func (s *scroll) extend(text string) { s.lines = append(s.lines, strings.Split(text, "\n")...) }

func (s *scroll) empty() bool { return len(s.lines) == 0 && !s.busy }

// flush returns a command that prints up to room lines of at most width
// columns; nil if there is nothing to print now.
func (s *scroll) flush(room, width int) tea.Cmd {
	if s.busy || len(s.lines) == 0 {
		return nil
	}
	for i := 0; i < min(room, len(s.lines)); i++ {
		if ansi.Width(s.lines[i]) > width { // the terminal is narrower than when the line was added
			s.lines = slices.Replace(s.lines, i, i+1, strings.Split(ansi.Wrap(s.lines[i], width), "\n")...)
		}
	}
	n := min(room, len(s.lines))
	text := strings.Join(s.lines[:n], "\n")
	s.lines = s.lines[n:]
	s.busy = true
	if text == "" {
		text = " " // an empty text would not be printed
	}
	return tea.Sequence(tea.Println(text), func() tea.Msg { return printed{} })
}
