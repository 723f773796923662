package launch

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// launcher is the first process of a cage.
type launcher struct {
	wire  *Wire
	trees []*os.File // detached mounts that the gateway made
	stage string     // for errors

	writable []string // what a command can change
	memory   []folder // of it, what is in memory
	sockets  bool
	shared   []int    // mounts of the layers, for the gateway
	open     []string // folders of the layers that their owner has not closed

	root   int // the root directory, which the launcher can change
	masked int // number of entries of maskDir

	confinement *confinement // nil: to be made
	servers     servers
}

// init runs a cage if this process was started as its launcher, and ends it. The
// packages that come later are not initialized then.
func init() {
	if len(os.Args) == 2 && os.Args[1] == Arg {
		launch()
		os.Exit(0)
	}
}

// launch runs a cage.
func launch() {
	// Capabilities, the filter for system calls, Landlock and namespaces belong to
	// a thread. A command inherits them from one that is started for it.
	runtime.LockOSThread()
	l := launcher{}
	if err := l.run(); err != nil && l.wire != nil {
		r := Reply{Error: err.Error(), Stage: l.stage}
		if errno, ok := errors.AsType[syscall.Errno](err); ok {
			r.Errno = int(errno)
		}
		_ = l.wire.Send(r) // the gateway may have gone
	}
}

func (l *launcher) run() error {
	l.stage = "connect"
	f := os.NewFile(FD, "sandbox")
	if f == nil {
		return errors.New("a launcher is started by the gateway only")
	}
	w, err := NewWire(f)
	if err != nil {
		return err
	}
	_ = f.Close() // NewWire has a copy
	l.wire = w
	// A program that embeds the gateway may have opened files that its children
	// inherit.
	if err := unix.CloseRange(FD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("inherited descriptors: %w", err)
	}
	var r Request
	if l.trees, err = w.Receive(&r); err != nil {
		return err
	}
	if r.Setup == nil {
		return errors.New("no setup")
	}
	if err := l.build(*r.Setup); err != nil {
		return err
	}
	CloseAll(l.trees)
	requests := make(chan task)
	go l.read(requests)
	for first := true; ; first = false {
		if !first {
			l.stage = "clean"
			if err := l.clean(); err != nil {
				return err
			}
		}
		more, err := l.serve(requests)
		if err != nil || !more {
			return err
		}
	}
}

// task is a command with its standard files.
type task struct {
	Command
	files []*os.File
}

// read hands on the commands, carries out what else the gateway asks for, and
// ends the cage when the gateway is gone.
func (l *launcher) read(commands chan<- task) {
	defer close(commands)
	for {
		var r Request
		files, err := l.wire.Receive(&r)
		switch {
		case err != nil:
			_ = syscall.Kill(-1, syscall.SIGKILL) // it ends the command, and so the cage
			return
		case r.Command != nil:
			commands <- task{*r.Command, files}
		case r.List:
			ports := l.servers.ports()
			_ = l.wire.Send(Reply{Ports: &ports}) // the gateway may have gone
		case r.Serve != nil:
			l.servers.set(l.wire, *r.Serve)
		case r.Join != nil:
			go l.servers.join(*r.Join, files)
		case r.Signal != 0:
			_ = syscall.Kill(-1, syscall.Signal(r.Signal)) // there may be no process
		}
	}
}

// idleTime is how long a launcher waits before it returns memory.
const idleTime = time.Second

// serve waits for a command, runs it and reports its end. It reports whether
// there was one.
func (l *launcher) serve(commands <-chan task) (bool, error) {
	l.stage = "confine"
	if l.confinement == nil {
		c, err := newConfinement(l.writable, l.sockets)
		if err != nil {
			return false, err
		}
		l.confinement = c
	}
	addr, err := net.ResolveTCPAddr("tcp4", ProxyAddr)
	if err != nil {
		return false, err
	}
	proxy, err := net.ListenTCP("tcp4", addr)
	if err != nil {
		return false, err
	}
	defer proxy.Close()
	if err := l.wire.Send(Reply{Ready: true}, l.shared...); err != nil {
		return false, err
	}
	for _, fd := range l.shared {
		_ = unix.Close(fd) // the gateway has a copy
	}
	l.shared = nil
	begin := newStarter(l.confinement) // while the gateway has no command yet
	defer begin.discard()
	l.stage = "wait"
	idle := time.AfterFunc(idleTime, debug.FreeOSMemory) // it may wait for minutes
	t, ok := <-commands
	idle.Stop()
	if !ok {
		return false, nil // the cage is not needed any more
	}
	if len(t.files) != 3 && t.Terminal == nil {
		return false, fmt.Errorf("%d standard files, want 3", len(t.files))
	}
	e, err := l.command(t, begin, proxy)
	if err != nil {
		return false, err
	}
	return true, l.wire.Send(Reply{Exit: &e})
}

// command runs a command until all of its processes have ended.
func (l *launcher) command(c task, begin starter, proxy *net.TCPListener) (Exit, error) {
	l.stage = "mount"
	for _, m := range c.Cover {
		if err := l.mount(m); err != nil {
			return Exit{}, fmt.Errorf("%s: %w", m.To, err)
		}
	}
	var ours []int
	if c.Terminal != nil {
		l.stage = "terminal"
		ptmx, pts, err := openTerminal(*c.Terminal)
		if err != nil {
			return Exit{}, err
		}
		ours, c.files = []int{int(ptmx.Fd())}, []*os.File{pts, pts, pts}
	}
	l.servers.set(l.wire, c.Serve)
	defer l.servers.close()
	pid, err := l.start(begin, c)
	if err != nil {
		return Exit{}, err
	}
	CloseAll(c.files)
	if err := l.wire.Send(Reply{Started: true}, ours...); err != nil {
		return Exit{}, err
	}
	for _, fd := range ours {
		_ = unix.Close(fd) // the gateway has a copy
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		l.serveProxy(proxy)
	}()
	e := l.wait(pid)
	e.Left = l.endAll(time.Duration(c.Grace))
	_ = proxy.Close() // and the connections that were not accepted: they are not the next command's
	<-served
	return e, nil
}

// starter is a thread that is confined, and waits for the command that it
// starts. It ends after it.
type starter struct {
	commands chan task
	started  chan started
}

// started is a command that was started, or not.
type started struct {
	pid   int
	stage string // of err
	err   error
}

func newStarter(c *confinement) starter {
	s := starter{make(chan task), make(chan started, 1)}
	go s.run(c)
	return s
}

func (s starter) run(c *confinement) {
	runtime.LockOSThread() // the thread ends with this goroutine
	asked, refused := c.enter()
	if asked >= 0 {
		go answer(asked)
	}
	t, ok := <-s.commands
	switch {
	case !ok:
	case refused != nil:
		s.started <- started{stage: "confine", err: refused}
	default:
		pid, err := syscall.ForkExec(t.Path, t.Argv, &syscall.ProcAttr{
			Dir: t.Dir, Env: t.Env,
			Files: []uintptr{t.files[0].Fd(), t.files[1].Fd(), t.files[2].Fd()},
			Sys:   &syscall.SysProcAttr{Setsid: true, Setctty: t.Terminal != nil},
		})
		s.started <- started{pid: pid, stage: "start", err: err}
	}
}

// discard ends the thread.
func (s starter) discard() { close(s.commands) }

// start starts a command.
func (l *launcher) start(s starter, t task) (pid int, err error) {
	s.commands <- t
	r := <-s.started
	l.stage = r.stage
	return r.pid, r.err
}

// serveProxy hands the connections to the gateway.
func (l *launcher) serveProxy(ln *net.TCPListener) {
	for {
		c, err := ln.AcceptTCP()
		if err != nil {
			return
		}
		if f, err := c.File(); err == nil {
			_ = l.wire.Send(Reply{Conn: true}, int(f.Fd())) // the gateway may have gone
			_ = f.Close()                                   // the gateway has a copy
		}
		_ = c.Close() // as above
	}
}

// wait collects ended processes until the command has ended.
func (l *launcher) wait(command int) Exit {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return Exit{Code: -1}
		case pid != command:
		case status.Signaled():
			return Exit{Code: -1, Signal: unix.SignalName(status.Signal())}
		default:
			return Exit{Code: status.ExitStatus()}
		}
	}
}

// endAll ends the remaining processes of the cage and returns how many there
// were.
func (l *launcher) endAll(grace time.Duration) int {
	left := others()
	if left == 0 {
		return 0
	}
	_ = syscall.Kill(-1, syscall.SIGTERM) // they may have ended
	done := make(chan struct{})
	go func() {
		for {
			if _, err := syscall.Wait4(-1, nil, 0, nil); err != nil && err != syscall.EINTR {
				close(done)
				return
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(grace):
		_ = syscall.Kill(-1, syscall.SIGKILL)
		<-done
	}
	return left
}

// others returns the number of processes in the cage besides the launcher.
// Ended ones that nobody collected do not count.
func others() int {
	for { // in general there is none
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err == syscall.ECHILD {
			return 0
		}
		if pid <= 0 && err != syscall.EINTR {
			break
		}
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	n := 0
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if stat, err := os.ReadFile("/proc/" + e.Name() + "/stat"); err == nil && !zombie(stat) {
			n++
		}
	}
	return n
}

// zombie reports whether the content of /proc/ID/stat is that of an ended
// process.
func zombie(stat []byte) bool {
	for i := len(stat) - 1; i >= 0; i-- {
		if stat[i] == ')' {
			return i+2 < len(stat) && (stat[i+2] == 'Z' || stat[i+2] == 'X')
		}
	}
	return true
}
