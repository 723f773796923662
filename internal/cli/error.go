package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/config"
	"github.com/chela-ai/chela/internal/tui/ansi"
	"github.com/chela-ai/chela/internal/tui/talk"
	"github.com/chela-ai/chela/wire"
)

// usageError is a command line that was not understood.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// hinted is an error with a command that can be typed.
type hinted struct {
	error
	hint string
}

func (e hinted) Unwrap() error { return e.error }

// errInterrupted says that the person stopped the command.
var errInterrupted = talk.ErrInterrupted

// errReported is a failure of which everything is said already.
var errReported = talk.ErrReported

// fail says what went wrong, in one line and a hint, and returns the exit
// code.
func (c *console) fail(cmd *cobra.Command, err error) int {
	usage, isUsage := errors.AsType[usageError](err)
	switch {
	case errors.Is(err, errReported):
		return exitFailed
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return exitInterrupted
	case isUsage:
		hint := cmd.CommandPath() + " --help"
		if h, ok := errors.AsType[hinted](usage.error); ok {
			hint = h.hint
		}
		c.report(usage.error, hint)
		return exitUsage
	}
	c.report(err, c.hint(err))
	return exitFailed
}

// report writes an error and a hint for people.
func (c *console) report(err error, hint string) {
	p := c.palette(c.err)
	fmt.Fprintln(c.err, p.Bad.Paint("chela:"), ansi.Line(said(err)))
	if hint != "" {
		fmt.Fprintln(c.err, p.Dim.Paint("hint:"), ansi.Line(hint))
	}
}

// said returns what err says to people: of an answer of the gateway not which
// method it was about.
func said(err error) string {
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

// hint returns what the person may type next; "" when nothing is known to
// help.
func (c *console) hint(err error) string {
	if h, ok := errors.AsType[hinted](err); ok {
		return h.hint
	}
	if h := chela.HintOf(err); h != "" {
		return h
	}
	if _, ok := errors.AsType[*config.Error](err); ok {
		return c.command("config validate")
	}
	e, ok := errors.AsType[*wire.Error](err)
	if !ok {
		return ""
	}
	switch {
	case strings.HasPrefix(e.Detail(), "AUTH_TOKEN_") || e.Detail() == "DEVICE_IDENTITY_REQUIRED":
		return `--token "$(cat ` + filepath.Join("STATE", "credentials", "gateway.token") + `)" with the state directory of that gateway`
	case strings.HasPrefix(e.Detail(), "AUTH_PASSWORD_"):
		return "--password PASSWORD, which is gateway.auth.password there"
	case e.Code == wire.InvalidRequest && strings.Contains(e.Message, "session"):
		return c.command("sessions list")
	}
	return ""
}
