package irctest

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
)

// Server is an IRC server. The exported fields are set before it is used.
type Server struct {
	Password string            // of the server; empty: none
	Terse    bool              // a wrong password is answered without the number 464
	Caps     []string          // capabilities that it offers
	Accounts map[string]string // passwords of accounts
	InUse    []string          // nicks of others
	Banned   []string          // channels that nobody can join

	mu       sync.Mutex
	clients  []*client
	lines    []string    // that clients sent
	times    []time.Time // of the messages
	shown    map[string][]string
	problems []string
	deaf     bool
	cutAfter int // messages after which the connection ends; 0: never
	joined   chan struct{}
}

// client is a connection.
type client struct {
	conn     net.Conn
	nick     string
	user     bool
	capping  bool
	account  string
	password string
	welcomed bool
	channels []string
	caps     []string
	out      chan string   // lines to write
	gone     chan struct{} // closed when reading has ended
}

// send queues a line. A server does not wait for its clients.
func (c *client) send(format string, args ...any) {
	select {
	case c.out <- fmt.Sprintf(format+"\r\n", args...):
	case <-c.gone:
	}
}

// write writes the queued lines. The connection ends after an ERROR.
func (c *client) write() {
	for {
		select {
		case l := <-c.out:
			if _, err := c.conn.Write([]byte(l)); err != nil || strings.HasPrefix(l, "ERROR") {
				_ = c.conn.Close()
				return
			}
		case <-c.gone:
			return
		}
	}
}

// New returns a server that offers the usual capabilities.
func New() *Server {
	return &Server{
		Caps: []string{"sasl=PLAIN", "server-time", "message-tags", "account-tag"}, Accounts: map[string]string{},
		shown: map[string][]string{}, joined: make(chan struct{}),
	}
}

// Listen serves in memory until the test ends, and returns a function that connects to it.
func (s *Server) Listen(t testing.TB) func(context.Context) (net.Conn, error) {
	pipe := llmtest.Pipe()
	s.serve(t, pipe)
	return pipe.Dial
}

// ListenLoopback serves on a socket until the test ends, and returns its address.
func (s *Server) ListenLoopback(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.serve(t, l)
	return l.Addr().String()
}

func (s *Server) serve(t testing.TB, l net.Listener) {
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c := &client{conn: conn, out: make(chan string, 1000), gone: make(chan struct{})}
			s.mu.Lock()
			s.clients = append(s.clients, c)
			s.mu.Unlock()
			wg.Go(func() { s.read(c) })
			wg.Go(c.write)
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		s.Cut()
		wg.Wait()
	})
}

// Cut ends all connections.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		_ = c.conn.Close()
	}
	s.clients = nil
}

// CutAfter ends the connection after n messages more.
func (s *Server) CutAfter(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cutAfter = n
}

// Deaf makes the server answer nothing.
func (s *Server) Deaf(deaf bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaf = deaf
}

// Raw sends a line to all clients.
func (s *Server) Raw(format string, args ...any) {
	s.mu.Lock()
	clients := slices.Clone(s.clients)
	s.mu.Unlock()
	for _, c := range clients {
		c.send(format, args...)
	}
}

// Say makes a person write to a channel or to a nick. The account may be empty.
func (s *Server) Say(nick, account, target, text string) {
	tags := ""
	if account != "" {
		tags = "@account=" + account + ";time=2026-01-02T03:04:05.000Z "
	}
	s.Raw("%s:%s!user@host PRIVMSG %s :%s", tags, nick, target, text)
}

// Shown returns the lines that the clients wrote to a target.
func (s *Server) Shown(target string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.shown[target])
}

// Times returns when the messages arrived.
func (s *Server) Times() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.times)
}

// Lines returns all lines that begin with a prefix.
func (s *Server) Lines(prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, l := range s.lines {
		if strings.HasPrefix(l, prefix) {
			out = append(out, l)
		}
	}
	return out
}

// Problems returns how clients broke the protocol.
func (s *Server) Problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.problems)
}

// Joined waits until a client is in a channel.
func (s *Server) Joined(ctx context.Context) error {
	select {
	case <-s.joined:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Server) read(c *client) {
	defer c.conn.Close()
	defer close(c.gone)
	in := bufio.NewReaderSize(c.conn, 1024)
	for {
		l, err := in.ReadString('\n')
		if err != nil {
			return
		}
		s.mu.Lock()
		if len(l) > 512 || !strings.HasSuffix(l, "\r\n") || strings.ContainsAny(strings.TrimSuffix(l, "\r\n"), "\r\n\x00") {
			s.problems = append(s.problems, l)
		}
		l = strings.TrimSuffix(l, "\r\n")
		s.lines = append(s.lines, l)
		var answer []string
		if !s.deaf {
			answer = s.handleLocked(c, l)
		}
		s.mu.Unlock()
		for _, a := range answer {
			if a == "cut" {
				return
			}
			c.send("%s", a)
		}
	}
}

// handleLocked returns the answers to a line.
func (s *Server) handleLocked(c *client, l string) []string {
	head, text, _ := strings.Cut(l, " :")
	args := strings.Fields(head)
	if text != "" {
		args = append(args, text)
	}
	for len(args) < 3 {
		args = append(args, "")
	}
	switch args[0] {
	case "CAP":
		return s.capLocked(c, args)
	case "AUTHENTICATE":
		return s.saslLocked(c, args[1])
	case "PASS":
		c.password = args[1]
	case "NICK":
		if slices.Contains(s.InUse, args[1]) {
			return []string{":irc.test 433 * " + args[1] + " :Nickname is already in use"}
		}
		c.nick = args[1]
	case "USER":
		c.user = true
	case "PING":
		return []string{":irc.test PONG irc.test :" + args[1]}
	case "QUIT":
		return []string{"ERROR :bye"}
	case "PONG":
	case "JOIN":
		return s.joinLocked(c, args[1])
	case "PRIVMSG":
		return s.messageLocked(c, args[1], args[2])
	default:
		s.problems = append(s.problems, l)
		return []string{":irc.test 421 * " + args[0] + " :Unknown command"}
	}
	if c.nick == "" || !c.user || c.capping || c.welcomed {
		return nil
	}
	return s.welcomeLocked(c)
}

func (s *Server) welcomeLocked(c *client) []string {
	if c.password != s.Password && s.Terse {
		return []string{"ERROR :Bad server password"}
	}
	if c.password != s.Password {
		return []string{":irc.test 464 * :Password incorrect", "ERROR :Closing Link"}
	}
	c.welcomed = true
	return []string{":irc.test 001 " + c.nick + " :Welcome", ":irc.test 005 " + c.nick + " NICKLEN=30 :are supported",
		":irc.test 376 " + c.nick + " :End of /MOTD"}
}

func (s *Server) capLocked(c *client, args []string) []string {
	switch args[1] {
	case "LS":
		c.capping = true
		half := len(s.Caps) / 2
		return []string{":irc.test CAP * LS * :" + strings.Join(s.Caps[:half], " "), ":irc.test CAP * LS :" +
			strings.Join(s.Caps[half:], " ")}
	case "REQ":
		for name := range strings.FieldsSeq(args[2]) {
			if !slices.ContainsFunc(s.Caps, func(o string) bool { return o == name || strings.HasPrefix(o, name+"=") }) {
				return []string{":irc.test CAP * NAK :" + args[2]}
			}
		}
		c.caps = strings.Fields(args[2])
		return []string{":irc.test CAP * ACK :" + args[2]}
	case "END":
		c.capping = false
		if c.nick != "" && c.user && !c.welcomed {
			return s.welcomeLocked(c)
		}
	}
	return nil
}

func (s *Server) saslLocked(c *client, arg string) []string {
	if arg == "PLAIN" && slices.Contains(c.caps, "sasl") {
		return []string{"AUTHENTICATE +"}
	}
	data, err := base64.StdEncoding.DecodeString(arg)
	parts := strings.Split(string(data), "\x00")
	if err != nil || len(parts) != 3 || s.Accounts[parts[1]] != parts[2] || parts[2] == "" {
		return []string{":irc.test 904 * :SASL authentication failed"}
	}
	c.account = parts[1]
	return []string{":irc.test 900 * * " + parts[1] + " :You are now logged in",
		":irc.test 903 * :SASL authentication successful"}
}

func (s *Server) joinLocked(c *client, name string) []string {
	if slices.Contains(s.Banned, name) {
		return []string{":irc.test 474 " + c.nick + " " + name + " :Cannot join channel (+b)"}
	}
	c.channels = append(c.channels, name)
	select {
	case <-s.joined:
	default:
		close(s.joined)
	}
	return []string{":" + c.nick + "!u@h JOIN " + name, ":irc.test 366 " + c.nick + " " + name + " :End of /NAMES list"}
}

func (s *Server) messageLocked(c *client, target, text string) []string {
	switch {
	case !c.welcomed:
		return []string{":irc.test 451 * :You have not registered"}
	case text == "":
		return []string{":irc.test 412 " + c.nick + " :No text to send"}
	case strings.HasPrefix(target, "#") && !slices.Contains(c.channels, target):
		return []string{":irc.test 404 " + c.nick + " " + target + " :Cannot send to channel"}
	case target == "nobody":
		return []string{":irc.test 401 " + c.nick + " " + target + " :No such nick/channel"}
	}
	if len(text) > 400 {
		s.problems = append(s.problems, text)
	}
	s.shown[target] = append(s.shown[target], text)
	s.times = append(s.times, time.Now())
	if s.cutAfter > 0 {
		if s.cutAfter--; s.cutAfter == 0 {
			return []string{"cut"}
		}
	}
	return nil
}
