package matrix

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/markup"
)

// transaction returns the id of the n-th request for a key. The homeserver makes one event
// of all requests with the same id.
func transaction(key string, n int) string {
	if key == "" {
		return rand.Text()
	}
	sum := sha256.Sum256([]byte(key + "\x00" + strconv.Itoa(n)))
	return hex.EncodeToString(sum[:16])
}

// body returns the content of a text message.
func body(md string) map[string]any {
	plain, formatted := markup.Plain(md), markup.HTML(md)
	c := map[string]any{"msgtype": "m.text", "body": plain, "m.mentions": struct{}{}}
	if formatted != "<p>"+strings.ReplaceAll(html.EscapeString(plain), "\n", "<br>")+"</p>" {
		c["format"], c["formatted_body"] = "org.matrix.custom.html", formatted
	}
	return c
}

// relate adds the thread and the reply of a message to its content.
func relate(c map[string]any, thread, replyTo string) {
	switch {
	case thread != "" && replyTo != "":
		c["m.relates_to"] = map[string]any{
			"rel_type":        "m.thread",
			"event_id":        thread,
			"is_falling_back": false,
			"m.in_reply_to":   map[string]any{"event_id": replyTo},
		}
	case thread != "":
		c["m.relates_to"] = map[string]any{
			"rel_type":        "m.thread",
			"event_id":        thread,
			"is_falling_back": true,
			"m.in_reply_to":   map[string]any{"event_id": thread},
		}
	case replyTo != "":
		c["m.relates_to"] = map[string]any{"m.in_reply_to": map[string]any{"event_id": replyTo}}
	}
}

// Send implements channel.Channel.
func (b *bot) Send(ctx context.Context, p channel.Part) (channel.Receipt, error) {
	id, err := b.writable(ctx, p.Address)
	if err != nil {
		return channel.Receipt{}, err
	}
	var contents []map[string]any
	for i, m := range p.Media {
		caption := ""
		if i == 0 {
			caption = p.Text
		}
		c, err := b.attachment(ctx, m, caption)
		if err != nil {
			return channel.Receipt{}, err
		}
		contents = append(contents, c)
	}
	if len(contents) == 0 {
		if strings.TrimSpace(p.Text) == "" {
			return channel.Receipt{}, &channel.Error{Permanent: true, Err: errors.New("matrix: the message is empty")}
		}
		contents = append(contents, body(p.Text))
	}
	var first channel.Receipt
	for i, c := range contents {
		reply := p.ReplyTo
		if i > 0 {
			reply = ""
		}
		relate(c, p.Address.Thread, reply)
		r, err := b.put(ctx, id, "m.room.message", transaction(p.Key, i), c)
		if err != nil {
			return channel.Receipt{}, err
		}
		if i == 0 {
			first = r
		}
	}
	return first, nil
}

// writable returns the room of an address, unless it is encrypted.
func (b *bot) writable(ctx context.Context, a chela.Address) (string, error) {
	id, err := b.roomOf(ctx, a)
	if err != nil {
		return "", err
	}
	r, err := b.known(ctx, id)
	if err != nil {
		return "", err
	}
	if r.encrypted {
		return "", &channel.Error{Permanent: true,
			Err: fmt.Errorf("matrix: the room %s is encrypted, which is not supported; create a room without encryption", id)}
	}
	return id, nil
}

// put sends an event.
func (b *bot) put(ctx context.Context, room, kind, txn string, c map[string]any) (channel.Receipt, error) {
	var out struct {
		ID string `json:"event_id"`
	}
	if err := b.call(ctx, http.MethodPut, path("/_matrix/client/v3/rooms/%s/send/%s/%s", room, kind, txn),
		nil, c, &out); err != nil {
		return channel.Receipt{}, err
	}
	return channel.Receipt{ID: out.ID, Time: time.Now()}, nil
}

// Find implements channel.Finder. The homeserver tells the transaction ids of the events
// that the account sent.
func (b *bot) Find(ctx context.Context, a chela.Address, key string) (channel.Receipt, bool, error) {
	id, err := b.roomOf(ctx, a)
	if err != nil || key == "" {
		return channel.Receipt{}, false, err
	}
	events, err := b.latest(ctx, id)
	if err != nil {
		return channel.Receipt{}, false, err
	}
	for _, e := range events {
		if e.Sender == b.user() && e.Unsigned.Transaction == transaction(key, 0) {
			return channel.Receipt{ID: e.ID, Time: e.time()}, true, nil
		}
	}
	return channel.Receipt{}, false, nil
}

// Edit implements channel.Editor. It asks for the message first, because the homeserver
// accepts an edit of a message that was deleted.
func (b *bot) Edit(ctx context.Context, a chela.Address, id, text string) error {
	room, err := b.writable(ctx, a)
	if err != nil {
		return err
	}
	if _, err := b.event(ctx, room, id); err != nil {
		return err
	}
	c := body(text)
	edit := map[string]any{
		"msgtype": "m.text", "body": "* " + c["body"].(string), "m.mentions": struct{}{}, "m.new_content": c,
		"m.relates_to": map[string]any{"rel_type": "m.replace", "event_id": id},
	}
	_, err = b.put(ctx, room, "m.room.message", transaction("", 0), edit)
	return err
}

// Delete implements channel.Deleter.
func (b *bot) Delete(ctx context.Context, a chela.Address, id string) error {
	room, err := b.roomOf(ctx, a)
	if err != nil {
		return err
	}
	return b.redact(ctx, room, id)
}

func (b *bot) redact(ctx context.Context, room, id string) error {
	return b.call(ctx, http.MethodPut, path("/_matrix/client/v3/rooms/%s/redact/%s/%s", room, id,
		transaction("redact "+id, 0)), nil, struct{}{}, &struct{}{})
}

// Typing implements channel.Typer.
func (b *bot) Typing(ctx context.Context, a chela.Address) error {
	const shown = 10 * time.Second
	room, err := b.roomOf(ctx, a)
	if err != nil {
		return err
	}
	in := map[string]any{"typing": true, "timeout": shown.Milliseconds()}
	return b.call(ctx, http.MethodPut, path("/_matrix/client/v3/rooms/%s/typing/%s", room, b.user()), nil, in, &struct{}{})
}

// React implements channel.Reactor. A reaction is an event, which is redacted to remove it.
func (b *bot) React(ctx context.Context, a chela.Address, id, emoji string) error {
	room, err := b.writable(ctx, a)
	if err != nil {
		return err
	}
	var page struct {
		Chunk []event `json:"chunk"`
	}
	to := path("/_matrix/client/v1/rooms/%s/relations/%s/m.annotation/m.reaction", room, id)
	if err := b.get(ctx, to, url.Values{"limit": {"100"}}, &page); err != nil {
		return err
	}
	for _, e := range page.Chunk {
		if e.Sender != b.user() || len(e.Unsigned.Redacted) > 0 {
			continue
		}
		if emoji != "" && e.key() == emoji {
			return nil
		}
		if err := b.redact(ctx, room, e.ID); err != nil && !errors.Is(err, channel.ErrGone) {
			return err
		}
	}
	if emoji == "" {
		return nil
	}
	c := map[string]any{"m.relates_to": map[string]any{"rel_type": "m.annotation", "event_id": id, "key": emoji}}
	_, err = b.put(ctx, room, "m.reaction", transaction("", 0), c)
	return err
}
