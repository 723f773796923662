package host

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/sandbox"
)

// markName is the environment variable by which the descendants of a program
// are found.
const markName = "CHELA_RUN"

const (
	defaultGrace = 2 * time.Second
	// drainTime is how long a pipe may stay open when every process that
	// could be found is gone.
	drainTime = time.Second
)

// Broker is a sandbox.Broker without confinement. The zero Broker is ready.
type Broker struct{}

var _ sandbox.Broker = Broker{}

// Name returns "host".
func (Broker) Name() string { return "host" }

// Start starts the plan.
func (Broker) Start(ctx context.Context, p sandbox.Plan, out io.Writer) (sandbox.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if info, err := os.Stat(p.Dir); err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("working directory: %s is not a directory", p.Dir)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("output pipe: %w", err)
	}
	mark := markName + "=" + rand.Text()
	cmd := &exec.Cmd{
		Path:   p.Path,
		Args:   p.Argv,
		Dir:    p.Dir,
		Env:    append(p.Env[:len(p.Env):len(p.Env)], mark),
		Stdin:  p.Stdin,
		Stdout: w,
		Stderr: w,
		// A descendant that holds the standard input is no reason to wait.
		WaitDelay: drainTime,
	}
	t := &tree{mark: mark}
	t.prepare(cmd)
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", p.Path, err), r.Close(), w.Close())
	}
	w.Close()
	t.started(cmd.Process)
	grace := p.Grace
	if grace == 0 {
		grace = defaultGrace
	}
	pr := &process{cmd: cmd, tree: t, out: r, grace: grace, ended: make(chan struct{}), drained: make(chan error, 1)}
	go pr.drain(out)
	go pr.watch(ctx)
	return pr, nil
}

// process is a started plan.
type process struct {
	cmd     *exec.Cmd
	tree    *tree
	out     *os.File
	grace   time.Duration
	ended   chan struct{} // closed when Wait has cleaned up
	drained chan error    // the end of the output
	kill    sync.Once
}

func (p *process) PID() int { return p.cmd.Process.Pid }

// Kill ends all processes at once.
func (p *process) Kill() { p.kill.Do(func() { p.tree.killAll() }) }

// watch ends the processes when ctx ends: TERM, grace, KILL.
func (p *process) watch(ctx context.Context) {
	select {
	case <-p.ended:
		return
	case <-ctx.Done():
	}
	p.tree.term()
	t := time.NewTimer(p.grace)
	defer t.Stop()
	select {
	case <-p.ended:
	case <-t.C:
		p.Kill()
	}
}

// drain copies the output until every holder of the pipe is gone.
func (p *process) drain(out io.Writer) {
	_, err := io.Copy(out, p.out)
	if err != nil && !errors.Is(err, os.ErrClosed) {
		io.Copy(io.Discard, p.out) // the program is not to block on a writer that gave up
	} else {
		err = nil
	}
	p.drained <- err
}

// Wait waits for the program, ends what it left, and waits for its output.
func (p *process) Wait() (sandbox.Exit, error) {
	defer close(p.ended)
	err := p.cmd.Wait()
	exit := status(p.cmd.ProcessState)
	exit.Left = p.tree.reap(p.grace)
	p.tree.close()
	if _, ok := errors.AsType[*exec.ExitError](err); ok || errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	t := time.AfterFunc(drainTime, func() { p.out.Close() })
	werr := <-p.drained
	t.Stop()
	p.out.Close()
	if werr != nil {
		werr = fmt.Errorf("output: %w", werr)
	}
	return exit, errors.Join(err, werr)
}
