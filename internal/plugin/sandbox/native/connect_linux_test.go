package native_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/plugin/sandbox/native"
)

// listener listens on a socket with a name, and returns the number of connections.
func listener(t *testing.T, name string) func() int {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return func() int {
		n := 0
		for {
			if err := l.SetDeadline(time.Now().Add(time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			c, err := l.Accept()
			if err != nil {
				return n
			}
			n++
			_ = c.Close()
		}
	}
}

// python returns a script of the shell that runs one of Python.
func python(script string) string { return "exec python3 - <<'PY'\n" + script + "\nPY\n" }

const connects = `
import socket, sys
def try_(kind, name):
    s = socket.socket(socket.AF_UNIX, kind)
    try:
        s.connect(name)
    except OSError as e:
        return type(e).__name__
    return "connected"
`

// TestHostSockets connects to no socket of a program of the host, wherever it
// lies and whenever it came to be.
func TestHostSockets(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "python3")
	w := newWork(t, native.Options{})
	tools := filepath.Join(t.TempDir(), "tools") // a folder of programs in PATH, as /usr is
	w.write(tools, "bin/tool", "")
	w.rights.Read = []string{tools}
	places := map[string]string{
		"workspace": filepath.Join(w.rights.Workspace, "s"), "subfolder": filepath.Join(w.rights.Workspace, "a/s"),
		"toolchain": filepath.Join(w.home, "go/s"), "readable": filepath.Join(tools, "s"),
	}
	for _, when := range []string{"D before", "D while it is ready", "D while it runs"} {
		t.Run(when, func(t *testing.T) {
			counts := map[string]func() int{}
			listen := func() {
				for place, name := range places {
					counts[place] = listener(t, name)
				}
			}
			w.write(w.home, "go/bin/tool", "")
			script := "until [ -e go ]; do sleep 0.02; done\n"
			switch when {
			case "D before":
				listen()
				w.broker.Forget()
				w.write(w.rights.Workspace, "go", "")
			case "D while it is ready":
				w.expect("true", "")
				w.broker.Settle()
				listen()
				w.write(w.rights.Workspace, "go", "")
			default:
				w.expect("rm -f go", "")
				script = "echo > running\n" + script
				go func() {
					for {
						if _, err := os.Stat(filepath.Join(w.rights.Workspace, "running")); err == nil {
							break
						}
						time.Sleep(10 * time.Millisecond)
					}
					listen()
					w.write(w.rights.Workspace, "go", "")
				}()
			}
			var names []string
			for _, name := range places {
				names = append(names, fmt.Sprintf("%q", name))
			}
			out, e := w.run(script + python(connects+fmt.Sprintf(`
for name in [%s]:
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        for path in (name, "/proc/self/root" + name):
            r = try_(kind, path)
            if r == "connected": print(path, r)
    for pair in (socket.SOCK_DGRAM, socket.SOCK_RAW):
        for make in (lambda: socket.socketpair(socket.AF_UNIX, pair)[0], lambda: socket.socket(socket.AF_UNIX, pair)):
            try:
                print(name, pair, make())
            except OSError:
                pass
`, strings.Join(names, ","))))
			if out != "" || e.Code != 0 {
				t.Errorf("%s %+v", out, e)
			}
			for place, count := range counts {
				if n := count(); n > 0 {
					t.Errorf("%s: %d connections", place, n)
				}
			}
			for _, name := range places {
				_ = os.Remove(name) // the listener is closed
			}
		})
	}
}

// TestOwnSockets connects to sockets of the command itself, in the ways that
// programs do.
func TestOwnSockets(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "python3")
	w := newWork(t, native.Options{})
	// Signals come all the time, as those of the runtimes of languages do.
	w.expect(python(connects+`
import os, threading, signal
signal.signal(signal.SIGALRM, lambda *a: None)
signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
os.makedirs(os.path.expanduser("~/go"), exist_ok=True)
def serve(s):
    while True:
        c, _ = s.accept()
        c.sendall(b"hi")
        c.close()
def check(address, family=socket.AF_UNIX, kind=socket.SOCK_STREAM, to=None):
    s = socket.socket(family, kind)
    s.bind(address)
    s.listen(8)
    threading.Thread(target=serve, args=(s,), daemon=True).start()
    for i in range(20):
        c = socket.socket(family, kind)
        c.settimeout(20 if i % 2 else None)
        c.connect(to or s.getsockname())
        if c.recv(2) != b"hi": print("no answer", address)
        c.close()
check("/tmp/s"); check("relative"); check(os.path.abspath("here")); check(os.path.expanduser("~/go/s"))
check("/dev/shm/s", kind=socket.SOCK_SEQPACKET); check("\0abstract")
os.symlink("/tmp/s", "/tmp/link"); check("/tmp/s2", to="/tmp/link")
check(("127.0.0.1", 0), socket.AF_INET); check(("::1", 0), socket.AF_INET6)
for bad in ("/tmp/none", "/tmp", "/etc/passwd", "relative/x"):
    r = try_(socket.SOCK_STREAM, bad)
    if r == "connected": print(bad, r)
try:
    socket.create_connection(("127.0.0.1", 9))
except ConnectionRefusedError:
    print("refused")
signal.setitimer(signal.ITIMER_REAL, 0)
`), "refused\n")
}

// TestHostPipes opens no pipe of a program of the host that was there when the
// command began.
func TestHostPipes(t *testing.T) {
	t.Parallel()
	w := newWork(t, native.Options{})
	w.write(w.home, "go/bin/tool", "")
	w.expect("true", "")
	w.broker.Settle()
	for place, name := range map[string]string{
		"workspace": filepath.Join(w.rights.Workspace, "p"),
		"toolchain": filepath.Join(w.home, "go/p"),
	} {
		t.Run("D "+place, func(t *testing.T) {
			if err := errors.Join(unix.Mkfifo(name, 0o666), os.Chmod(name, 0o666)); err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(name, os.O_RDWR|unix.O_NONBLOCK, 0) // it reads, and has written
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			for _, r := range []sandbox.Rights{w.rights, {Workspace: w.rights.Workspace}} {
				w.runWith(r, "timeout 1 sh -c 'echo evil > "+name+"'")
			}
			if err := f.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			b := make([]byte, 10)
			if n, err := f.Read(b); err == nil {
				t.Errorf("the host read %q", b[:n])
			}
			if _, err := f.WriteString("canary\n"); err != nil {
				t.Fatal(err)
			}
			if out := w.runWith(w.rights, "timeout 1 head -n1 "+name); strings.Contains(out, "canary") {
				t.Errorf("the command read %q", out)
			}
		})
	}
	w.expect("mkfifo /tmp/own mine; for p in /tmp/own mine; do echo fine > $p & cat $p; done", "fine\nfine\n")
}

// runWith runs a shell script with some rights and returns its output.
func (w *work) runWith(r sandbox.Rights, script string) string {
	w.t.Helper()
	var out bytes.Buffer
	if _, err := w.start(r, script, &out).Wait(); err != nil {
		w.t.Fatal(err)
	}
	return out.String()
}
