package tui

import (
	"context"
	"io"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// enableSequences makes a terminal interpret escape sequences, and returns a function that
// ends this.
func enableSequences(out *os.File) (reset func(), err error) {
	console := windows.Handle(out.Fd())
	var mode uint32
	if err := windows.GetConsoleMode(console, &mode); err != nil {
		return nil, err
	}
	if err := windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING|
		windows.DISABLE_NEWLINE_AUTO_RETURN); err != nil {
		return nil, err
	}
	return func() { _ = windows.SetConsoleMode(console, mode) }, nil // it worked before
}

// watchSize calls f with each new size of the terminal until ctx ends. Windows has no
// signal for it.
func watchSize(ctx context.Context, out io.Writer, f func(width, height int)) {
	look := time.NewTicker(250 * time.Millisecond)
	defer look.Stop()
	width, height := 0, 0
	for {
		if w, h, ok := size(out); ok && (w != width || h != height) {
			width, height = w, h
			f(w, h)
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}
