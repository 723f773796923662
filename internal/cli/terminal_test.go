//go:build linux || darwin

package cli_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// seat is a person at a terminal in which chela runs.
type seat struct {
	t    *testing.T
	home string
	cmd  *exec.Cmd
	tty  *os.File

	mu  sync.Mutex
	out bytes.Buffer
}

// sit starts chela in a terminal, with a home of its own.
func sit(t *testing.T, args ...string) *seat {
	t.Helper()
	return sitAt(t, t.TempDir(), args...)
}

// sitAt starts chela in a terminal.
func sitAt(t *testing.T, home string, args ...string) *seat {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &seat{t: t, home: home}
	name := filepath.Join(t.TempDir(), "chela") // by this name the test's binary is chela
	if err := os.Symlink(self, name); err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.Command(name, args...)
	s.cmd.Env = []string{"HOME=" + s.home, "TERM=xterm", "PATH=" + os.Getenv("PATH")}
	if s.tty, err = pty.StartWithSize(s.cmd, &pty.Winsize{Rows: 24, Cols: 100}); err != nil {
		t.Skipf("no terminal: %v", err)
	}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := s.tty.Read(buf)
			s.mu.Lock()
			s.out.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		s.cmd.Process.Kill()
		s.cmd.Wait()
		s.tty.Close()
	})
	return s
}

func (s *seat) seen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

// sees waits until the text is on the terminal.
func (s *seat) sees(text string) {
	s.t.Helper()
	for end := time.Now().Add(30 * time.Second); !strings.Contains(s.seen(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("%q was not seen in 30 s\n%q", text, s.seen())
		}
	}
}

// counts waits until the text is n times on the terminal.
func (s *seat) counts(text string, n int) {
	s.t.Helper()
	for end := time.Now().Add(30 * time.Second); strings.Count(s.seen(), text) < n; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("%q was not seen %d times in 30 s\n%q", text, n, s.seen())
		}
	}
}

// hides waits until the terminal does not show what is typed.
func (s *seat) hides() {
	s.t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		m, err := unix.IoctlGetTermios(int(s.tty.Fd()), getTermios)
		if err != nil {
			s.t.Fatal(err)
		}
		if m.Lflag&unix.ECHO == 0 {
			return
		}
		if time.Now().After(end) {
			s.t.Fatal("what is typed is shown")
		}
	}
}

func (s *seat) types(text string) {
	s.t.Helper()
	if _, err := s.tty.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// leaves waits until chela has ended.
func (s *seat) leaves(code int) {
	s.t.Helper()
	done := make(chan error, 1)
	go func() { done <- s.cmd.Wait() }()
	select {
	case <-done:
		if got := s.cmd.ProcessState.ExitCode(); got != code {
			s.t.Errorf("exit code %d, want %d\n%q", got, code, s.seen())
		}
	case <-time.After(30 * time.Second):
		s.t.Fatalf("chela did not end in 30 s\n%q", s.seen())
	}
}

func TestFirstStart(t *testing.T) {
	t.Parallel()
	const secret = "sk-ant-not-a-real-key"
	s := sit(t, "chat")
	s.sees("Welcome to chela.")
	s.sees("built-in assistant: ")
	s.hides()
	s.types(secret + "\n")
	s.sees("key of anthropic saved")
	s.sees("· anthropic/") // the screen is drawn in pieces
	s.types("\x03")
	s.leaves(0)
	if strings.Contains(s.seen(), secret) {
		t.Errorf("the key was shown\n%q", s.seen())
	}
	file := filepath.Join(s.home, ".chela", "credentials", "anthropic.key")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key file: %v, %v", info, err)
	}
}

func TestScreen(t *testing.T) {
	t.Parallel()
	s := sit(t, "chat")
	s.sees("built-in assistant: ")
	s.types("\n") // no key
	s.sees("not a language model")
	s.sees("· offline/")
	s.types("hello\r")
	s.sees("What shall I do?")
	s.sees("ready")
	s.types("\x04")
	s.leaves(0)
	if strings.Contains(s.seen(), "\x1b[?1049h") {
		t.Error("the conversation is not in the scrollback")
	}
}

func TestPlainConversation(t *testing.T) {
	t.Parallel()
	s := sit(t, "chat", "--plain")
	s.sees("built-in assistant: ")
	s.types("\n")
	s.sees("› ")
	s.types("run `touch made`\n")
	s.sees("? may exec do this?")
	s.sees("[n] no: ")
	s.types("what\n")
	s.counts("[y] once", 2)
	s.types("y\n")
	s.sees("succeeded")
	if _, err := os.Stat(filepath.Join(s.home, ".chela", "workspace", "made")); err != nil {
		t.Error(err)
	}
	s.types("run `sleep 20`\n")
	s.sees("· exec sleep 20")
	s.types("\x03")
	s.sees("stopped")
	s.types("\x03")
	s.leaves(130)
}

// TestDecidedElsewhere answers in one terminal what is asked in another.
func TestDecidedElsewhere(t *testing.T) {
	t.Parallel()
	s := sit(t, "chat", "--plain")
	s.sees("built-in assistant: ")
	s.types("\n")
	s.sees("› ")
	s.types("run `touch made`\n")
	s.sees("[n] no: ")
	other := sitAt(t, s.home, "chat", "--plain", "--session", "other")
	other.sees("? may exec do this?")
	other.sees("  touch made")
	other.types("what\n")
	other.counts("[n] no: ", 2)
	other.types("y\n") // an answer, and no message
	other.sees("› ")
	s.sees("decided elsewhere: allow-once")
	s.sees("succeeded")
	other.types("\x04")
	other.leaves(0)
	if _, err := os.Stat(filepath.Join(s.home, ".chela", "workspace", "made")); err != nil {
		t.Error(err)
	}
}

func TestGatewaySignals(t *testing.T) {
	t.Parallel()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	const listens = "listens on ws://"
	t.Run("GW-07 told to restart, it begins anew in its process", func(t *testing.T) {
		s := sit(t, "gateway", "run", "--port", port)
		s.sees(listens)
		if err := s.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		s.sees("gateway restarts")
		s.counts(listens, 2)
		s.types("\x03")
		s.sees("gateway stops")
		s.leaves(0)
	})
}
