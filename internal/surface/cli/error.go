package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/config"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/surface/tui/repl"
	"github.com/chela-ai/chela/wire"
)

// errInterrupted reports that the person stopped the command.
var errInterrupted = repl.ErrInterrupted

// errReported is a failure that was already reported to the person.
var errReported = repl.ErrReported

// errWarned says that the command reported warnings, and nothing worse.
var errWarned = errors.New("there are warnings")

// usageError is an error in the command line.
type usageError struct{ error }

// Unwrap returns the error in the command line.
func (e usageError) Unwrap() error { return e.error }

// usage returns err as a [usageError].
func usage(err error) error { return usageError{err} }

// hintedError is an error with a hint: what to type next.
type hintedError struct {
	error
	hint string
}

// Unwrap returns the error without its hint.
func (e hintedError) Unwrap() error { return e.error }

// withHint returns err with a hint. An empty hint suppresses the default one.
func withHint(err error, hint string) error { return hintedError{err, hint} }

// suggest returns err with a subcommand of chela as the hint.
func (c *commands) suggest(err error, subcommand string) error {
	return hintedError{err, c.commandLine(subcommand)}
}

// errorText returns the message of err for people. It leaves out which method
// the gateway rejected.
func errorText(err error) string {
	e, ok := errors.AsType[*wire.Error](err)
	if !ok {
		return withoutNotFound(err.Error())
	}
	around := "" // what was said before the call
	if call, ok := errors.AsType[*client.CallError](err); ok {
		if text, ok := strings.CutSuffix(err.Error(), call.Error()); ok {
			around = text
		}
	}
	if rest, ok := strings.CutPrefix(e.Error(), "invalid "); ok {
		if _, reason, ok := strings.Cut(rest, " params: "); ok {
			return around + property().ReplaceAllStringFunc(reason, func(s string) string {
				return strings.ReplaceAll(strings.TrimPrefix(s, "at /"), "/", ".")
			})
		}
	}
	return around + withoutNotFound(e.Error())
}

// withoutNotFound returns a message that says what is not set without its cause, which says
// the same.
func withoutNotFound(s string) string {
	if rest, ok := strings.CutSuffix(s, ": "+chela.ErrNotFound.Error()); ok &&
		(strings.HasSuffix(rest, " is not set") || strings.HasSuffix(rest, " is not overridden")) {
		return rest
	}
	return s
}

// flagError returns an error about a flag for people, without the names of functions.
func flagError(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if s := e.GetSpecifiedShortnames(); s != "" && strings.Trim(s, "0123456789.") == "" {
			return withHint(fmt.Errorf("-%s is taken for a flag; write -- before a value that begins with -", s),
				cmd.CommandPath()+" -- … -"+s)
		}
	}
	e, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	want := ""
	switch kind := e.GetFlag().Value.Type(); {
	case strings.Contains(kind, "int"):
		want = "a whole number"
	case strings.HasPrefix(kind, "float"):
		want = "a number"
	case kind == "duration":
		want = "a duration such as 30s or 1h"
	case kind == "bool":
		want = "true or false"
	default:
		return err
	}
	return fmt.Errorf("--%s: want %s, not %q", e.GetFlag().Name, want, e.GetValue())
}

// checkNumbers refuses numbers and durations below zero in flags: none of them has a use for
// one.
func checkNumbers(cmd *cobra.Command, _ []string) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch f.Value.Type() {
		case "int", "int64", "duration":
			if strings.HasPrefix(f.Value.String(), "-") {
				err = usage(fmt.Errorf("--%s: %s is less than zero", f.Name, f.Value))
			}
		}
	})
	return err
}

// property matches how the gateway names a property of a request.
var property = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bat /[\w/]+: `) })

// fail reports err with a hint and returns the exit code.
func (c *commands) fail(cmd *cobra.Command, err error) int {
	usage, isUsage := errors.AsType[usageError](err)
	switch {
	case errors.Is(err, errReported):
		return exitFailed
	case errors.Is(err, errWarned):
		return exitWarned
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return exitInterrupted
	case isUsage:
		hint := cmd.CommandPath() + " --help"
		if h, ok := errors.AsType[hintedError](usage); ok {
			hint = h.hint
		}
		c.report(errors.New(c.secrets.Redact(errorText(usage))), hint)
		return exitUsage
	}
	c.report(errors.New(c.secrets.Redact(errorText(err))), c.hintFor(err))
	return exitFailed
}

// hintFor returns what the person can type to fix err, or "".
func (c *commands) hintFor(err error) string {
	if h, ok := errors.AsType[hintedError](err); ok {
		return h.hint
	}
	if h := chela.HintOf(err); h != "" {
		return h
	}
	if _, ok := errors.AsType[*config.Error](err); ok {
		return c.commandLine("config validate")
	}
	e, ok := errors.AsType[*wire.Error](err)
	if !ok {
		return ""
	}
	switch {
	case strings.HasPrefix(e.Detail(), "AUTH_TOKEN_") || e.Detail() == "DEVICE_IDENTITY_REQUIRED":
		return c.tokenHint()
	case strings.HasPrefix(e.Detail(), "AUTH_PASSWORD_"):
		return "--password PASSWORD, the value of gateway.auth.password on that gateway"
	case e.Detail() == wire.DetailNoSession:
		return c.commandLine("sessions list")
	case e.Detail() == wire.DetailUnknownAgent:
		return c.commandLine("agents list")
	}
	return ""
}

// tokenHint returns the flag that passes the gateway token: with the token
// file of this state directory if it exists.
func (c *commands) tokenHint() string {
	file := filepath.Join("credentials", "gateway.token")
	if p, err := config.Resolve(c.env, config.Flags{Profile: c.profile}); err == nil {
		if _, err := os.Stat(filepath.Join(p.State, file)); err == nil {
			return `--token "$(cat ` + shell.Quote(filepath.Join(p.State, file)) + `)" if the gateway uses this state directory`
		}
	}
	return `--token "$(cat ` + filepath.Join("STATE", file) + `)" where STATE is the state directory of that gateway`
}
