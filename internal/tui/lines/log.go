package lines

import (
	"bytes"
	"fmt"
	"io"
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

// Writer returns a writer of a log's lines, each one Write, that shows them on w
// in a style: json as they are, compact without the date, otherwise with it.
func Writer(w io.Writer, p ansi.Palette, style string) io.Writer {
	if style == "json" {
		return w
	}
	return &writer{w: w, styles: p, short: style == "compact"}
}

type writer struct {
	w      io.Writer
	styles ansi.Palette
	short  bool
}

func (w *writer) Write(line []byte) (int, error) {
	if _, err := io.WriteString(w.w, Log(bytes.TrimSpace(line), w.styles, w.short)+"\n"); err != nil {
		return 0, err
	}
	return len(line), nil
}
