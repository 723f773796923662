package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"github.com/chela-ai/chela/internal/cli/console"
	"github.com/chela-ai/chela/internal/config"
	"github.com/chela-ai/chela/internal/logfile"
	"github.com/chela-ai/chela/internal/secret"
	"github.com/chela-ai/chela/internal/tui/lines"
)

// logOptions is logging of the configuration.
type logOptions struct {
	Level        string   `json:"level"`
	ConsoleLevel string   `json:"consoleLevel"`
	ConsoleStyle string   `json:"consoleStyle"` // pretty, compact or json
	MaxBytes     int64    `json:"maxFileBytes"`
	Redact       string   `json:"redactSensitive"` // off, or tools
	Patterns     []string `json:"redactPatterns"`
}

// logging reads what is configured. A flag goes before it, and a configuration
// that cannot be read says nothing about the log.
func (c *commands) logging(p config.Paths) (logOptions, error) {
	var o logOptions
	if t, err := (config.Options{Env: c.env, LastGood: p.LastGood}).Load(p.Config); err == nil {
		_ = json.Unmarshal(t.Section("logging"), &o) // of checked types
	}
	if c.logLevel != "" {
		if _, ok := logfile.Level(c.logLevel); !ok {
			return o, console.Usage(console.Hint(fmt.Errorf("--log-level %s: unknown level", c.logLevel), "--log-level silent, error, warn, info, debug or trace"))
		}
		o.Level, o.ConsoleLevel = c.logLevel, c.logLevel
	}
	if c.verbose {
		o.ConsoleLevel = "debug"
	}
	o.Level, o.ConsoleLevel = cmp.Or(o.Level, "info"), cmp.Or(o.ConsoleLevel, "info")
	return o, nil
}

// journal is the log of a process: a file, so that it does not disturb a
// conversation, and for a gateway in the foreground the terminal, too.
func (c *commands) journal(state string) (*slog.Logger, error) {
	o := c.log
	hide := func(line []byte) []byte { return []byte(c.secrets.Redact(string(line))) }
	if o.Redact != "off" {
		m, err := secret.NewMasker(o.Patterns...)
		if err != nil {
			return nil, c.Hint(fmt.Errorf("logging.redactPatterns: %w", err), "config set logging.redactPatterns '[]'")
		}
		known := hide
		hide = func(line []byte) []byte { return m.Mask(known(line)) }
	}
	handler := func(w io.Writer, level string) slog.Handler {
		l, _ := logfile.Level(level) // checked
		return slog.NewJSONHandler(logfile.Filter(w, hide), &slog.HandlerOptions{Level: l, ReplaceAttr: readable})
	}
	file, screen := logfile.New(filepath.Join(state, "logs", "chela.log"), o.MaxBytes), lines.Writer(c.Err, c.Palette(c.Err), o.ConsoleStyle)
	switch {
	case !c.aloud:
		return slog.New(handler(file, o.Level)), nil
	case o.Level == o.ConsoleLevel: // a line is made once
		return slog.New(handler(logfile.Tee(file, screen), o.Level)), nil
	}
	return slog.New(slog.NewMultiHandler(handler(file, o.Level), handler(screen, o.ConsoleLevel))), nil
}

// readable writes durations as people do.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
