package tui_test

import (
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// vt is a terminal as far as the screen needs one. Like most terminals, it breaks lines
// again when its width changes, unless it cuts them.
type vt struct {
	cuts          bool
	width, height int
	lines         []vtLine // scrollback and screen
	top           int      // first line of the screen
	x, y          int      // cursor; y counts from the first line of all
	pending       bool     // the last column was written
	nowrap        bool
	rest          string // an incomplete sequence
}

// vtLine is a line of a terminal.
type vtLine struct {
	cells []string // graphemes; "" follows a wide one
	soft  bool     // the next line continues it
}

func (l vtLine) String() string { return strings.TrimRight(strings.Join(l.cells, ""), " ") }

func newVT(width, height int) *vt { return &vt{width: width, height: height, lines: make([]vtLine, 1)} }

// Write writes p to the terminal.
func (v *vt) Write(p []byte) (int, error) {
	s := v.rest + string(p)
	for s != "" {
		switch {
		case strings.HasPrefix(s, "\x1b["):
			n := strings.IndexFunc(s[2:], func(r rune) bool { return r >= 0x40 && r <= 0x7e })
			if n < 0 {
				v.rest = s
				return len(p), nil
			}
			v.control(s[2:2+n], s[2+n])
			s = s[3+n:]
		case s[0] == '\r':
			v.x, v.pending, s = 0, false, s[1:]
		case s[0] == '\n':
			v.down()
			s = s[1:]
		default:
			g, n := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
			v.put(g, n)
			s = s[len(g):]
		}
	}
	v.rest = ""
	return len(p), nil
}

func (v *vt) put(g string, n int) {
	if v.pending && !v.nowrap {
		v.lines[v.y].soft = true
		v.x, v.pending = 0, false
		v.down()
	}
	v.x = min(v.x, v.width-n)
	l := &v.lines[v.y]
	for len(l.cells) < v.x+n {
		l.cells = append(l.cells, " ")
	}
	l.cells[v.x] = g
	for i := 1; i < n; i++ {
		l.cells[v.x+i] = ""
	}
	if v.x += n; v.x == v.width {
		v.x, v.pending = v.width-1, true
	}
}

func (v *vt) down() {
	v.pending = false
	if v.y++; v.y == len(v.lines) {
		v.lines = append(v.lines, vtLine{})
	}
	v.top = max(v.top, v.y-v.height+1)
}

func (v *vt) control(params string, final byte) {
	n, err := strconv.Atoi(params)
	if err != nil {
		n = 1
	}
	switch final {
	case 'A':
		v.y = max(v.y-n, v.top)
	case 'B':
		v.y = min(v.y+n, min(v.top+v.height, len(v.lines))-1)
	case 'C':
		v.x = min(v.x+n, v.width-1)
	case 'H':
		v.x, v.y = 0, v.top
	case 'J':
		if params == "2" {
			v.lines = append(v.lines[:v.top], make([]vtLine, v.y-v.top+1)...)
			break
		}
		v.lines[v.y].cells = v.lines[v.y].cells[:min(v.x, len(v.lines[v.y].cells))]
		v.lines = v.lines[:v.y+1]
	case 'K':
		v.lines[v.y] = vtLine{}
	case 'h', 'l':
		if params == "?7" {
			v.nowrap = final == 'l'
		}
		return
	}
	v.pending = false
}

// resize changes the size.
func (v *vt) resize(width, height int) {
	if v.cuts {
		v.top = max(v.top, v.y-height+1)
		v.lines = v.lines[:min(len(v.lines), v.top+height)]
		v.top = max(min(v.top, len(v.lines)-height), 0)
		for i, l := range v.lines[v.top:] {
			v.lines[v.top+i].cells = l.cells[:min(len(l.cells), width)]
		}
		v.width, v.height, v.x, v.pending = width, height, min(v.x, width-1), false
		return
	}
	var lines []vtLine
	x, y := 0, 0
	for i := 0; i < len(v.lines); i++ {
		l, at := v.lines[i], -1
		if i == v.y {
			at = v.x
		}
		for l.soft && i+1 < len(v.lines) {
			i++
			if i == v.y {
				at = len(l.cells) + v.x
			}
			l.cells, l.soft = append(l.cells[:len(l.cells):len(l.cells)], v.lines[i].cells...), v.lines[i].soft
		}
		if at >= 0 {
			x, y = at%width, len(lines)+at/width
		}
		for len(l.cells) > width {
			n := width
			if l.cells[n] == "" { // a wide character is not divided
				n--
			}
			lines = append(lines, vtLine{l.cells[:n], true})
			l.cells = l.cells[n:]
		}
		lines = append(lines, vtLine{l.cells, false})
	}
	for y >= len(lines) {
		lines = append(lines, vtLine{})
	}
	for len(lines) > y+1 && lines[len(lines)-1].String() == "" {
		lines = lines[:len(lines)-1]
	}
	v.lines, v.x, v.y, v.pending = lines, x, y, false
	v.width, v.height = width, height
	v.top = min(max(len(lines)-height, 0), y)
}

// before returns the lines above line y, without empty ones at the end.
func (v *vt) before(y int) string {
	var all []string
	for _, l := range v.lines[:max(y, 0)] {
		all = append(all, l.String())
	}
	return strings.TrimRight(strings.Join(all, "\n"), "\n")
}

// blank returns the number of rows of the screen below the last line with text.
func (v *vt) blank() int {
	for i := len(v.lines) - 1; i >= v.top; i-- {
		if v.lines[i].String() != "" {
			return v.top + v.height - 1 - i
		}
	}
	return v.height
}
