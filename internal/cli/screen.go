package cli

import (
	"context"
	"path/filepath"

	"github.com/chela-ai/chela/internal/tui"
)

// screen shows the conversation on the terminal.
func (c *console) screen(ctx context.Context, l *link, s Start, f chatFlags, lines []string) error {
	key, err := sessionKey(l.Hello(), f.session)
	if err != nil {
		return err
	}
	return tui.Run(ctx, tui.Options{
		Client: l.Client, Session: key, Yes: f.yes, Styles: c.palette(c.out), Lines: lines,
		History: filepath.Join(s.State, "history"), In: c.in, Out: c.out,
	})
}
