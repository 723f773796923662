package cli

import (
	"context"
	"path/filepath"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/tui"
)

// screen shows the conversation on the terminal. The link that it returns is
// another one when the connection was lost meanwhile.
func (c *console) screen(ctx context.Context, l *link, s Start, f chatFlags, lines []string) (*link, error) {
	key, err := sessionKey(l.Hello(), f.session)
	if err != nil {
		return l, err
	}
	err = tui.Run(ctx, tui.Options{
		Client: l.Client, Session: key, Yes: f.yes, Styles: c.palette(c.out), Lines: lines,
		History: filepath.Join(s.State, "history"), In: c.in, Out: c.out,
		Redial: func(ctx context.Context) (*client.Client, error) {
			part(ctx, l.engine)
			next, err := c.connect(ctx)
			if err != nil {
				return nil, err
			}
			l = next
			return l.Client, nil
		},
	})
	return l, err
}
