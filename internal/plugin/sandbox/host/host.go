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

	"github.com/chela-ai/chela/internal/core/sandbox"
)

// markName is the environment variable that marks the descendants of a
// program.
const markName = "CHELA_RUN"

const (
	defaultGrace = 2 * time.Second
	// drainTime is how long a pipe may stay open after all processes that can be
	// found have ended.
	drainTime = time.Second
)

// Broker is a sandbox.Broker without confinement. The zero Broker is ready to
// use, but Sweep does not find its programs after this process was killed.
type Broker struct {
	owner string // prefix of its programs' marks
}

var _ sandbox.Broker = Broker{}

// New returns a Broker whose programs are found by Sweep under the mark. The
// function Mark returns the mark of a directory. With an empty mark New
// returns the zero Broker.
func New(mark string) Broker {
	if mark == "" {
		return Broker{}
	}
	return Broker{owner: mark + "." + self() + "."}
}

// Name returns "host".
func (Broker) Name() string { return "host" }

// Start starts the plan.
func (b Broker) Start(ctx context.Context, p sandbox.Plan, out io.Writer) (sandbox.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t := &tree{mark: markName + "=" + b.owner + rand.Text(), tty: p.Terminal != nil}
	cmd := &exec.Cmd{
		Path:  p.Path,
		Args:  p.Argv,
		Dir:   p.Dir,
		Env:   append(p.Env[:len(p.Env):len(p.Env)], t.mark),
		Stdin: p.Stdin,
		// Do not wait for a descendant that holds the standard input.
		WaitDelay: drainTime,
	}
	c, err := connect(cmd, p, out)
	if err != nil {
		return nil, err
	}
	defer c.started()
	if err := t.run(cmd, c.token); err != nil {
		c.close()
		return nil, startError(p, err)
	}
	pr := &process{cmd: cmd, tree: t, conn: c, grace: p.Grace, ended: make(chan struct{}), drained: make(chan error, len(c.flows))}
	if pr.grace == 0 {
		pr.grace = defaultGrace
	}
	for _, f := range c.flows {
		go pr.drain(f)
	}
	pr.unwatch = context.AfterFunc(ctx, pr.end)
	if p.Terminal != nil {
		return terminal{pr, c.flows[0].from}, nil
	}
	return pr, nil
}

// startError explains why a plan did not start. A missing directory and a
// missing program cause the same system error.
func startError(p sandbox.Plan, err error) error {
	if info, err := os.Stat(p.Dir); err != nil {
		return fmt.Errorf("working directory: %w", err)
	} else if !info.IsDir() {
		return fmt.Errorf("working directory: %s is not a directory", p.Dir)
	}
	return fmt.Errorf("start %s: %w", p.Path, err)
}

// process is a started plan.
type process struct {
	cmd     *exec.Cmd
	tree    *tree
	conn    *conn
	grace   time.Duration
	killAt  atomic.Pointer[time.Time] // end of the grace period, once ctx has ended
	ended   chan struct{}             // closed when Wait has cleaned up
	unwatch func() bool               // detaches the processes from ctx
	drained chan error                // receives the result of each flow
	kill    sync.Once
}

func (p *process) PID() int { return p.cmd.Process.Pid }

// Kill kills all processes. After they have ended it does nothing, because
// their ids may have been reused.
func (p *process) Kill() {
	select {
	case <-p.ended:
	default:
		p.kill.Do(p.tree.kill)
	}
}

// end ends the processes after ctx has ended: TERM, grace period, KILL.
func (p *process) end() {
	select {
	case <-p.ended:
		return
	default:
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

// drain copies a flow until all holders of its other end have closed it.
func (p *process) drain(f flow) {
	// The wrapper hides *os.File, for which io would allocate a large buffer.
	_, err := io.CopyBuffer(f.to, struct{ io.Reader }{f.from}, make([]byte, 4<<10))
	if hungUp(err) {
		err = nil
	}
	if err != nil { // the program must not block because the writer failed
		_, _ = io.Copy(io.Discard, f.from)
	}
	p.drained <- err
}

// Wait waits for the program, ends its remaining descendants, and waits for
// its output.
func (p *process) Wait() (sandbox.Exit, error) {
	defer close(p.ended)
	defer p.unwatch()
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
	t := time.AfterFunc(drainTime, p.conn.cut)
	for range p.conn.flows {
		if werr := <-p.drained; werr != nil {
			err = errors.Join(err, fmt.Errorf("output: %w", werr))
		}
	}
	t.Stop()
	p.conn.close()
	return exit, err
}
