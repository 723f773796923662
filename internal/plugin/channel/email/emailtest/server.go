package emailtest

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"
	"github.com/emersion/go-smtp"

	"github.com/chela-ai/chela/internal/core/llm/llmtest"
)

// The account, and the id of the server's authentication results.
const (
	Address  = "chela@example.org"
	Password = "secret-password"
	Results  = "mx.example.org"
)

// Names of the servers, and of the mailbox for sent mail.
const (
	IMAP    = "imap.example.org"
	SMTP    = "smtp.example.org"
	SentBox = "Ausgang"
)

// Server is a mail server. The exported fields are set before it is used.
type Server struct {
	NoIdle bool        // it does not offer IDLE
	Saves  bool        // it stores what it sends, as Gmail does
	NoSent bool        // there is no mailbox for sent mail
	TLS    *tls.Config // for STARTTLS; nil: none
	Wrap   *tls.Config // for connections that begin with TLS; nil: they do not
	Size   int64       // of a mail that it accepts; 0: any

	user *imapmemserver.User

	mu       sync.Mutex
	conns    map[net.Conn]bool // of IMAP
	sent     []Mail
	problems []string
	faults   []Fault
	deaf     bool            // nothing is pushed
	mute     bool            // nothing is answered
	breaks   map[uint32]int  // how often reading a mail breaks the connection
	seen     map[string]bool // mails by their Message-ID
	changed  chan struct{}   // closed when something changes
	refusal  error           // of logins
	commands map[string]int
	boxes    map[string][]stored
	wg       sync.WaitGroup
	done     chan struct{} // closed at the end
}

// Fault describes how the server fails when it gets a mail.
type Fault struct {
	Code   int  // the answer; 0: none
	Rcpt   bool // at RCPT instead of after the content
	Accept bool // the mail is accepted before the failure
	Cut    bool // the connection ends instead of an answer
	Stall  bool // nothing is answered
}

// New returns a server with an empty mailbox.
func New() *Server {
	s := &Server{
		user:     imapmemserver.NewUser(Address, Password),
		conns:    map[net.Conn]bool{},
		breaks:   map[uint32]int{},
		seen:     map[string]bool{},
		changed:  make(chan struct{}),
		commands: map[string]int{},
		boxes:    map[string][]stored{},
		done:     make(chan struct{}),
	}
	s.must(s.user.Create("INBOX", nil))
	return s
}

func (s *Server) must(err error) {
	if err != nil {
		panic(err)
	}
}

// Listen serves in memory until the test ends. It returns a function that connects to one
// of the servers by its address.
func (s *Server) Listen(t testing.TB) func(ctx context.Context, addr string, hosts ...string) (net.Conn, error) {
	i, m := llmtest.Pipe(), llmtest.Pipe()
	s.serve(t, i, m)
	return func(ctx context.Context, addr string, hosts ...string) (net.Conn, error) {
		switch host, _, _ := net.SplitHostPort(addr); {
		case host == IMAP && slices.Contains(hosts, IMAP):
			return i.Dial(ctx)
		case host == SMTP && slices.Contains(hosts, SMTP):
			return m.Dial(ctx)
		}
		return nil, fmt.Errorf("dial %s: no such host", addr)
	}
}

// ListenLoopback serves on sockets until the test ends, and returns their addresses.
func (s *Server) ListenLoopback(t testing.TB) (imap, smtp string) {
	var l [2]net.Listener
	for n := range l {
		var err error
		if l[n], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	s.serve(t, l[0], l[1])
	return l[0].Addr().String(), l[1].Addr().String()
}

// counted notes the connections of a listener.
type counted struct {
	net.Listener
	s *Server
}

// Accept implements net.Listener.
func (c *counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if c.s.NoIdle {
		conn = noIdle{conn}
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.conns[conn] = true
	return conn, nil
}

// noIdle is a connection without IDLE among the capabilities, which the library always
// offers.
type noIdle struct{ net.Conn }

// Write implements net.Conn.
func (n noIdle) Write(b []byte) (int, error) {
	return n.Conn.Write(bytes.ReplaceAll(b, []byte(" IDLE"), []byte(" NONE")))
}

func (s *Server) serve(t testing.TB, i, m net.Listener) {
	if s.Wrap != nil {
		i, m = tls.NewListener(i, s.Wrap), tls.NewListener(m, s.Wrap)
	}
	if !s.NoSent {
		s.must(s.user.Create(SentBox, nil))
	}
	caps := imap.CapSet{
		imap.CapIMAP4rev1:    {},
		imap.CapUIDPlus:      {},
		imap.CapNamespace:    {},
		imap.CapListExtended: {},
		imap.CapSpecialUse:   {},
	}
	is := imapserver.New(&imapserver.Options{
		NewSession: func(c *imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
			return &session{UserSession: imapmemserver.NewUserSession(s.user), s: s, conn: c}, &imapserver.GreetingData{}, nil
		},
		Caps: caps, Logger: log.New(io.Discard, "", 0), InsecureAuth: true, TLSConfig: s.TLS,
	})
	ms := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return &submission{s: s, conn: c}, nil
	}))
	ms.AllowInsecureAuth, ms.Domain, ms.MaxMessageBytes = true, SMTP, s.Size
	ms.ErrorLog, ms.TLSConfig = log.New(io.Discard, "", 0), s.TLS
	s.wg.Go(func() { _ = is.Serve(&counted{i, s}) })
	s.wg.Go(func() { _ = ms.Serve(m) })
	t.Cleanup(func() {
		close(s.done)
		s.Mute(false)
		_, _ = i.Close(), m.Close()
		s.Cut()
		s.wg.Wait()
		_, _ = is.Close(), ms.Close()
	})
}

// Cut ends all connections of IMAP.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.Close()
		delete(s.conns, c)
	}
}

// Refuse makes logins fail with an error; nil: they work.
func (s *Server) Refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusal = err
}

// Deaf makes the server accept IDLE and push nothing, or ends that.
func (s *Server) Deaf(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deaf = on
}

// Mute makes the server answer nothing any more on IMAP, or ends that.
func (s *Server) Mute(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mute = on
	s.changeLocked()
}

// Break makes the connection end the next times that a mail is read.
func (s *Server) Break(uid uint32, times int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.breaks[uid] = times
}

// Fail makes the next mails fail, one fault each; a zero Fault succeeds.
func (s *Server) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// Count returns how often a command was received: LOGIN, IDLE, SEARCH, FETCH, APPEND.
func (s *Server) Count(command string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commands[command]
}

// Problems returns what the server refused because it is wrong.
func (s *Server) Problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.problems)
}

func (s *Server) problem(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problems = append(s.problems, fmt.Sprintf(format, args...))
}

func (s *Server) changeLocked() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// literal is the content of a mail.
type literal struct{ *bytes.Reader }

// Size implements imap.LiteralReader.
func (l literal) Size() int64 { return l.Reader.Size() }

// Deliver puts a mail into the mailbox as it is, at a time; zero: now.
func (s *Server) Deliver(raw string, at time.Time) {
	raw = strings.ReplaceAll(strings.ReplaceAll(raw, "\r\n", "\n"), "\n", "\r\n")
	_, err := s.add("INBOX", []byte(raw), &imap.AppendOptions{Time: at})
	s.must(err)
}

// add puts a mail into a mailbox.
func (s *Server) add(mailbox string, raw []byte, o *imap.AppendOptions) (*imap.AppendData, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.Time.IsZero() {
		o.Time = time.Now()
	}
	d, err := s.user.Append(mailbox, literal{bytes.NewReader(raw)}, o)
	if err != nil {
		return nil, err
	}
	head, _, _ := bytes.Cut(raw, []byte("\r\n\r\n"))
	id := ""
	if m := regexp.MustCompile(`(?im)^Message-ID:\s*<(.*)>`).FindSubmatch(head); m != nil {
		id = string(m[1])
	}
	s.boxes[mailbox] = append(s.boxes[mailbox], stored{uint32(d.UID), raw, o.Time, id})
	return d, nil
}

// stored is a mail in a mailbox.
type stored struct {
	uid uint32
	raw []byte
	at  time.Time
	id  string // its Message-ID
}

// mailbox returns the mails in a mailbox.
func (s *Server) mailbox(name string) []stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.boxes[name])
}

// Stored returns how many mails are in the mailbox for sent mail.
func (s *Server) Stored() int { return len(s.mailbox(SentBox)) }

// Say puts a mail of a person into the mailbox, as the server has received and checked it.
// body begins with further fields of the header. The result is its Message-ID.
func (s *Server) Say(from, id, body string) string {
	address := from
	if i := strings.IndexByte(from, '<'); i >= 0 {
		address = strings.Trim(from[i:], "<>")
	}
	domain := address[strings.LastIndexByte(address, '@')+1:]
	s.Deliver(fmt.Sprintf("Return-Path: <%s>\nReceived: from mail.%s by %s with ESMTPS id 1; %s\nAuthentication-Results: %s;\n dkim=pass header.d=%s; spf=pass smtp.mailfrom=%s; dmarc=pass (p=none) header.from=%s\nFrom: %s\nTo: Chela <%s>\nMessage-ID: <%s>\nDate: %s\n%s",
		address, domain, Results, time.Now().Format(time.RFC1123Z), Results, domain, address, domain, from, Address, id,
		time.Now().Format(time.RFC1123Z), body), time.Time{})
	return id
}

// Renumber gives the mailbox another UIDVALIDITY, and the mails other UIDs. Those for
// which keep returns false vanish.
func (s *Server) Renumber(keep func(raw string, at time.Time) bool, add func()) {
	all := s.mailbox("INBOX")
	s.mu.Lock()
	s.boxes["INBOX"] = nil
	s.mu.Unlock()
	s.must(s.user.Delete("INBOX"))
	s.must(s.user.Create("INBOX", nil))
	for range 3 { // UIDs that are not those of before
		s.Deliver("From: a@example.org\n\nx", time.Now().Add(-1000*time.Hour))
	}
	for _, m := range all {
		if keep == nil || keep(string(m.raw), m.at) {
			s.Deliver(string(m.raw), m.at)
		}
	}
	if add != nil {
		add()
	}
	s.Cut()
}

// Seen waits until the mail with an id is marked as read.
func (s *Server) Seen(ctx context.Context, id string) error {
	return s.until(ctx, func() bool { return s.seen[id] })
}

// IsSeen reports whether the mail with an id is marked as read.
func (s *Server) IsSeen(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[id]
}

// Idle waits until the mailbox has been looked at n times.
func (s *Server) Idle(ctx context.Context, n int) error {
	return s.until(ctx, func() bool { return s.commands["SEARCH"] >= n })
}

func (s *Server) until(ctx context.Context, f func() bool) error {
	for {
		s.mu.Lock()
		ok, changed := f(), s.changed
		s.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
