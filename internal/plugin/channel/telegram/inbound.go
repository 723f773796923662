package telegram

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/chela-ai/chela/internal/core/chela"
)

// generalTopic is the id of the topic of a forum that always exists. Its messages have no
// thread id, and a message that is sent to it must have none.
const generalTopic = "1"

// inbound returns the message of an update, or of the updates of an album. It reports false
// if there is nothing to be passed on.
func (b *bot) inbound(group []*update) (chela.Inbound, bool) {
	u := group[0]
	if u.Callback != nil {
		return b.pressed(u.Callback)
	}
	if u.Reaction != nil {
		return b.reacted(u.Reaction)
	}
	m, edited := u.message()
	if m != nil && m.MigratedTo != 0 && m.Chat.ID != 0 {
		b.env.Moved(id(m.Chat.ID), id(m.MigratedTo))
		return chela.Inbound{}, false
	}
	if m == nil || m.Chat.ID == 0 || b.own(m) {
		return chela.Inbound{}, false
	}
	in := chela.Inbound{
		ID:        id(m.ID),
		Address:   b.address(m),
		Sender:    m.sender(),
		Time:      time.Unix(max(m.Date, 0), 0),
		Forwarded: m.Origin.name(),
		Edited:    edited,
	}
	if in.Sender.ID == "" {
		return chela.Inbound{}, false
	}
	if in.Address.Peer.Kind != chela.Direct {
		in.Group = m.Chat.Title
	}
	in.ReplyTo, in.Quote = m.quoted()
	in.Mentioned = in.ReplyTo != "" && m.ReplyTo != nil && b.own(m.ReplyTo)
	var texts []string
	for _, item := range group {
		if m, _ := item.message(); m != nil {
			text, mentioned := b.text(m)
			if text != "" {
				texts = append(texts, text)
			}
			// A reply to the bot addresses it, unless the text is a command for another bot.
			in.Mentioned = in.Mentioned && !m.foreign(b.me.Load()) || mentioned
			if f, ok := m.attachment(); ok {
				in.Media = append(in.Media, f)
			}
		}
	}
	in.Text = strings.Join(texts, "\n")
	if edited {
		if m.Text == "" && m.Caption == "" {
			return chela.Inbound{}, false // such as the next position of a person who shares it
		}
		// Two edits may have the same second, and one edit may be reported repeatedly.
		h := fnv.New32a()
		_, _ = h.Write([]byte(in.Text))
		in.ID = fmt.Sprintf("%d:edit:%d:%08x", m.ID, m.EditDate, h.Sum32())
	}
	if in.Text == "" && len(in.Media) == 0 && m.unsupported() {
		in.Text = "[unsupported message]"
	}
	return in, in.Text != "" || len(in.Media) > 0
}

// pressed returns the message that the press of a button stands for.
func (b *bot) pressed(c *callback) (chela.Inbound, bool) {
	m := c.Message
	if m == nil || m.Chat.ID == 0 || c.From.ID == 0 || c.ID == "" || c.Data == "" {
		return chela.Inbound{}, false
	}
	text := c.Data
	if !strings.HasPrefix(text, "/") {
		text = "callback_data: " + text
	}
	in := chela.Inbound{
		ID:        "callback:" + c.ID,
		Address:   b.address(m),
		Sender:    c.From.sender(),
		Text:      text,
		ReplyTo:   id(m.ID),
		Time:      time.Now(),
		Mentioned: true,
	}
	if in.Address.Peer.Kind != chela.Direct {
		in.Group = m.Chat.Title
	}
	return in, true
}

// reacted returns the message that a reaction stands for. Telegram does not tell whose
// message has it.
func (b *bot) reacted(r *reaction) (chela.Inbound, bool) {
	emoji := r.added()
	if emoji == "" || r.User == nil || r.User.ID == 0 || r.Chat.ID == 0 || r.Message == 0 {
		return chela.Inbound{}, false
	}
	in := chela.Inbound{
		ID:       fmt.Sprintf("%d:reaction:%d:%d:%s", r.Message, r.User.ID, r.Date, emoji),
		Address:  b.address(&message{Chat: r.Chat}),
		Sender:   r.User.sender(),
		ReplyTo:  id(r.Message),
		Reaction: emoji,
		Time:     time.Unix(max(r.Date, 0), 0),
	}
	in.Address.Thread = "" // the update does not have the topic
	return in, true
}

func id(n int64) string { return strconv.FormatInt(n, 10) }

// own reports whether a message is one of the bot itself.
func (b *bot) own(m *message) bool {
	me := b.me.Load()
	return me != nil && m.From != nil && m.From.ID == me.ID
}

// address returns where a message was written.
func (b *bot) address(m *message) chela.Address {
	a := chela.Address{Channel: Name, Account: b.account, Peer: chela.Peer{Kind: chela.Group, ID: id(m.Chat.ID)}}
	switch m.Chat.Type {
	case "private":
		a.Peer.Kind = chela.Direct
	case "channel":
		a.Peer.Kind = chela.Room
	}
	switch {
	case m.InTopic && m.Thread != 0: // otherwise it is the id of a chain of replies
		a.Thread = id(m.Thread)
	case m.Chat.Forum && a.Peer.Kind == chela.Group:
		a.Thread = generalTopic
	}
	return a
}

func (u *user) sender() chela.Sender {
	return chela.Sender{ID: id(u.ID), Name: u.name(), Bot: u.Bot}
}

// sender returns who wrote a message: a person, or a chat in whose name it was written.
func (m *message) sender() chela.Sender {
	switch {
	case m.SenderChat != nil:
		return chela.Sender{ID: id(m.SenderChat.ID), Name: m.SenderChat.Title}
	case m.From != nil:
		return m.From.sender()
	case m.Chat.Type == "channel":
		return chela.Sender{ID: id(m.Chat.ID), Name: m.Chat.Title}
	}
	return chela.Sender{}
}

// quoted returns to which message m is a reply, and what that says.
func (m *message) quoted() (string, chela.Quote) {
	var q chela.Quote
	r := m.ReplyTo
	switch {
	case r != nil && len(r.TopicCreated) > 0: // every message of a topic is a reply to its beginning
		return "", q
	case r != nil:
		q = chela.Quote{Sender: r.sender(), Text: strings.TrimSpace(r.Text + r.Caption)}
		if q.Text == "" {
			q.Text = r.placeholder()
		}
		if q.Text == "" {
			if f, ok := r.attachment(); ok {
				q.Text = "[" + f.Name + "]"
			}
		}
	case m.ExternalReply != nil: // a message of another chat
		q.Sender.Name = m.ExternalReply.Origin.name()
	}
	if m.Quote != nil && m.Quote.Text != "" { // the part that the sender selected
		q.Text = m.Quote.Text
	}
	if r == nil {
		return "", q
	}
	return id(r.ID), q
}

// attachment returns the file of a message.
func (m *message) attachment() (chela.Media, bool) {
	if n := len(m.Photo); n > 0 { // the sizes, the largest last
		return m.Photo[n-1].media("photo.jpg", "image/jpeg")
	}
	switch {
	case m.Animation != nil: // is a document, too
		return m.Animation.media("animation.mp4", "video/mp4")
	case m.Document != nil:
		return m.Document.media("document", "application/octet-stream")
	case m.Voice != nil:
		return m.Voice.media("voice.ogg", "audio/ogg")
	case m.Audio != nil:
		return m.Audio.media("audio.mp3", "audio/mpeg")
	case m.Video != nil:
		return m.Video.media("video.mp4", "video/mp4")
	case m.VideoNote != nil:
		return m.VideoNote.media("video.mp4", "video/mp4")
	}
	return chela.Media{}, false
}

func (f file) media(name, kind string) (chela.Media, bool) {
	m := chela.Media{Name: f.Name, Type: f.Type, Bytes: max(f.Size, 0), Source: f.ID}
	if m.Name == "" {
		m.Name = name
	}
	if m.Type == "" {
		m.Type = kind
	}
	return m, f.ID != ""
}

// foreign reports whether a message begins with a command for another bot.
func (m *message) foreign(me *user) bool {
	word, _, _ := strings.Cut(m.Text, " ")
	_, name, ok := strings.Cut(word, "@")
	return ok && me != nil && slices.ContainsFunc(m.Entities, func(e entity) bool {
		return e.Type == "bot_command" && e.Offset == 0 && !strings.EqualFold(name, me.Username)
	})
}

// text returns the text of a message and whether it mentions the bot. A mention at the
// beginning is removed, and the URL of a link is shown. The offsets of entities count UTF-16 code
// units, so that the text is cut in that form.
func (b *bot) text(m *message) (string, bool) {
	text, entities := m.Text, m.Entities
	if text == "" {
		text, entities = m.Caption, m.CaptionParts
	}
	if text == "" {
		return m.placeholder(), false
	}
	me := b.me.Load()
	if me == nil {
		me = new(user)
	}
	all := utf16.Encode([]rune(text))
	entities = slices.Clone(entities)
	slices.SortStableFunc(entities, func(a, b entity) int { return a.Offset - b.Offset })
	var out strings.Builder
	mentioned, done := false, 0
	copyTo := func(end int) {
		if end > done {
			out.WriteString(string(utf16.Decode(all[done:end])))
			done = end
		}
	}
	for _, e := range entities {
		if e.Offset < 0 || e.Length <= 0 || e.Offset > len(all) || e.Length > len(all)-e.Offset {
			continue
		}
		end := e.Offset + e.Length
		part := string(utf16.Decode(all[e.Offset:end]))
		name, command := part, ""
		switch e.Type {
		case "bot_command":
			var ok bool
			if command, name, ok = strings.Cut(part, "@"); !ok {
				continue
			}
			name = "@" + name
		case "text_link":
			if e.Offset >= done && e.URL != "" && e.URL != part {
				copyTo(e.Offset)
				out.WriteString("[" + part + "](" + e.URL + ")")
				done = end
			}
			continue
		case "mention", "text_mention":
		default:
			continue
		}
		addressed := me.Username != "" && strings.EqualFold(name, "@"+me.Username)
		if e.Type == "text_mention" {
			addressed = e.User != nil && e.User.ID == me.ID && me.ID != 0
		}
		if !addressed {
			continue
		}
		mentioned = true
		if e.Offset < done {
			continue
		}
		copyTo(e.Offset)
		if strings.TrimSpace(out.String()) == "" {
			out.Reset()
			out.WriteString(command)
			done = end
			for command == "" && done < len(all) && strings.ContainsRune(" \t\n,:", rune(all[done])) {
				done++
			}
		}
	}
	copyTo(len(all))
	return strings.TrimSpace(out.String()), mentioned
}
