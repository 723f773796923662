// Package exec runs hooks that are programs. A program reads its event as JSON from
// the standard input and may print an answer as JSON. It runs with the person's
// rights: like the configuration, its folder belongs to the person, and tools cannot
// write there. Programs of plug-ins are confined. Its environment is that of sandbox.Environment with what its
// configuration adds.
//
// What a program does wrong harms only itself: its output and its time are bounded,
// and when it ends, or is told to, all processes that it left are ended.
package exec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

const grace = 500 * time.Millisecond // between TERM and KILL

// DepthVariable is the variable that says how many hooks caused the call of a
// program, so that a program can notice that it causes itself.
const DepthVariable = "CHELA_HOOK_DEPTH"

// Runner runs programs.
type Runner struct {
	Broker  sandbox.Broker
	Cage    sandbox.Broker      // confines; nil: there is none
	Environ []string            // variables of this process
	State   string              // the state directory
	Redact  func(string) string // removes known secrets from events
}

// Command is a program.
type Command struct {
	Name string   // of the hook
	Argv []string // absolute path of the program first
	Dir  string   // working directory
	Env  map[string]string
	// Rights confine the program; nil: it has the person's rights.
	Rights *sandbox.Rights
	// Check returns why the program must not be run; nil: it may be.
	Check func() error
}

// Func returns the function of a hook that runs the program.
func (r Runner) Func(c Command) func(context.Context, []byte) ([]byte, error) {
	env := r.environment(c)
	return func(ctx context.Context, event []byte) ([]byte, error) {
		if c.Check != nil {
			if err := c.Check(); err != nil {
				return nil, fmt.Errorf("%w: %w", hook.ErrUnavailable, err)
			}
		}
		return r.run(ctx, c, env, event)
	}
}

// environment returns the variables of a program.
func (r Runner) environment(c Command) []string {
	all := map[string]string{"CHELA_STATE_DIR": r.State, "CHELA_HOOK": c.Name}
	maps.Copy(all, c.Env)
	return sandbox.Environment(r.Environ, all)
}

// run runs the program once.
func (r Runner) run(ctx context.Context, c Command, env []string, event []byte) ([]byte, error) {
	in := event
	if r.Redact != nil {
		in = []byte(r.Redact(string(event)))
	}
	broker := r.Broker
	if c.Rights != nil {
		if broker = r.Cage; broker == nil {
			return nil, fmt.Errorf("%w: programs cannot be confined on this machine", hook.ErrUnavailable)
		}
	}
	res, err := sandbox.Output(ctx, broker, sandbox.Plan{
		Path:   c.Argv[0],
		Argv:   c.Argv,
		Dir:    c.Dir,
		Rights: c.Rights,
		Env:    append(slices.Clip(env), DepthVariable+"="+strconv.Itoa(hook.Depth(ctx))),
		Stdin:  bytes.NewReader(append(in, '\n')),
		Grace:  grace,
	}, hook.MaxAnswer)
	switch exit := res.Exit; {
	case errors.Is(err, sandbox.ErrOutput):
		return nil, fmt.Errorf("the program printed more than %d bytes", hook.MaxAnswer)
	case errors.As(err, new(*sandbox.StartError)):
		return nil, fmt.Errorf("%w: %w", hook.ErrUnavailable, err)
	case err != nil:
		return nil, err
	case exit.Code != 0 || exit.Signal != "":
		how := "exit status " + strconv.Itoa(exit.Code)
		if exit.Signal != "" {
			how = exit.Signal
		}
		if text := lastLine(res.Stderr); text != "" {
			how += ": " + text
		}
		return nil, errors.New(how)
	}
	return res.Output, nil
}

// lastLine returns the last line of a text, shortened.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		text = text[i+1:]
	}
	return humanize.TruncateBytes(text, 300)
}
