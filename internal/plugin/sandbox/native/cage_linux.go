package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/chela-ai/chela/internal/plugin/sandbox/native/launch"
)

// cage is a launcher: it builds its root directory and waits for a command.
type cage struct {
	cmd     *exec.Cmd
	wire    *launch.Wire
	release func() // frees the folders of its layers; nil: it has none yet
	ending  sync.Once
}

// self is the program of this process, whatever has become of its file. The
// user of a cage may not be allowed to look the file up.
const self = "/proc/self/exe"

// user is who the programs of a cage are: an id inside, and the id that the
// rest of the system sees.
type user struct{ inside, outside int }

// newCage starts a launcher.
func newCage(uid, gid user) (*cage, error) {
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	w, err := launch.NewWire(ours)
	_ = ours.Close() // newWire has a copy
	if err != nil {
		_ = theirs.Close() // nothing was written
		return nil, err
	}
	c := &cage{wire: w}
	c.cmd = &exec.Cmd{
		Path: self, Args: []string{"chela", launch.Arg}, Dir: "/",
		// it allocates little, and opens no file of the host
		Env:        []string{"GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=32MiB", "GODEBUG=containermaxprocs=0"},
		ExtraFiles: []*os.File{theirs},
		SysProcAttr: &syscall.SysProcAttr{
			Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC |
				unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: uid.inside, HostID: uid.outside, Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: gid.inside, HostID: gid.outside, Size: 1}},
			// Only root may drop the groups of its process, which a user cannot gain.
			GidMappingsEnableSetgroups: os.Geteuid() == 0,
			Credential: &syscall.Credential{Uid: uint32(uid.inside), Gid: uint32(gid.inside),
				NoSetGroups: os.Geteuid() != 0},
			AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP,
				unix.CAP_DAC_OVERRIDE},
			Setsid: true,
		},
	}
	err = c.cmd.Start()
	_ = theirs.Close() // the launcher has a copy, and its end is seen by the end of the connection
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("start the sandbox: %w", err)
	}
	return c, nil
}

// setUpAs waits until the cage is built for an identity. given are the mounts of
// layers that the setup names. It returns a mount of each layer.
func (c *cage) setUpAs(ctx context.Context, id identity, s launch.Setup, given []*os.File) ([]*os.File, error) {
	stop := context.AfterFunc(ctx, c.discard)
	defer stop()
	made, err := id.attachTrees(&s, len(given))
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	defer launch.CloseAll(made)
	trees := slices.Concat(given, made)
	fds := make([]int, len(trees))
	for i, f := range trees {
		fds[i] = int(f.Fd())
	}
	if err := c.wire.Send(launch.Request{Setup: &s}, fds...); err != nil {
		return nil, fmt.Errorf("set up the sandbox: %w", lost(err))
	}
	return c.await()
}

// clean waits until the cage is ready again after a command.
func (c *cage) clean() error {
	defer time.AfterFunc(buildTime, c.discard).Stop()
	files, err := c.await()
	launch.CloseAll(files)
	return err
}

// await waits until the launcher waits for a command, and returns what comes
// with that.
func (c *cage) await() ([]*os.File, error) {
	var r launch.Reply
	files, err := c.wire.Receive(&r)
	if err == nil && r.Ready {
		return files, nil
	}
	launch.CloseAll(files)
	if err != nil {
		return nil, fmt.Errorf("set up the sandbox: %w", lost(err))
	}
	return nil, reported(r)
}

// lost explains the end of the connection to a launcher.
func lost(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		return fmt.Errorf("its first process was killed, perhaps because memory is short (%w)", err)
	}
	return err
}

// launchError is an error that a launcher reported.
type launchError struct {
	stage, text string
	errno       syscall.Errno
}

func (e *launchError) Error() string { return "sandbox: " + e.stage + ": " + e.text }

// Unwrap returns the error of the system call, if it was one.
func (e *launchError) Unwrap() error {
	if e.errno == 0 {
		return nil
	}
	return e.errno
}

// reported returns the error that a launcher reported.
func reported(r launch.Reply) error { return &launchError{r.Stage, r.Error, syscall.Errno(r.Errno)} }

// socketPair returns the two ends of a connection. The gateway's end does not
// block.
func socketPair() (ours, theirs *os.File, err error) {
	fd, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("sandbox connection: %w", err)
	}
	return os.NewFile(uintptr(fd[0]), "sandbox"), os.NewFile(uintptr(fd[1]), "sandbox"), nil
}

// alive reports whether the launcher waits for its command. When memory is
// short, the kernel kills it before others.
func (c *cage) alive() bool { return !c.wire.Closed() }

// discard ends the cage with all its processes.
func (c *cage) discard() { _ = c.cmd.Process.Kill() } // it may have ended

// end ends the cage and waits for it. It may be called more than once.
func (c *cage) end() {
	c.ending.Do(func() {
		c.discard()
		c.wire.Close()
		_ = c.cmd.Wait() // it was killed
		if c.release != nil {
			c.release()
		}
	})
}
