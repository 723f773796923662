package email

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-sasl"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// maxAnswer is how many bytes the answer to a command may have, unless it has the content
// of a mail.
const maxAnswer = 4 << 20

// boundedConn is a connection that gives up after a number of bytes.
type boundedConn struct {
	net.Conn
	left atomic.Int64
}

var errTooLong = errors.New("the answer is too long")

// Read implements net.Conn.
func (m *boundedConn) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	if m.left.Add(int64(-n)) < 0 {
		_ = m.Close()
		return 0, errTooLong
	}
	return n, err
}

// maxDepth is how many parentheses may follow each other in the structure of a mail: as
// many as the levels of containers.
const maxDepth = 60

// guard sees all data of a connection. While it is on, it ends the connection if the
// answer is nested too deeply for the library, which takes minutes to say so.
type guard struct {
	mu    sync.Mutex
	on    bool
	depth int
	hit   bool
}

var errNested = errors.New("the mail is nested too deeply")

// Write implements io.Writer.
func (g *guard) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.on {
		return len(p), nil
	}
	for _, c := range p {
		if c != '(' {
			g.depth = 0
		} else if g.depth++; g.depth > maxDepth {
			g.hit = true
			return 0, errNested
		}
	}
	return len(p), nil
}

// set switches the guard on or off. It reports whether it ended the connection.
func (g *guard) set(on bool) (hit bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.on, g.depth = on, 0
	return g.hit
}

// link is a connection to the IMAP server.
type link struct {
	c      *imapclient.Client // nil: the connection has not begun
	conn   *boundedConn
	news   chan struct{} // gets a value when the number of mails has changed
	caps   imap.CapSet
	guard  guard
	noIdle bool        // IDLE was refused
	free   func() bool // releases the context
	plain  string      // the password, which is removed from errors
}

// secure returns the TLS configuration for a server.
func (b *bot) secure(host string) *tls.Config {
	return &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12, RootCAs: b.roots}
}

// dial makes a connection to a server. It is closed when ctx ends, until free is called.
func (b *bot) dial(ctx context.Context, e endpoint) (conn *boundedConn, free func() bool, err error) {
	dctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	raw, err := b.env.Dial(dctx, e.addr, e.host)
	if err != nil {
		if ctx.Err() == nil && dctx.Err() != nil {
			err = fmt.Errorf("no connection within %s", timeout)
		}
		return nil, nil, fmt.Errorf("email: %s: %w", e.addr, err)
	}
	conn = &boundedConn{Conn: raw}
	conn.left.Store(maxAnswer)
	return conn, context.AfterFunc(ctx, func() { _ = conn.Close() }), nil
}

// connect makes a connection to the IMAP server and logs in.
func (b *bot) connect(ctx context.Context) (*link, error) {
	e := b.c.imap
	conn, free, err := b.dial(ctx, e)
	if err != nil {
		return nil, err
	}
	l := &link{conn: conn, news: make(chan struct{}, 1), free: free, plain: e.password}
	if err := l.open(ctx, e, b.secure(e.host)); err != nil {
		l.close()
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gmail = l.caps.Has("X-GM-EXT-1")
	return l, nil
}

// open greets the server and logs in.
func (l *link) open(ctx context.Context, e endpoint, config *tls.Config) error {
	o := &imapclient.Options{TLSConfig: config, WordDecoder: wordDecoder, DebugWriter: &l.guard,
		UnilateralDataHandler: &imapclient.UnilateralDataHandler{
			Mailbox: func(*imapclient.UnilateralDataMailbox) {
				select {
				case l.news <- struct{}{}:
				default:
				}
			},
		}}
	err := l.do(ctx, timeout, maxAnswer, func() (err error) {
		switch e.tls {
		case implicit:
			s := tls.Client(l.conn, config)
			if err := s.HandshakeContext(ctx); err != nil {
				return err
			}
			l.c = imapclient.New(s, o)
		case startTLS:
			if l.c, err = imapclient.NewStartTLS(l.conn, o); err != nil {
				return err
			}
		default:
			l.c = imapclient.New(l.conn, o)
		}
		if err := l.c.WaitGreeting(); err != nil {
			return err
		}
		l.caps, err = l.c.Capability().Wait()
		return err
	})
	if err != nil {
		return fmt.Errorf("email: connect to %s: %w%s", e.addr, err, hint("imap", e.tls, err))
	}
	err = l.do(ctx, timeout, maxAnswer, func() (err error) {
		if l.caps.Has(imap.AuthCap("PLAIN")) {
			err = l.c.Authenticate(sasl.NewPlainClient("", e.user, e.password))
		} else {
			err = l.c.Login(e.user, e.password).Wait()
		}
		if err != nil {
			return err
		}
		l.caps, err = l.c.Capability().Wait() // there may be more after the login
		return err
	})
	if err != nil {
		return l.refused(e, err)
	}
	return nil
}

// hint returns what may mend an error of a connection.
func hint(key string, e encryption, err error) string {
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &record):
		return fmt.Sprintf(` (the server does not begin with TLS; type: chela config set channels.email.%s.tls '"starttls"')`,
			key)
	case e == none:
		return ""
	case e == startTLS && strings.Contains(err.Error(), "STARTTLS"):
		return fmt.Sprintf(" (if the server has TLS from the beginning: chela config set channels.email.%s.tls true)", key)
	}
	return ""
}

// refused returns the error for a login that failed.
func (l *link) refused(e endpoint, err error) error {
	err = fmt.Errorf("email: log in to %s as %s: %w", e.addr, e.user, err)
	answer, ok := errors.AsType[*imap.Error](err)
	if !ok {
		return err
	}
	err = fmt.Errorf("%w (check channels.email.imap.username and the password; many providers want an app password)", err)
	if answer.Code == imap.ResponseCodeAuthenticationFailed || answer.Code == imap.ResponseCodeAuthorizationFailed ||
		answer.Code == imap.ResponseCodeExpired {
		return &channel.Error{Permanent: true, Err: err}
	}
	// The server does not say why, or has a problem of its own. Repeated logins may lock
	// the account.
	return &channel.Error{RetryAfter: 5 * time.Minute, Err: err}
}

// do calls f, which waits for answers of the server, with limits for the time and the
// bytes of the answers. The connection is closed if they are exceeded, or when ctx ends.
func (l *link) do(ctx context.Context, within time.Duration, most int64, f func() error) error {
	l.conn.left.Store(most)
	var late atomic.Bool
	t := time.AfterFunc(within, func() {
		late.Store(true)
		_ = l.conn.Close()
	})
	defer t.Stop()
	err := f()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case late.Load():
		return fmt.Errorf("the server did not answer within %s", within)
	case l.conn.left.Load() < 0:
		return errTooLong
	}
	return clean(err, l.plain)
}

// cleaned is an error with a text for people.
type cleaned struct {
	text  string
	cause error
}

func (c *cleaned) Error() string { return c.text }
func (c *cleaned) Unwrap() error { return c.cause }

// clean bounds the text of an error of a server and removes a secret from it.
func clean(err error, secret string) error {
	if err == nil {
		return nil
	}
	text := strings.TrimPrefix(strings.TrimPrefix(humanize.OneLine(err.Error()), "imap: "), "smtp: ")
	if len(secret) >= 6 { // a shorter one would match parts of usual words
		text = strings.ReplaceAll(text, secret, "[redacted]")
	}
	return &cleaned{humanize.TruncateBytes(text, 300), err}
}

// choose selects a mailbox.
func (l *link) choose(ctx context.Context, mailbox string, readOnly bool) (data *imap.SelectData, err error) {
	err = l.do(ctx, timeout, maxAnswer, func() error {
		data, err = l.c.Select(mailbox, &imap.SelectOptions{ReadOnly: readOnly}).Wait()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("email: open the mailbox %s: %w", mailbox, err)
	}
	return data, nil
}

// search returns the UIDs of mails that match, in ascending order, at most n: the first
// ones that are larger than after.
func (l *link) search(ctx context.Context, criteria *imap.SearchCriteria, after uint32,
	n int) (uids []uint32, err error) {
	err = l.do(ctx, timeout, maxAnswer, func() error {
		data, err := l.c.UIDSearch(criteria, nil).Wait()
		if err != nil {
			return err
		}
		set, ok := data.All.(imap.UIDSet)
		if !ok {
			return nil
		}
		slices.SortFunc(set, func(a, b imap.UIDRange) int { return int(int64(a.Start) - int64(b.Start)) })
		for _, r := range set {
			for uid := max(uint64(r.Start), uint64(after)+1); uid <= uint64(r.Stop) && len(uids) < n; uid++ {
				uids = append(uids, uint32(uid))
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("email: search: %w", err)
	}
	return uids, nil
}

// quit says goodbye and closes the connection.
func (l *link) quit(ctx context.Context) {
	_ = l.do(ctx, 5*time.Second, maxAnswer, func() error { return l.c.Logout().Wait() })
	l.close()
}

// close closes the connection.
func (l *link) close() {
	l.free()
	_ = l.conn.Close()
	if l.c != nil {
		_ = l.c.Close()
	}
}
