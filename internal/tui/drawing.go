package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// drawTime is how long it may take until what was given to the renderer is on
// the terminal: it draws 60 times in a second.
const drawTime = 50 * time.Millisecond

// drawing is what is given to the renderer. Two things that the renderer
// (bubbletea 2.0.9) loses are held for it:
//
// When a drawing becomes so low that the cursor's row is no more in it, the
// renderer takes the cursor for being in the new last row, and leaves the top
// of the old drawing where it was. So a drawing shrinks in two steps: it keeps
// its rows, empty, until the cursor has been drawn further up.
//
// After a print the cursor stays above the drawing until the drawing changes.
// So it changes then, by an order that does nothing.
type drawing struct {
	view    tea.View
	low     int  // lowest row where the cursor may be on the terminal
	recent  int  // the same, of what was given since the last settled
	pending bool // a settled is on its way
	odd     bool // prints so far
}

// settled says that what was given before is on the terminal.
type settled struct{}

func (d *drawing) settle() { d.low, d.recent, d.pending = d.recent, 0, false }

// printed notes that something was printed above.
func (d *drawing) printed() { d.odd = !d.odd }

// still reports whether the drawing has the rows that it is to have.
func (d *drawing) still() bool { return !d.pending }

// give sets what is drawn next, in at most so many rows if it has not more.
func (d *drawing) give(v tea.View, most int) tea.Cmd {
	rows := strings.Count(v.Content, "\n") + 1
	row := rows - 1
	if v.Cursor != nil {
		row = v.Cursor.Y
	}
	d.low, d.recent = max(d.low, row), max(d.recent, row)
	if d.odd {
		v.Content += "\x1b[m"
	}
	v.Content += strings.Repeat("\n", max(min(d.low+1, most)-rows, 0))
	d.view = v
	if d.low == row || d.pending {
		return nil
	}
	d.pending = true
	return tea.Tick(drawTime, func(time.Time) tea.Msg { return settled{} })
}
