package irc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/markup"
	"github.com/chela-ai/chela/internal/kit/backoff"
)

// Send implements channel.Channel.
func (b *bot) Send(ctx context.Context, p channel.Part) (channel.Receipt, error) {
	if ctx.Err() != nil {
		return channel.Receipt{}, ctx.Err()
	}
	target, err := b.target(p.Address)
	if err != nil {
		return channel.Receipt{}, err
	}
	lines := split(markup.Plain(p.Text))
	for _, m := range p.Media {
		lines = append(lines, split("["+m.Name+" was not sent: IRC carries no files]")...)
	}
	if len(lines) == 0 {
		return channel.Receipt{}, permanent("the message is empty")
	}
	key := p.Key
	if key == "" {
		key = rand.Text()
	}
	for at := b.confirmed(key); at < len(lines); {
		batch := lines[at:min(len(lines), at+burst)]
		if err := b.batch(ctx, target, batch); err != nil {
			return channel.Receipt{}, err
		}
		at += len(batch)
		b.note(key, at)
	}
	return channel.Receipt{ID: key, Time: time.Now()}, nil
}

// target returns the name to which the messages of an address are sent.
func (b *bot) target(a chela.Address) (string, error) {
	name := a.Peer.ID
	if a.Peer.Kind == chela.Direct {
		b.mu.Lock()
		nick := b.nicks[name]
		b.mu.Unlock()
		if nick != "" {
			name = nick
		}
		name, _, _ = strings.Cut(name, "!")
	}
	if !word(name) || a.Peer.Kind == chela.Direct && isChannel(name) {
		return "", permanent("%q is no nick and no channel", name)
	}
	return name, nil
}

// confirmed returns how many lines of a part were confirmed.
func (b *bot) confirmed(key string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.done[key]
}

func (b *bot) note(key string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.done[key]; !ok {
		if len(b.order) >= maxKeys {
			delete(b.done, b.order[0])
			b.order = b.order[1:]
		}
		b.order = append(b.order, key)
	}
	b.done[key] = n
}

// batch sends a few lines and waits until the server has read them.
func (b *bot) batch(ctx context.Context, target string, lines []string) error {
	token := rand.Text()
	s := &sending{target: lower(target), pong: make(chan struct{})}
	b.mu.Lock()
	c := b.conn
	if c != nil {
		c.pending[token] = s
	}
	b.mu.Unlock()
	if c == nil {
		return &channel.Error{Err: errors.New("irc: not connected"), RetryAfter: 5 * time.Second}
	}
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(c.pending, token)
	}()
	for i, l := range lines {
		if err := b.pause(ctx); err != nil {
			if i > 0 {
				return fmt.Errorf("%w: %w", channel.ErrAmbiguous, err)
			}
			return err
		}
		if err := c.line("PRIVMSG %s :%s", target, l); err != nil {
			return fmt.Errorf("irc: %w: %w", channel.ErrAmbiguous, err)
		}
	}
	if err := c.line("PING :%s", token); err != nil {
		return fmt.Errorf("irc: %w: %w", channel.ErrAmbiguous, err)
	}
	t := time.NewTimer(timeout)
	defer t.Stop()
	select {
	case <-s.pong:
		b.mu.Lock()
		defer b.mu.Unlock()
		return s.err
	case <-c.ended:
		return fmt.Errorf("irc: %w", channel.ErrAmbiguous)
	case <-t.C:
		return fmt.Errorf("irc: %w: the server does not answer", channel.ErrAmbiguous)
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", channel.ErrAmbiguous, ctx.Err())
	}
}

// pause waits until a line may be sent: a burst at once, then one for each second.
func (b *bot) pause(ctx context.Context) error {
	b.mu.Lock()
	now := time.Now()
	if b.slot.Before(now) {
		b.slot = now
	}
	wait := b.slot.Sub(now) - (burst-1)*time.Second
	b.slot = b.slot.Add(time.Second)
	b.mu.Unlock()
	if wait <= 0 {
		return nil
	}
	return backoff.Sleep(ctx, wait)
}

// confirm notes that the server has read the lines before a PING.
func (r *reader) confirm(token string) {
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	if s := r.c.pending[token]; s != nil {
		delete(r.c.pending, token)
		close(s.pong)
	}
}

// refused notes that the server refused a message.
func (r *reader) refused(l line) {
	err := permanent("the server refused a message to %s: %s %s", l.arg(1), l.command, clip(l.arg(2)))
	if l.command == "401" || l.command == "403" {
		err = permanent("%s does not exist: %w", l.arg(1), channel.ErrGone)
	}
	r.b.mu.Lock()
	defer r.b.mu.Unlock()
	for _, s := range r.c.pending {
		if s.target == lower(l.arg(1)) {
			s.err = err
		}
	}
}
