package lines

import (
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/logfile"
	"github.com/chela-ai/chela/internal/tui/ansi"
)

// Log returns a line of a log as people read it: time, level, message, and the
// rest as key=value; short without the date. What is no record is shown as it
// is.
func Log(line []byte, p ansi.Palette, short bool) string {
	l, ok := logfile.Parse(line)
	if !ok {
		return ansi.Line(string(line))
	}
	form := "2006-01-02 15:04:05.000"
	if short {
		form = time.TimeOnly
	}
	if t, err := time.Parse(time.RFC3339Nano, l.Time); err == nil {
		l.Time = t.Local().Format(form)
	}
	out := p.Dim.Paint(l.Time) + " " + weight(p, l.Level).Paint(fmt.Sprintf("%-5s", l.Level)) + " " + ansi.Line(l.Message)
	if l.Attrs != "" {
		out += " " + p.Dim.Paint(ansi.Line(l.Attrs))
	}
	return out
}

// weight is the style of a level.
func weight(p ansi.Palette, level string) ansi.Style {
	switch {
	case strings.HasPrefix(level, "ERROR"):
		return p.Bad
	case strings.HasPrefix(level, "WARN"):
		return p.Warn
	}
	return p.Dim
}
