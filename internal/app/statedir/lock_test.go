package statedir

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/waittest"
)

func TestOwn(t *testing.T) {
	t.Run("one owner at a time", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "state")
		first, err := Own(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Own(dir); !errors.Is(err, ErrOwned) {
			t.Errorf("a second owner: %v", err)
		}
		if err := first.Unlock(); err != nil {
			t.Fatal(err)
		}
		again, err := Own(dir)
		if err != nil {
			t.Fatal(err)
		}
		again.Unlock()
	})
	t.Run("the next owner learns that the previous one was killed", func(t *testing.T) {
		dir := t.TempDir()
		for i, step := range []struct{ killed, leaves bool }{{false, false}, {true, false}, {true, true}, {false, true},
			{false, false}, {true, true}} {
			l, err := Own(dir)
			if err != nil {
				t.Fatal(err)
			}
			if l.Killed() != step.killed {
				t.Errorf("owner %d: the previous one was killed: %v, want %v", i, l.Killed(), step.killed)
			}
			back := l.Unlock
			if step.leaves {
				back = l.Leave
			}
			if err := back(); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("looking changes nothing of what a killed owner left", func(t *testing.T) {
		dir := t.TempDir()
		l, err := Own(dir)
		if err != nil {
			t.Fatal(err)
		}
		if owned, err := Owned(dir); !owned || err != nil {
			t.Errorf("while it is owned: %t %v", owned, err)
		}
		l.Unlock() // as the kernel does after a kill
		if owned, err := Owned(dir); owned || err != nil {
			t.Errorf("afterwards: %t %v", owned, err)
		}
		next, err := Own(dir)
		if err != nil || !next.Killed() {
			t.Fatalf("the next owner does not learn of the kill: %v", err)
		}
		_ = next.Leave()
	})
	t.Run("a directory that is open to others is closed", func(t *testing.T) {
		if runtime.GOOS == "windows" {
			t.Skip("modes do not say who may")
		}
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		l, err := Own(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Unlock()
		for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, lockName): 0o600} {
			info, err := os.Stat(path)
			if err != nil || info.Mode().Perm() != want {
				t.Errorf("%s has mode %v (%v), want %v", path, info.Mode().Perm(), err, want)
			}
		}
	})
	t.Run("a lock that can be taken twice is refused", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), lockName)
		write(t, path, "")
		// Nobody holds it: so it looks where locks succeed and do not hold.
		cause := checkLock(path)
		if cause == nil {
			t.Fatal("the lock was taken for one that holds")
		}
		err := lockError("/net/home", cause)
		if !strings.Contains(err.Error(), "/net/home") || !strings.Contains(err.Error(), "same lock twice") ||
			!strings.Contains(chela.HintOf(err), "--state-dir") {
			t.Errorf("%v (%s)", err, chela.HintOf(err))
		}
		if chela.CodeOf(err) != chela.CodeUnavailable {
			t.Errorf("code %s", chela.CodeOf(err))
		}
	})
	t.Run("the error about a lock that cannot be taken", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, lockName), 0o700); err != nil {
			t.Fatal(err)
		}
		_, err := Own(dir)
		if err == nil || errors.Is(err, ErrOwned) || !strings.Contains(err.Error(), dir) || chela.HintOf(err) == "" {
			t.Errorf("%v (%s)", err, chela.HintOf(err))
		}
	})
	t.Run("a file instead of the directory", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "state")
		write(t, path, "")
		if _, err := Own(path); err == nil || !strings.Contains(err.Error(), "state directory") {
			t.Errorf("error %v", err)
		}
	})
}

// TestOwnIdle takes the lock from an owner that answers, and from one that is
// stopping.
func TestOwnIdle(t *testing.T) {
	for _, answers := range []bool{true, false} {
		dir := t.TempDir()
		first, err := Own(dir)
		if err != nil {
			t.Fatal(err)
		}
		l, err := Listen(dir)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(l.Addr().String()); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("the socket has mode %v (%v)", info.Mode(), err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			conn, err := l.Accept()
			if err != nil {
				t.Errorf("nobody asks the owner: %v", err)
				return
			}
			defer conn.Close()
			if answers {
				_, err = conn.Write([]byte("HTTP/1.0 200 OK\r\n\r\n"))
				conn.SetReadDeadline(time.Now().Add(waittest.Limit))
				if _, gone := io.Copy(io.Discard, conn); errors.Is(gone, os.ErrDeadlineExceeded) {
					t.Error("the connection stays open after the answer")
				}
			} else {
				err = first.Leave()
			}
			if err != nil {
				t.Error(err)
			}
		}()
		next, err := OwnIdle(waittest.Context(t), dir)
		l.Close() // if it was not asked
		<-done
		if answers {
			if !errors.Is(err, ErrOwned) {
				t.Errorf("the owner answers: %v", err)
			}
			next = first
		} else if err != nil || next.Killed() {
			t.Fatalf("the owner has stopped: %v", err)
		}
		if err := next.Leave(); err != nil {
			t.Error(err)
		}
	}
}

func TestSocket(t *testing.T) {
	t.Run("in the directory when its path is short", func(t *testing.T) {
		if got, err := Socket("/home/p/.chela"); err != nil || got != filepath.FromSlash("/home/p/.chela/chela.sock") {
			t.Errorf("%s %v", got, err)
		}
	})
	if runtime.GOOS == "windows" {
		t.Skip("what follows is about modes")
	}
	long := "/home/p/" + strings.Repeat("deep/", 30)
	short := func(t *testing.T) string {
		tmp, err := os.MkdirTemp("/tmp", "chela-test")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(tmp) })
		return tmp
	}
	t.Run("in a private directory when the path is long", func(t *testing.T) {
		tmp := short(t)
		path, err := socketIn(tmp, long)
		if err != nil || !strings.HasPrefix(path, tmp) {
			t.Fatalf("%s %v", path, err)
		}
		if other, _ := socketIn(tmp, long+"x"); other == path {
			t.Error("two directories have one socket")
		}
		if same, _ := socketIn(tmp, long); same != path {
			t.Error("one directory has two sockets")
		}
		info, err := os.Stat(filepath.Dir(path))
		if err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("its directory: %v %v", info.Mode(), err)
		}
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	})
	t.Run("the same one for processes with different temporary directories", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), strings.Repeat("deep/", 30))
		t.Setenv("TMPDIR", t.TempDir())
		path, err := Socket(dir)
		if err != nil || len(path) > 100 {
			t.Fatalf("%s %v", path, err)
		}
		t.Setenv("TMPDIR", "/tmp")
		if other, err := Socket(dir); err != nil || other != path {
			t.Errorf("%s %v, want %s", other, err, path)
		}
	})
	refused := func(t *testing.T, tmp string) {
		t.Helper()
		if _, err := socketIn(tmp, long); err == nil ||
			!strings.Contains(err.Error(), "not a private directory of this user") {
			t.Errorf("error %v", err)
		}
	}
	t.Run("not in a directory that others can enter", func(t *testing.T) {
		tmp := short(t)
		dir := filepath.Join(tmp, "chela-"+strconv.Itoa(os.Getuid()))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		refused(t, tmp)
	})
	t.Run("not in another user's directory", func(t *testing.T) {
		if os.Geteuid() != 0 {
			t.Skip("giving a directory away needs root")
		}
		tmp := short(t)
		dir := filepath.Join(tmp, "chela-"+strconv.Itoa(os.Getuid()))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, 4711, 4711); err != nil {
			t.Fatal(err)
		}
		refused(t, tmp)
	})
	t.Run("not behind a symbolic link", func(t *testing.T) {
		tmp := short(t)
		if err := os.Symlink(t.TempDir(), filepath.Join(tmp, "chela-"+strconv.Itoa(os.Getuid()))); err != nil {
			t.Fatal(err)
		}
		refused(t, tmp)
	})
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
