package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/app/settings"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/engine/webhook"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// newWebhooks makes the part that accepts requests of other programs.
func (e *Engine) newWebhooks() error {
	broker, err := e.registry.NewBroker(standard.SandboxEnv{State: e.o.State}, e.o.Config.Section)
	if err != nil {
		return err
	}
	e.webhooks = webhook.New(webhook.Options{
		Log:      e.o.Log,
		Store:    e.store,
		Bus:      e.bus,
		Config:   &e.current,
		Channels: e.channels.States,
		Redact:   e.o.Secrets.Redact,
		Step:     e.o.Step,
		Run:      func(ctx context.Context, p webhook.Program) ([]byte, error) { return runProgram(ctx, broker, p) },
	})
	h, err := e.parseWebhooks(e.o.Config, e.o.Env)
	if err != nil {
		return err
	}
	e.webhooks.SetHooks(h)
	return nil
}

// parseWebhooks returns the webhooks of a configuration, and makes their secrets known.
func (e *Engine) parseWebhooks(s settings.Sections, env func(string) string) (*webhook.Hooks, error) {
	h, err := webhook.Parse(s.Section("hooks"), env, e.o.State)
	if err != nil {
		return nil, err
	}
	e.o.Secrets.Add(h.Secrets()...)
	return h, nil
}

// maxStderr is the number of bytes of a program's standard error that are kept.
const maxStderr = 4 << 10

// runProgram runs the program of a transform, and returns its output. The program gets
// no variables but PATH.
func runProgram(ctx context.Context, b sandbox.Broker, p webhook.Program) ([]byte, error) {
	res, err := sandbox.Output(ctx, b, sandbox.Plan{
		Path:  p.Path,
		Argv:  append([]string{p.Path}, p.Args...),
		Dir:   p.Dir,
		Env:   []string{"PATH=/usr/local/bin:/usr/bin:/bin"},
		Stdin: bytes.NewReader(p.Input),
	}, webhook.MaxOutput)
	switch {
	case errors.Is(err, sandbox.ErrOutput):
		return nil, errors.New("its output is too long")
	case err != nil:
		return nil, err
	case res.Exit.Code != 0:
		return nil, fmt.Errorf("it ended with code %d: %s", res.Exit.Code,
			strings.TrimSpace(humanize.TruncateBytes(res.Stderr, maxStderr)))
	}
	return res.Output, nil
}
