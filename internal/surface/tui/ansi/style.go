package ansi

import (
	"regexp"
	"strings"
	"sync"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
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

// Wrap breaks lines wider than width columns, at spaces if possible, or at hyphens of plain
// words. Styles continue across the breaks.
func Wrap(s string, width int) string {
	kept := keepHyphens(s, width)
	if kept == s {
		return wrap(s, width)
	}
	return strings.ReplaceAll(wrap(kept, width), keptHyphen, "-")
}

// keptHyphen stands for a hyphen at which no line is broken: a character for private use.
const keptHyphen = "\uE02D"

// keepHyphens replaces the hyphens of words that are to be copied or typed as they are, such
// as flags, dates, paths and names of files. Words wider than a line have to be broken.
func keepHyphens(s string, width int) string {
	if !strings.Contains(s, "-") {
		return s
	}
	var b strings.Builder
	for word := range strings.SplitAfterSeq(s, " ") {
		for line := range strings.SplitAfterSeq(word, "\n") {
			if at := strings.Index(line, "-"); at < 0 || plainWord().MatchString(line) ||
				Width(strings.TrimSpace(line)) > width {
				b.WriteString(line)
				continue
			}
			b.WriteString(strings.ReplaceAll(line, "-", keptHyphen))
		}
	}
	return b.String()
}

// plainWord matches a word of letters and hyphens, with its punctuation and styles.
var plainWord = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:\x1b\[[0-9;]*m|[("'“‘*])*\pL+(?:-\pL+)*(?:\x1b\[[0-9;]*m|[)"'”’*.,;:!?\s])*$`)
})

// wrap is Wrap, but breaks at each hyphen.
func wrap(s string, width int) string {
	width = max(width, 2)
	for limit := width; limit >= width-1; limit-- { // a break at a hyphen may be one column too late
		if w := lipgloss.Wrap(s, limit, ""); Width(w) <= width {
			return w
		}
	}
	return HardWrap(lipgloss.Wrap(s, width, ""), width)
}

// HardWrap breaks lines every width columns, but not within a character. Styles
// continue across the breaks.
func HardWrap(s string, width int) string {
	var b strings.Builder
	out := lipgloss.NewWrapWriter(&b)
	defer out.Close()
	used := 0
	for s != "" {
		part, columns := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
		if n := strings.IndexByte(s, 'm') + 1; n > 0 && strings.HasPrefix(s, "\x1b[") {
			part, columns = s[:n], 0
		}
		if used+columns > width || part == "\n" {
			used = 0
			_, _ = out.Write([]byte("\n")) // never fails
		}
		if part != "\n" {
			_, _ = out.Write([]byte(part))
		}
		used += columns
		s = s[len(part):]
	}
	return b.String()
}

// maxWord is the width of the longest word that Truncate leaves out whole.
const maxWord = 24

// Truncate returns s, a single line, cut to width columns with an ellipsis, between words
// if possible.
func Truncate(s string, width int) string {
	if Width(s) <= width || width < 1 {
		return ansi.Truncate(s, width, "…")
	}
	left := ansi.Strip(ansi.Truncate(s, width-1, ""))
	rest := ansi.Strip(s)[len(left):]
	if i := strings.LastIndexByte(left, ' '); i > 0 && !strings.HasPrefix(rest, " ") &&
		Width(left[i:]) <= min(maxWord, width/2) {
		left = left[:i]
	}
	return ansi.Truncate(s, Width(strings.TrimRight(left, " "))+1, "…")
}
