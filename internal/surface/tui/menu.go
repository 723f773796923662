package tui

import (
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/internal/surface/tui/attach"
	"github.com/chela-ai/chela/wire"
)

// menu lists the commands that match the input.
type menu struct {
	matches  []wire.Command
	selected int
}

// menuLines is the maximum number of commands shown.
const menuLines = 6

// ownCommands returns the commands that the screen handles itself.
func ownCommands() []wire.Command {
	return []wire.Command{
		{Name: "image", Aliases: []string{attach.Command}, Description: "send a picture: FILE and a message",
			AcceptsArgs: true},
		{Name: "quit", Aliases: []string{"/quit", "/exit"}, Description: "quit; unfinished work resumes at the next start"},
	}
}

func (m *menu) open() bool { return len(m.matches) > 0 }
func (m *menu) close()     { *m = menu{} }

// update finds the commands that begin with the input.
func (m *menu) update(input string, all []wire.Command) {
	m.close()
	name, ok := strings.CutPrefix(strings.Replace(input, "／", "/", 1), "/")
	if !ok || strings.ContainsAny(name, " \t\n") {
		return
	}
	name = strings.ToLower(name)
	for _, c := range all {
		if strings.HasPrefix(c.Name, name) ||
			slices.ContainsFunc(c.Aliases, func(a string) bool { return strings.HasPrefix(a, "/"+name) }) {
			m.matches = append(m.matches, c)
		}
	}
}

func (m *menu) move(step int) { m.selected = (m.selected + step + len(m.matches)) % len(m.matches) }

// selection returns the selected command; false if the menu is closed.
func (m *menu) selection() (wire.Command, bool) {
	if !m.open() {
		return wire.Command{}, false
	}
	return m.matches[m.selected], true
}

// view returns the visible lines of the menu, which include the selected one.
func (m *menu) view(p ansi.Palette, width int) []string {
	if !m.open() {
		return nil
	}
	from := max(min(m.selected-menuLines/2, len(m.matches)-menuLines), 0)
	var lines []string
	for i := from; i < min(from+menuLines, len(m.matches)); i++ {
		c := m.matches[i]
		name := ansi.Line("/" + c.Name)
		name += strings.Repeat(" ", max(14-ansi.Width(name), 1))
		line := "  " + name + p.Dim.Paint(ansi.Line(c.Description))
		if i == m.selected {
			line = p.Accent.Paint("› "+name) + ansi.Line(c.Description)
		}
		lines = append(lines, ansi.Truncate(line, width))
	}
	return lines
}
