package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/kit/logfile"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
)

// LogLine formats a JSON log record for people: time, level, message and
// key=value attributes. With short, the date is left out. A line that is not a
// record is returned cleaned but otherwise unchanged.
func LogLine(line []byte, p ansi.Palette, short bool) string {
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
	out := p.Dim.Paint(l.Time) + " " + levelStyle(p, l.Level).Paint(fmt.Sprintf("%-5s", l.Level)) +
		" " + ansi.Line(l.Message)
	if l.Attrs != "" {
		out += " " + p.Dim.Paint(ansi.Line(l.Attrs))
	}
	return out
}

// levelStyle returns the style of a log level.
func levelStyle(p ansi.Palette, level string) ansi.Style {
	switch {
	case strings.HasPrefix(level, "ERROR"):
		return p.Bad
	case strings.HasPrefix(level, "WARN"):
		return p.Warn
	}
	return p.Dim
}

// logWriter returns a writer that formats log records for w. Each Write must be
// one record. The style is json (unchanged), compact (without the date) or
// pretty.
func logWriter(w io.Writer, p ansi.Palette, style string) io.Writer {
	if style == "json" {
		return w
	}
	return &lineWriter{w: w, styles: p, short: style == "compact"}
}

type lineWriter struct {
	w      io.Writer
	styles ansi.Palette
	short  bool
}

func (w *lineWriter) Write(line []byte) (int, error) {
	if _, err := io.WriteString(w.w, LogLine(bytes.TrimSpace(line), w.styles, w.short)+"\n"); err != nil {
		return 0, err
	}
	return len(line), nil
}
