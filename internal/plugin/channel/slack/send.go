package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/chunk"
)

const (
	metadataType = "chela_part" // event_type of the metadata of a message
	maxSection   = 3000         // characters of a section block
	maxBlocks    = 50           // of a message
	maxRow       = 25           // buttons in an actions block
	maxLabel     = 75           // characters of a button
	maxPages     = 10           // pages that are read to find a message
	pageSize     = 200
	findBack     = 25 * time.Hour // age of a message that is looked for; parts expire earlier
)

// progress is what is known of the messages of a part. A part becomes a message with its
// files, a message with its text, or both. It is in memory only. After a
// restart, a message is found by the key in its metadata; see Find.
type progress struct {
	files, text step
	ids         []string // of the uploaded files, in the order of the part's media
	captioned   bool     // the text is the caption of the files
}

// step is what is known of a message.
type step struct {
	receipt   channel.Receipt // its ID is empty if the message is not confirmed
	uncertain bool            // it may have been sent
}

// progressOf returns what is known of a part.
func (b *bot) progressOf(a chela.Address, key string) *progress {
	if key == "" {
		return &progress{}
	}
	k := a.Peer.ID + " " + a.Thread + " " + key
	p, ok := b.sent.Get(k)
	if !ok {
		p = &progress{}
		b.sent.Put(k, p)
	}
	return p
}

// Send sends a part. Its files are one message, with the text as their caption unless there
// are buttons.
func (b *bot) Send(ctx context.Context, p channel.Part) (channel.Receipt, error) {
	if p.Text == "" && len(p.Media) == 0 {
		return channel.Receipt{}, &channel.Error{Permanent: true, Err: errors.New("slack: the message is empty")}
	}
	if err := ctx.Err(); err != nil {
		return channel.Receipt{}, err
	}
	conv, err := b.conversationOf(ctx, p.Address)
	if err != nil {
		return channel.Receipt{}, err
	}
	pr := b.progressOf(p.Address, p.Key)
	text := mrkdwn(p.Text)
	if len(p.Media) > 0 {
		pr.captioned = len(p.Buttons) == 0 && len(text) <= maxText
		caption := ""
		if pr.captioned {
			caption = text
		}
		if err := b.once(ctx, &pr.files, conv, p.Address, func(m message) bool { return hasFile(m, pr.ids) },
			func() (string, error) {
				return b.share(ctx, pr, conv, p, caption)
			}); err != nil {
			return channel.Receipt{}, err
		}
		if pr.captioned || p.Text == "" {
			return pr.files.receipt, nil
		}
	}
	err = b.once(ctx, &pr.text, conv, p.Address, func(m message) bool { return m.hasKey(p.Key) }, func() (string, error) {
		return b.post(ctx, conv, p, text)
	})
	if err != nil {
		return channel.Receipt{}, err
	}
	if len(p.Media) > 0 {
		return pr.files.receipt, nil
	}
	return pr.text.receipt, nil
}

// once sends a message unless it is confirmed already. If an earlier attempt may have sent
// it, it is looked up first.
func (b *bot) once(ctx context.Context, s *step, conv string, a chela.Address, is func(message) bool,
	send func() (string, error)) error {
	if s.receipt.ID != "" {
		return nil
	}
	if s.uncertain {
		m, found, err := b.find(ctx, conv, a.Thread, is)
		if err != nil {
			return err
		}
		if s.uncertain = false; found {
			s.receipt = channel.Receipt{ID: m.TS, Time: when(m.TS)}
			return nil
		}
	}
	id, err := send()
	if err != nil {
		s.uncertain = errors.Is(err, channel.ErrAmbiguous)
		return err
	}
	s.receipt = channel.Receipt{ID: id, Time: when(id)}
	return nil
}

// post posts a text with its buttons, and returns the timestamp.
func (b *bot) post(ctx context.Context, conv string, p channel.Part, text string) (string, error) {
	params := url.Values{"channel": {conv}, "text": {text}, "unfurl_links": {"false"}, "parse": {"none"}}
	if p.Address.Thread != "" {
		params.Set("thread_ts", p.Address.Thread)
	}
	if p.Key != "" {
		params.Set("metadata",
			encode(map[string]any{"event_type": metadataType, "event_payload": map[string]string{"key": p.Key}}))
	}
	if blocks := blocksOf(p); len(blocks) > 0 {
		params.Set("blocks", encode(blocks))
	}
	var r struct {
		TS string `json:"ts"`
	}
	if err := b.call(ctx, "chat.postMessage", params, &r); err != nil {
		return "", err
	}
	if r.TS == "" {
		return "", fmt.Errorf("slack: chat.postMessage: the answer has no timestamp: %w", channel.ErrAmbiguous)
	}
	return r.TS, nil
}

// encode returns JSON.
func encode(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of texts are always JSON
	}
	return string(data)
}

// blocksOf returns the blocks of a part with buttons: its text in sections, then a row of
// buttons each.
func blocksOf(p channel.Part) []any {
	var rows []any
	n := 0
	for _, row := range p.Buttons {
		var elements []any
		for _, button := range row {
			if len(elements) == maxRow {
				break
			}
			label := []rune(button.Label)
			e := map[string]any{
				"type": "button", "action_id": "chela_" + strconv.Itoa(n),
				"text": map[string]any{"type": "plain_text", "text": string(label[:min(len(label), maxLabel)])},
			}
			n++
			switch {
			case button.URL != "":
				e["url"] = button.URL
			default:
				e["value"] = button.Data
			}
			switch button.Style {
			case channel.Primary, channel.Success:
				e["style"] = "primary"
			case channel.Danger:
				e["style"] = "danger"
			}
			elements = append(elements, e)
		}
		if len(elements) > 0 {
			rows = append(rows, map[string]any{"type": "actions", "elements": elements})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	var blocks []any
	for _, piece := range chunk.Split(p.Text, chunk.Options{Limit: maxSection, Size: size}) {
		// Markup may make a piece longer than the limit.
		for _, text := range chunk.Split(mrkdwn(piece), chunk.Options{Limit: maxSection}) {
			if text = strings.TrimSpace(text); text != "" {
				blocks = append(blocks, map[string]any{"type": "section", "text": map[string]any{"type": "mrkdwn", "text": text}})
			}
		}
	}
	blocks = append(blocks, rows...)
	return blocks[:min(len(blocks), maxBlocks)]
}

// Edit changes the text of a message.
func (b *bot) Edit(ctx context.Context, a chela.Address, id, text string) error {
	conv, err := b.conversationOf(ctx, a)
	if err != nil {
		return err
	}
	return b.call(ctx, "chat.update", url.Values{"channel": {conv}, "ts": {id}, "text": {mrkdwn(text)}, "parse": {"none"}},
		nil)
}

// Delete deletes a message.
func (b *bot) Delete(ctx context.Context, a chela.Address, id string) error {
	conv, err := b.conversationOf(ctx, a)
	if err != nil {
		return err
	}
	return b.call(ctx, "chat.delete", url.Values{"channel": {conv}, "ts": {id}}, nil)
}

// hasKey reports whether a message is a part with a key.
func (m message) hasKey(key string) bool {
	return key != "" && m.Metadata.Type == metadataType && m.Metadata.Payload.Key == key
}

// hasFile reports whether a message contains one of the files.
func hasFile(m message, ids []string) bool {
	for _, f := range m.Files {
		for _, id := range ids {
			if f.ID == id {
				return true
			}
		}
	}
	return false
}

// Find looks up the message of a part. Files without a text of their own have no metadata:
// they are known by their ids, as long as this process runs.
func (b *bot) Find(ctx context.Context, a chela.Address, key string) (channel.Receipt, bool, error) {
	conv, err := b.conversationOf(ctx, a)
	if err != nil {
		return channel.Receipt{}, false, err
	}
	pr := b.progressOf(a, key)
	m, found, err := b.find(ctx, conv, a.Thread,
		func(m message) bool { return m.hasKey(key) || pr.captioned && hasFile(m, pr.ids) })
	if errors.Is(err, channel.ErrGone) {
		return channel.Receipt{}, false, nil
	}
	if err != nil || !found {
		return channel.Receipt{}, false, err
	}
	r := channel.Receipt{ID: m.TS, Time: when(m.TS)}
	if pr.files.receipt.ID != "" {
		r = pr.files.receipt // the first message of the part
	}
	return r, true, nil
}

// find looks up a message of the account in a conversation or a thread of it.
func (b *bot) find(ctx context.Context, conv, thread string, is func(message) bool) (message, bool, error) {
	if err := b.known(ctx); err != nil {
		return message{}, false, err
	}
	oldest := strconv.FormatInt(time.Now().Add(-findBack).Unix(), 10) + ".000000"
	var found *message
	more, err := b.pages(ctx, conv, thread, url.Values{"oldest": {oldest}, "limit": {strconv.Itoa(pageSize)}},
		func(m message) bool {
			if b.ours(m) && is(m) {
				found = &m
			}
			return found == nil
		})
	switch {
	case err != nil:
		return message{}, false, err
	case found != nil:
		return *found, true, nil
	case more:
		return message{}, false,
			fmt.Errorf("slack: the conversation has more than %d new messages: the message was not found among them",
				maxPages*pageSize)
	}
	return message{}, false, nil
}

// ours reports whether the account wrote a message.
func (b *bot) ours(m message) bool {
	me := b.me()
	return m.User == me.User || m.BotID != "" && m.BotID == me.Bot
}

// known makes sure that it is known who the account is.
func (b *bot) known(ctx context.Context) error {
	if b.self.Load() != nil {
		return nil
	}
	return certain(b.login(ctx))
}

// pages passes the messages of a conversation, newest first, or of a thread, oldest first,
// to f until it returns false. It reports whether there are more than it read.
func (b *bot) pages(ctx context.Context, conv, thread string, params url.Values,
	f func(message) bool) (more bool, err error) {
	method := "conversations.history"
	params.Set("channel", conv)
	params.Set("include_all_metadata", "true")
	if thread != "" {
		method = "conversations.replies"
		params.Set("ts", thread)
	}
	for range maxPages {
		var r struct {
			Messages []message `json:"messages"`
		}
		next, err := b.read(ctx, method, params, &r)
		if err != nil {
			return false, err
		}
		for _, m := range r.Messages {
			if !f(m) {
				return false, nil
			}
		}
		if next == "" {
			return false, nil
		}
		params.Set("cursor", next)
	}
	return true, nil
}
