// Package tunnel reaches a port of another machine with the program ssh of this one. Each
// connection is an ssh of its own, whose input and output are the connection (ssh -W): no port
// of this machine is opened that other users could connect to, and when this process ends, even
// when it is killed, ssh finds the end of its input and ends.
package tunnel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/shell"
	"github.com/chela-ai/chela/internal/surface/cli"
)

// Dialer starts ssh. All fields are required.
type Dialer struct {
	Broker sandbox.Broker           // has all rights of this process
	Look   func(name string) string // finds programs; "": not found
	Env    []string                 // for ssh, which finds its agent and its files by it
}

const (
	// connectTime is how long ssh may take to connect, in seconds.
	connectTime = 15
	// aliveTime is the pause between the questions of ssh whether the other machine is still
	// there, in seconds; after aliveCount without an answer the connection ends.
	aliveTime, aliveCount = 15, 3
	// maxMessage is how much of what ssh says is kept, in bytes.
	maxMessage = 8 << 10
	// endTime is how long ssh has to end by itself.
	endTime = time.Second
)

// Dial opens a connection to a port at the loopback address of the target. It returns when ssh
// has started: if it cannot connect, the first read says why. ctx does not limit the
// connection.
func (d Dialer) Dial(ctx context.Context, t cli.SSH) (net.Conn, error) {
	argv, err := arguments(t)
	if err != nil {
		return nil, err
	}
	path := d.Look("ssh")
	if path == "" {
		return nil, &chela.Error{Code: chela.CodeUnavailable, Message: "the program ssh is not installed",
			Hint: "install OpenSSH's client, or chela config set gateway.remote.transport direct"}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &conn{Conn: near, target: t, cancel: cancel, ended: make(chan struct{})}
	p, err := d.Broker.Start(running, sandbox.Plan{
		Path: path, Argv: argv, Dir: os.TempDir(), Env: d.Env, Stdin: far, Stderr: &c.said, Grace: endTime,
	}, far)
	if err != nil {
		cancel()
		return nil, errors.Join(fmt.Errorf("ssh: %w", err), near.Close(), far.Close())
	}
	go c.wait(p, far)
	return c, nil
}

// arguments returns the command line of ssh.
func arguments(t cli.SSH) ([]string, error) {
	host, port := t.Target, ""
	if h, p, err := net.SplitHostPort(t.Target); err == nil {
		n, err := strconv.Atoi(p)
		if err != nil || n < 1 || n > 65535 {
			return nil, wrongTarget(t.Target)
		}
		host, port = h, p
	}
	odd := func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune("'\"`$\\;&|<>(){}*?!#", r)
	}
	if host == "" || strings.HasPrefix(host, "-") || strings.HasSuffix(host, "@") || strings.HasPrefix(host, "@") ||
		strings.ContainsFunc(host, odd) {
		return nil, wrongTarget(t.Target)
	}
	argv := []string{
		"ssh", "-T", "-a", "-x", "-o", "BatchMode=yes", "-o", fmt.Sprintf("ConnectTimeout=%d", connectTime),
		"-o", fmt.Sprintf("ServerAliveInterval=%d", aliveTime), "-o", fmt.Sprintf("ServerAliveCountMax=%d", aliveCount),
	}
	if t.Identity != "" {
		argv = append(argv, "-i", t.Identity)
	}
	if port != "" {
		argv = append(argv, "-p", port)
	}
	return append(argv, "-W", net.JoinHostPort("127.0.0.1", strconv.Itoa(t.Port)), "--", host), nil
}

func wrongTarget(target string) error {
	return &chela.Error{
		Code: chela.CodeInvalid, Message: fmt.Sprintf("gateway.remote.sshTarget: want USER@HOST, not %q", target),
		Hint: "chela config set gateway.remote.sshTarget USER@HOST",
	}
}

// conn is a connection through an ssh.
type conn struct {
	net.Conn // to the input and output of ssh
	target   cli.SSH
	cancel   context.CancelFunc
	said     message // by ssh
	ended    chan struct{}

	mu      sync.Mutex
	closed  bool  // by Close
	failure error // why ssh ended; set before the end of ended
}

// wait waits for the end of ssh, and ends the connection.
func (c *conn) wait(p sandbox.Process, far io.Closer) {
	exit, err := p.Wait()
	c.mu.Lock()
	if !c.closed && (err != nil || exit.Code != 0 || exit.Signal != "") {
		c.failure = explain(c.target, c.said.String(), cmp.Or(exit.Signal, "exit status "+strconv.Itoa(exit.Code)))
	}
	c.mu.Unlock()
	c.cancel()
	close(c.ended)
	far.Close()
}

// Failure returns why the connection ended; nil: it did not, or the other side ended it. It
// waits a moment for an ssh that is about to say so.
func (c *conn) Failure() error {
	select {
	case <-c.ended:
	case <-time.After(endTime):
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure
}

// failed returns why ssh ended, if it did, and err otherwise.
func (c *conn) failed(err error) error {
	if err == nil {
		return nil
	}
	select {
	case <-c.ended:
	default:
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure != nil {
		return c.failure
	}
	return err
}

// Read reads what the other side sent.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, c.failed(err)
}

// Write sends to the other side.
func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, c.failed(err)
}

// Close ends the connection, and returns when ssh has ended.
func (c *conn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	err := c.Conn.Close()
	c.cancel()
	<-c.ended
	return err
}

// message keeps the end of what a program says.
type message struct {
	mu   sync.Mutex
	text []byte
}

// Write adds to the text.
func (m *message) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.text = append(m.text, b...)
	if over := len(m.text) - maxMessage; over > 0 {
		m.text = append(m.text[:0], m.text[over:]...)
	}
	return len(b), nil
}

// String returns the text.
func (m *message) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return string(m.text)
}

// reasons are the failures of ssh that are known, by what it says.
var reasons = [...]struct{ says, text, hint string }{
	{"REMOTE HOST IDENTIFICATION HAS CHANGED",
		"its host key is not the one that this machine knows; somebody may be in between",
		"find out why the key changed; if you changed it: ssh-keygen -R HOST, and then ssh TARGET"},
	{"Host key verification failed", "this machine does not know its host key yet",
		"ssh TARGET, compare the fingerprint, and accept it"},
	{"Permission denied", "it does not accept the user name or the key (ssh must not need a password)",
		"ssh-copy-id TARGET; for a key with a passphrase: ssh-add; for another user: chela config set gateway.remote.sshTarget USER@HOST"},
	{"Too many authentication failures", "it does not accept the keys of this machine",
		"chela config set gateway.remote.sshIdentity ~/.ssh/KEY"},
	{"Could not resolve hostname", "there is no machine with this name",
		"chela config set gateway.remote.sshTarget USER@HOST"},
	{"administratively prohibited", "its SSH server does not allow connections to the gateway",
		"allow AllowTcpForwarding there"},
	{"open failed: connect failed", "no gateway listens there at port PORT",
		"ssh TARGET chela gateway status; for another port: chela config set gateway.remote.remotePort N"},
	{"stdio forwarding failed", "no gateway listens there at port PORT",
		"ssh TARGET chela gateway status; for another port: chela config set gateway.remote.remotePort N"},
	{"Connection refused", "no SSH server answers there", "ssh TARGET"},
	{"No route to host", "it cannot be reached from this network", "ssh TARGET"},
	{"Network is unreachable", "it cannot be reached from this network", "ssh TARGET"},
	{"timed out", "it does not answer", "ssh TARGET"},
	{"not responding", "it does not answer any more", "ssh TARGET"},
}

// explain returns the error about an ssh that ended with a status after it said a text.
func explain(t cli.SSH, said, status string) error {
	host := t.Target
	if _, h, ok := strings.Cut(host, "@"); ok {
		host = h
	}
	fill := strings.NewReplacer("TARGET", t.Typed(), "USER@HOST", "USER@HOST", "HOST", shell.Quote(host),
		"PORT", strconv.Itoa(t.Port))
	e := &chela.Error{Code: chela.CodeUnavailable, Hint: fill.Replace("ssh TARGET")}
	for _, r := range reasons {
		if strings.Contains(said, r.says) {
			e.Message, e.Hint = fmt.Sprintf("ssh to %s: %s", t.Target, fill.Replace(r.text)), fill.Replace(r.hint)
			return e
		}
	}
	last := status
	for line := range strings.Lines(said) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "Warning: Permanently added") {
			last = line
		}
	}
	e.Message = fmt.Sprintf("ssh to %s: %s", t.Target, last)
	return e
}
