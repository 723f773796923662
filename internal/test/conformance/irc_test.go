//go:build conformance

package conformance

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	core "github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/channel/irc"
)

// program returns the path of a program that is not part of this repository. The
// test is skipped if it is not installed.
func program(t testing.TB, name string) string {
	t.Helper()
	for _, file := range []string{name, "/usr/sbin/" + name, "/usr/local/sbin/" + name} {
		if p, err := exec.LookPath(file); err == nil {
			return p
		}
	}
	needtest.Missing(t, name)
	return ""
}

// ngircd is an IRC server for one test.
type ngircd struct {
	t      testing.TB
	Port   int // of plain connections
	Secure int // of TLS
	Cert   string
	dir    string
	bin    string
	cmd    *exec.Cmd
	done   chan struct{}
	log    output
}

// newNgircd starts an IRC server. more are further lines of the section Global.
func newNgircd(t testing.TB, more string) *ngircd {
	t.Helper()
	s := &ngircd{t: t, bin: program(t, "ngircd"), Port: freePort(t), Secure: freePort(t), dir: t.TempDir()}
	key := filepath.Join(s.dir, "key.pem")
	s.Cert = filepath.Join(s.dir, "cert.pem")
	certify(t, s.Cert, key)
	conf := fmt.Sprintf(`[Global]
	Name = irc.example.net
	Info = A server for a test
	Listen = 127.0.0.1
	Ports = %d
	MotdPhrase = Welcome
	%s
[Limits]
	MaxConnectionsIP = 0
[Options]
	DNS = no
	Ident = no
	PAM = no
[SSL]
	CertFile = %s
	KeyFile = %s
	Ports = %d
`, s.Port, more, s.Cert, key, s.Secure)
	if err := os.WriteFile(filepath.Join(s.dir, "ngircd.conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			t.Logf("log of ngircd:\n%s", s.log.String())
		}
	})
	s.Start()
	return s
}

// Start starts the server and waits until it accepts connections.
func (s *ngircd) Start() {
	s.t.Helper()
	s.cmd, s.done = exec.Command(s.bin, "--nodaemon", "--config", filepath.Join(s.dir, "ngircd.conf")), make(chan struct{})
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		_ = s.cmd.Wait() // the log contains the error
		close(s.done)
	}()
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		c, err := net.Dial("tcp", s.Addr())
		if err == nil {
			c.Close()
			return
		}
		select {
		case <-s.done:
			s.t.Fatalf("ngircd did not start:\n%s", s.log.String())
		default:
		}
	}
}

// Stop ends the server with its connections. It may be called more than once.
func (s *ngircd) Stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // it has ended
	<-s.done
	s.cmd = nil
}

// Addr returns the address for plain connections.
func (s *ngircd) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.Port) }

// Await waits until the log contains a text.
func (s *ngircd) Await(text string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), waittest.Limit)
	defer cancel()
	if err := s.log.Await(ctx, text); err != nil {
		s.t.Fatal(err)
	}
}

// certify writes a certificate of 127.0.0.1 that signs itself, and its key.
func certify(t testing.TB, cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "irc.example.net"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,

		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: der},
		key:  {Type: "PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// chatter is a person with a plain client.
type chatter struct {
	t     testing.TB
	conn  net.Conn
	lines chan string
}

// chat connects a person and joins channels.
func (s *ngircd) chat(nick string, rooms ...string) *chatter {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.Addr())
	if err != nil {
		s.t.Fatal(err)
	}
	p := &chatter{t: s.t, conn: conn, lines: make(chan string, 1000)}
	s.t.Cleanup(func() { conn.Close() })
	go func() {
		defer close(p.lines)
		for in := bufio.NewScanner(conn); in.Scan(); {
			if token, ok := strings.CutPrefix(in.Text(), "PING "); ok {
				fmt.Fprintf(conn, "PONG %s\r\n", token)
				continue
			}
			p.lines <- in.Text()
		}
	}()
	p.say("NICK %s", nick)
	p.say("USER %s 0 * :%s", nick, nick)
	p.await(" 001 ")
	for _, room := range rooms {
		p.say("JOIN %s", room)
		p.await(" 366 ")
	}
	return p
}

// say sends a line.
func (p *chatter) say(format string, args ...any) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.conn, format+"\r\n", args...); err != nil {
		p.t.Fatal(err)
	}
}

// await returns the next line that contains a text.
func (p *chatter) await(text string) string {
	p.t.Helper()
	var seen []string
	limit := time.After(waittest.Limit)
	for {
		select {
		case l, ok := <-p.lines:
			if !ok {
				p.t.Fatalf("the connection ended; no %q in %q", text, seen)
			}
			if strings.Contains(l, text) {
				return l
			}
			seen = append(seen, l)
		case <-limit:
			p.t.Fatalf("no %q in %q", text, seen)
		}
	}
}

// TestIRC connects a gateway to a real IRC server.
func TestIRC(t *testing.T) {
	t.Parallel()
	t.Run("plain", func(t *testing.T) {
		t.Parallel()
		s := newNgircd(t, "")
		converse(t, s, newGateway(t, ircSection(section{"port": s.Port, "tls": false})))
	})
	t.Run("TLS", func(t *testing.T) {
		t.Parallel()
		s := newNgircd(t, "")
		converse(t, s, newGateway(t, ircSection(section{"port": s.Secure}), "SSL_CERT_FILE="+s.Cert))
	})
	t.Run("server password", func(t *testing.T) {
		t.Parallel()
		s := newNgircd(t, "Password = sesame")
		newGateway(t, ircSection(section{"port": s.Port, "tls": false, "password": "sesame"}))
		s.Await(`User "chela!~chela@127.0.0.1" registered`)
		c, _ := ircChannel(t, section{"host": "127.0.0.1", "port": s.Port, "tls": false, "nick": "ben", "password": "wrong"})
		ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit)
		defer cancel()
		var refusal *channel.Error
		err := c.Run(ctx, func(context.Context, core.Inbound) error { return nil })
		if !errors.As(err, &refusal) || !refusal.Permanent || !strings.Contains(err.Error(), "channels.irc.password") {
			t.Errorf("a wrong password: %v", err)
		}
	})
}

// ircSection returns a configuration with an account on a server.
func ircSection(more section) section {
	return section{"channels": section{"irc": merge(section{
		"host": "127.0.0.1", "nick": "chela", "channels": []string{"#family"}, "allowFrom": []string{"ann!~ann@127.0.0.1"},
	}, more)}}
}

// converse checks what people on the server see of a gateway.
func converse(t *testing.T, s *ngircd, g *gateway) {
	ann := s.chat("ann", "#family")
	ann.names("#family", "chela")

	ann.say("PRIVMSG #family :not for the assistant")
	ann.say("PRIVMSG #family :chela: what is new?")
	ann.await("PRIVMSG #family :" + greeting)
	ann.say("PRIVMSG chela :echo in private")
	ann.await("PRIVMSG ann :in private")
	ann.say("PRIVMSG chela :\x01ACTION waves\x01")
	ann.await("PRIVMSG ann :" + greeting)

	bob := s.chat("bob", "#family")
	bob.say("PRIVMSG chela :let me in")
	bob.await("Your code: ")

	s.Stop()
	s.Start()
	ann = s.chat("ann", "#family")
	ann.names("#family", "chela")
	ann.say("PRIVMSG #family :are you back, Chela?")
	ann.await("PRIVMSG #family :" + greeting)
	if n := len(g.Model.Requests()); n != 4 {
		t.Errorf("%d requests to the model, want 4", n)
	}
	g.Stop()
	ann.await(":chela!~chela@127.0.0.1 QUIT")
}

// names waits until a nick is in a channel.
func (p *chatter) names(room, nick string) {
	p.t.Helper()
	limit := time.Now().Add(waittest.Limit)
	for {
		p.say("NAMES %s", room)
		found := false
		for l := ""; !strings.Contains(l, " 366 "); {
			l = p.await(" ")
			found = found || strings.Contains(l, " 353 ") && strings.Contains(strings.NewReplacer("@", "", ":", " ").Replace(l)+
				" ", " "+nick+" ")
		}
		if found {
			return
		}
		if time.Now().After(limit) {
			p.t.Fatalf("%s is not in %s", nick, room)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// ircChannel returns an account of the channel, and what it reports about its connection.
func ircChannel(t *testing.T, conf section) (channel.Channel, <-chan error) {
	t.Helper()
	b, err := json.Marshal(conf)
	if err != nil {
		t.Fatal(err)
	}
	up := make(chan error, 100)
	env := channel.Env{
		Log: slog.New(slog.DiscardHandler), Getenv: func(string) string { return "" }, Report: func(err error) { up <- err },
		Dial: func(ctx context.Context, addr string, _ ...string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", addr)
		},
	}
	c, err := irc.Factory().New(env, "default", b)
	if err != nil {
		t.Fatal(err)
	}
	return c, up
}

// TestIRCErrors checks that the channel understands what a real server refuses.
func TestIRCErrors(t *testing.T) {
	t.Parallel()
	s := newNgircd(t, "")
	ann := s.chat("ann", "#family", "#quiet")
	ann.say("MODE #quiet +m")
	taken := s.chat("chela")

	c, up := ircChannel(t, section{
		"host":     "127.0.0.1",
		"port":     s.Port,
		"tls":      false,
		"nick":     "chela",
		"channels": []string{"#family", "#quiet"},
	})
	ctx, cancel := context.WithCancel(t.Context())
	got, done := make(chan core.Inbound, 100), make(chan error, 1)
	go func() {
		done <- c.Run(ctx, func(_ context.Context, in core.Inbound) error {
			got <- in
			return nil
		})
	}()
	defer func() {
		cancel()
		<-done
	}()
	if err := <-up; err != nil {
		t.Fatal(err)
	}
	ann.names("#quiet", "chela_")
	send := func(kind core.PeerKind, to, text string) error {
		ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit)
		defer cancel()
		_, err := c.Send(ctx, channel.Part{Address: core.Address{Channel: irc.Name, Account: "default",
			Peer: core.Peer{Kind: kind, ID: to}}, Text: text})
		return err
	}

	ann.say("PRIVMSG #family :hello \x02chela_\x02")
	in := <-got
	if in.Sender.ID != "ann!~ann@127.0.0.1" || in.Text != "hello chela_" || !in.Mentioned ||
		in.Address.Peer != (core.Peer{Kind: core.Group, ID: "#family"}) {
		t.Errorf("received %+v", in)
	}
	if err := send(core.Direct, in.Sender.ID, "**for** you"); err != nil {
		t.Error(err)
	}
	ann.await(":chela_!~chela@127.0.0.1 PRIVMSG ann :for you")
	if err := send(core.Direct, "nobody!~x@127.0.0.1", "hello"); !errors.Is(err, channel.ErrGone) {
		t.Errorf("to a person who is gone: %v", err)
	}
	if err := send(core.Group, "#nowhere", "hello"); !errors.Is(err, channel.ErrGone) {
		t.Errorf("to a channel that does not exist: %v", err)
	}
	var refusal *channel.Error
	if err := send(core.Group, "#quiet", "hello"); !errors.As(err, &refusal) || !refusal.Permanent {
		t.Errorf("to a moderated channel: %v", err)
	}
	long := make([]string, 12)
	for i := range long {
		long[i] = fmt.Sprintf("%d. %s", i+1, strings.Repeat("grüße ", 40))
	}
	if err := send(core.Group, "#family", strings.Join(long, "\n\n")); err != nil {
		t.Errorf("a long text: %v", err)
	}
	for i, text := range long {
		if l := ann.await("PRIVMSG #family :"); !strings.HasSuffix(l, "PRIVMSG #family :"+strings.TrimSpace(text)) {
			t.Errorf("line %d is %q", i+1, l)
		}
	}
	ann.say("KICK #family chela_ :enough")
	ann.await(" KICK ")
	ann.say("MODE #family +n")
	if err := send(core.Group, "#family", "hello"); !errors.As(err, &refusal) || !refusal.Permanent {
		t.Errorf("to a channel that it was removed from: %v", err)
	}
	taken.say("QUIT")
}
