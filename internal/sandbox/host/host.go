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

// Broker is a sandbox.Broker without confinement. The zero Broker is ready:
// nothing finds what of its programs outlives this process.
type Broker struct {
	owner string // what the marks of its programs begin with
}

var _ sandbox.Broker = Broker{}

// New returns a Broker whose programs are found by Sweep under a mark, which is
// that of the function Mark. With "" it is the zero Broker.
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
		// A descendant that holds the standard input is no reason to wait.
		WaitDelay: drainTime,
	}
	c, err := connect(cmd, p, out)
	if err != nil {
		return nil, err
	}
	defer c.started()
	if err := t.run(cmd, c.token); err != nil {
		c.close()
		return nil, unstarted(p, err)
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

// unstarted says why a plan did not start: without its directory the system's
// words are those for a program that is missing.
func unstarted(p sandbox.Plan, err error) error {
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
	killAt  atomic.Pointer[time.Time] // when the time of TERM is over, once ctx has ended
	ended   chan struct{}             // closed when Wait has cleaned up
	unwatch func() bool               // the end of ctx ends the processes no more
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

// end ends the processes, since ctx has ended: TERM, grace, KILL.
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

// drain copies a flow until every holder of its other end is gone.
func (p *process) drain(f flow) {
	// A reader and no file, which would have a large buffer made for a few bytes.
	_, err := io.CopyBuffer(f.to, struct{ io.Reader }{f.from}, make([]byte, 4<<10))
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
