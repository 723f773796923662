package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/cli/console"
	"github.com/chela-ai/chela/internal/config"
	"github.com/chela-ai/chela/internal/shell"
	"github.com/chela-ai/chela/wire"
)

// fail says what went wrong, in one line and a hint, and returns the exit
// code.
func (c *commands) fail(cmd *cobra.Command, err error) int {
	usage, isUsage := errors.AsType[console.UsageError](err)
	switch {
	case errors.Is(err, console.ErrReported):
		return exitFailed
	case errors.Is(err, console.ErrInterrupted), errors.Is(err, context.Canceled):
		return exitInterrupted
	case isUsage:
		hint := cmd.CommandPath() + " --help"
		if h, ok := errors.AsType[console.Hinted](usage); ok {
			hint = h.Hint
		}
		c.Report(usage, hint)
		return exitUsage
	}
	c.Report(err, c.hint(err))
	return exitFailed
}

// hint returns what the person may type next; "" when nothing is known to
// help.
func (c *commands) hint(err error) string {
	if h, ok := errors.AsType[console.Hinted](err); ok {
		return h.Hint
	}
	if h := chela.HintOf(err); h != "" {
		return h
	}
	if _, ok := errors.AsType[*config.Error](err); ok {
		return c.Command("config validate")
	}
	e, ok := errors.AsType[*wire.Error](err)
	if !ok {
		return ""
	}
	switch {
	case strings.HasPrefix(e.Detail(), "AUTH_TOKEN_") || e.Detail() == "DEVICE_IDENTITY_REQUIRED":
		return c.tokenHint()
	case strings.HasPrefix(e.Detail(), "AUTH_PASSWORD_"):
		return "--password PASSWORD, which is gateway.auth.password there"
	case e.Detail() == wire.DetailNoSession:
		return c.Command("sessions list")
	case e.Detail() == wire.DetailUnknownAgent:
		return c.Command("agents list")
	}
	return ""
}

// tokenHint returns how the token of a gateway is shown to it: the one that was
// made for this state directory, if there is one.
func (c *commands) tokenHint() string {
	file := filepath.Join("credentials", "gateway.token")
	if p, err := config.Resolve(c.env, config.Flags{Profile: c.profile}); err == nil {
		if _, err := os.Stat(filepath.Join(p.State, file)); err == nil {
			return `--token "$(cat ` + shell.Quote(filepath.Join(p.State, file)) + `)" if it is the gateway of this state directory`
		}
	}
	return `--token "$(cat ` + filepath.Join("STATE", file) + `)" with the state directory of that gateway`
}
