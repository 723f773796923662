// Package statedir keeps the directory in which Chela keeps its state: for its
// owner only, owned by one process at a time, with a socket by which other
// processes reach that one.
package statedir

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/gofrs/flock"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/process"
)

const (
	lockName   = "chela.lock"
	socketName = "chela.sock"
)

// ErrOwned says that another process owns the state directory. A process that
// was killed while it started a command may hold it for a moment longer.
var ErrOwned = errors.New("another process owns the state directory")

// Lock is the ownership of a state directory.
type Lock struct {
	*flock.Flock
	killed bool
}

// Killed reports whether the owner before did not end in order: what it ran may
// still run.
func (l *Lock) Killed() bool { return l.killed }

// Leave gives the directory back, in order. [Lock.Unlock] alone is what the
// kernel does for a process that is killed.
func (l *Lock) Leave() error {
	if err := os.Truncate(l.Path(), 0); err != nil {
		return errors.Join(fmt.Errorf("state directory: %w", err), l.Unlock())
	}
	return l.Unlock()
}

// Own takes the lock of the state directory, which the kernel releases when
// the process ends in whatever way. ErrOwned: another process has it.
func Own(dir string) (*Lock, error) {
	if err := Make(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, lockName)
	l := &Lock{Flock: flock.New(path, flock.SetPermissions(0o600))}
	ok, err := l.TryLock()
	switch {
	case err != nil:
		return nil, locksFail(dir, err)
	case !ok:
		return nil, ErrOwned
	}
	if err := proveLock(path); err != nil {
		l.Unlock()
		return nil, locksFail(dir, err)
	}
	l.killed = !empty(path)
	notePID(path)
	return l, nil
}

// notePID writes into the lock file whose it is: for messages, and for the
// next owner. Who owns the directory is decided by the lock. Where a locked
// file cannot be written, messages do without.
func notePID(path string) { _ = os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600) }

// empty reports whether a file is known to hold nothing.
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

// proveLock checks that a second lock on the file is refused: on some network
// file systems every lock succeeds and none holds.
func proveLock(path string) error {
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

func locksFail(dir string, err error) error {
	return &chela.Error{
		Code:    chela.CodeUnavailable,
		Message: fmt.Sprintf("state directory %s: locks do not work there, so two processes could damage it", dir),
		Hint:    "choose a directory on a local disk: chela --state-dir DIR …",
		Err:     err,
	}
}

// Make makes the state directory, for its owner only.
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

// Socket is the path where the owner of the state directory listens. The path of a
// socket is short by law of the kernel; a directory whose path is long has it
// in a directory of the user's below the temporary one.
func Socket(dir string) (string, error) {
	path := filepath.Join(dir, socketName)
	if len(path) < 100 {
		return path, nil
	}
	short := filepath.Join(os.TempDir(), fmt.Sprintf("chela-%d", os.Getuid()))
	if err := os.MkdirAll(short, 0o700); err != nil {
		return "", fmt.Errorf("socket: %w", err)
	}
	info, err := os.Lstat(short)
	if err != nil {
		return "", fmt.Errorf("socket: %w", err)
	}
	if !info.IsDir() || !private(info) {
		return "", fmt.Errorf("socket: %s is not a directory of this user alone", short)
	}
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(short, hex.EncodeToString(sum[:8])+".sock"), nil
}

// Listen opens the socket. One that a dead process left is in the way and goes:
// the lock says that it is ours.
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
