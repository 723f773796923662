package acp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"testing"

	"github.com/chela-ai/chela/internal/core/acp"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
	"github.com/chela-ai/chela/internal/plugin/tool/acp/acptest"
)

func TestMain(m *testing.M) {
	if status, is := acptest.Main(); is {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// closingBroker is a broker that has a pool closed while it starts a program.
type closingBroker struct {
	sandbox.Broker
	close func()
}

func (c closingBroker) Start(ctx context.Context, p sandbox.Plan, out io.Writer) (sandbox.Process, error) {
	c.close()
	return c.Broker.Start(ctx, p, out)
}

// TestClosedMeanwhile closes a pool while a program starts: it is ended, and nothing is left.
func TestClosedMeanwhile(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var p *Pool
	closed := make(chan error, 1)
	p = New(Options{
		Log: slog.New(slog.DiscardHandler), Environ: os.Environ(),
		Broker: closingBroker{host.New(""), func() {
			go func() { closed <- p.Close(context.Background()) }()
			waittest.Until(t, "the pool to be closed", func() bool {
				p.mu.Lock()
				defer p.mu.Unlock()
				return p.closed
			})
		}},
	})
	_, _, err = p.acquire(t.Context(), "agent:main:acp:x", session.External{Agent: "fake", Dir: dir},
		acp.Program{Command: self, Env: acptest.Env(dir)})
	if !errors.Is(err, errClosed) {
		t.Errorf("acquire: %v, want %v", err, errClosed)
	}
	if err := <-closed; err != nil || p.Running() != 0 {
		t.Errorf("close: %v, %d programs are left", err, p.Running())
	}
}
