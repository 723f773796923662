package stdio

import (
	"errors"
	"os"

	"github.com/chela-ai/chela/internal/core/sandbox"
)

// openTerminal is not supported on Windows; programs get pipes.
func openTerminal(sandbox.Size) (ours, theirs *os.File, err error) {
	return nil, nil, sandbox.ErrNoTerminal
}

func hungUp(err error) bool { return errors.Is(err, os.ErrClosed) }

func pollable(f *os.File) (*os.File, error) { return nil, sandbox.ErrNoTerminal }
