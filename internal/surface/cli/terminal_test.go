//go:build linux || darwin

package cli_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
)

// terminal is a pseudo-terminal in which chela runs.
type terminal struct {
	t    *testing.T
	home string
	cmd  *exec.Cmd
	tty  *os.File

	mu  sync.Mutex
	out bytes.Buffer
}

// start starts chela in a terminal with an empty home directory.
func start(t *testing.T, args ...string) *terminal {
	t.Helper()
	return startIn(t, t.TempDir(), args...)
}

// ports are the ports of the gateways, by home.
var ports sync.Map

// startIn starts chela in a terminal with the given home directory.
func startIn(t *testing.T, home string, args ...string) *terminal {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &terminal{t: t, home: home}
	name := filepath.Join(t.TempDir(), "chela") // the test binary is chela under this name
	if err := os.Symlink(self, name); err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.Command(name, args...)
	port, known := ports.Load(home)
	if !known {
		if port, err = freePort(); err != nil {
			t.Fatal(err)
		}
		ports.Store(home, port)
	}
	s.cmd.Env = []string{
		"HOME=" + s.home, "TERM=xterm", "PATH=" + os.Getenv("PATH"),
		"CHELA_GATEWAY_PORT=" + port.(string), "CHELA_DISABLE_BONJOUR=1", // nothing of this machine
	}
	if s.tty, err = pty.StartWithSize(s.cmd, &pty.Winsize{Rows: 24, Cols: 100}); err != nil {
		needtest.Missing(t, "pseudo-terminals: "+err.Error())
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
		if t.Failed() {
			t.Logf("the terminal showed:\n%q", s.seen())
		}
		s.cmd.Process.Kill()
		s.cmd.Wait()
		s.tty.Close()
	})
	return s
}

func (s *terminal) seen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}

// sees waits until the terminal shows the text.
func (s *terminal) sees(text string) {
	s.t.Helper()
	s.counts(text, 1)
}

// counts waits until the terminal shows the text n times.
func (s *terminal) counts(text string, n int) {
	s.t.Helper()
	waittest.Until(s.t, fmt.Sprintf("%d times %q", n, text), func() bool { return strings.Count(s.seen(), text) >= n })
}

// hides waits until the terminal does not echo input.
func (s *terminal) hides() {
	s.t.Helper()
	waittest.Until(s.t, "the terminal not to echo input", func() bool {
		m, err := unix.IoctlGetTermios(int(s.tty.Fd()), getTermios)
		if err != nil {
			s.t.Fatal(err)
		}
		return m.Lflag&unix.ECHO == 0
	})
}

func (s *terminal) types(text string) {
	s.t.Helper()
	if _, err := s.tty.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// exits waits until chela exits with the code.
func (s *terminal) exits(code int) {
	s.t.Helper()
	done := make(chan error, 1)
	go func() { done <- s.cmd.Wait() }()
	waittest.For(s.t, "the end of chela", done)
	if got := s.cmd.ProcessState.ExitCode(); got != code {
		s.t.Errorf("exit code %d, want %d\n%q", got, code, s.seen())
	}
}

func TestFirstStart(t *testing.T) {
	t.Parallel()
	const secret = "sk-ant-not-a-real-key"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`)
	}))
	t.Cleanup(server.Close)
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".chela"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".chela", "chela.json"),
		fmt.Appendf(nil, `{models: {providers: {anthropic: {baseUrl: %q}}}}`, server.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startIn(t, home, "chat")
	s.sees("Welcome to chela.")
	s.sees("built-in assistant: ")
	s.hides()
	s.types(secret + "\n")
	s.sees("key for anthropic saved")
	s.sees("anthropic: the key was refused: ")
	s.sees("chela models auth anthropic")
	s.sees("· anthropic/") // the screen is drawn in parts
	s.types("\x03")
	s.exits(0)
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
	s := start(t, "chat")
	s.sees("built-in assistant: ")
	s.types("\n") // no key
	s.sees("not a language model")
	s.sees("· offline/")
	s.types("hello\r")
	s.sees("What shall I do?")
	s.sees("ready")
	s.types("\x04")
	s.exits(0)
	if strings.Contains(s.seen(), "\x1b[?1049h") {
		t.Error("the alternate screen was used")
	}
}

func TestPlainConversation(t *testing.T) {
	t.Parallel()
	s := start(t, "chat", "--plain")
	s.sees("built-in assistant: ")
	s.types("\n")
	s.sees("› ")
	s.types("run `touch made`\n")
	s.sees("? exec needs approval:")
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
	s.exits(130)
}

// TestDecidedElsewhere answers an approval in another terminal.
func TestDecidedElsewhere(t *testing.T) {
	t.Parallel()
	s := start(t, "chat", "--plain")
	s.sees("built-in assistant: ")
	s.types("\n")
	s.sees("› ")
	s.types("run `touch made`\n")
	s.sees("[n] no: ")
	other := startIn(t, s.home, "chat", "--plain", "--session", "other")
	other.sees("? exec needs approval:")
	other.sees("  touch made")
	other.types("hello\n")
	other.counts("[n] no: ", 2)
	other.types("y\n") // an answer, not a message
	other.sees("› ")
	s.sees("decided elsewhere: allowed once")
	s.sees("succeeded")
	other.types("\x04")
	other.exits(0)
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
	t.Run("GW-07 a restart signal restarts the gateway in its process", func(t *testing.T) {
		s := start(t, "gateway", "run", "--port", port)
		s.sees(listens)
		if err := s.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		s.sees("gateway restarts")
		s.counts(listens, 2)
		s.types("\x03")
		s.sees("gateway stops")
		s.exits(0)
	})
}

// TestPlainBackground types a line in two parts, between which a subagent ends.
func TestPlainBackground(t *testing.T) {
	t.Parallel()
	s := start(t, "chat", "--plain")
	s.sees("built-in assistant: ")
	s.types("\n")
	s.sees("› ")
	pipe := filepath.Join(s.home, ".chela", "workspace", "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	s.types("start a subagent to run `cat pipe`\n")
	s.sees("Its result will appear here.")
	s.counts("› ", 2) // what is typed earlier is shown before the prompt
	s.types("hel")
	if err := os.WriteFile(pipe, []byte("made by it"), 0o600); err != nil { // the subagent ends
		t.Fatal(err)
	}
	s.sees("\a") // the result waits
	s.types("lo\n")
	s.sees("What shall I do?")
	t.Run("SEED-05 the line is whole, and the result precedes its answer", func(t *testing.T) {
		got := strings.ReplaceAll(s.seen(), "\a", "")
		line := strings.Index(got, "hello\r\n")
		told, answer := strings.Index(got, `The subagent "Task 1" has finished:`), strings.Index(got, "What shall I do?")
		if line < 0 || told < line || answer < told {
			t.Errorf("the terminal shows %q", got)
		}
	})
	s.types("\x04")
	s.exits(0)
}

func TestFirstMessage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"chat"}, {"chat", "--plain"}} {
		s := start(t, args...)
		s.sees("built-in assistant: ")
		s.hides()
		s.types("create first.txt with \"hi\"\n") // typed instead of a key
		s.sees("works in ~/.chela/workspace")
		s.sees("Created first.txt")
		s.types("\x04")
		s.exits(0)
		if strings.Contains(s.seen(), "unrecognized") {
			t.Errorf("the message was taken as a key\n%q", s.seen())
		}
	}
}
