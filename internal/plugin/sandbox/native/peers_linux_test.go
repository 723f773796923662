package native_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/sandbox/native"
)

// peerArg makes this program a server or a client of a test.
const peerArg = "__peer"

// actPeer serves a text until its input ends, fetches it once ("try"), or fetches it as soon
// as there is a server ("fetch").
func actPeer(act, addr, text string) int {
	fetch := func() bool {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			fmt.Println("refused")
			return false
		}
		defer c.Close()
		b, err := io.ReadAll(c)
		if err != nil || len(b) == 0 {
			fmt.Println("nothing:", err)
			return false
		}
		fmt.Println(string(b))
		return true
	}
	switch act {
	case "serve":
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Println("serves")
		for {
			c, err := ln.Accept()
			if err != nil {
				return 1
			}
			_, _ = io.WriteString(c, text) // the client may be gone
			_ = c.Close()
		}
	case "try":
		fetch()
	case "fetch":
		for !fetch() {
			time.Sleep(20 * time.Millisecond)
		}
	}
	return 0
}

// peerWork is a workspace with this program in it.
type peerWork struct{ *work }

func newPeerWork(t *testing.T) peerWork {
	t.Helper()
	w := newWork(t, native.Options{})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.rights.Workspace, "peer"), b, 0o700); err != nil {
		t.Fatal(err)
	}
	return peerWork{w}
}

// begin starts an act of a session with rights.
func (w peerWork) begin(session string, r sandbox.Rights, act, addr, text string) (sandbox.Process, *lines) {
	w.t.Helper()
	out := &lines{}
	p, err := w.broker.Start(w.t.Context(), sandbox.Plan{
		Path:   filepath.Join(r.Workspace, "peer"),
		Argv:   []string{"peer", peerArg, act, addr, text},
		Dir:    r.Workspace,
		Rights: &r,
		Peers:  session,
		Env:    []string{"PATH=/usr/bin:/bin", "HOME=" + w.home},
	}, out)
	if err != nil {
		w.t.Fatal(err)
	}
	return p, out
}

// serve starts a server that is published, and waits until it listens.
func (w peerWork) serve(session string, r sandbox.Rights, addr, text string) sandbox.Process {
	w.t.Helper()
	p, out := w.begin(session, r, "serve", addr, text)
	waittest.Until(w.t, "the server", func() bool { return out.has("serves") })
	p.(sandbox.Publisher).Publish()
	return p
}

// end kills a process and waits for it.
func (w peerWork) end(p sandbox.Process) {
	w.t.Helper()
	p.Kill()
	if _, err := p.Wait(); err != nil {
		w.t.Error(err)
	}
}

// try returns what a client of a session gets.
func (w peerWork) try(session string, r sandbox.Rights, addr string) string {
	w.t.Helper()
	p, out := w.begin(session, r, "try", addr, "")
	if e, err := p.Wait(); err != nil || e.Code != 0 {
		w.t.Fatalf("%+v, %v: %s", e, err, out)
	}
	return strings.TrimSpace(out.String())
}

func TestPeers(t *testing.T) {
	t.Parallel()
	t.Run("SV-01 a later program reaches a server, by each name of the loopback interface", func(t *testing.T) {
		t.Parallel()
		w := newPeerWork(t)
		defer w.end(w.serve("a", w.rights, ":8000", strings.Repeat("0123456789", 10_000)))
		defer w.end(w.serve("a", w.rights, "127.0.0.1:8001", "only four"))
		for _, addr := range []string{"127.0.0.1:8000", "[::1]:8000", "localhost:8000"} {
			if got := w.try("a", w.rights, addr); len(got) != 100_000 {
				t.Errorf("%s: %.100q", addr, got)
			}
		}
		if got := w.try("a", w.rights, "localhost:8001"); got != "only four" {
			t.Errorf("%q", got)
		}
		if got := w.try("a", w.rights, "127.0.0.1:8002"); got != "refused" {
			t.Errorf("where nothing listens: %q", got)
		}
	})
	t.Run("SV-02 nobody else reaches it, nor the host", func(t *testing.T) {
		t.Parallel()
		w := newPeerWork(t)
		r := w.rights
		r.Hosts = []string{"example.org"}
		server := w.serve("a", r, "127.0.0.1:8000", "hello")
		defer w.end(server)
		look, more := r, r
		look.Write, more.Hosts = false, append([]string{"example.com"}, r.Hosts...)
		for name, got := range map[string]string{
			"another session":       w.try("b", r, "127.0.0.1:8000"),
			"no session":            w.try("", r, "127.0.0.1:8000"),
			"without the network":   w.try("a", w.rights, "127.0.0.1:8000"),
			"with more network":     w.try("a", more, "127.0.0.1:8000"),
			"without the workspace": w.try("a", look, "127.0.0.1:8000"),
		} {
			if got != "refused" {
				t.Errorf("%s: %q", name, got)
			}
		}
		if got := w.try("a", r, "127.0.0.1:8000"); got != "hello" {
			t.Errorf("the same: %q", got)
		}
		if c, err := net.Dial("tcp", "127.0.0.1:8000"); err == nil {
			_ = c.Close()
			b := make([]byte, 5)
			if n, _ := c.Read(b); string(b[:n]) == "hello" {
				t.Error("the host reaches the server")
			}
		}
	})
	t.Run("SV-03 a server is reached from when it is published and listens until it ends", func(t *testing.T) {
		t.Parallel()
		w := newPeerWork(t)
		server, out := w.begin("a", w.rights, "serve", "127.0.0.1:8000", "hello")
		waittest.Until(t, "the server", func() bool { return out.has("serves") })
		if got := w.try("a", w.rights, "127.0.0.1:8000"); got != "refused" {
			t.Errorf("before it is published: %q", got)
		}
		client, got := w.begin("a", w.rights, "fetch", "127.0.0.1:8000", "") // it waits
		waittest.Until(t, "the client", func() bool { return got.has("refused") })
		server.(sandbox.Publisher).Publish()
		if e, err := client.Wait(); err != nil || e.Code != 0 || !got.has("hello") {
			t.Errorf("%+v, %v: %s", e, err, got)
		}
		w.end(server)
		if got := w.try("a", w.rights, "127.0.0.1:8000"); got != "refused" {
			t.Errorf("after its end: %q", got)
		}
	})
	t.Run("SV-04 servers reach each other, whichever was first", func(t *testing.T) {
		t.Parallel()
		w := newPeerWork(t)
		first, out := w.begin("a", w.rights, "fetch", "127.0.0.1:8000", "")
		first.(sandbox.Publisher).Publish()
		defer w.end(w.serve("a", w.rights, "127.0.0.1:8000", "hello"))
		if e, err := first.Wait(); err != nil || e.Code != 0 || !out.has("hello") {
			t.Errorf("%+v, %v: %s", e, err, out)
		}
	})
	t.Run("SV-05 the sandbox of a server or of its client is not used again", func(t *testing.T) {
		t.Parallel()
		w := newPeerWork(t)
		alone := w.cageOf(w.rights)
		if again := w.cageOf(w.rights); again != alone {
			t.Fatalf("the sandbox of a program without peers: %d, want %d", again, alone)
		}
		server := w.serve("a", w.rights, "127.0.0.1:8000", "hello")
		client, _ := w.begin("a", w.rights, "try", "127.0.0.1:8000", "")
		if _, err := client.Wait(); err != nil {
			t.Fatal(err)
		}
		w.end(server)
		w.broker.Settle()
		if next := w.cageOf(w.rights); next == server.PID() || next == client.PID() {
			t.Errorf("the sandbox %d is used again: server %d, client %d", next, server.PID(), client.PID())
		}
	})
}

// lines is output that is read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *lines) has(text string) bool { return strings.Contains(l.String(), text) }
