package cli

import (
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/chela-ai/chela/internal/logfile"
)

// logger returns the engine's log: a file in the state directory, so that it
// does not disturb a conversation.
func (c *console) logger(state string) (*slog.Logger, error) {
	file, err := c.logHandler(state)
	if err != nil {
		return nil, err
	}
	return slog.New(file), nil
}

func (c *console) logHandler(state string) (slog.Handler, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.logLevel)); err != nil {
		return nil, usageError{hinted{fmt.Errorf("--log-level %s: unknown level", c.logLevel), "--log-level debug, info, warn or error"}}
	}
	f := logfile.New(filepath.Join(state, "logs", "chela.log"))
	return slog.NewJSONHandler(f, &slog.HandlerOptions{Level: level}), nil
}
