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
	"sync/atomic"
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
type Broker struct {
	// Mark names the owner of the programs, for Sweep; see the function Mark.
	// Empty: what outlives this process is not found.
	Mark string
}

var _ sandbox.Broker = Broker{}

// Name returns "host".
func (Broker) Name() string { return "host" }

// Start starts the plan.
func (b Broker) Start(ctx context.Context, p sandbox.Plan, out io.Writer) (sandbox.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if info, err := os.Stat(p.Dir); err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("working directory: %s is not a directory", p.Dir)
	}
	t := &tree{mark: b.mark(), tty: p.Terminal != nil}
	cmd := &exec.Cmd{
		Path:  p.Path,
		Args:  p.Argv,
		Dir:   p.Dir,
		Env:   append(p.Env[:len(p.Env):len(p.Env)], t.mark),
		Stdin: p.Stdin,
		// A descendant that holds the standard input is no reason to wait.
		WaitDelay: drainTime,
	}
	c, err := connect(cmd, p, out)
	if err != nil {
		return nil, err
	}
	defer c.started()
	if err := t.run(cmd); err != nil {
		c.close()
		return nil, fmt.Errorf("start %s: %w", p.Path, err)
	}
	pr := &process{cmd: cmd, tree: t, conn: c, grace: p.Grace, ended: make(chan struct{}), drained: make(chan error, len(c.flows))}
	if pr.grace == 0 {
		pr.grace = defaultGrace
	}
	for _, f := range c.flows {
		go pr.drain(f)
	}
	go pr.watch(ctx)
	if p.Terminal != nil {
		return terminal{pr, c.flows[0].from}, nil
	}
	return pr, nil
}

// mark returns NAME=value for the environment of one program: the owner, this
// process, the program.
func (b Broker) mark() string {
	if b.Mark == "" {
		return markName + "=" + rand.Text()
	}
	return markName + "=" + b.Mark + "." + self() + "." + rand.Text()
}

// process is a started plan.
type process struct {
	cmd     *exec.Cmd
	tree    *tree
	conn    *conn
	grace   time.Duration
	killAt  atomic.Pointer[time.Time] // when the time of TERM is over, once ctx has ended
	ended   chan struct{}             // closed when Wait has cleaned up
	drained chan error                // the end of each flow
	kill    sync.Once
}

func (p *process) PID() int { return p.cmd.Process.Pid }

// Kill ends all processes at once. When they have ended it does nothing: their
// ids may be others' by then.
func (p *process) Kill() {
	select {
	case <-p.ended:
	default:
		p.kill.Do(p.tree.kill)
	}
}

// watch ends the processes when ctx ends: TERM, grace, KILL.
func (p *process) watch(ctx context.Context) {
	select {
	case <-p.ended:
		return
	case <-ctx.Done():
	}
	at := time.Now().Add(p.grace)
	p.killAt.Store(&at)
	p.tree.term()
	t := time.NewTimer(p.grace)
	defer t.Stop()
	select {
	case <-p.ended:
	case <-t.C:
		p.Kill()
	}
}

// drain copies a flow until every holder of its other end is gone.
func (p *process) drain(f flow) {
	_, err := io.Copy(f.to, f.from)
	if hungUp(err) {
		err = nil
	}
	if err != nil { // the program is not to block on a writer that gave up
		_, _ = io.Copy(io.Discard, f.from)
	}
	p.drained <- err
}

// Wait waits for the program, ends what it left, and waits for its output.
func (p *process) Wait() (sandbox.Exit, error) {
	defer close(p.ended)
	err := p.cmd.Wait()
	if _, ok := errors.AsType[*exec.ExitError](err); ok || errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	exit := status(p.cmd.ProcessState)
	grace := p.grace
	if at := p.killAt.Load(); at != nil {
		grace = max(0, time.Until(*at))
	}
	exit.Left = p.tree.reap(grace)
	t := time.AfterFunc(drainTime, p.conn.close)
	for range p.conn.flows {
		if werr := <-p.drained; werr != nil {
			err = errors.Join(err, fmt.Errorf("output: %w", werr))
		}
	}
	t.Stop()
	p.conn.close()
	return exit, err
}
