package tui

import (
	"context"
	"errors"
	"fmt"
	"io"

	tea "charm.land/bubbletea/v2"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
)

// Options configures a screen. Client and Session are required.
type Options struct {
	Client  *client.Client // reconnects automatically
	Session string         // full session key
	Yes     bool           // allow every action of this session that needs approval
	Styles  ansi.Palette
	Lines   []string // printed first
	First   string   // a message that was typed before; "": none
	History string   // input history file; "" for none

	In     io.Reader
	Out    io.Writer
	Getenv func(string) string // the environment, which names the terminal
}

// Run shows the conversation until the person quits or the client is closed. It
// does not close the client.
func Run(parent context.Context, o Options) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	restore, err := prepare(o.In, o.Out)
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	defer restore()
	s := newScreen(ctx, o)
	defer s.canvas.close()
	keys, err := newKeyboard(o.In)
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	defer keys.Close()
	// Without a renderer, frames do nothing, but each would wake the process.
	p := tea.NewProgram(s, tea.WithContext(ctx), tea.WithInput(keys), tea.WithOutput(o.Out),
		tea.WithoutRenderer(), tea.WithFPS(1))
	sized := make(chan struct{})
	go func() {
		defer close(sized)
		watchSize(ctx, o.Out, func(w, h int) { p.Send(tea.WindowSizeMsg{Width: w, Height: h}) })
	}()
	_, err = p.Run()
	cancel()
	<-sized
	switch {
	case s.failed != nil:
		return s.failed
	case s.canvas.err != nil:
		return fmt.Errorf("terminal: %w", s.canvas.err)
	case err != nil && !errors.Is(err, tea.ErrInterrupted) && parent.Err() == nil:
		return fmt.Errorf("terminal: %w", err)
	}
	return nil
}
