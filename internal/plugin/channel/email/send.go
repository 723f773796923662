package email

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/emersion/go-imap/v2"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
)

const (
	maxKeys  = 1000 // of parts that are remembered
	maxBoxes = 10_000
	settle   = time.Minute      // after which a server has stored what it sent
	copyTime = 15 * time.Second // for storing a copy
)

// messageIDOf returns the Message-ID of the mail with a key.
func (b *bot) messageIDOf(address, key string) string {
	if key == "" {
		return rand.Text() + "@" + domainOf(b.c.address)
	}
	sum := sha256.Sum256([]byte(b.c.address + "\x00" + address + "\x00" + key))
	return "chela." + hex.EncodeToString(sum[:16]) + "@" + domainOf(b.c.address)
}

// recipient returns the address of a person.
func recipient(a chela.Address) (string, error) {
	if a.Peer.Kind != chela.Direct && a.Peer.Kind != "" {
		return "", &channel.Error{Permanent: true,
			Err: errors.New("email: there are no groups; send to the address of a person")}
	}
	address, err := normalize(strings.TrimPrefix(a.Peer.ID, "mailto:"))
	if err != nil {
		return "", &channel.Error{Permanent: true, Err: fmt.Errorf("email: %w", err)}
	}
	return address, nil
}

// Send implements channel.Channel. A mail that was sent in this process is not sent again under
// its key. One whose outcome is unknown is looked up by the caller first; see Find.
func (b *bot) Send(ctx context.Context, p channel.Part) (channel.Receipt, error) {
	if ctx.Err() != nil {
		return channel.Receipt{}, ctx.Err()
	}
	to, err := recipient(p.Address)
	if err != nil {
		return channel.Receipt{}, err
	}
	if strings.TrimSpace(p.Text) == "" && len(p.Media) == 0 {
		return channel.Receipt{}, &channel.Error{Permanent: true, Err: errors.New("email: the message is empty")}
	}
	id := b.messageIDOf(to, p.Key)
	if r, ok := b.remembered(id); ok && r.doubt.IsZero() {
		return r.Receipt, nil
	}
	m, threaded, err := b.thread(to, p.ReplyTo)
	if err != nil {
		return channel.Receipt{}, err
	}
	if isID(p.ReplyTo) && p.ReplyTo != m.ID {
		m, threaded = memo{ID: p.ReplyTo, Subject: m.Subject}, true
	}
	l := letter{from: b.c.address, name: b.c.Name, to: to, id: id, text: p.Text, media: p.Media, now: time.Now()}
	if threaded {
		l.answered = &m
	}
	data, err := l.bytes()
	if err != nil {
		return channel.Receipt{}, &channel.Error{Permanent: true, Err: fmt.Errorf("email: %w", err)}
	}
	free, err := b.slot(ctx)
	if err != nil {
		return channel.Receipt{}, err
	}
	defer free()
	if err := b.submit(ctx, to, data); err != nil {
		switch {
		case errors.Is(err, channel.ErrAmbiguous):
			b.remember(id, receipt{doubt: time.Now()})
		case errors.Is(err, context.DeadlineExceeded): // which would say that the outcome is unknown
			err = &channel.Error{Err: fmt.Errorf("email: %s is too slow", b.c.smtp.addr)}
		}
		return channel.Receipt{}, err
	}
	r := channel.Receipt{ID: id, Time: l.now}
	b.remember(id, receipt{Receipt: r})
	b.store(ctx, data)
	return r, nil
}

// remembered returns the outcome of sending a mail.
func (b *bot) remembered(id string) (receipt, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, ok := b.sent[id]
	return r, ok
}

func (b *bot) remember(id string, r receipt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.sent[id]; !ok {
		if len(b.order) >= maxKeys {
			delete(b.sent, b.order[0])
			b.order = b.order[1:]
		}
		b.order = append(b.order, id)
	}
	b.sent[id] = r
}

// store stores a copy of a mail that was sent, unless the server does so. The mail was
// sent in any case, so that an error is only logged.
func (b *bot) store(ctx context.Context, data []byte) {
	if b.c.Sent == sentOff || b.keeps() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, copyTime)
	defer cancel()
	err := func() error {
		l, err := b.connect(ctx)
		if err != nil {
			return err
		}
		defer l.quit(ctx)
		if b.keeps() {
			return nil
		}
		box, err := b.sentBox(ctx, l)
		if err != nil || box == "" {
			return err
		}
		return l.do(ctx, copyTime, maxAnswer, func() error {
			cmd := l.c.Append(box, int64(len(data)), &imap.AppendOptions{Flags: []imap.Flag{imap.FlagSeen}})
			_, werr := cmd.Write(data)
			cerr := cmd.Close()
			_, err := cmd.Wait()
			return cmp.Or(err, werr, cerr)
		})
	}()
	if err != nil {
		b.env.Log.Warn("the mail was sent, but no copy of it was stored", "err", err)
	}
}

// keeps reports whether the server stores what it sends.
func (b *bot) keeps() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.c.Sent == sentServer || b.c.Sent == sentAuto && b.gmail
}

// sentNames are usual names of the mailbox for sent mail.
var sentNames = []string{"sent", "sent items", "sent messages", "sent mail", "inbox.sent",
	"gesendet", "gesendete objekte"}

// sentBox returns the mailbox for sent mail; "": there is none.
func (b *bot) sentBox(ctx context.Context, l *link) (string, error) {
	if b.c.SentMailbox != "" {
		return b.c.SentMailbox, nil
	}
	b.mu.Lock()
	box := b.box
	b.mu.Unlock()
	if box != nil {
		return *box, nil
	}
	found := ""
	err := l.do(ctx, timeout, maxAnswer, func() error {
		var o *imap.ListOptions
		if l.caps.Has(imap.CapSpecialUse) && l.caps.Has(imap.CapListExtended) {
			o = &imap.ListOptions{ReturnSpecialUse: true}
		}
		cmd := l.c.List("", "*", o)
		n := 0
		for m := cmd.Next(); m != nil; m = cmd.Next() {
			if n++; n > maxBoxes {
				continue
			}
			if slices.Contains(m.Attrs, imap.MailboxAttrSent) {
				found = m.Mailbox
			} else if found == "" && slices.Contains(sentNames, strings.ToLower(m.Mailbox)) {
				found = m.Mailbox
			}
		}
		return cmd.Close()
	})
	if err != nil {
		return "", fmt.Errorf("email: list the mailboxes: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.box = &found
	return found, nil
}

// Find implements channel.Finder. It looks for the mail in the mailbox for sent mail. That
// it is not there says something only if the server stores what it sends.
func (b *bot) Find(ctx context.Context, a chela.Address, key string) (channel.Receipt, bool, error) {
	to, err := recipient(a)
	if err != nil || key == "" {
		return channel.Receipt{}, false, err
	}
	id := b.messageIDOf(to, key)
	r, tried := b.remembered(id)
	if tried && r.doubt.IsZero() {
		return r.Receipt, true, nil
	}
	free, err := b.slot(ctx)
	if err != nil {
		return channel.Receipt{}, false, err
	}
	defer free()
	l, err := b.connect(ctx)
	if err != nil {
		return channel.Receipt{}, false, err
	}
	defer l.quit(ctx)
	box, err := b.sentBox(ctx, l)
	if err != nil {
		return channel.Receipt{}, false, err
	}
	if box != "" {
		if _, err := l.choose(ctx, box, true); err != nil {
			return channel.Receipt{}, false, err
		}
		criteria := &imap.SearchCriteria{Header: []imap.SearchCriteriaHeaderField{{Key: "Message-ID", Value: id}}}
		uids, err := l.search(ctx, criteria, 0, 1)
		if err != nil {
			return channel.Receipt{}, false, err
		}
		if len(uids) > 0 {
			found := channel.Receipt{ID: id, Time: time.Now()}
			b.remember(id, receipt{Receipt: found})
			return found, true, nil
		}
	}
	switch {
	case box == "" || !b.keeps():
		return channel.Receipt{}, false, errors.New(
			"email: the mail is not among the sent ones, but the server does not store what it sends (if it does: chela config set channels.email.sent server)")
	case tried && time.Since(r.doubt) < settle:
		return channel.Receipt{}, false, errors.New("email: the mail is not among the sent ones yet")
	}
	return channel.Receipt{}, false, nil
}

// letter is a mail to send.
type letter struct {
	from, name, to, id string
	text               string // Markdown
	media              []chela.Media
	answered           *memo // nil: a new thread
	now                time.Time
}
