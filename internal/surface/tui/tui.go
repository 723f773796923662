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
	"github.com/chela-ai/chela/internal/surface/tui/ansi"
)

// Options configures a screen. Client and Session are required.
type Options struct {
	Client  *client.Client // reconnects automatically
	Session string         // full session key
	Yes     bool           // allow every action of this session that needs approval
	Styles  ansi.Palette
	Lines   []string // printed first
	History string   // input history file; "" for none

	In  io.Reader
	Out io.Writer
}

// drawn reports the first drawing of the screen. Nothing may be printed before
// it: the renderer does not know the height of its drawing yet and would print
// at the wrong position.
type drawn struct{}

// watchOutput returns a writer to w that calls f once, when the line above the
// input is written.
func watchOutput(w io.Writer, f func()) io.Writer {
	once := sync.OnceFunc(f)
	seen := func(p []byte) {
		if bytes.Contains(p, []byte("──")) {
			once()
		}
	}
	if file, ok := w.(*os.File); ok {
		return watchedFile{file, seen}
	}
	return watchedWriter{w, seen}
}

// watchedFile is a watched writer that is a file. The program asks the file for
// the size of the terminal.
type watchedFile struct {
	*os.File
	seen func([]byte)
}

// Write writes p and reports it to seen.
func (t watchedFile) Write(p []byte) (int, error) {
	defer t.seen(p)
	return t.File.Write(p)
}

type watchedWriter struct {
	io.Writer
	seen func([]byte)
}

// Write writes p and reports it to seen.
func (w watchedWriter) Write(p []byte) (int, error) {
	defer w.seen(p)
	return w.Writer.Write(p)
}

// Run shows the conversation until the person quits or the client is closed. It
// does not close the client.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := newScreen(ctx, o)
	var p *tea.Program
	out := watchOutput(o.Out, func() { go p.Send(drawn{}) })
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
