package standard

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
)

// RunProgram implements daemon.Runner: it runs a program of the machine with the variables of
// this process.
func RunProgram(ctx context.Context, name string, args ...string) (string, error) {
	path := lookPath(name)
	if path == "" {
		return "", fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	var out bytes.Buffer
	p, err := host.Broker{}.Start(ctx, sandbox.Plan{Path: path, Argv: append([]string{name}, args...), Dir: os.TempDir(),
		Env: os.Environ()}, &out)
	if err != nil {
		return "", err
	}
	exit, err := p.Wait()
	if err == nil && (exit.Code != 0 || exit.Signal != "") {
		err = fmt.Errorf("%s: exit status %d %s", name, exit.Code, exit.Signal)
	}
	return out.String(), err
}

// Host returns what starts programs of the machine, such as ssh, with all rights of this
// process.
func Host() sandbox.Broker { return host.Broker{} }
