package cli_test

import (
	"context"
	"net"
	"testing"

	"github.com/chela-ai/chela/internal/app"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// interrupted is an engine whose client is interrupted while it connects. It
// records whether it was stopped.
type interrupted struct {
	cli.Engine
	interrupt context.CancelFunc
	stopped   bool
}

func (e *interrupted) Dial(ctx context.Context) (net.Conn, error) {
	e.interrupt()
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func (e *interrupted) Close(ctx context.Context) error {
	e.stopped = true
	return e.Engine.Close(ctx)
}

func TestInterruptedWhileConnecting(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CHELA_STATE_DIR", dir)
	t.Setenv("HOME", dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a := app.Build(standard.New())
	e := &interrupted{interrupt: cancel}
	start := a.Start
	a.Start = func(ctx context.Context, s cli.Start) (_ cli.Engine, err error) {
		e.Engine, err = start(ctx, s)
		return e, err
	}
	if code := cli.Main(ctx, []string{"sessions", "list"}, a); code == 0 || e.Engine == nil || !e.stopped {
		t.Errorf("exit code %d; the engine was started: %v, stopped: %v", code, e.Engine != nil, e.stopped)
	}
}
