package logfile

import (
	"io"
	"log/slog"
	"strings"
)

// Level returns the level with a name.
func Level(name string) (slog.Level, bool) {
	switch strings.ToLower(name) {
	case "trace":
		return slog.LevelDebug - 4, true
	case "debug":
		return slog.LevelDebug, true
	case "info":
		return slog.LevelInfo, true
	case "warn":
		return slog.LevelWarn, true
	case "error":
		return slog.LevelError, true
	case "fatal":
		return slog.LevelError + 4, true
	case "silent":
		return slog.LevelError + 100, true
	}
	return 0, false
}

// Filter returns a writer that passes lines to w after change. Each Write is
// one line.
func Filter(w io.Writer, change func(line []byte) []byte) io.Writer { return filter{w, change} }

type filter struct {
	w      io.Writer
	change func([]byte) []byte
}

func (f filter) Write(p []byte) (int, error) {
	if _, err := f.w.Write(f.change(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Tee returns a writer that writes each line to all writers, even if one of
// them fails.
func Tee(to ...io.Writer) io.Writer { return tee(to) }

type tee []io.Writer

func (t tee) Write(p []byte) (int, error) {
	var failed error
	for _, w := range t {
		if _, err := w.Write(p); err != nil {
			failed = err
		}
	}
	return len(p), failed
}
