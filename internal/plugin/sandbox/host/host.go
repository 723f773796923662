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
	"github.com/chela-ai/chela/internal/plugin/sandbox/stdio"
)

// markName is the environment variable that marks the descendants of a
// program.
const markName = "CHELA_RUN"

// drainTime is how long a pipe may stay open after all processes that can be
// found have ended.
const drainTime = time.Second

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
	if p.Rights != nil {
		return nil, errors.New("commands cannot be confined here")
	}
	t := &tree{mark: markName + "=" + b.owner + rand.Text(), tty: p.Terminal != nil}
	cmd := &exec.Cmd{
		Path: p.Path,
		Args: p.Argv,
		Dir:  p.Dir,
		Env:  append(p.Env[:len(p.Env):len(p.Env)], t.mark),
	}
	s, err := stdio.Open(p, out)
	if err != nil {
		return nil, err
	}
	defer s.Started()
	copyInput, err := input(cmd, p.Stdin, s.In)
	if err != nil {
		s.Close()
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = s.Out, s.Err
	if err := t.run(cmd, s); err != nil {
		s.Close()
		return nil, startError(p, err)
	}
	copyInput()
	pr := &process{cmd: cmd, tree: t, streams: s, grace: stdio.Grace(p), ended: make(chan struct{})}
	s.Copy()
	pr.unwatch = context.AfterFunc(ctx, pr.end)
	return s.Terminal(pr), nil
}

// input connects the standard input of a program, which is a terminal if there is
// one. The function that it returns starts to copy the input. Nothing waits for the
// copying, because from may block until its owner closes it.
func input(cmd *exec.Cmd, from io.Reader, terminal *os.File) (start func(), err error) {
	switch f, isFile := from.(*os.File); {
	case terminal != nil:
		cmd.Stdin = terminal
	case isFile:
		cmd.Stdin = f
	case from != nil:
		w, err := cmd.StdinPipe()
		if err != nil {
			return nil, fmt.Errorf("input: %w", err)
		}
		return func() {
			go func() {
				_, _ = io.Copy(w, from) // the program may not read all of it
				_ = w.Close()           // Wait closes it too
			}()
		}, nil
	}
	return func() {}, nil
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
	streams *stdio.Streams
	grace   time.Duration
	killAt  atomic.Pointer[time.Time] // end of the grace period, once ctx has ended
	ended   chan struct{}             // closed when Wait has cleaned up
	unwatch func() bool               // detaches the processes from ctx
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
	stdio.KillAfter(p.grace, p.ended, p.Kill)
}

// Wait waits for the program, ends its remaining descendants, and waits for
// its output.
func (p *process) Wait() (sandbox.Exit, error) {
	defer close(p.ended)
	defer p.unwatch()
	err := p.cmd.Wait()
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		err = nil
	}
	exit := status(p.cmd.ProcessState)
	grace := p.grace
	if at := p.killAt.Load(); at != nil {
		grace = max(0, time.Until(*at))
	}
	exit.Left = p.tree.reap(grace)
	return exit, errors.Join(err, p.streams.Drain(drainTime))
}
