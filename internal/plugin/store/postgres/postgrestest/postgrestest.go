// Package postgrestest runs a PostgreSQL server for tests.
package postgrestest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/chela-ai/chela/internal/kit/needtest"
)

// Server is a server on this machine. Every local user may connect to it.
type Server struct {
	dir  string // of its programs
	data string
	port int
	next atomic.Int64
	cmd  *exec.Cmd
}

// Start starts an empty server for a test, which it skips if this machine has no PostgreSQL.
func Start(t testing.TB) *Server {
	t.Helper()
	temp := t.TempDir()
	for _, dir := range []string{temp, filepath.Dir(temp)} { // another user passes
		if err := os.Chmod(dir, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	s := &Server{dir: programs(t), data: filepath.Join(temp, "data")}
	if err := os.Mkdir(s.data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := give(s.data); err != nil {
		needtest.Missing(t, "a user that is not root for postgresql: "+err.Error())
	}
	initdb := s.command("initdb", "-D", s.data, "-U", "chela", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	t.Cleanup(func() { s.Kill() })
	s.Restart(t)
	return s
}

// programs returns the folder of PostgreSQL's programs.
func programs(t testing.TB) string {
	t.Helper()
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil { // to the folder of all of them
			return filepath.Dir(path)
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // Debian's; the pattern is valid
	if len(found) == 0 {
		needtest.Missing(t, "postgresql")
	}
	slices.Sort(found)
	return filepath.Dir(found[len(found)-1])
}

// command returns a command that runs as a user other than root.
func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.dir, name), args...)
	cmd.Dir = s.data
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
	lower(cmd)
	return cmd
}

// Restart starts the server again after [Server.Kill], at the same port.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	var out bytes.Buffer
	for range 10 { // another program may have taken the port
		if s.port == 0 {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			s.port = l.Addr().(*net.TCPAddr).Port
			l.Close()
		}
		out.Reset()
		s.cmd = s.command("postgres", "-D", s.data, "-p", fmt.Sprint(s.port), "-c", "listen_addresses=127.0.0.1",
			"-c", "unix_socket_directories=", "-c", "fsync=off", "-c", "max_connections=300")
		s.cmd.Stdout, s.cmd.Stderr = &out, &out
		if err := s.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func(cmd *exec.Cmd) { cmd.Wait(); close(ended) }(s.cmd)
		for alive, limit := true, time.Now().Add(2*time.Minute); alive && time.Now().Before(limit); {
			c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.port))
			if err == nil {
				c.Close()
				if s.ready() {
					return
				}
			}
			select {
			case <-ended:
				alive = false
			case <-time.After(20 * time.Millisecond):
			}
		}
		if !strings.Contains(out.String(), "in use") {
			break
		}
		s.port = 0
	}
	t.Fatalf("postgres ended:\n%s", out.String())
}

// ready reports whether the server accepts sessions.
func (s *Server) ready() bool {
	c, err := pgconn.Connect(context.Background(), s.address("postgres"))
	if err != nil {
		return false
	}
	c.Close(context.Background())
	return true
}

// Kill kills the server and all of its sessions.
func (s *Server) Kill() {
	if s.cmd != nil {
		_ = s.command("pg_ctl", "-D", s.data, "-m", "immediate", "-w", "stop").Run()
		s.cmd = nil
	}
}

func (s *Server) address(database string) string {
	return fmt.Sprintf("postgres://chela@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// URL returns the address of a schema of its own.
func (s *Server) URL() string {
	return s.address("postgres") + fmt.Sprintf("&search_path=t%d", s.next.Add(1))
}

// Exec runs statements as an administrator, in the schema of an address, and returns the
// values of the last result, separated by spaces.
func (s *Server) Exec(t testing.TB, url, sql string) string {
	t.Helper()
	c, err := pgconn.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	results, err := c.Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	var out []string
	for _, row := range results[len(results)-1].Rows {
		for _, v := range row {
			out = append(out, string(v))
		}
	}
	return strings.Join(out, " ")
}

// Link is a network connection to a server that a test can cut.
type Link struct {
	to string
	l  net.Listener

	mu    sync.Mutex
	open  map[net.Conn]bool
	isCut bool
	lose  string
	after bool
	lost  chan struct{}
}

// Link returns a new connection to the server.
func (s *Server) Link(t testing.TB) *Link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k := &Link{to: fmt.Sprintf("127.0.0.1:%d", s.port), l: l, open: map[net.Conn]bool{}}
	t.Cleanup(func() { l.Close(); k.Cut() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go k.serve(c)
		}
	}()
	return k
}

// Over returns an address of the server over the link.
func (k *Link) Over(url string) string {
	return strings.Replace(url, k.to, k.l.Addr().String(), 1)
}

// Cut ends all connections, and refuses new ones until [Link.Repair].
func (k *Link) Cut() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.isCut = true
	for c := range k.open {
		c.Close()
	}
}

// Repair accepts connections again.
func (k *Link) Repair() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.isCut = false
}

// Lose breaks the connection over which a statement comes next: after is true if the server
// gets it, and only its answer is lost. The channel is closed then.
func (k *Link) Lose(statement string, after bool) <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lose, k.after, k.lost = statement, after, make(chan struct{})
	return k.lost
}

func (k *Link) serve(c net.Conn) {
	defer c.Close()
	up, err := net.Dial("tcp", k.to)
	if err != nil {
		return
	}
	defer up.Close()
	k.mu.Lock()
	if k.isCut {
		k.mu.Unlock()
		return
	}
	k.open[c], k.open[up] = true, true
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.open, c)
		delete(k.open, up)
	}()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		defer c.Close()
		b := make([]byte, 64<<10)
		for {
			n, err := up.Read(b)
			if err != nil {
				return
			}
			if _, err := c.Write(b[:n]); err != nil {
				return
			}
		}
	}()
	b := make([]byte, 64<<10)
	for {
		n, err := c.Read(b)
		if err != nil {
			return
		}
		k.mu.Lock()
		hit := k.lose != "" && bytes.Contains(b[:n], []byte(k.lose))
		if hit {
			k.lose = ""
			close(k.lost)
			c.Close() // the answer has nowhere to go
		}
		after := k.after
		k.mu.Unlock()
		if hit && !after {
			return
		}
		if _, err := up.Write(b[:n]); err != nil {
			return
		}
		if hit {
			<-answered // to nobody
			return
		}
	}
}
