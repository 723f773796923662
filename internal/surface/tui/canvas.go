package tui

import (
	"io"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/chela-ai/chela/internal/surface/tui/ansi"
)

// canvas writes to the terminal: lines that stay, and below them the drawing, which the
// next one replaces. The last row of the drawing never moves up: where a drawing is
// smaller than the one before, empty rows precede it until printed lines take their place.
//
// It replaces the renderer of bubbletea, which keeps the first row of a drawing where it
// is, does not know that terminals break rows when they become narrower, and asks the
// terminal questions whose answers may arrive after the end.
type canvas struct {
	out           io.Writer // nil: nothing is written
	width, height int
	rows          []string // the drawing on the terminal, from its first row
	x, y          int      // the cursor in it, from its upper left corner
	stale         bool     // the terminal does not show rows as they are
	reflows       bool     // a terminal that becomes narrower breaks the rows that are too wide
	err           error    // of out
}

// Modes of the terminal: pastes are marked (2004), and keys are reported that have no
// character of their own, such as Shift-Enter: as xterm does (>4;2m), and as kitty does (>1u),
// since terminals know one or the other and ignore what they do not know.
const (
	modesOn  = "\x1b[?2004h\x1b[>4;2m\x1b[>1u"
	modesOff = "\x1b[<1u\x1b[>4m\x1b[?2004l"
)

// show prints lines and replaces the drawing, which has at least one row. No line is wider
// than the terminal.
//
// Rows that have not changed are not written. While the drawing is written, the terminal does not
// wrap (?7l), so that a row that is as wide as the terminal does not begin another one, and the
// cursor is hidden (?25l).
func (c *canvas) show(lines []string, v tea.View) {
	rows := strings.Split(v.Content, "\n")
	// The lines take the place of as many empty rows of the drawing before.
	pad := max(min(len(c.rows)-len(lines), c.height)-len(rows), 0)
	rows = append(make([]string, pad), rows...)
	x, y := 0, len(rows)-1
	if v.Cursor != nil {
		x, y = v.Cursor.X, pad+v.Cursor.Y
	}
	if len(lines) == 0 && !c.stale && x == c.x && y == c.y && slices.Equal(rows, c.rows) {
		return
	}
	var b strings.Builder
	b.WriteString("\x1b[?25l")
	row := c.y
	if len(lines) == 0 && !c.stale && len(rows) == len(c.rows) {
		b.WriteString("\x1b[?7l")
		for i, r := range rows {
			if r != c.rows[i] {
				move(&b, i-row)
				b.WriteString("\r\x1b[2K" + r)
				row = i
			}
		}
	} else {
		move(&b, -row)
		b.WriteString("\r\x1b[J")
		for _, l := range lines {
			b.WriteString(l + "\r\n")
		}
		b.WriteString("\x1b[?7l" + strings.Join(rows, "\r\n"))
		row = len(rows) - 1
	}
	move(&b, y-row)
	b.WriteByte('\r')
	if x > 0 {
		b.WriteString("\x1b[" + strconv.Itoa(x) + "C")
	}
	b.WriteString("\x1b[?7h\x1b[?25h")
	c.rows, c.x, c.y, c.stale = rows, x, y, false
	c.write(b.String())
}

// resize prepares for a terminal of another size. The terminal has broken the rows already, or
// will have by the time that the next drawing is written. What counts is where the cursor is
// then: from there the next drawing goes up to the first row.
func (c *canvas) resize(width, height int) {
	n, y := 0, 0
	for i, r := range c.rows {
		if i == c.y {
			y = n
		}
		if !c.reflows {
			n++
			continue
		}
		x, lines := c.x, strings.Split(ansi.HardWrap(r, width), "\n")
		for k, l := range lines {
			w := ansi.Width(l)
			if i != c.y || x < w || k == len(lines)-1 && w < width {
				break
			}
			x, y = x-w, y+1 // the cursor is in the next part
		}
		n += len(lines)
	}
	c.rows, c.y, c.stale = make([]string, n), y, true
	c.width, c.height = width, height
}

// clear empties the screen, so that the drawing is at its top.
func (c *canvas) clear() {
	c.write("\x1b[H\x1b[2J")
	c.rows, c.y, c.stale = nil, 0, true
}

// close removes the drawing. What is written next follows the printed lines.
func (c *canvas) close() {
	var b strings.Builder
	move(&b, -c.y)
	c.write(b.String() + "\r\x1b[J")
	c.rows, c.y = nil, 0
}

func (c *canvas) write(s string) {
	if c.out != nil && c.err == nil {
		_, c.err = io.WriteString(c.out, s)
	}
}

// move moves the cursor down, or up if n is negative.
func move(b *strings.Builder, n int) {
	switch {
	case n > 0:
		b.WriteString("\x1b[" + strconv.Itoa(n) + "B")
	case n < 0:
		b.WriteString("\x1b[" + strconv.Itoa(-n) + "A")
	}
}
