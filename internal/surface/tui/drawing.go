package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// drawTime is the maximum time until the renderer, which draws 60 times per
// second, has drawn its current content.
const drawTime = 50 * time.Millisecond

// drawing is the content passed to the renderer. It works around two problems
// of the renderer (bubbletea 2.0.9):
//
// If a drawing shrinks so much that the cursor's row is no longer part of it,
// the renderer assumes the cursor is in the new last row and leaves the top of
// the old drawing on the terminal. Therefore a drawing shrinks in two steps: it
// keeps its rows, empty, until the cursor has been drawn further up.
//
// After a print, the cursor stays above the drawing until the drawing changes.
// Therefore each print toggles an escape sequence that has no effect.
type drawing struct {
	view    tea.View
	lowest  int  // lowest row where the cursor may be on the terminal
	recent  int  // lowest cursor row since the last flush
	pending bool // a flushed message is scheduled
	odd     bool // an odd number of prints so far
}

// flushed reports that the renderer has drawn the earlier content.
type flushed struct{}

// markFlushed records that the renderer has drawn the earlier content.
func (d *drawing) markFlushed() { d.lowest, d.recent, d.pending = d.recent, 0, false }

// printed records that something was printed above.
func (d *drawing) printed() { d.odd = !d.odd }

// stable reports whether the drawing has its final number of rows.
func (d *drawing) stable() bool { return !d.pending }

// give sets the next content. It is padded to at most maxRows rows.
func (d *drawing) give(v tea.View, maxRows int) tea.Cmd {
	rows := strings.Count(v.Content, "\n") + 1
	row := rows - 1
	if v.Cursor != nil {
		row = v.Cursor.Y
	}
	d.lowest, d.recent = max(d.lowest, row), max(d.recent, row)
	if d.odd {
		v.Content += "\x1b[m"
	}
	v.Content += strings.Repeat("\n", max(min(d.lowest+1, maxRows)-rows, 0))
	d.view = v
	if d.lowest == row || d.pending {
		return nil
	}
	d.pending = true
	return tea.Tick(drawTime, func(time.Time) tea.Msg { return flushed{} })
}
