//go:build conformance

package conformance

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
)

// terminal is a separate tmux server with one window.
type terminal struct {
	t      testing.TB
	tmux   string
	socket string
}

// newTerminal runs a command in a terminal, or skips the test.
func newTerminal(t testing.TB, cmd *exec.Cmd) *terminal {
	t.Helper()
	tmux := needtest.Program(t, "tmux")
	w := &terminal{t: t, tmux: tmux, socket: filepath.Join(t.TempDir(), "tmux")}
	args := []string{"-f", "/dev/null", "new-session", "-d", "-x", "110", "-y", "50", "-c", cmd.Dir, "env", "-i"}
	w.run(append(append(args, cmd.Env...), cmd.Args...)...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the screen:\n%s", w.Screen())
		}
		_ = exec.Command(tmux, "-S", w.socket, "kill-server").Run() // may have exited already
	})
	return w
}

func (w *terminal) run(args ...string) string {
	w.t.Helper()
	out, err := exec.Command(w.tmux, append([]string{"-S", w.socket}, args...)...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("tmux %s: %v\n%s", args[0], err, out)
	}
	return string(out)
}

// Screen returns the content of the screen without empty lines.
func (w *terminal) Screen() string {
	w.t.Helper()
	var lines []string
	for line := range strings.Lines(w.run("capture-pane", "-p")) {
		if strings.TrimSpace(line) != "" {
			lines = append(lines, strings.TrimRight(line, " \n"))
		}
	}
	return strings.Join(lines, "\n")
}

// Await waits until the screen matches, and returns it.
func (w *terminal) Await(pattern string) string {
	w.t.Helper()
	want := regexp.MustCompile(pattern)
	for end := time.Now().Add(waittest.Limit); ; time.Sleep(50 * time.Millisecond) {
		screen := w.Screen()
		if want.MatchString(screen) {
			return screen
		}
		if time.Now().After(end) {
			w.t.Fatalf("the screen does not match %s", pattern)
		}
	}
}

// Say types a line. A pause separates it from Enter, which would otherwise be
// part of a paste.
func (w *terminal) Say(text string) {
	w.t.Helper()
	w.run("send-keys", "-l", text)
	time.Sleep(1600 * time.Millisecond)
	w.run("send-keys", "Enter")
}

// Escape presses the key. A pause separates it from the next one, which would
// otherwise be read as one key with it.
func (w *terminal) Escape() {
	w.t.Helper()
	w.run("send-keys", "Escape")
	time.Sleep(800 * time.Millisecond)
}

func TestTerminal(t *testing.T) {
	t.Parallel()
	s := newGateway(t, nil)
	s.File("notes.txt", "the tide turns at six\n")
	s.operator(t).Must("chat.send", map[string]any{
		"sessionKey":     "main",
		"message":        "echo said before",
		"idempotencyKey": "before",
	}, nil)
	p := newPerson(t, current(), s.remoteConfig())
	w := newTerminal(t, p.command(t.Context(), "tui", "--url", s.URL(), "--token", token))

	step := func(name string, f func()) {
		if !t.Run(name, func(t *testing.T) { w.t = t; f() }) {
			t.FailNow()
		}
		w.t = t
	}
	step("it connects and shows the history", func() {
		w.Await(`said before`)
		w.Await(`connected \| idle`)
	})
	step("an answer is shown", func() {
		w.Say("count")
		w.Await(`39 40`)
		w.Await(`connected \| idle`)
	})
	step("a tool call is shown", func() {
		w.Say("/verbose on")
		w.Await(`verbose on`)
		w.Say("read notes.txt")
		w.Await(`read notes\.txt \(completed\)`)
		w.Await(`The tool said:.*the tide turns at six`)
	})
	step("an answer is shown while it is streamed, and Esc stops it", func() {
		w.Say("wait")
		w.Await(`(?s)wait.*\n1 2\b`)
		w.Escape()
		w.Await(`run aborted`)
	})
	step("/status answers", func() {
		w.Say("/status")
		w.Await(`Model: mock/m`)
	})
	step("/model and /sessions list", func() {
		w.Say("/model")
		w.Await(`mock/m`)
		w.Escape()
		w.Say("/sessions")
		w.Await(`→`)
		w.Escape()
	})
	step("/new begins another session", func() {
		w.Say("/new")
		w.Await(`new session: agent:main:tui-`)
		w.Say("echo in the new one")
		w.Await(`(?m)^in the new one`)
	})
}

// TestTerminalApproval answers an approval in the terminal interface, which shows it as
// one of a plug-in.
func TestTerminalApproval(t *testing.T) {
	t.Parallel()
	s := newGateway(t, section{"tools": section{"exec": section{"mode": "ask"}}})
	p := newPerson(t, current(), s.remoteConfig())
	w := newTerminal(t, p.command(t.Context(), "tui", "--url", s.URL(), "--token", token))
	w.Await(`connected \| idle`)
	w.Say("run touch made-by-a-key")
	w.Await(`(?s)plugin approval: a call needs approval.*Request: .*touch made-by-a-key`)
	for _, key := range []string{"Up", "Up", "Enter"} { // from Deny to Allow once
		w.run("send-keys", key)
		time.Sleep(800 * time.Millisecond)
	}
	w.Await(`The tool said:.*succeeded`)
}
