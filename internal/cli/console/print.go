package console

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/tui/ansi"
)

// JSON prints v as one indented object.
func (c *Console) JSON(v any) error {
	e := json.NewEncoder(c.Out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// Table prints rows in columns; the first row is their titles.
func (c *Console) Table(rows [][]string) {
	wide := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, cell := range r {
			wide[i] = max(wide[i], ansi.Width(cell))
		}
	}
	p := c.Palette(c.Out)
	for n, r := range rows {
		var b strings.Builder
		for i, cell := range r {
			b.WriteString(cell)
			if i < len(r)-1 {
				b.WriteString(strings.Repeat(" ", wide[i]-ansi.Width(cell)+2))
			}
		}
		line := strings.TrimRight(b.String(), " ")
		if n == 0 {
			line = p.Dim.Paint(line)
		}
		fmt.Fprintln(c.Out, line)
	}
}

// Ago returns how long ago t was, in one unit.
func Ago(t time.Time) string {
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
