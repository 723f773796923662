package host

import (
	"errors"
	"os"

	"github.com/chela-ai/chela/internal/sandbox"
)

// openTerminal is not possible: programs here get pipes.
func openTerminal(sandbox.Size) (ours, theirs *os.File, err error) {
	return nil, nil, sandbox.ErrNoTerminal
}

func hungUp(err error) bool { return errors.Is(err, os.ErrClosed) }
