package signal

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/markup"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Limits of what is sent.
const (
	maxFile    = 14 << 20 // signal-cli reads strings of up to 20 million characters
	maxFiles   = 32
	maxContent = 64 << 20 // of all files of a message
)

// receipt is a channel.Receipt.
type receipt = channel.Receipt

// partKey identifies a part for all of its attempts.
type partKey struct {
	chat chela.Peer
	key  string
}

var (
	groupForm    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9+/]{22,100}={0,2}$`) })
	usernameForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[\pL_][\pL\pN_]{2,40}\.[0-9]{2,10}$`)
	})
)

// recipient returns the parameters that name a chat.
func recipient(p chela.Peer) (params, error) {
	if p.Kind == chela.Direct || p.Kind == "" {
		id := strings.TrimPrefix(p.ID, "uuid:")
		if uuid := uuidOf(id); uuid != "" {
			return params{"recipient": []string{uuid}}, nil
		}
		if numberForm().MatchString(id) {
			return params{"recipient": []string{id}}, nil
		}
		if usernameForm().MatchString(id) {
			return params{"recipient": []string{"u:" + id}}, nil
		}
	}
	if (p.Kind == chela.Group || p.Kind == "") && groupForm().MatchString(p.ID) && len(p.ID)%4 == 0 {
		return params{"groupId": p.ID}, nil
	}
	return nil, &channel.Error{Permanent: true,
		Err: fmt.Errorf("signal: %q is no address (want the UUID or the phone number of a person, such as signal:+491701234567, or signal:group:ID)", humanize.TruncateBytes(p.ID, maxName))}
}

// styled adds a text of Markdown to the parameters of a message.
func styled(p params, md string) {
	if strings.TrimSpace(md) == "" {
		return
	}
	text, spans := markup.Signal(md)
	p["message"] = text
	styles := make([]string, 0, len(spans))
	for _, s := range spans {
		styles = append(styles, fmt.Sprintf("%d:%d:%s", s.Start, s.Length, s.Style))
	}
	if len(styles) > 0 {
		p["textStyle"] = styles
	}
}

// Send implements channel.Channel. A part is one message, with its attachments.
func (b *bot) Send(ctx context.Context, part channel.Part) (channel.Receipt, error) {
	chat := part.Address.Peer
	key := partKey{chat, part.Key}
	if r, ok := b.confirmed.Get(key); ok {
		return r, nil
	}
	p, err := recipient(chat)
	if err != nil {
		return channel.Receipt{}, err
	}
	styled(p, part.Text)
	limit := sendTimeout
	if len(part.Media) > 0 {
		limit = mediaTimeout
		if p["attachment"], err = dataURIs(part.Media); err != nil {
			return channel.Receipt{}, err
		}
	} else if p["message"] == nil {
		return channel.Receipt{}, &channel.Error{Permanent: true, Err: errors.New("signal: the message is empty")}
	}
	b.reply(p, chat, part.ReplyTo)
	s, err := b.transmit(ctx, "send", p, limit)
	if err != nil {
		return channel.Receipt{}, err
	}
	r := channel.Receipt{ID: messageID(s.Timestamp, ""), Time: time.UnixMilli(s.Timestamp)}
	if part.Key != "" {
		b.confirmed.Put(key, r)
	}
	shown, _ := p["message"].(string)
	b.seen.Put(messageKey{chat, s.Timestamp},
		written{author: b.c.Account, text: humanize.TruncateBytes(shown, maxRemembered)})
	return r, nil
}

// transmit calls a method that sends something, and logs whom it did not reach.
func (b *bot) transmit(ctx context.Context, method string, p params, limit time.Duration) (sent, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var s sent
	if err := b.call(ctx, method, p, maxAnswer, &s); err != nil {
		return s, err
	}
	if s.Timestamp <= 0 || s.Timestamp >= maxTime {
		return s, fmt.Errorf("signal: the answer to %s has no time: %w", method, channel.ErrAmbiguous)
	}
	missed := 0
	for i := range s.Results {
		if s.Results[i].Type != "SUCCESS" {
			missed++
		}
	}
	if missed > 0 {
		b.env.Log.Warn("a message did not reach all members of a group", "method", method,
			"members", len(s.Results), "missed", missed)
	}
	return s, nil
}

// reply adds what a message is a reply to. A message whose author is not known any more is
// not quoted.
func (b *bot) reply(p params, chat chela.Peer, id string) {
	if id == "" {
		return
	}
	sent, author, ok := b.authorOf(chat, id)
	if !ok {
		b.env.Log.Debug("reply without a quote; the author of the message is not known", "message", id)
		return
	}
	p["quoteTimestamp"], p["quoteAuthor"] = sent, author
	if w, ok := b.seen.Get(messageKey{chat, sent}); ok && w.text != "" {
		p["quoteMessage"] = w.text
	}
}

// authorOf returns the time and the author of a message. The id of a received message has
// them; people may also write the time only.
func (b *bot) authorOf(chat chela.Peer, id string) (sent int64, author string, ok bool) {
	sent, author, ok = parseID(id)
	if !ok {
		return 0, "", false
	}
	if author != "" {
		_, err := recipient(chela.Peer{Kind: chela.Direct, ID: author})
		return sent, author, err == nil
	}
	if w, known := b.seen.Get(messageKey{chat, sent}); known {
		return sent, w.author, true
	}
	return sent, "", false
}

// dataURIs returns attachments as signal-cli accepts them.
func dataURIs(all []chela.Media) ([]string, error) {
	if len(all) > maxFiles {
		return nil, &channel.Error{Permanent: true, Err: fmt.Errorf("signal: %d attachments, more than %d",
			len(all), maxFiles)}
	}
	var out []string
	total := 0
	for i := range all {
		m := &all[i]
		total += len(m.Data)
		if len(m.Data) == 0 || len(m.Data) > maxFile || total > maxContent {
			return nil, &channel.Error{Permanent: true,
				Err: fmt.Errorf("signal: the attachment %q has %d bytes: want 1 to %d, and at most %d in a message", short(m.Name),
					len(m.Data), maxFile, maxContent)}
		}
		kind, _, err := mime.ParseMediaType(m.Type)
		if err != nil || !strings.Contains(kind, "/") || strings.ContainsAny(kind, ";,") {
			kind = "application/octet-stream"
		}
		uri := "data:" + kind
		if name := short(m.Name); name != "" {
			uri += ";filename=" + url.QueryEscape(name)
		}
		out = append(out, uri+";base64,"+base64.StdEncoding.EncodeToString(m.Data))
	}
	return out, nil
}

// own returns the chat and the time of an own message.
func (b *bot) own(a chela.Address, id string) (params, messageKey, error) {
	sent, author, ok := parseID(id)
	if !ok || author != "" && author != b.c.Account {
		return nil, messageKey{},
			&channel.Error{Permanent: true, Err: fmt.Errorf("signal: %q is no message of the account: %w",
				humanize.TruncateBytes(id, maxName), channel.ErrGone)}
	}
	at := messageKey{a.Peer, sent}
	if last, known := b.versions.Get(at); known && last == 0 {
		return nil, at, &channel.Error{Permanent: true, Err: fmt.Errorf("signal: the message %s was deleted: %w", id,
			channel.ErrGone)}
	}
	p, err := recipient(a.Peer)
	return p, at, err
}

// last returns the time of the last version of an own message.
func (b *bot) last(at messageKey) int64 {
	if last, ok := b.versions.Get(at); ok {
		return last
	}
	return at.time
}

// Edit implements channel.Editor. signal-cli does not know which messages exist: an edit of a
// message that was deleted by somebody else shows nothing.
func (b *bot) Edit(ctx context.Context, a chela.Address, id, text string) error {
	p, at, err := b.own(a, id)
	if err != nil {
		return err
	}
	styled(p, text)
	if p["message"] == nil {
		return &channel.Error{Permanent: true, Err: errors.New("signal: the message is empty")}
	}
	p["editTimestamp"] = b.last(at)
	s, err := b.transmit(ctx, "send", p, sendTimeout)
	if err != nil {
		return err
	}
	b.versions.Put(at, s.Timestamp)
	return nil
}

// Delete implements channel.Deleter.
func (b *bot) Delete(ctx context.Context, a chela.Address, id string) error {
	p, at, err := b.own(a, id)
	if err != nil {
		return err
	}
	p["targetTimestamp"] = b.last(at)
	if _, err := b.transmit(ctx, "remoteDelete", p, sendTimeout); err != nil {
		return err
	}
	b.versions.Put(at, 0)
	return nil
}

// Typing implements channel.Typer. The indicator lasts 15 seconds.
func (b *bot) Typing(ctx context.Context, a chela.Address) error {
	p, err := recipient(a.Peer)
	if err != nil {
		return err
	}
	return b.read(ctx, "sendTyping", p, maxAnswer, nil)
}

// React implements channel.Reactor. An account has one reaction to a message.
func (b *bot) React(ctx context.Context, a chela.Address, id, emoji string) error {
	p, err := recipient(a.Peer)
	if err != nil {
		return err
	}
	sent, author, ok := b.authorOf(a.Peer, id)
	if !ok {
		return &channel.Error{Permanent: true,
			Err: fmt.Errorf("signal: the author of the message %q is not known; name the message as TIME:UUID",
				humanize.TruncateBytes(id, maxName))}
	}
	at := messageKey{a.Peer, sent}
	p["targetAuthor"], p["targetTimestamp"], p["emoji"] = author, sent, emoji
	if emoji == "" {
		last, known := b.reactions.Get(at)
		if !known {
			last = "👍" // the apps remove the reaction of a person, whichever it is
		}
		p["emoji"], p["remove"] = last, true
	}
	if _, err := b.transmit(ctx, "sendReaction", p, sendTimeout); err != nil {
		return err
	}
	if emoji != "" {
		b.reactions.Put(at, emoji)
	}
	return nil
}
