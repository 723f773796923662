package telegram

import (
	"context"
	"errors"
	"fmt"
	"html"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
)

// Limits of what is sent.
const (
	maxPhoto    = 10 << 20 // bytes of a picture that is shown as one
	maxFile     = 50 << 20 // bytes of any file
	maxData     = 64       // bytes of a button's data
	maxRemember = 512      // keys of parts
)

// memory holds the messages that parts with recent keys have become, so that a part that is
// sent again continues where it failed. It is lost with the process. A part whose outcome was not
// stored by then is ambiguous: a bot cannot look up what it sent.
type memory struct {
	mu    sync.Mutex
	sent  map[sentKey][]channel.Receipt
	order []sentKey
}

type sentKey struct {
	address chela.Address
	key     string
}

func (m *memory) get(k sentKey) []channel.Receipt {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sent[k]
}

func (m *memory) add(k sentKey, r channel.Receipt) {
	if k.key == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sent == nil {
		m.sent = map[sentKey][]channel.Receipt{}
	}
	if _, known := m.sent[k]; !known {
		if m.order = append(m.order, k); len(m.order) > maxRemember {
			delete(m.sent, m.order[0])
			m.order = m.order[1:]
		}
	}
	m.sent[k] = append(m.sent[k], r)
}

// chatOf returns the parameters that name a chat and a thread. Messages to the general topic
// of a forum have no thread id.
func chatOf(a chela.Address) (params, error) {
	n, err := strconv.ParseInt(a.Peer.ID, 10, 64)
	if err != nil || n == 0 {
		return nil, &channel.Error{Permanent: true,
			Err: fmt.Errorf("telegram: %q is not the number of a chat; write to the bot, and see the id with: chela logs",
				a.Peer.ID)}
	}
	p := params{"chat_id": n}
	if a.Thread == "" || a.Thread == generalTopic {
		return p, nil
	}
	thread, err := strconv.ParseInt(a.Thread, 10, 64)
	if err != nil || thread <= 0 {
		return nil, &channel.Error{Permanent: true, Err: fmt.Errorf("telegram: %q is not the number of a topic", a.Thread)}
	}
	p["message_thread_id"] = thread
	return p, nil
}

// messageID returns the number of a message. The id of an edit begins with that of its
// message.
func messageID(s string) (int64, bool) {
	s, _, _ = strings.Cut(s, ":")
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n > 0
}

// step is one message of a part.
type step struct {
	media   *chela.Media
	text    string // or caption; Markdown
	replyTo string
	buttons [][]channel.Button
}

// steps returns the messages that a part becomes. The text is the caption of the first
// attachment if it fits.
func steps(p channel.Part) []step {
	var out []step
	text := p.Text
	if strings.TrimSpace(text) == "" {
		text = ""
	}
	for i := range p.Media {
		out = append(out, step{media: &p.Media[i]})
	}
	switch {
	case len(out) > 0 && text != "" && visible(render(text)) <= maxCaption && captioned(text):
		out[0].text = text
		out[0].buttons = p.Buttons
	case text != "":
		out = append(out, step{text: text, buttons: p.Buttons})
	case len(out) > 0:
		out[0].buttons = p.Buttons
	}
	if len(out) > 0 {
		out[0].replyTo = p.ReplyTo
	}
	return out
}

// captioned reports whether a text fits as a caption even if its markup is not understood.
func captioned(text string) bool { return size(text) <= maxCaption }

// size returns the number of UTF-16 code units.
func size(s string) int {
	n := 0
	for _, r := range s {
		n += units(r)
	}
	return n
}

// visible returns the length of a text in HTML without the markup. Telegram counts the length of
// a caption after it has parsed the markup.
func visible(text string) int {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "<")
		out.WriteString(before)
		if !found {
			return size(html.UnescapeString(out.String()))
		}
		_, text, _ = strings.Cut(rest, ">")
	}
}

// Send sends a part. If it becomes several messages, the receipt is that of the first.
func (b *bot) Send(ctx context.Context, p channel.Part) (channel.Receipt, error) {
	if err := ctx.Err(); err != nil {
		return channel.Receipt{}, err
	}
	list := steps(p)
	if len(list) == 0 {
		return channel.Receipt{}, &channel.Error{Permanent: true, Err: errors.New("telegram: the message is empty")}
	}
	k := sentKey{p.Address, p.Key}
	done := b.sent.get(k)
	for _, s := range list[min(len(done), len(list)):] {
		r, err := b.sendStep(ctx, p.Address, s)
		if err != nil {
			return channel.Receipt{}, err
		}
		b.sent.add(k, r)
		done = append(done[:len(done):len(done)], r)
	}
	return done[0], nil
}

// sendStep sends one message. A text whose markup Telegram does not accept is sent as it is.
func (b *bot) sendStep(ctx context.Context, to chela.Address, s step) (channel.Receipt, error) {
	in, err := chatOf(to)
	if err != nil {
		return channel.Receipt{}, err
	}
	if n, ok := messageID(s.replyTo); ok {
		in["reply_parameters"] = params{"message_id": n, "allow_sending_without_reply": true}
	}
	if err := addButtons(in, s.buttons); err != nil {
		return channel.Receipt{}, err
	}
	send := func(in params) (channel.Receipt, error) {
		if s.media != nil {
			return b.sendMedia(ctx, in, *s.media)
		}
		return b.create(ctx, "sendMessage", in)
	}
	if s.text == "" {
		return send(in)
	}
	field := "text"
	if s.media != nil {
		field = "caption"
	}
	var r channel.Receipt
	err = withMarkup(in, field, s.text, func() error {
		r, err = send(in)
		return err
	})
	return r, err
}

// withMarkup calls f with a text as HTML, and once more with the plain text if Telegram does
// not accept the markup.
func withMarkup(in params, field, text string, f func() error) error {
	in[field], in["parse_mode"] = render(text), "HTML"
	err := f()
	if says(err, "can't parse entities", "message is too long", "caption is too long", "text is empty",
		"text must be non-empty", "message_too_long", "entities_too_long") {
		in[field] = text
		delete(in, "parse_mode")
		err = f()
	}
	return err
}

// addButtons adds the buttons below a message.
func addButtons(in params, rows [][]channel.Button) error {
	var keyboard [][]params
	for _, row := range rows {
		var line []params
		for _, button := range row {
			key := params{"text": button.Label}
			switch {
			case button.URL != "":
				key["url"] = button.URL
			case len(button.Data) > maxData:
				return &channel.Error{Permanent: true,
					Err: fmt.Errorf("telegram: the data of the button %q has %d bytes, at most %d", button.Label,
						len(button.Data), maxData)}
			default:
				key["callback_data"] = button.Data
			}
			if button.Style != "" {
				key["style"] = button.Style
			}
			line = append(line, key)
		}
		if len(line) > 0 {
			keyboard = append(keyboard, line)
		}
	}
	if len(keyboard) > 0 {
		in["reply_markup"] = params{"inline_keyboard": keyboard}
	}
	return nil
}

// sentMessage is the result of a method that sends a message.
type sentMessage struct {
	ID   int64 `json:"message_id"`
	Date int64 `json:"date"`
}

func (m sentMessage) receipt(method string) (channel.Receipt, error) {
	if m.ID == 0 {
		return channel.Receipt{}, fmt.Errorf("telegram %s: %w: the answer has no message", method, channel.ErrAmbiguous)
	}
	return channel.Receipt{ID: id(m.ID), Time: time.Unix(m.Date, 0)}, nil
}

// create calls a method that sends a message.
func (b *bot) create(ctx context.Context, method string, in params) (channel.Receipt, error) {
	var m sentMessage
	if err := b.api.call(ctx, method, in, &m); err != nil {
		return channel.Receipt{}, err
	}
	return m.receipt(method)
}

// uploadAs returns how a file of a type is shown: the method that sends it and the name of
// the parameter.
func uploadAs(m chela.Media) (method, field string) {
	kind, _, _ := strings.Cut(m.Type, ";")
	switch kind {
	case "image/jpeg", "image/png", "image/webp":
		if len(m.Data) <= maxPhoto {
			return "sendPhoto", "photo"
		}
	case "image/gif":
		return "sendAnimation", "animation"
	case "audio/ogg", "audio/opus":
		return "sendVoice", "voice"
	case "audio/mpeg", "audio/mp4", "audio/x-m4a":
		return "sendAudio", "audio"
	case "video/mp4":
		return "sendVideo", "video"
	}
	return "sendDocument", "document"
}

// sendMedia uploads a file. What Telegram cannot show as what it is, is sent as a document.
func (b *bot) sendMedia(ctx context.Context, in params, m chela.Media) (channel.Receipt, error) {
	name := m.Name
	if name == "" {
		name = "file"
	}
	switch n := len(m.Data); {
	case n == 0:
		return channel.Receipt{},
			&channel.Error{Permanent: true, Err: fmt.Errorf("telegram: the attachment %q has no content", name)}
	case n > maxFile:
		return channel.Receipt{},
			&channel.Error{Permanent: true,
				Err: fmt.Errorf("telegram: the attachment %q has %d bytes; a bot can send at most 50 MB", name, n)}
	}
	method, field := uploadAs(m)
	var sent sentMessage
	err := b.api.upload(ctx, method, in, field, name, m.Data, &sent)
	if method != "sendDocument" && says(err, "photo_", "image_process_failed", "wrong type", "wrong file", "failed to get",
		"voice_messages_forbidden", "video_", "audio_", "animation_") {
		method, field = "sendDocument", "document"
		err = b.api.upload(ctx, method, in, field, name, m.Data, &sent)
	}
	if err != nil {
		return channel.Receipt{}, err
	}
	return sent.receipt(method)
}
