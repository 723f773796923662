package tui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	tea "charm.land/bubbletea/v2"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/tui/ansi"
)

// Options says what a screen shows. Client and Session are required.
type Options struct {
	Client  *client.Client // connects again by itself
	Session string         // whole key
	Yes     bool           // allow everything that asks in this session
	Styles  ansi.Palette
	Lines   []string // shown first
	History string   // file with what was typed before; "": none

	In  io.Reader
	Out io.Writer
}

// drawn says that the screen was drawn for the first time. What is printed
// before that would be put in the wrong place: the renderer does not know yet
// how many lines its drawing takes.
type drawn struct{}

// watch returns w as it is, but for calling f once when the line above the
// input is written.
func watch(w io.Writer, f func()) io.Writer {
	once := sync.OnceFunc(f)
	seen := func(p []byte) {
		if bytes.Contains(p, []byte("──")) {
			once()
		}
	}
	if file, ok := w.(*os.File); ok {
		return terminal{file, seen}
	}
	return watched{w, seen}
}

// terminal is a watched file: the program asks it for its size.
type terminal struct {
	*os.File
	seen func([]byte)
}

// Write writes and looks at p.
func (t terminal) Write(p []byte) (int, error) {
	defer t.seen(p)
	return t.File.Write(p)
}

type watched struct {
	io.Writer
	seen func([]byte)
}

// Write writes and looks at p.
func (w watched) Write(p []byte) (int, error) {
	defer w.seen(p)
	return w.Writer.Write(p)
}

// Run shows the conversation until the person leaves, or the client ends. It
// does not close the client.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := newScreen(ctx, o)
	var p *tea.Program
	out := watch(o.Out, func() { go p.Send(drawn{}) })
	p = tea.NewProgram(s, tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(out))
	_, err := p.Run()
	switch {
	case s.failed != nil:
		return s.failed
	case err != nil && !errors.Is(err, tea.ErrInterrupted) && ctx.Err() == nil:
		return fmt.Errorf("terminal: %w", err)
	}
	return nil
}
