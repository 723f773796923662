package email

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

const (
	sendTime   = 45 * time.Second // for everything until the server has the whole mail
	acceptTime = 50 * time.Second // for its answer
	laterTime  = time.Minute      // after which a refusal for now is tried again
)

// submission is a connection to the SMTP server.
type submission struct {
	c     *smtp.Client
	conn  *boundedConn
	free  func() bool
	plain string
	late  atomic.Bool
	timer *time.Timer
}

// submission makes a connection to the SMTP server and logs in. It ends after sendTime.
func (b *bot) submission(ctx context.Context) (*submission, error) {
	e := b.c.smtp
	conn, free, err := b.dial(ctx, e)
	if err != nil {
		return nil, err
	}
	s := &submission{conn: conn, free: free, plain: e.password}
	s.timer = time.AfterFunc(sendTime, func() {
		s.late.Store(true)
		_ = conn.Close()
	})
	if err := s.open(ctx, e, b.secure(e.host), domainOf(b.c.address)); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// open greets the server and logs in.
func (s *submission) open(ctx context.Context, e endpoint, config *tls.Config, name string) (err error) {
	what := "connect to " + e.addr
	switch e.tls {
	case implicit:
		t := tls.Client(s.conn, config)
		if err := t.HandshakeContext(ctx); err != nil {
			return fmt.Errorf("%w%s", s.failed(ctx, what, err), hint("smtp", e.tls, err))
		}
		s.c = smtp.NewClient(t)
	case startTLS:
		if s.c, err = smtp.NewClientStartTLS(s.conn, config); err != nil {
			return fmt.Errorf("%w%s", s.failed(ctx, what, err), hint("smtp", e.tls, err))
		}
	default:
		s.c = smtp.NewClient(s.conn)
	}
	s.c.CommandTimeout, s.c.SubmissionTimeout = timeout, acceptTime
	if err := s.c.Hello(name); err != nil {
		return s.failed(ctx, what, err)
	}
	var auth sasl.Client
	switch {
	case s.c.SupportsAuth(sasl.Plain):
		auth = sasl.NewPlainClient("", e.user, e.password)
	case s.c.SupportsAuth(sasl.Login):
		auth = sasl.NewLoginClient(e.user, e.password)
	default:
		return nil // a server that wants no login, or says so when it gets a mail
	}
	return s.failed(ctx, "log in to "+e.addr+" as "+e.user, s.c.Auth(auth))
}

// close closes the connection.
func (s *submission) close() {
	s.free()
	s.timer.Stop()
	_ = s.conn.Close()
}

// failed returns the error of a command that was certainly not the end of a mail.
func (s *submission) failed(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	answer, answered := errors.AsType[*smtp.SMTPError](err)
	switch {
	case !answered && ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		return ctx.Err()
	case !answered && (ctx.Err() != nil || s.late.Load()):
		// The error of the context would say that the outcome is unknown.
		return &channel.Error{Err: fmt.Errorf("email: %s: the server is too slow", what)}
	}
	err = fmt.Errorf("email: %s: %w", what, clean(err, s.plain))
	switch {
	case !answered:
		return err
	case answer.Code == 535 || answer.Code == 530 || answer.Code == 534:
		return &channel.Error{Permanent: true,
			Err: fmt.Errorf("%w (check channels.email.smtp.username and the password; many providers want an app password)",
				err)}
	case answer.Temporary():
		return &channel.Error{RetryAfter: laterTime, Err: err}
	}
	return &channel.Error{Permanent: true, Err: err}
}

// submit sends a mail. The error wraps channel.ErrAmbiguous if the server may have
// accepted it.
func (b *bot) submit(ctx context.Context, to string, data []byte) error {
	s, err := b.submission(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	if most, ok := s.c.MaxMessageSize(); ok && most > 0 && len(data) > most {
		return &channel.Error{Permanent: true, Err: fmt.Errorf("email: the mail has %s, the server accepts %s",
			humanize.Bytes(int64(len(data))), humanize.Bytes(int64(most)))}
	}
	if err := s.c.Mail(b.c.address, &smtp.MailOptions{Size: int64(len(data))}); err != nil {
		return s.failed(ctx, "send as "+b.c.address, err)
	}
	if err := s.c.Rcpt(to, nil); err != nil {
		err = s.failed(ctx, "send to "+to, err)
		if answer, ok := errors.AsType[*smtp.SMTPError](err); ok && (answer.Code == 550 || answer.Code == 553) &&
			answer.EnhancedCode[1] == 1 {
			err = &channel.Error{Permanent: true, Err: fmt.Errorf("%w: %w", err, channel.ErrGone)}
		}
		return err
	}
	w, err := s.c.Data()
	if err != nil {
		return s.failed(ctx, "send a mail", err)
	}
	// The server does not accept a mail before it has its end.
	if _, err := w.Write(data); err != nil {
		return s.failed(ctx, "send a mail", err)
	}
	if ctx.Err() != nil || s.late.Load() {
		return s.failed(ctx, "send a mail", errors.New("cut"))
	}
	s.timer.Reset(acceptTime)
	if _, err := w.CloseWithResponse(); err != nil {
		if _, answered := errors.AsType[*smtp.SMTPError](err); answered {
			return s.failed(ctx, "send a mail", err)
		}
		return fmt.Errorf("email: %w: %w", channel.ErrAmbiguous, clean(err, s.plain))
	}
	s.c.CommandTimeout = 5 * time.Second
	_ = s.c.Quit()
	return nil
}
