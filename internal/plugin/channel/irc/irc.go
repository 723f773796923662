package irc

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
)

const (
	timeout   = 30 * time.Second // of the connection, a write, and a confirmation
	silence   = 90 * time.Second // after which the server is asked for a sign of life
	maxQueue  = 1000             // messages that wait for the sink
	maxPeople = 10_000           // whose nicks are remembered
	maxKeys   = 1000             // of parts whose lines are remembered
	burst     = 5                // lines that are sent at once; then one for each second
)

// bot is an account.
type bot struct {
	env     channel.Env
	c       config
	account chela.AccountID

	mu    sync.Mutex
	conn  *conn             // nil: not connected
	nicks map[string]string // of people by their account names
	done  map[string]int    // confirmed lines of parts by their keys
	order []string          // the keys of done, oldest first
	slot  time.Time         // of the flood control
}

var _ channel.Channel = (*bot)(nil)

// conn is a connection that is registered, or about to be.
type conn struct {
	net.Conn
	write   sync.Mutex
	nick    string // of the account
	pending map[string]*sending
	ended   chan struct{}
}

// sending is a message whose confirmation is awaited.
type sending struct {
	target string
	err    error // what the server refused it with
	pong   chan struct{}
}

// line writes a line.
func (c *conn) line(format string, args ...any) error {
	c.write.Lock()
	defer c.write.Unlock()
	_ = c.SetWriteDeadline(time.Now().Add(timeout))
	_, err := c.Write([]byte(oneLine(fmt.Sprintf(format, args...)) + "\r\n"))
	return err
}

// quit says goodbye unless something else is being written.
func (c *conn) quit() {
	if c.write.TryLock() {
		defer c.write.Unlock()
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = c.Write([]byte("QUIT\r\n"))
	}
}

// Run implements channel.Channel.
func (b *bot) Run(ctx context.Context, sink channel.Sink) error {
	ctx, cancel := context.WithCancel(ctx)
	queue := make(chan chela.Inbound, maxQueue)
	var wg sync.WaitGroup
	wg.Go(func() { b.deliver(ctx, sink, queue) })
	defer wg.Wait()
	defer cancel() // ends deliver if the connection ends for good
	return channel.Reconnect(ctx, b.env, func(ctx context.Context, up func()) error { return b.connect(ctx, queue, up) })
}

// deliver passes messages to the sink, each until it is accepted.
func (b *bot) deliver(ctx context.Context, sink channel.Sink, queue <-chan chela.Inbound) {
	for {
		select {
		case in := <-queue:
			if channel.Accept(ctx, b.env.Log.With("id", in.ID), func(ctx context.Context) error { return sink(ctx, in) }) !=
				nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// connect makes a connection and reads from it until it ends.
func (b *bot) connect(ctx context.Context, queue chan<- chela.Inbound, up func()) error {
	dctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	raw, err := b.env.Dial(dctx, b.c.addr, b.c.Host)
	if err != nil {
		return fmt.Errorf("irc: %w", err)
	}
	defer raw.Close()
	if b.c.tls {
		secure := tls.Client(raw, &tls.Config{ServerName: b.c.Host, MinVersion: tls.VersionTLS12})
		if err := secure.HandshakeContext(dctx); err != nil {
			return fmt.Errorf("irc: %w (if the server has no TLS: chela config set channels.irc.tls false)", err)
		}
		raw = secure
	}
	c := &conn{Conn: raw, nick: b.c.Nick, pending: map[string]*sending{}, ended: make(chan struct{})}
	stop := context.AfterFunc(ctx, func() {
		c.quit()
		_ = raw.Close()
	})
	defer stop()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.conn = nil
		clear(b.nicks) // others may have the nicks when the connection works again
		close(c.ended)
	}()
	if err := b.register(c); err != nil {
		return fmt.Errorf("irc: %w", err)
	}
	r := &reader{b: b, c: c, queue: queue, up: up}
	return r.read(ctx)
}

// register begins the registration.
func (b *bot) register(c *conn) error {
	if err := c.line("CAP LS 302"); err != nil {
		return err
	}
	if !b.c.password.IsZero() {
		if err := c.line("PASS :%s", b.c.password.Reveal()); err != nil {
			return err
		}
	}
	if err := c.line("NICK %s", c.nick); err != nil {
		return err
	}
	return c.line("USER %s 0 * :%s", b.c.UserName, b.c.RealName)
}

// reader handles what arrives on a connection.
type reader struct {
	b       *bot
	c       *conn
	queue   chan<- chela.Inbound
	up      func()
	offered []string // capabilities
	ready   bool     // registered
	taken   int      // nicks that were in use
}

// read handles lines until the connection ends. If nothing arrives for a while, it asks the
// server for a sign of life, once.
func (r *reader) read(ctx context.Context) error {
	var buf []byte
	chunk := make([]byte, 4096)
	asked := false
	for {
		_ = r.c.SetReadDeadline(time.Now().Add(silence))
		n, err := r.c.Read(chunk)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, os.ErrDeadlineExceeded) && !asked && n == 0 && r.ready {
			asked = true
			if err := r.c.line("PING :alive"); err != nil {
				return fmt.Errorf("irc: %w", err)
			}
			continue
		}
		buf = append(buf, chunk[:n]...)
		asked = asked && n == 0
		for {
			i := bytes.IndexByte(buf, '\n')
			if i < 0 {
				break
			}
			s := strings.TrimRight(string(buf[:i]), "\r")
			buf = buf[i+1:]
			if err := r.handle(parseLine(s)); err != nil {
				return err
			}
		}
		if len(buf) > maxLine {
			return errors.New("irc: the server sent a line that is too long")
		}
		if err != nil {
			return fmt.Errorf("irc: the connection was lost: %w", err)
		}
	}
}

// permanent returns an error that no new attempt mends.
func permanent(format string, args ...any) error {
	return &channel.Error{Permanent: true, Err: fmt.Errorf("irc: "+format, args...)}
}

func (r *reader) handle(l line) error {
	switch l.command {
	case "PING":
		return r.c.line("PONG :%s", l.arg(len(l.params)-1))
	case "PONG":
		r.confirm(l.arg(len(l.params) - 1))
	case "CAP":
		return r.capability(l)
	case "AUTHENTICATE":
		return r.authenticate()
	case "903": // SASL succeeded
		return r.c.line("CAP END")
	case "902", "904", "905", "906", "908":
		return permanent("the login was refused (check channels.irc.sasl): %s", clip(l.arg(len(l.params)-1)))
	case "001":
		return r.registered(l.arg(0))
	case "432":
		return permanent("the nick %s is not allowed (type: chela config set channels.irc.nick NAME)", r.c.nick)
	case "433", "436", "437":
		return r.anotherNick()
	case "464":
		return permanent("the password was refused (check channels.irc.password)")
	case "465":
		return permanent("the account is banned from the server: %s", clip(l.arg(len(l.params)-1)))
	case "401", "403", "404", "411", "412", "442", "477", "489", "531":
		r.refused(l)
	case "405", "471", "473", "474", "475", "476":
		r.b.env.Log.Warn("cannot join a channel", "channel", l.arg(1), "reason", clip(l.arg(2)))
	case "ERROR":
		if !r.ready && strings.Contains(lower(l.arg(0)), "password") { // some servers send no 464
			return permanent("the password was refused (check channels.irc.password): %s", clip(l.arg(0)))
		}
		return fmt.Errorf("irc: the server closed the connection: %s", clip(l.arg(0)))
	case "NICK":
		r.renamed(l)
	case "QUIT":
		r.left(l.nick())
	case "KICK":
		if strings.EqualFold(l.arg(1), r.c.nick) {
			r.b.env.Log.Warn("removed from a channel", "channel", l.arg(0), "by", l.nick(), "reason", clip(l.arg(2)))
		}
	case "PRIVMSG":
		r.message(l)
	}
	return nil
}

// clip shortens a text of the server for a log.
func clip(s string) string { return oneText(s[:end(s, 200)]) }

// capability requests the capabilities that are useful.
func (r *reader) capability(l line) error {
	switch strings.ToUpper(l.arg(1)) {
	case "LS":
		for name := range strings.FieldsSeq(l.arg(len(l.params) - 1)) {
			name, _, _ = strings.Cut(name, "=")
			r.offered = append(r.offered, name)
		}
		if l.arg(2) == "*" { // more follow
			return nil
		}
		var want []string
		for _, name := range []string{"message-tags", "server-time", "account-tag"} {
			if slices.Contains(r.offered, name) {
				want = append(want, name)
			}
		}
		if !r.b.c.sasl.IsZero() {
			if !slices.Contains(r.offered, "sasl") {
				return permanent("the server offers no SASL; use nickserv.password (type: chela config unset channels.irc.sasl)")
			}
			want = append(want, "sasl")
		}
		if len(want) == 0 {
			return r.c.line("CAP END")
		}
		return r.c.line("CAP REQ :%s", strings.Join(want, " "))
	case "ACK":
		if slices.Contains(strings.Fields(l.arg(len(l.params)-1)), "sasl") {
			return r.c.line("AUTHENTICATE PLAIN")
		}
		return r.c.line("CAP END")
	case "NAK":
		if !r.b.c.sasl.IsZero() {
			return permanent("the server refuses SASL; use nickserv.password")
		}
		return r.c.line("CAP END")
	}
	return nil
}

// authenticate sends the password.
func (r *reader) authenticate() error {
	user := r.b.c.SASL.UserName
	if user == "" {
		user = r.b.c.Nick
	}
	data := base64.StdEncoding.EncodeToString([]byte(user + "\x00" + user + "\x00" + r.b.c.sasl.Reveal()))
	const most = 400
	for len(data) >= most {
		if err := r.c.line("AUTHENTICATE %s", data[:most]); err != nil {
			return err
		}
		data = data[most:]
	}
	if data == "" {
		data = "+"
	}
	return r.c.line("AUTHENTICATE %s", data)
}

// anotherNick tries another nick because the one is in use.
func (r *reader) anotherNick() error {
	const most = 5
	if r.ready {
		return nil
	}
	if r.taken++; r.taken > most {
		return errors.New("irc: all nicks are in use")
	}
	nick := r.c.nick + "_"
	r.setNick(nick)
	return r.c.line("NICK %s", nick)
}

func (r *reader) setNick(nick string) {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	r.c.nick = nick
}

// registered identifies the account and joins the channels.
func (r *reader) registered(nick string) error {
	if word(nick) {
		r.setNick(nick)
	}
	if !r.b.c.nickserv.IsZero() && r.b.c.sasl.IsZero() {
		if err := r.c.line("PRIVMSG NickServ :IDENTIFY %s", r.b.c.nickserv.Reveal()); err != nil {
			return err
		}
	}
	for _, name := range r.b.c.Channels {
		if err := r.c.line("JOIN %s", name); err != nil {
			return err
		}
	}
	r.ready = true
	r.b.mu.Lock()
	r.b.conn = r.c
	r.b.mu.Unlock()
	r.up()
	return nil
}

// renamed follows a change of a nick.
func (r *reader) renamed(l line) {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	if strings.EqualFold(l.nick(), r.c.nick) && word(l.arg(0)) {
		r.c.nick = l.arg(0)
	}
	for account, nick := range r.b.nicks {
		if strings.EqualFold(nick, l.nick()) {
			r.b.nicks[account] = l.arg(0)
		}
	}
}

// left forgets the nick of a person who left.
func (r *reader) left(nick string) {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	for account, n := range r.b.nicks {
		if strings.EqualFold(n, nick) {
			delete(r.b.nicks, account)
		}
	}
}

// message passes on a message of a person.
func (r *reader) message(l line) {
	if !strings.Contains(l.source, "!") || strings.EqualFold(l.nick(), r.c.nick) || len(l.params) < 2 {
		return // a server, or the account itself
	}
	text := l.arg(1)
	if inner, ok := strings.CutPrefix(text, "\x01"); ok {
		action, ok := strings.CutPrefix(strings.TrimSuffix(inner, "\x01"), "ACTION ")
		if !ok {
			return // a request to the program
		}
		text = "* " + action
	}
	text = strings.TrimSpace(unformatted(text))
	in := chela.Inbound{ID: l.tags["msgid"], Sender: chela.Sender{ID: l.source, Name: l.nick()},
		Text: text, Time: time.Now()}
	if in.ID == "" {
		in.ID = rand.Text()
	}
	if at, err := time.Parse(time.RFC3339, l.tags["time"]); err == nil {
		in.Time = at
	}
	if account := l.tags["account"]; word(account) && account != "*" {
		in.Sender.ID = account
		r.remember(account, l.nick())
	}
	in.Address = chela.Address{Channel: Name, Account: r.b.account, Peer: chela.Peer{Kind: chela.Direct, ID: in.Sender.ID}}
	if target := l.arg(0); !strings.EqualFold(target, r.c.nick) {
		if !isChannel(target) {
			return
		}
		in.Address.Peer = chela.Peer{Kind: chela.Group, ID: lower(target)}
		in.Group = target
		in.Text, in.Mentioned = mention(text, r.c.nick)
	} else if own, ok := mention(text, r.c.nick); ok {
		in.Text = own
	}
	if in.Text == "" {
		return
	}
	select {
	case r.queue <- in:
	default:
		r.b.env.Log.Warn("message dropped: too many wait", "from", l.nick())
	}
}

// remember stores the nick of an account.
func (r *reader) remember(account, nick string) {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	if len(r.b.nicks) >= maxPeople {
		clear(r.b.nicks)
	}
	r.b.nicks[account] = nick
}

func isChannel(s string) bool { return s != "" && strings.ContainsAny(s[:1], "#&+!") }

// mention reports whether a text mentions a nick, and returns it without the nick at its
// beginning.
func mention(text, nick string) (string, bool) {
	if n := len(nick); len(text) > n && strings.EqualFold(text[:n], nick) && strings.ContainsAny(text[n:n+1], ":,") {
		if rest := strings.TrimSpace(text[n+1:]); rest != "" {
			return rest, true
		}
		return text, true
	}
	low, name := lower(text), lower(nick)
	for at := 0; ; {
		i := strings.Index(low[at:], name)
		if i < 0 {
			return text, false
		}
		begin := at + i
		at = begin + len(name)
		before, _ := utf8.DecodeLastRuneInString(low[:begin])
		after, _ := utf8.DecodeRuneInString(low[at:])
		if (begin == 0 || !inNick(before)) && (at == len(low) || !inNick(after)) {
			return text, true
		}
	}
}

func inNick(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-[]{}\\|^`", r)
}
