package tunnel_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/app/tunnel"
	"github.com/chela-ai/chela/internal/app/tunnel/sshtest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// program is set in the environment of a process that stands for ssh.
const program = "TUNNEL_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(program) != "" {
		os.Exit(sshtest.Main())
	}
	os.Exit(m.Run())
}

// dialer returns a Dialer whose ssh is this program, with further variables, and the file with
// what it was called with.
func dialer(t *testing.T, env ...string) (tunnel.Dialer, string) {
	log := filepath.Join(t.TempDir(), "log")
	env = append(append(os.Environ(), program+"=1", sshtest.Log+"="+log), env...)
	return tunnel.Dialer{Broker: standard.Host(), Look: func(string) string { return os.Args[0] }, Env: env}, log
}

// echo returns the port of a server that answers each line with the line.
func echo(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for s := bufio.NewScanner(c); s.Scan(); {
					fmt.Fprintln(c, s.Text())
				}
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestDial(t *testing.T) {
	t.Parallel()
	t.Run("GW-25 a connection lasts until it is closed, not until its context ends", func(t *testing.T) {
		t.Parallel()
		d, log := dialer(t)
		ctx, cancel := context.WithCancel(t.Context())
		port := echo(t)
		c, err := d.Dial(ctx, cli.SSH{Target: "me@home:2222", Identity: "/key", Port: port})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		r := bufio.NewReader(c)
		for range 3 {
			fmt.Fprintln(c, "hello")
			if line, err := r.ReadString('\n'); line != "hello\n" || err != nil {
				t.Fatalf("%q, %v", line, err)
			}
		}
		want := fmt.Sprintf("-T -a -x -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=15 -o ServerAliveCountMax=3 -i /key -p 2222 -W 127.0.0.1:%d -- me@home\n", port)
		if got := read(t, log); got != want {
			t.Errorf("ssh %s, want %s", got, want)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if f := c.(interface{ Failure() error }).Failure(); f != nil {
			t.Errorf("after Close: %v", f)
		}
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("a closed connection can be read")
		}
	})
	for _, tc := range []struct{ says, text, hint string }{
		{"Host key verification failed.", "does not know its host key yet",
			"ssh -p 22 me@home, compare the fingerprint, and accept it"},
		{"@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
			"somebody may be in between", "ssh-keygen -R home"},
		{"me@home: Permission denied (publickey,password).", "does not accept the user name or the key",
			"ssh-copy-id -p 22 me@home"},
		{"ssh: Could not resolve hostname home: Name or service not known", "no machine with this name",
			"gateway.remote.sshTarget USER@HOST"},
		{"ssh: connect to host home port 22: Connection refused", "no SSH server answers", "ssh -p 22 me@home"},
		{"ssh: connect to host home port 22: No route to host", "cannot be reached", "ssh -p 22 me@home"},
		{"ssh: connect to host home port 22: Connection timed out", "does not answer", "ssh -p 22 me@home"},
		{"channel 0: open failed: administratively prohibited: open failed\nstdio forwarding failed",
			"does not allow connections", "AllowTcpForwarding"},
		{"Warning: Permanently added 'home' to the list.\nsomething new\n",
			"ssh to me@home:22: something new", "ssh -p 22 me@home"},
	} {
		t.Run("GW-25 "+tc.says, func(t *testing.T) {
			t.Parallel()
			d, _ := dialer(t, sshtest.Fail+"="+tc.says)
			c, err := d.Dial(t.Context(), cli.SSH{Target: "me@home:22", Port: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, err = c.Read(make([]byte, 1))
			if err == nil || !strings.Contains(err.Error(), tc.text) || !strings.Contains(chela.HintOf(err), tc.hint) {
				t.Errorf("%v; hint %q", err, chela.HintOf(err))
			}
		})
	}
	t.Run("GW-25 no gateway listens there", func(t *testing.T) {
		t.Parallel()
		d, _ := dialer(t)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		c, err := d.Dial(t.Context(), cli.SSH{Target: "home", Port: port})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Read(make([]byte, 1)); err == nil ||
			!strings.Contains(err.Error(), fmt.Sprintf("no gateway listens there at port %d", port)) {
			t.Error(err)
		}
	})
	t.Run("a target that ssh would take for an option, or a shell for more, is refused", func(t *testing.T) {
		t.Parallel()
		d, log := dialer(t)
		for _, target := range []string{"", "-oProxyCommand=x", "a b", "home:port", "home:70000", "@home", "me@",
			"home;x", "$(x)", "me@home\n"} {
			if c, err := d.Dial(t.Context(), cli.SSH{Target: target, Port: 1}); err == nil ||
				!strings.Contains(err.Error(), "want USER@HOST") {
				t.Errorf("%q: %v, %v", target, c, err)
			}
		}
		if _, err := os.Stat(log); err == nil {
			t.Error("ssh was started")
		}
	})
	t.Run("ssh that is not installed", func(t *testing.T) {
		t.Parallel()
		d, _ := dialer(t)
		d.Look = func(string) string { return "" }
		if _, err := d.Dial(t.Context(), cli.SSH{Target: "home", Port: 1}); err == nil ||
			!strings.Contains(err.Error(), "ssh is not installed") {
			t.Error(err)
		}
	})
}
