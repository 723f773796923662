package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
	"github.com/chela-ai/chela/internal/surface/tui/repl"
)

// console is the terminal, or the pipes, that a command reads from and writes
// to. All fields are required.
type console struct {
	stdin   *os.File
	stdout  io.Writer // for results
	stderr  io.Writer // for everything else
	getenv  func(string) string
	noColor bool // write without colors
}

// isTerminal reports whether f is a terminal.
func isTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// palette returns the styles for w.
func (c *console) palette(w io.Writer) ansi.Palette {
	switch {
	case !isTerminal(w):
		return ansi.Palette{}
	case c.noColor, c.getenv("NO_COLOR") != "", c.getenv("TERM") == "dumb":
		return ansi.Monochrome()
	}
	return ansi.Colors()
}

// report writes an error message and, unless it is empty, a hint.
func (c *console) report(err error, hint string) {
	c.say(c.palette(c.stderr).Bad.Paint("chela:") + " " + ansi.Line(errorText(err)))
	if hint != "" {
		c.printHint(hint)
	}
}

// say writes a text for the person to standard error. On a terminal its lines are broken
// between words.
func (c *console) say(text string) {
	if width := columns(c.stderr); width > 0 {
		text = ansi.Wrap(text, width)
	}
	fmt.Fprintln(c.stderr, text)
}

// printHint writes a hint: what to type next.
func (c *console) printHint(hint string) {
	fmt.Fprintln(c.stderr, c.palette(c.stderr).Dim.Paint("hint:"), ansi.Line(hint))
}

// printJSON writes v as indented JSON.
func (c *console) printJSON(v any) error {
	e := json.NewEncoder(c.stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// readFile reads a file of at most limit bytes, or standard input if name is -.
func (c *console) readFile(name string, limit int64) ([]byte, error) {
	in := c.stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s is larger than %s", name, humanize.Bytes(limit))
	}
	return b, err
}

// print writes v as JSON if that was requested, and calls text otherwise.
func (c *commands) print(v any, text func()) error {
	if c.json {
		return c.printJSON(v)
	}
	text()
	return nil
}

// printRow writes a line with a name and a text.
func (c *console) printRow(name, text string) {
	fmt.Fprintf(c.stdout, "%s %s\n", c.palette(c.stdout).Dim.Paint(fmt.Sprintf("%-10s", name)), ansi.Line(text))
}

// printTable writes rows in aligned columns. The first row holds the titles. On a terminal
// that is too narrow, the widest columns continue in further lines.
func (c *console) printTable(rows [][]string) {
	p := c.palette(c.stdout)
	for n, lines := range table(rows, columns(c.stdout)) {
		for _, line := range lines {
			if n == 0 {
				line = p.Dim.Paint(line)
			}
			fmt.Fprintln(c.stdout, line)
		}
	}
}

// columns returns the width of a terminal; 0: f is none.
func columns(f any) int {
	if file, ok := f.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil {
			return width
		}
	}
	return 0
}

// minWord is the width from which on a word of a table may be broken.
const minWord = 16

// table returns the lines of each row, in aligned columns. If they are wider than width, the
// widest columns are wrapped, between words if possible; 0: none is.
func table(rows [][]string, width int) (out [][]string) {
	if len(rows) == 0 {
		return nil
	}
	n := len(rows[0])
	widths, words, parts := make([]int, n), make([]int, n), make([]int, n)
	for _, r := range rows {
		for i, cell := range r {
			widths[i] = max(widths[i], ansi.Width(cell))
			for word := range strings.FieldsSeq(cell) {
				words[i] = max(words[i], ansi.Width(word))
				parts[i] = min(words[i], minWord)
			}
		}
	}
	if width > 0 && !squeeze(widths, words, width) {
		squeeze(widths, parts, width)
	}
	for _, r := range rows {
		cells, high := make([][]string, len(r)), 0
		for i, cell := range r {
			if ansi.Width(cell) > widths[i] {
				cell = ansi.Wrap(cell, widths[i])
			}
			cells[i] = strings.Split(cell, "\n")
			high = max(high, len(cells[i]))
		}
		lines := make([]string, high)
		for n := range lines {
			var b strings.Builder
			for i, pieces := range cells {
				piece := ""
				if n < len(pieces) {
					piece = pieces[n]
				}
				b.WriteString(piece + strings.Repeat(" ", max(0, widths[i]-ansi.Width(piece))+2))
			}
			lines[n] = strings.TrimRight(b.String(), " ")
		}
		out = append(out, lines)
	}
	return out
}

// squeeze makes the widest columns narrower, but none than its least width, until the lines
// have at most limit columns. It reports whether they have; if not, it changed nothing.
func squeeze(widths, least []int, limit int) bool {
	total, out := 2*(len(widths)-1), slices.Clone(widths)
	for _, w := range widths {
		total += w
	}
	for ; total > limit; total-- {
		widest := -1
		for i, w := range out {
			if w > least[i] && (widest < 0 || w >= out[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		out[widest]--
	}
	copy(widths, out)
	return true
}

// confirm asks the person a yes-or-no question, unless a flag answers it. It
// fails unless the answer is yes. Without a terminal, it suggests the
// subcommand that does not ask.
func (c *commands) confirm(action, subcommand string) error {
	if c.yes {
		return nil
	}
	if !isTerminal(c.stdin) || !isTerminal(c.stderr) {
		return c.suggest(errors.New(action+": cannot ask for confirmation without a terminal"), subcommand)
	}
	fmt.Fprintf(c.stderr, "%s? [y/N] ", action)
	line := <-repl.Lines(c.stdin)
	if s := strings.ToLower(strings.TrimSpace(line)); s == "y" || s == "yes" {
		return nil
	}
	return errors.New("canceled; nothing was changed")
}

// readHidden reads a line from the terminal without echoing it.
func (c *console) readHidden() (string, error) {
	b, err := term.ReadPassword(int(c.stdin.Fd()))
	fmt.Fprintln(c.stderr)
	if err != nil {
		return "", errInterrupted
	}
	return strings.TrimSpace(string(b)), nil
}

// maxSecret is the maximum size of a secret in bytes.
const maxSecret = 16 << 10

// readSecret reads the first line of standard input. On a terminal it writes
// the prompt first and does not echo the line.
func (c *console) readSecret(prompt string) (string, error) {
	if isTerminal(c.stdin) {
		fmt.Fprint(c.stderr, prompt)
		return c.readHidden()
	}
	b, err := io.ReadAll(io.LimitReader(c.stdin, maxSecret))
	if err != nil {
		return "", fmt.Errorf("key: %w", err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(line), nil
}

// ago returns how long ago t was, in one unit.
func ago(t time.Time) string {
	d := time.Since(t)
	switch {
	case t.IsZero():
		return "never"
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	}
	return fmt.Sprintf("%dd ago", int(d.Hours()/24))
}

// errWriter is a writer that remembers its first error, so that printing code
// does not have to check each write.
type errWriter struct {
	w   io.Writer
	err error
}

// Write writes p.
func (s *errWriter) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if s.err == nil {
		s.err = err
	}
	return n, err
}
