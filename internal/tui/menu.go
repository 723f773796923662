package tui

import (
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/internal/tui/attach"
	"github.com/chela-ai/chela/wire"
)

// menu is the commands that what is typed may become.
type menu struct {
	found []wire.Command
	at    int
}

// menuLines bounds how many commands are shown.
const menuLines = 6

// ownCommands are those of the screen itself.
func ownCommands() []wire.Command {
	return []wire.Command{
		{Name: "image", Aliases: []string{attach.Command}, Description: "send a picture: the file, and what is to be said of it", AcceptsArgs: true},
		{Name: "quit", Aliases: []string{"/quit", "/exit"}, Description: "leave the conversation; what runs goes on at the next start"},
	}
}

func (m *menu) open() bool { return len(m.found) > 0 }
func (m *menu) close()     { *m = menu{} }

// update finds the commands that begin with what is typed.
func (m *menu) update(typed string, all []wire.Command) {
	m.close()
	name, ok := strings.CutPrefix(typed, "/")
	if !ok || strings.ContainsAny(name, " \n") {
		return
	}
	name = strings.ToLower(name)
	for _, c := range all {
		if strings.HasPrefix(c.Name, name) || slices.ContainsFunc(c.Aliases, func(a string) bool { return strings.HasPrefix(a, "/"+name) }) {
			m.found = append(m.found, c)
		}
	}
}

func (m *menu) move(step int) { m.at = (m.at + step + len(m.found)) % len(m.found) }

// chosen returns the chosen command; false when the menu is closed.
func (m *menu) chosen() (wire.Command, bool) {
	if !m.open() {
		return wire.Command{}, false
	}
	return m.found[m.at], true
}

// view returns the lines of the menu, with the chosen one in sight.
func (m *menu) view(p ansi.Palette, width int) []string {
	if !m.open() {
		return nil
	}
	from := max(min(m.at-menuLines/2, len(m.found)-menuLines), 0)
	var lines []string
	for i := from; i < min(from+menuLines, len(m.found)); i++ {
		c := m.found[i]
		name := ansi.Line("/" + c.Name)
		name += strings.Repeat(" ", max(14-ansi.Width(name), 1))
		line := "  " + name + p.Dim.Paint(ansi.Line(c.Description))
		if i == m.at {
			line = p.Accent.Paint("› "+name) + ansi.Line(c.Description)
		}
		lines = append(lines, ansi.Truncate(line, width))
	}
	return lines
}
