package tui

import (
	"context"
	"errors"
	"fmt"
	"io"

	tea "charm.land/bubbletea/v2"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/tui/ansi"
)

// Options says what a screen shows. Client, Redial and Session are required.
type Options struct {
	Client  *client.Client
	Redial  func(context.Context) (*client.Client, error) // after the connection was lost
	Session string                                        // whole key
	Yes     bool                                          // allow everything that asks in this session
	Styles  ansi.Palette
	Lines   []string // shown first
	History string   // file with what was typed before; "": none

	In  io.Reader
	Out io.Writer
}

// Run shows the conversation until the person leaves. The connections stay
// open: they are whose who dialed.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := newScreen(ctx, o)
	_, err := tea.NewProgram(s, tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out)).Run()
	switch {
	case s.failed != nil:
		return s.failed
	case err != nil && !errors.Is(err, tea.ErrInterrupted) && ctx.Err() == nil:
		return fmt.Errorf("terminal: %w", err)
	}
	return nil
}
