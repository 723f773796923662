package console

import (
	"errors"
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/internal/tui/talk"
	"github.com/chela-ai/chela/wire"
)

// ErrInterrupted says that the person stopped the command.
var ErrInterrupted = talk.ErrInterrupted

// ErrReported is a failure of which everything is said already.
var ErrReported = talk.ErrReported

// UsageError is a command line that was not understood.
type UsageError struct{ error }

// Unwrap returns what was not understood.
func (e UsageError) Unwrap() error { return e.error }

// Usage makes a [UsageError] of err.
func Usage(err error) error { return UsageError{err} }

// Hinted is an error with what can be typed next.
type Hinted struct {
	error
	Hint string
}

// Unwrap returns the error without its hint.
func (e Hinted) Unwrap() error { return e.error }

// Hint adds to an error what can be typed next; with an empty hint nothing
// else is proposed either.
func Hint(err error, hint string) error { return Hinted{err, hint} }

// Hint adds to an error a subcommand of chela that can be typed.
func (c *Console) Hint(err error, rest string) error { return Hinted{err, c.Command(rest)} }

// Report writes an error and a hint for people.
func (c *Console) Report(err error, hint string) {
	p := c.Palette(c.Err)
	fmt.Fprintln(c.Err, p.Bad.Paint("chela:"), ansi.Line(Said(err)))
	if hint != "" {
		c.Suggest(hint)
	}
}

// Suggest writes what can be typed next.
func (c *Console) Suggest(hint string) {
	fmt.Fprintln(c.Err, c.Palette(c.Err).Dim.Paint("hint:"), ansi.Line(hint))
}

// Said returns what err says to people: of an answer of the gateway not which
// method it was about.
func Said(err error) string {
	e, ok := errors.AsType[*wire.Error](err)
	if !ok {
		return err.Error()
	}
	if rest, ok := strings.CutPrefix(e.Error(), "invalid "); ok {
		if _, why, ok := strings.Cut(rest, " params: "); ok {
			return why
		}
	}
	return e.Error()
}
