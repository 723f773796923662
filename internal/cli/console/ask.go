package console

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/term"

	"github.com/chela-ai/chela/internal/tui/talk"
)

// Confirm asks a person whether to go on; without one it refuses and names the
// subcommand that does not ask.
func (c *Console) Confirm(what, rest string) error {
	if !IsTerminal(c.In) || !IsTerminal(c.Err) {
		return c.Hint(errors.New(what+": nobody is here to confirm it"), rest)
	}
	fmt.Fprintf(c.Err, "%s? [y/N] ", what)
	line := <-talk.Lines(c.In)
	if s := strings.ToLower(strings.TrimSpace(line)); s == "y" || s == "yes" {
		return nil
	}
	return errors.New("nothing was done")
}

// Hidden reads a line that is not shown while it is typed.
func (c *Console) Hidden() (string, error) {
	b, err := term.ReadPassword(int(c.In.Fd()))
	fmt.Fprintln(c.Err)
	if err != nil {
		return "", ErrInterrupted
	}
	return strings.TrimSpace(string(b)), nil
}

// maxSecret bounds a secret that is read.
const maxSecret = 16 << 10

// Secret reads the first line of standard input, unseen on a terminal, where
// it is asked for.
func (c *Console) Secret(ask string) (string, error) {
	if IsTerminal(c.In) {
		fmt.Fprint(c.Err, ask)
		return c.Hidden()
	}
	b, err := io.ReadAll(io.LimitReader(c.In, maxSecret))
	if err != nil {
		return "", fmt.Errorf("key: %w", err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(line), nil
}
