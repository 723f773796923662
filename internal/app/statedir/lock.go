// Package statedir manages the state directory: its mode, its lock, which one process holds at a
// time, and the socket on which that process accepts connections of other processes.
//
// The lock is of the kernel, which releases it however the process ends. It decides alone; the
// file has the process id only for messages, and as a mark: a process that stops in good order
// empties it, so that a file with content tells the next owner that the one before was killed
// ([Lock.Killed]) and may have left commands. A process that cannot get the lock connects to the
// owner by the socket, or waits for it to answer or to end.
package statedir

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/kit/process"
)

const (
	lockName   = "chela.lock"
	socketName = "chela.sock"
)

// ErrOwned says that another process has the lock of the state directory: its owner,
// or a child of a killed owner. A child that is being started has the lock and the
// socket of its parent for a moment, until it runs its own program. [Ask] tells them
// apart.
var ErrOwned = errors.New("another process owns the state directory")

// Lock is the ownership of a state directory.
type Lock struct {
	*flock.Flock
	killed bool
}

// Killed reports whether the previous owner did not stop in good order, so that its
// commands may still be running.
func (l *Lock) Killed() bool { return l.killed }

// Leave releases the directory in good order. [Lock.Unlock] alone has the effect of
// a kill.
func (l *Lock) Leave() error {
	if err := os.Truncate(l.Path(), 0); err != nil {
		return errors.Join(fmt.Errorf("state directory: %w", err), l.Unlock())
	}
	return l.Unlock()
}

// Own takes the lock of the state directory. The kernel releases it when the process
// ends for any reason. It returns ErrOwned when another process has the lock.
func Own(dir string) (*Lock, error) {
	if err := Make(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, lockName)
	l := &Lock{Flock: flock.New(path, flock.SetPermissions(0o600))}
	ok, err := l.TryLock()
	switch {
	case err != nil:
		return nil, cmp.Or(Writable(dir), lockError(dir, err))
	case !ok:
		return nil, ErrOwned
	}
	if err := checkLock(path); err != nil {
		l.Unlock()
		return nil, lockError(dir, err)
	}
	l.killed = !empty(path)
	recordPID(path)
	return l, nil
}

// Owned reports whether a process has the lock of a directory. It takes the lock for a
// moment, and changes nothing.
func Owned(dir string) (bool, error) {
	l := flock.New(filepath.Join(dir, lockName), flock.SetPermissions(0o600))
	defer l.Close()
	free, err := l.TryLock()
	if err != nil {
		return false, lockError(dir, err)
	}
	return !free, nil
}

// OwnIdle is [Own] for work that needs no engine. It returns ErrOwned when the owner
// answers, or has not released the lock when ctx ends, or after two seconds if ctx has
// no deadline.
func OwnIdle(ctx context.Context, dir string) (*Lock, error) {
	if _, ok := ctx.Deadline(); !ok {
		limited, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		ctx = limited
	}
	for {
		l, err := Own(dir)
		if !errors.Is(err, ErrOwned) || Ask(ctx, dir) == nil {
			return l, err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// Probe reports whether a directory can be owned, as [OwnIdle] does, and changes nothing in
// it but the file of the lock, which is made if there is none. It returns ErrOwned when
// another process owns the directory.
func Probe(ctx context.Context, dir string) error {
	if _, ok := ctx.Deadline(); !ok {
		limited, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		ctx = limited
	}
	path := filepath.Join(dir, lockName)
	for {
		l := flock.New(path, flock.SetPermissions(0o600))
		free, err := l.TryLock()
		switch {
		case err != nil:
			return errors.Join(cmp.Or(Writable(dir), lockError(dir, err)), l.Close())
		case free:
			if err := checkLock(path); err != nil {
				return errors.Join(lockError(dir, err), l.Close())
			}
			return l.Close()
		case Ask(ctx, dir) == nil:
			return errors.Join(ErrOwned, l.Close())
		}
		_ = l.Close()
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ErrOwned
		}
	}
}

// Dial connects to the process that owns the state directory.
func Dial(ctx context.Context, dir string) (net.Conn, error) {
	path, err := Socket(dir)
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, "unix", path)
}

// Ask waits for an answer of the process that owns the state directory. A connection
// alone is no answer: the system accepts it for a process that never will.
func Ask(ctx context.Context, dir string) error {
	conn, err := Dial(ctx, dir)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := io.WriteString(conn, "HEAD / HTTP/1.0\r\n\r\n"); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1)) // any answer will do
	return cmp.Or(ctx.Err(), err)
}

// recordPID writes the process id to the lock file, for messages and for the next
// owner. Only the lock decides about the ownership. Where a locked file cannot be
// written, messages do not contain the process.
func recordPID(path string) { _ = os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600) }

// empty reports whether a file exists and is empty.
func empty(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() == 0
}

// Owner returns the process that owns a state directory.
func Owner(dir string) process.Process {
	b, err := os.ReadFile(filepath.Join(dir, lockName))
	if err != nil {
		return process.Process{}
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return process.Process{}
	}
	return process.Of(pid)
}

// checkLock checks that a second lock on the file is refused. On some network file
// systems every lock succeeds. The lock belongs to the open file, so that this process can try it
// against itself.
func checkLock(path string) error {
	second := flock.New(path)
	defer second.Close()
	ok, err := second.TryLock()
	if err != nil {
		return err
	}
	if ok {
		return errors.New("the file system grants the same lock twice")
	}
	return nil
}

func lockError(dir string, err error) error {
	return &chela.Error{
		Code:    chela.CodeUnavailable,
		Message: fmt.Sprintf("state directory %s: file locks do not work there, so that two processes could damage it", dir),
		Hint:    "choose a directory on a local disk: chela --state-dir DIR …",
		Err:     err,
	}
}

// Writable writes and removes a file of 1 MB in the state directory. The error has a
// hint.
func Writable(dir string) error {
	f, err := os.CreateTemp(dir, ".space-*")
	if err == nil {
		_, err = f.Write(make([]byte, 1<<20))
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC):
		return &chela.Error{
			Code: chela.CodeFull, Message: "the disk of the state directory " + dir + " is full",
			Hint: "free some room on the disk of " + dir, Err: chela.ErrFull,
		}
	}
	return &chela.Error{
		Code: chela.CodeUnavailable, Message: "state directory " + dir + " cannot be written",
		Hint: "make it writable for you, or use another one: chela --state-dir DIR …", Err: err,
	}
}

// Used reports whether a state directory was used before, so that it must have a database:
// a new one would be made, and the loss would not be noticed.
func Used(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, media.Dir)) // which is made once the database is there
	return err == nil
}

// Make creates the state directory, for its owner only.
func Make(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return &chela.Error{
				Code:    chela.CodeForbidden,
				Message: fmt.Sprintf("state directory %s is open to other users (%s)", dir, info.Mode().Perm()),
				Hint:    "chmod 700 " + dir,
				Err:     err,
			}
		}
	}
	return nil
}

// Socket returns the path of the socket on which the owner of the state directory
// listens. The kernel limits the length of a socket's path; for a directory with a
// long path the socket is in a directory of the user below /tmp. TMPDIR may be another
// one for the process that listens.
func Socket(dir string) (string, error) {
	tmp := "/tmp"
	if info, err := os.Stat(tmp); err != nil || !info.IsDir() {
		tmp = os.TempDir()
	}
	return socketIn(tmp, dir)
}

// socketIn is [Socket] for the directory that all users share.
func socketIn(tmp, dir string) (string, error) {
	path := filepath.Join(dir, socketName)
	if len(path) < 100 {
		return path, nil
	}
	short := filepath.Join(tmp, fmt.Sprintf("chela-%d", os.Getuid()))
	if err := os.MkdirAll(short, 0o700); err != nil {
		return "", fmt.Errorf("socket: %w", err)
	}
	info, err := os.Lstat(short)
	if err != nil {
		return "", fmt.Errorf("socket: %w", err)
	}
	if !info.IsDir() || !private(info) {
		return "", fmt.Errorf("socket: %s is not a private directory of this user", short)
	}
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(short, hex.EncodeToString(sum[:8])+".sock"), nil
}

// Listen opens the socket. It replaces the socket of an earlier process, which cannot
// be running because the caller has the lock.
func Listen(dir string) (net.Listener, error) {
	path, err := Socket(dir)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("socket: %w", err)
	}
	return l, nil
}
