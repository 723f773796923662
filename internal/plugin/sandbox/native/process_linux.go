package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/plugin/sandbox/native/launch"
	"github.com/chela-ai/chela/internal/plugin/sandbox/stdio"
)

// drainTime is how long output may take to arrive after all processes have
// ended.
const drainTime = time.Second

// maskEnv makes Git compare only the size, the mode and the time of a file. What is mounted
// over a hidden file has the same ones; see launch.Mask.
var maskEnv = []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=core.checkStat", "GIT_CONFIG_VALUE_0=minimal"}

// process is a command in a cage.
type process struct {
	cage    *cage
	private *privateFiles
	streams *stdio.Streams
	proxy   *proxy
	grace   time.Duration
	unwatch func() bool       // detaches the cage from ctx
	input   *os.File          // where the input is copied to; nil if it is not
	ended   chan struct{}     // closed when Wait has cleaned up
	result  chan *launch.Exit // receives the end of the command; nil: the cage broke
	finish  func()            // called after the end of the command
	keep    func(made)        // called with what it made; see made
	ask     asks              // asks Git what it committed

	shown   bool          // it may read all of the workspace
	before  *before       // nil: the command cannot change the workspace
	held    *os.File      // holds before; nil: nothing does
	done    chan struct{} // closed when the command has ended
	guard   sync.WaitGroup
	blocked []string // what was renamed while the command ran

	peers  peers
	mu     sync.Mutex
	over   bool // the cage may have another command
	shared bool // servers of others were shown to it, or its own to others, so that the cage is not used again
}

// run runs the plan's program in a cage.
func (b *Broker) run(ctx context.Context, c *readyCage, p sandbox.Plan, cover []mount,
	out io.Writer) (*process, error) {
	vars := append(proxyEnv(launch.ProxyAddr), "TMPDIR=/tmp")
	if len(c.found.masks) > 0 {
		vars = append(vars, maskEnv...)
	}
	cmd := launch.Command{
		Path: p.Path, Argv: p.Argv, Dir: p.Dir, Env: withVars(p.Env, vars), Terminal: (*launch.Size)(p.Terminal),
		Cover: append(b.homeCovers(c.found.never), cover...), Grace: int64(stdio.Grace(p)),
	}
	pr := &process{
		cage:    c.cage,
		private: c.found,
		grace:   stdio.Grace(p),
		ended:   make(chan struct{}),
		result:  make(chan *launch.Exit, 1),
		finish:  c.end,
		proxy:   newProxy(p.Rights.Hosts, b.o.Dial),
		done:    make(chan struct{}),

		keep: func(m made) { b.keepMade(p.Rights.Workspace, m) },
		ask:  b.asks(p),
	}
	if err := pr.remember(b, p.Rights); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	pr.peers = peers{b: b, key: peersKey(p), listed: make(chan []launch.Port, 1)}
	var err error
	cmd.Serve = pr.reach()
	if p.Terminal != nil {
		err = pr.startTerminal(cmd, out)
	} else {
		err = pr.startPipes(cmd, p, out)
	}
	if err != nil {
		pr.forget()
		return nil, startError(p, err)
	}
	pr.streams.Copy()
	go pr.listen()
	pr.meet()
	if pr.before != nil {
		pr.guard.Go(func() { pr.watch(b.watchTime) })
	}
	pr.unwatch = context.AfterFunc(ctx, pr.end)
	return pr, nil
}

// remember keeps what the workspace has before a command that can change it,
// until the command has ended.
func (p *process) remember(b *Broker, r *sandbox.Rights) error {
	if !r.Write {
		return nil
	}
	before := p.private.before()
	p.before, p.shown, p.private.opens = &before, r.ReadsAll(), true
	p.private.opened, p.private.cut = nil, nil
	dir := b.layersFolder(r.Workspace)
	if dir == "" {
		return nil
	}
	var err error
	p.held, err = before.hold(filepath.Join(dir, beforePrefix+strconv.Itoa(p.PID())))
	return err
}

// forget removes what remember stored.
func (p *process) forget() {
	p.private.opens = false
	if p.held != nil {
		_ = os.Remove(p.held.Name()) // it serves the next process only
		_ = p.held.Close()           // as above
	}
}

// watch undoes, while a command runs for long, what it made that makes other
// programs run something.
func (p *process) watch(every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-t.C:
			p.private.searchAgain(context.Background())
			p.blocked = append(p.blocked, p.before.undo(p.private)...)
		}
	}
}

// undo does the same when the command has ended, also in new repositories.
func (p *process) undo() []string {
	defer p.forget()
	close(p.done)
	p.guard.Wait()
	if p.before == nil {
		return nil
	}
	p.private.searchAgain(context.Background())
	p.blocked = append(p.blocked, p.before.undo(p.private)...)
	slices.Sort(p.blocked)
	return slices.Compact(p.blocked)
}

// startPipes starts the command with pipes.
func (p *process) startPipes(cmd launch.Command, plan sandbox.Plan, out io.Writer) (err error) {
	if p.streams, err = stdio.Open(plan, out); err != nil {
		return err
	}
	defer p.streams.Started()
	stdin, err := p.openInput(plan.Stdin)
	if err != nil {
		p.streams.Close()
		return err
	}
	defer stdin.Close()
	if _, err := p.cage.start(cmd, stdin, p.streams.Out, p.streams.Err); err != nil {
		p.streams.Close()
		p.endInput()
		return err
	}
	return nil
}

// startTerminal starts the command in a terminal of the cage.
func (p *process) startTerminal(cmd launch.Command, out io.Writer) error {
	files, err := p.cage.start(cmd)
	if err != nil {
		return err
	}
	if len(files) != 1 {
		launch.CloseAll(files)
		return sandbox.ErrNoTerminal
	}
	p.streams, err = stdio.OpenTerminal(files[0], out)
	return err
}

// start sends the command to the launcher and waits until it runs.
func (c *cage) start(cmd launch.Command, files ...*os.File) ([]*os.File, error) {
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	if err := c.wire.Send(launch.Request{Command: &cmd}, fds...); err != nil {
		return nil, fmt.Errorf("start in the sandbox: %w", lost(err))
	}
	var r launch.Reply
	got, err := c.wire.Receive(&r)
	if err != nil {
		return nil, fmt.Errorf("start in the sandbox: %w", lost(err))
	}
	if !r.Started {
		launch.CloseAll(got)
		return nil, reported(r)
	}
	return got, nil
}

// startError explains why a program did not start.
func startError(p sandbox.Plan, err error) error {
	l, ok := errors.AsType[*launchError](err)
	if !ok || l.stage != "start" {
		return err
	}
	if info, err := os.Stat(p.Dir); err != nil {
		return fmt.Errorf("working directory: %w", err)
	} else if !info.IsDir() {
		return fmt.Errorf("working directory: %s is not a directory", p.Dir)
	}
	return fmt.Errorf("start %s in the sandbox: %w", p.Path, l.errno)
}

// openInput returns the standard input of a program.
func (p *process) openInput(from io.Reader) (in *os.File, err error) {
	switch f, isFile := from.(*os.File); {
	case isFile:
		in, err = dup(f)
	case from == nil:
		in, err = os.Open(os.DevNull)
	default:
		var w *os.File
		if in, w, err = os.Pipe(); err == nil {
			p.input = w
			go func() {
				_, _ = io.Copy(w, from) // the program may not read all of it
				p.endInput()
			}()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("input: %w", err)
	}
	return in, nil
}

// endInput ends the copying of the input.
func (p *process) endInput() {
	if p.input != nil {
		_ = p.input.Close() // it may be closed
	}
}

// dup returns a copy of a file. Its mode of blocking is the original's.
func dup(f *os.File) (*os.File, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	var fd int
	var dupErr error
	if err := conn.Control(func(old uintptr) {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		if fd, dupErr = syscall.Dup(int(old)); dupErr == nil {
			syscall.CloseOnExec(fd)
		}
	}); err != nil {
		return nil, err
	}
	if dupErr != nil {
		return nil, dupErr
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// listen handles what the launcher sends until the cage has ended.
func (p *process) listen() {
	defer close(p.result)
	for {
		var r launch.Reply
		files, err := p.cage.wire.Receive(&r)
		switch {
		case err != nil:
			return
		case r.Ports != nil:
			select {
			case p.peers.listed <- *r.Ports:
			default: // nobody waits for it any more
			}
		case r.Conn && r.Port.Number != 0:
			p.joinPeer(r.Port, files)
		case r.Conn && len(files) == 1:
			if c, err := net.FileConn(files[0]); err == nil {
				go p.proxy.serve(c)
			}
		case r.Exit != nil:
			p.result <- r.Exit
			launch.CloseAll(files)
			return
		}
		launch.CloseAll(files)
	}
}

func (p *process) PID() int { return p.cage.cmd.Process.Pid }

// Kill kills all processes of the cage.
func (p *process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.cage.discard()
	}
}

// end ends the processes after ctx has ended: TERM, grace period, KILL.
func (p *process) end() {
	if err := p.terminate(); err != nil {
		p.Kill()
		return
	}
	stdio.KillAfter(p.grace, p.ended, p.Kill)
}

// terminate sends TERM to the processes.
func (p *process) terminate() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return nil
	}
	return p.cage.wire.Send(launch.Request{Signal: int(syscall.SIGTERM)})
}

// Wait waits for the end of all processes of the command.
func (p *process) Wait() (sandbox.Exit, error) {
	defer close(p.ended)
	defer p.unwatch()
	r := sandbox.Exit{Code: -1, Signal: "SIGKILL"}
	if e := <-p.result; e != nil {
		r.Code, r.Signal, r.Left = e.Code, e.Signal, e.Left
	} else {
		p.cage.end() // with its processes
	}
	r.Blocked = p.undo()
	if p.before != nil {
		p.keep(p.before.made(p.private))
		r.Later, r.Opened, r.Unchecked = p.before.later(p.private), p.private.openedNow(), p.private.unchecked(p.shown)
		var unseen string
		r.Committed, unseen = p.before.commits(p.private, r.Blocked, p.ask)
		r.Unchecked = cmp.Or(r.Unchecked, unseen)
	}
	p.proxy.close()
	p.endInput()
	err := p.streams.Drain(drainTime)
	p.proxy.report(&r)
	p.leave()
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	p.finish()
	return r, err
}
