package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/kit/logfile"
	"github.com/chela-ai/chela/internal/kit/secret"
)

// logOptions is the logging section of the configuration.
type logOptions struct {
	Level        string   `json:"level"`
	ConsoleLevel string   `json:"consoleLevel"`
	ConsoleStyle string   `json:"consoleStyle"` // pretty, compact or json
	MaxBytes     int64    `json:"maxFileBytes"`
	Redact       string   `json:"redactSensitive"` // off, or tools
	Patterns     []string `json:"redactPatterns"`
}

// logging returns the configured log options, overridden by the flags. If the
// configuration cannot be loaded, defaults apply.
func (c *commands) logging(p config.Paths) (logOptions, error) {
	var o logOptions
	if t, err := (config.Options{Env: c.env, LastGood: p.LastGood}).Load(p.Config); err == nil {
		c.loaded = t
		c.secrets.Add(t.Secrets()...)
		_ = json.Unmarshal(t.Section("logging"), &o) // types were validated by Load
	}
	if c.logLevel != "" {
		if _, ok := logfile.Level(c.logLevel); !ok {
			return o, usage(withHint(fmt.Errorf("--log-level %s: unknown level", c.logLevel),
				"--log-level info, or one of silent, error, warn, debug and trace"))
		}
		o.Level, o.ConsoleLevel = c.logLevel, c.logLevel
	}
	if c.verbose {
		o.ConsoleLevel = "debug"
	}
	o.Level, o.ConsoleLevel = cmp.Or(o.Level, "info"), cmp.Or(o.ConsoleLevel, "info")
	return o, nil
}

// newLogger returns the logger of the process. It writes to a file, so that it
// does not disturb a conversation; a gateway in the foreground also logs to
// standard error.
func (c *commands) newLogger(state string) (*slog.Logger, error) {
	o := c.log
	hide := func(line []byte) []byte { return []byte(c.secrets.Redact(string(line))) }
	if o.Redact != "off" {
		m, err := secret.NewMasker(o.Patterns...)
		if err != nil && c.repairs {
			m, err = secret.NewMasker()
		}
		if err != nil {
			return nil, c.suggest(fmt.Errorf("logging.redactPatterns: %w", err), "config set logging.redactPatterns '[]'")
		}
		known := hide
		hide = func(line []byte) []byte { return m.Mask(known(line)) }
	}
	handler := func(w io.Writer, level string) slog.Handler {
		l, _ := logfile.Level(level) // validated before
		return slog.NewJSONHandler(logfile.Filter(w, hide), &slog.HandlerOptions{Level: l, ReplaceAttr: readable})
	}
	file, console := logfile.New(filepath.Join(state, "logs", "chela.log"), o.MaxBytes),
		logWriter(c.stderr, c.palette(c.stderr), o.ConsoleStyle)
	switch {
	case !c.logToConsole:
		return slog.New(handler(file, o.Level)), nil
	case o.Level == o.ConsoleLevel: // format each record only once
		return slog.New(handler(logfile.Tee(file, console), o.Level)), nil
	}
	return slog.New(slog.NewMultiHandler(handler(file, o.Level), handler(console, o.ConsoleLevel))), nil
}

// readable formats durations as strings.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
