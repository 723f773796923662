package cli_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/app"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/surface/cli"
	"github.com/chela-ai/chela/internal/surface/gateway"
)

// waiting is the engine of a gateway that is a standby.
type waiting struct {
	cli.Engine
	pipe *gateway.Pipe
}

func (w waiting) Dial(ctx context.Context) (net.Conn, error) { return w.pipe.Dial(ctx) }
func (waiting) Close(context.Context) error                  { return nil }

// TestStandby asks a standby for its state.
func TestStandby(t *testing.T) {
	pipe := gateway.NewPipe()
	b := gateway.NewStartupListener(pipe, slog.New(slog.DiscardHandler),
		gateway.Starting(func() string { return "alpha (process 7)" }))
	defer b.Close()
	a := app.Build(standard.New())
	a.Attach = func(context.Context, cli.Start) (cli.Engine, error) { return waiting{pipe: pipe}, nil }
	for _, tt := range [...]struct {
		command, want string
		code          int
	}{
		{"gateway status", "standby: alpha (process 7) serves", 0},
		{"gateway status --json", `"standby": "alpha (process 7)"`, 0},
		{"health", "standby: alpha (process 7) serves", 1},
	} {
		out, code := output(t, a, strings.Fields(tt.command))
		if !strings.Contains(out, tt.want) || code != tt.code {
			t.Errorf("%s: exit code %d\n%s\nwant %d, %s", tt.command, code, out, tt.code, tt.want)
		}
	}
}

// output runs a command in this process, and returns what it prints.
func output(t *testing.T, a cli.App, args []string) (string, int) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("CHELA_STATE_DIR", dir)
	t.Setenv("HOME", dir)
	f, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stdout, stderr := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = f, f
	defer func() { os.Stdout, os.Stderr = stdout, stderr }()
	code := cli.Main(t.Context(), args, a)
	b, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(b), code
}
