package discord

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"mime/multipart"
	"net/textproto"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/backoff"
	"github.com/chela-ai/chela/internal/kit/chunk"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

const (
	maxFiles   = 10 // of a message
	maxRow     = 5  // buttons
	maxRows    = 5
	maxLabel   = 80 // runes
	maxURL     = 512
	customMark = "|" // after the number of a button in its id, which makes it unique
	attempts   = 3   // of a request whose outcome is unknown
)

// chat returns the channel of an address.
func (b *bot) chat(ctx context.Context, a chela.Address) (string, error) {
	id := a.Peer.ID
	if a.Thread != "" {
		id = a.Thread
	}
	if !snowflake(id) {
		return "", gone("chat", id)
	}
	if a.Peer.Kind != chela.Direct || a.Thread != "" {
		return id, nil
	}
	b.mu.Lock()
	at, ok := b.direct.get(id)
	b.mu.Unlock()
	if ok {
		return at, nil
	}
	var p room
	if err := b.do(ctx, "POST", "/users/@me/channels", map[string]string{"recipient_id": id}, &p); err != nil {
		if errors.Is(err, channel.ErrAmbiguous) { // a repeated request returns the same channel
			err = &channel.Error{Err: errors.New("discord: open a direct chat: " + err.Error())}
		}
		return "", err
	}
	if !snowflake(p.ID) {
		return "", errors.New("discord: the channel of the direct messages has no id")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.direct.put(id, p.ID)
	return p.ID, nil
}

// onChat calls a method of the API for a message of a chat; id "": for the chat.
func (b *bot) onChat(ctx context.Context, a chela.Address, id, method, path string, in, out any) error {
	if id != "" && !snowflake(id) {
		return gone("message", id)
	}
	at, err := b.chat(ctx, a)
	if err != nil {
		return err
	}
	return b.do(ctx, method, "/channels/"+at+path, in, out)
}

// draft is a message to be sent.
type draft struct {
	Content    string      `json:"content,omitempty"`
	Nonce      string      `json:"nonce,omitempty"`
	Enforce    bool        `json:"enforce_nonce,omitempty"`
	Mentions   mentions    `json:"allowed_mentions"`
	Reference  *reference  `json:"message_reference,omitempty"`
	Components []actionRow `json:"components,omitempty"`
	Files      []file      `json:"attachments,omitempty"`
	Poll       *pollDraft  `json:"poll,omitempty"`
	media      []chela.Media
}

// mentions says who is notified.
type mentions struct {
	Parse []string `json:"parse"`
}

// people are the only ones who are notified: not roles, and not everybody.
var people = [...]string{"users"}

// reference is the message to which another one is a reply.
type reference struct {
	ID   string `json:"message_id"`
	Fail bool   `json:"fail_if_not_exists"`
}

// file describes a part of a request with files.
type file struct {
	ID   int    `json:"id"`
	Name string `json:"filename"`
}

// actionRow is a row of buttons.
type actionRow struct {
	Type       int           `json:"type"`
	Components []buttonOfRow `json:"components"`
}

// buttonOfRow is a button.
type buttonOfRow struct {
	Type   int    `json:"type"`
	Style  int    `json:"style"`
	Label  string `json:"label"`
	Custom string `json:"custom_id,omitempty"`
	URL    string `json:"url,omitempty"`
}

// Send implements channel.Channel.
func (b *bot) Send(ctx context.Context, p channel.Part) (channel.Receipt, error) {
	if err := ctx.Err(); err != nil {
		return channel.Receipt{}, err
	}
	drafts := draftsOf(p)
	if len(drafts) == 0 {
		return channel.Receipt{}, refused("the message is empty")
	}
	at, err := b.chat(ctx, p.Address)
	if err != nil {
		return channel.Receipt{}, err
	}
	return b.post(ctx, at, p.Key, drafts)
}

// draftsOf returns the messages that a part becomes.
func draftsOf(p channel.Part) []draft {
	var out []draft
	texts := chunk.Split(render(p.Text), chunk.Options{Limit: maxText})
	for media := p.Media; len(media) > 0; {
		n := min(len(media), maxFiles)
		d := draft{media: media[:n]}
		for i, m := range d.media {
			d.Files = append(d.Files, file{i, fileName(m, i)})
		}
		if len(out) == 0 && len(texts) > 0 {
			d.Content, texts = texts[0], texts[1:]
		}
		out, media = append(out, d), media[n:]
	}
	for _, text := range texts {
		if strings.TrimSpace(text) != "" {
			out = append(out, draft{Content: text})
		}
	}
	if len(out) == 0 {
		return nil
	}
	if id, _, _ := strings.Cut(p.ReplyTo, ":"); snowflake(id) { // without the mark of an edit
		out[0].Reference = &reference{ID: id}
	}
	out[len(out)-1].Components = rows(p.Buttons)
	return out
}

// fileName returns the name of an attachment, without a path.
func fileName(m chela.Media, i int) string {
	name := m.Name[strings.LastIndexAny(m.Name, `/\`)+1:]
	name = truncate(humanize.OneLine(name), 100)
	if name == "" {
		name = fmt.Sprintf("file%d", i+1)
	}
	return name
}

// rows returns buttons as Discord has them: at most 5 in a row, in at most 5 rows.
func rows(buttons [][]channel.Button) []actionRow {
	var out []actionRow
	n := 0
	for _, row := range buttons {
		r := actionRow{Type: 1}
		for _, button := range row {
			n++
			c := buttonOfRow{Type: 2, Style: 2, Label: truncate(button.Label, maxLabel)}
			switch button.Style {
			case channel.Primary:
				c.Style = 1
			case channel.Success:
				c.Style = 3
			case channel.Danger:
				c.Style = 4
			}
			switch u, err := url.Parse(button.URL); {
			case button.URL == "" && button.Data != "":
				c.Custom = fmt.Sprint(n) + customMark + button.Data
			case button.URL == "" || err != nil || u.Scheme != "http" && u.Scheme != "https" || len(button.URL) > maxURL:
				continue
			default:
				c.Style, c.URL = 5, button.URL
			}
			if c.Label == "" {
				c.Label = truncate(button.Data+button.URL, maxLabel)
			}
			if len(r.Components) == maxRow {
				out, r = append(out, r), actionRow{Type: 1}
			}
			r.Components = append(r.Components, c)
		}
		if len(r.Components) > 0 {
			out = append(out, r)
		}
	}
	return out[:min(len(out), maxRows)]
}

// post sends messages to a channel, and returns the receipt of the first one. Those that
// were confirmed before under the same key are not sent again.
func (b *bot) post(ctx context.Context, at, key string, drafts []draft) (channel.Receipt, error) {
	var first channel.Receipt
	for i, d := range drafts {
		d.Mentions.Parse = people[:]
		if key != "" {
			d.Nonce, d.Enforce = nonce(at, key, i), true
		}
		b.mu.Lock()
		r, known := b.sent.get(d.Nonce)
		b.mu.Unlock()
		if !known {
			var err error
			if r, err = b.create(ctx, at, d); err != nil {
				return channel.Receipt{}, err
			}
		}
		if i == 0 {
			first = r
		}
	}
	return first, nil
}

// nonce returns the nonce of the n-th message of a key.
func nonce(at, key string, n int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", at, key, n))
	return base64.RawURLEncoding.EncodeToString(sum[:18]) // 24 characters; Discord allows 25
}

// create sends one message. A request with a nonce whose outcome is unknown is repeated.
func (b *bot) create(ctx context.Context, at string, d draft) (channel.Receipt, error) {
	in, err := d.body()
	if err != nil {
		return channel.Receipt{}, err
	}
	var m message
	for attempt := 1; ; attempt++ {
		err = b.do(ctx, "POST", "/channels/"+at+"/messages", in, &m)
		if !errors.Is(err, channel.ErrAmbiguous) || d.Nonce == "" || attempt == attempts {
			break
		}
		if serr := backoff.Sleep(ctx, time.Duration(attempt)*time.Second); serr != nil {
			return channel.Receipt{}, err
		}
	}
	if err != nil {
		return channel.Receipt{}, err
	}
	if !snowflake(m.ID) {
		return channel.Receipt{}, fmt.Errorf("discord: the sent message has no id: %w", channel.ErrAmbiguous)
	}
	r := channel.Receipt{ID: m.ID, Time: m.Time}
	if d.Nonce != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.sent.put(d.Nonce, r)
	}
	return r, nil
}

// body returns the content of the request that creates the message.
func (d *draft) body() (body, error) {
	in, err := jsonBody(d)
	if err != nil || len(d.media) == 0 {
		return in, err
	}
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf)
	part := func(name, file, kind string, data []byte) error {
		h := textproto.MIMEHeader{"Content-Type": {kind}}
		h.Set("Content-Disposition", multipart.FileContentDisposition(name, file))
		if file == "" {
			h.Set("Content-Disposition", `form-data; name="`+name+`"`)
		}
		out, err := w.CreatePart(h)
		if err == nil {
			_, err = out.Write(data)
		}
		return err
	}
	err = part("payload_json", "", "application/json", in.data)
	for i, m := range d.media {
		kind := m.Type
		if kind == "" || strings.ContainsFunc(kind, func(r rune) bool { return r < ' ' || r > '~' }) {
			kind = "application/octet-stream"
		}
		err = errors.Join(err, part(fmt.Sprintf("files[%d]", i), d.Files[i].Name, kind, m.Data))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return body{}, refused("%w", err)
	}
	return body{w.FormDataContentType(), buf.Bytes(), fileTimeout}, nil
}

// Edit implements channel.Editor. A text that becomes too long as Discord's Markdown is
// shown as it is.
func (b *bot) Edit(ctx context.Context, a chela.Address, id, text string) error {
	shown := render(text)
	if utf8.RuneCountInString(shown) > maxText {
		shown = text
	}
	if utf8.RuneCountInString(shown) > maxText {
		return refused("the text has more than %d characters", maxText)
	}
	return b.onChat(ctx, a, id, "PATCH", "/messages/"+id,
		map[string]any{"content": shown, "allowed_mentions": mentions{people[:]}}, nil)
}

// Delete implements channel.Deleter.
func (b *bot) Delete(ctx context.Context, a chela.Address, id string) error {
	return b.onChat(ctx, a, id, "DELETE", "/messages/"+id, nil, nil)
}

// Typing implements channel.Typer.
func (b *bot) Typing(ctx context.Context, a chela.Address) error {
	return b.onChat(ctx, a, "", "POST", "/typing", nil, nil)
}

// Pin implements channel.Pinner.
func (b *bot) Pin(ctx context.Context, a chela.Address, id string, pinned bool) error {
	method := "PUT"
	if !pinned {
		method = "DELETE"
	}
	return b.onChat(ctx, a, id, method, "/messages/pins/"+id, nil, nil)
}

// React implements channel.Reactor. Another reaction of the account is replaced.
func (b *bot) React(ctx context.Context, a chela.Address, id, emoji string) error {
	emoji = customEmoji(emoji)
	key := a.Peer.ID + "/" + a.Thread + "/" + id
	b.mu.Lock()
	old, known := b.reacted.get(key)
	b.mu.Unlock()
	own := []string{old}
	if !known && emoji == "" {
		var err error
		if own, err = b.reactions(ctx, a, id); err != nil {
			return err
		}
	}
	for _, e := range own {
		if e == "" || e == emoji {
			continue
		}
		if err := b.onChat(ctx, a, id, "DELETE", reaction(id, e), nil, nil); err != nil {
			return err
		}
	}
	if emoji != "" {
		if err := b.onChat(ctx, a, id, "PUT", reaction(id, emoji), nil, nil); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reacted.put(key, emoji)
	return nil
}

// reaction returns the path of the account's reaction.
func reaction(id, emoji string) string {
	return "/messages/" + id + "/reactions/" + url.PathEscape(emoji) + "/@me"
}

// customEmoji returns an emoji as requests name it: <:name:1> is name:1.
func customEmoji(s string) string {
	if in, ok := strings.CutPrefix(strings.TrimSuffix(s, ">"), "<"); ok && strings.HasSuffix(s, ">") {
		return strings.TrimPrefix(strings.TrimPrefix(in, "a"), ":")
	}
	return s
}

// reactions returns the reactions of the account on a message.
func (b *bot) reactions(ctx context.Context, a chela.Address, id string) (own []string, err error) {
	var m struct {
		Reactions []struct {
			Me    bool `json:"me"`
			Emoji struct {
				ID   string `json:"id"`
				Name string `json:"name"`
			} `json:"emoji"`
		} `json:"reactions"`
	}
	if err := b.onChat(ctx, a, id, "GET", "/messages/"+id, nil, &m); err != nil {
		return nil, err
	}
	for _, r := range m.Reactions {
		switch {
		case r.Me && r.Emoji.ID != "":
			own = append(own, r.Emoji.Name+":"+r.Emoji.ID)
		case r.Me:
			own = append(own, r.Emoji.Name)
		}
	}
	return own, nil
}
