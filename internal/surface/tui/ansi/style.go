package ansi

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
)

// Style is the appearance of text: the parameters of an SGR escape sequence.
type Style string

// Over returns the combination of both styles, in which s takes precedence.
func (s Style) Over(under Style) Style {
	switch {
	case s == "":
		return under
	case under == "":
		return s
	}
	return under + ";" + s
}

// Paint returns text in the style, line by line.
func (s Style) Paint(text string) string {
	if s == "" || text == "" {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if l != "" {
			lines[i] = "\x1b[" + string(s) + "m" + l + "\x1b[m"
		}
	}
	return strings.Join(lines, "\n")
}

// Palette holds the styles of a user interface. They use the sixteen colors of
// the terminal's color scheme.
type Palette struct {
	Bold, Italic, Strike Style
	Dim                  Style // less important text
	Accent               Style // markers and selections
	Head                 Style // headings
	Code                 Style
	Link                 Style
	Good, Warn, Bad      Style
}

// Colors returns the palette of a terminal with colors.
func Colors() Palette {
	return Palette{
		Bold: "1", Italic: "3", Strike: "9", Dim: "2", Accent: "36", Head: "1;35", Code: "33", Link: "4;34",
		Good: "32", Warn: "33", Bad: "31",
	}
}

// Monochrome returns the palette of a terminal without colors.
func Monochrome() Palette {
	return Palette{Bold: "1", Italic: "3", Strike: "9", Dim: "2", Accent: "1", Head: "1", Link: "4", Warn: "1", Bad: "1"}
}

// Width returns the width of the widest line of s in columns.
func Width(s string) int { return lipgloss.Width(s) }

// Wrap breaks lines wider than width columns, at spaces if possible. Styles
// continue across the breaks.
func Wrap(s string, width int) string {
	width = max(width, 2)
	s = lipgloss.Wrap(s, width, "")
	if Width(s) <= width {
		return s
	}
	lines := strings.Split(s, "\n") // a break at a hyphen may be one column too late
	for i, l := range lines {
		if Width(l) > width {
			lines[i] = cut(l, width)
		}
	}
	return strings.Join(lines, "\n")
}

// cut breaks a line every width columns.
func cut(s string, width int) string {
	var b strings.Builder
	used, style := 0, ""
	for s != "" {
		if strings.HasPrefix(s, "\x1b[") {
			n := strings.IndexByte(s, 'm') + 1
			if n == 0 {
				n = len(s)
			}
			style = s[:n]
			b.WriteString(style)
			s = s[n:]
			continue
		}
		n := character(s)
		w := Width(s[:n])
		if used+w > width {
			if style != "" {
				b.WriteString("\x1b[m")
			}
			b.WriteString("\n" + style)
			used = 0
		}
		b.WriteString(s[:n])
		used += w
		s = s[n:]
	}
	return b.String()
}

// character returns the length of the first user-perceived character of s,
// including combining marks and joined characters.
func character(s string) int {
	first, n := utf8.DecodeRuneInString(s)
	flag := func(r rune) bool { return r >= 0x1f1e6 && r <= 0x1f1ff }
	if r, m := utf8.DecodeRuneInString(s[n:]); flag(first) && flag(r) {
		return n + m
	}
	for n < len(s) {
		r, m := utf8.DecodeRuneInString(s[n:])
		switch {
		case r == 0x200d: // zero-width joiner
			_, next := utf8.DecodeRuneInString(s[n+m:])
			n += m + next
		case unicode.In(r, unicode.Mn, unicode.Me), r >= 0x1f3fb && r <= 0x1f3ff: // combining mark or skin tone
			n += m
		default:
			return n
		}
	}
	return n
}

// Truncate returns s, a single line, cut to width columns with an ellipsis.
func Truncate(s string, width int) string {
	if Width(s) <= width {
		return s
	}
	if width < 2 {
		return strings.Repeat("…", max(width, 0))
	}
	return lipgloss.NewStyle().MaxWidth(width-1).Render(s) + "…"
}
