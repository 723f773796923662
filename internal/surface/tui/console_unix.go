//go:build unix

package tui

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// enableSequences makes a terminal interpret escape sequences, and returns a function that
// ends this.
func enableSequences(*os.File) (reset func(), err error) { return func() {}, nil }

// watchSize calls f with each new size of the terminal until ctx ends.
func watchSize(ctx context.Context, out io.Writer, f func(width, height int)) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	defer signal.Stop(changed)
	for {
		if w, h, ok := size(out); ok {
			f(w, h)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
