package email

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
)

// Name is the name of the channel.
const Name = "email"

// maxText is the maximum length of a mail's text, in both directions.
const maxText = 100_000

// Factory returns the factory of the channel.
func Factory() channel.Factory {
	return channel.Factory{
		Name: Name, Aliases: []string{"mail"},
		Limits: channel.Limits{Text: maxText},
		Can:    (*bot)(nil),
		Setup: []channel.Setting{
			{Key: "address", Title: "e-mail address of the assistant", Help: "Use a mailbox of its own.",
				Env: "EMAIL_ADDRESS", Required: true},
			{Key: "password", Title: "password of the mailbox", Env: "EMAIL_PASSWORD", Secret: true, Required: true},
			{Key: "imap.host", Title: "IMAP server, such as imap.example.org", Required: true},
			{Key: "smtp.host", Title: "SMTP server, such as smtp.example.org", Required: true},
		},
		Hints: []string{
			"Each message is a mail of its own: write one complete answer. Mail shows Markdown, including tables and code blocks. There are no buttons.",
		},
		Identity: identity,
		New: func(env channel.Env, account string, raw json.RawMessage) (channel.Channel, error) {
			c, err := parse(env, account, raw)
			if err != nil {
				return nil, err
			}
			return newBot(env, account, c), nil
		},
	}
}

// bot is an account.
type bot struct {
	env     channel.Env
	c       config
	account chela.AccountID
	roots   *x509.CertPool // nil: those of the system

	slots chan struct{} // of connections for one purpose each, beside that of Run

	mu    sync.Mutex
	state *state             // nil: not loaded
	sent  map[string]receipt // of mails that were sent, or may have been, by the keys of their parts and their addresses
	order []string           // the keys of sent, oldest first
	box   *string            // the mailbox for sent mail; nil: not known yet
	gmail bool               // the server is Gmail, which stores what it sends

	// Used by Run only.
	trouble uint32 // the UID of the mail that could not be read
	tries   int    // how often
	dropped int    // mails that were not passed on
}

// receipt is the outcome of sending a mail.
type receipt struct {
	channel.Receipt
	doubt time.Time // when the connection broke; zero: it was confirmed
}

var (
	_ channel.Channel = (*bot)(nil)
	_ channel.Prober  = (*bot)(nil)
	_ channel.Finder  = (*bot)(nil)
	_ channel.Fetcher = (*bot)(nil)
)

const (
	timeout  = 30 * time.Second // of a connection or a command
	maxSlots = 3
)

func newBot(env channel.Env, account string, c config) *bot {
	return &bot{
		env:     env,
		c:       c,
		account: chela.AccountID(account),
		slots:   make(chan struct{}, maxSlots),
		sent:    map[string]receipt{},
	}
}

// slot waits until a further connection may be made. The caller calls free afterwards.
func (b *bot) slot(ctx context.Context) (free func(), err error) {
	select {
	case b.slots <- struct{}{}:
		return func() { <-b.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Probe checks that both servers accept the credentials.
func (b *bot) Probe(ctx context.Context) error {
	free, err := b.slot(ctx)
	if err != nil {
		return err
	}
	defer free()
	l, err := b.connect(ctx)
	if err != nil {
		return err
	}
	_, err = l.choose(ctx, b.c.Mailbox, true)
	l.quit(ctx)
	if err != nil {
		return err
	}
	s, err := b.submission(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	return s.failed(ctx, "log out", s.c.Quit())
}
