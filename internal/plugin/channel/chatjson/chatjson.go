// Package chatjson is the JSON with which channels exchange messages with programs that
// are not part of Chela: one that runs beside it and one that is reached by HTTP requests
// get and send the same objects.
//
// Names of members are stable. Members that a reader does not know are ignored.
package chatjson

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Limits of a received message.
const (
	maxID    = 256 // bytes of an id
	maxName  = 200 // bytes of a name or a title
	maxQuote = 16 << 10
	maxMedia = 16
	maxURL   = 4 << 10
)

// Chat is a chat.
type Chat struct {
	ID   string         `json:"id"`
	Kind chela.PeerKind `json:"kind"`           // direct, group or channel; empty: direct
	Name string         `json:"name,omitempty"` // its title, for display
}

// Sender is the author of a message.
type Sender struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	Bot  bool   `json:"bot,omitempty"` // a program
}

// Media is an attachment.
type Media struct {
	Name   string `json:"name,omitempty"`
	Type   string `json:"type,omitempty"` // MIME type
	Data   []byte `json:"data,omitempty"` // in base64
	Source string `json:"source,omitempty"`
	URL    string `json:"url,omitempty"`
	Bytes  int    `json:"bytes,omitempty"` // size of what Source or URL names, if it is known
}

// Quote is what the message says to which another one is a reply.
type Quote struct {
	Sender Sender `json:"sender,omitzero"`
	Text   string `json:"text"`
}

// Message is a message of a person.
type Message struct {
	ID        string    `json:"id"` // unique within the chat
	Chat      Chat      `json:"chat"`
	Thread    string    `json:"thread,omitempty"`
	Sender    Sender    `json:"sender"` // without an id in a direct chat: whom the chat is with
	Text      string    `json:"text"`
	Media     []Media   `json:"media,omitempty"`
	ReplyTo   string    `json:"replyTo,omitempty"` // id of a message
	Quote     Quote     `json:"quote,omitzero"`
	Forwarded string    `json:"forwarded,omitempty"` // name of the author of a forwarded message
	Mentioned bool      `json:"mentioned,omitempty"` // the message addresses the assistant
	Edited    bool      `json:"edited,omitempty"`    // this is the new text of a message
	Time      time.Time `json:"time,omitzero"`       // zero: now
}

// Inbound returns the message as one that an account received. source returns where the
// content of an attachment without data comes from, or an error if there is no such
// content. An error says what is wrong with the message.
func (m *Message) Inbound(to chela.Address, source func(Media) (string, error)) (chela.Inbound, error) {
	if m.Chat.Kind == "" {
		m.Chat.Kind = chela.Direct
	}
	if m.Sender.ID == "" && m.Chat.Kind == chela.Direct {
		m.Sender.ID = m.Chat.ID
	}
	if err := m.check(); err != nil {
		return chela.Inbound{}, err
	}
	if m.Time.IsZero() {
		m.Time = time.Now()
	}
	to.Peer, to.Thread = chela.Peer{Kind: m.Chat.Kind, ID: m.Chat.ID}, m.Thread
	in := chela.Inbound{
		ID: m.ID, Address: to, Sender: m.Sender.sender(), Text: m.Text, ReplyTo: m.ReplyTo, Time: m.Time,
		Quote:     chela.Quote{Sender: m.Quote.Sender.sender(), Text: humanize.TruncateBytes(m.Quote.Text, maxQuote)},
		Forwarded: oneLine(m.Forwarded), Mentioned: m.Mentioned, Edited: m.Edited,
	}
	if m.Chat.Kind != chela.Direct {
		in.Group = oneLine(m.Chat.Name)
	}
	if m.Edited {
		in.ID = fmt.Sprintf("%s:edit:%d", m.ID, m.Time.UnixMilli())
	}
	for i, a := range m.Media {
		own := chela.Media{Name: oneLine(a.Name), Type: a.Type, Data: a.Data}
		if len(a.Data) == 0 {
			var err error
			if own.Source, err = source(a); err != nil {
				return in, fmt.Errorf("media %d: %w", i, err)
			}
			own.Bytes = max(0, a.Bytes)
		}
		in.Media = append(in.Media, own)
	}
	return in, nil
}

// check returns what is wrong with a message.
func (m *Message) check() error {
	for _, id := range [...]struct {
		name, value string
		optional    bool
	}{
		{"id", m.ID, false}, {"chat.id", m.Chat.ID, false}, {"sender.id", m.Sender.ID, false},
		{"thread", m.Thread, true}, {"replyTo", m.ReplyTo, true}, {"quote.sender.id", m.Quote.Sender.ID, true},
	} {
		switch {
		case id.value == "" && !id.optional:
			return fmt.Errorf("%s is missing", id.name)
		case len(id.value) > maxID:
			return fmt.Errorf("%s has more than %d bytes", id.name, maxID)
		case strings.ContainsFunc(id.value, unicode.IsControl):
			return fmt.Errorf("%s has a control character", id.name)
		}
	}
	switch m.Chat.Kind {
	case chela.Direct, chela.Group, chela.Room:
	default:
		return fmt.Errorf("chat.kind is %.20q: want direct, group or channel", m.Chat.Kind)
	}
	switch {
	case len(m.Media) > maxMedia:
		return fmt.Errorf("more than %d attachments", maxMedia)
	case m.Text == "" && len(m.Media) == 0:
		return errors.New("neither text nor media")
	case m.Edited && m.Time.IsZero():
		return errors.New("edited without the time of the edit")
	case !m.Time.IsZero() && (m.Time.Year() < 1970 || m.Time.Year() > 9999):
		return errors.New("time is out of range")
	}
	for i, a := range m.Media {
		if len(a.Type) > maxName || len(a.Source) > maxURL || len(a.URL) > maxURL {
			return fmt.Errorf("media %d: type, source or url is too long", i)
		}
	}
	return nil
}

func (s Sender) sender() chela.Sender {
	return chela.Sender{ID: s.ID, Name: oneLine(s.Name), Bot: s.Bot}
}

// oneLine returns a name in one line, shortened.
func oneLine(s string) string { return humanize.TruncateBytes(humanize.OneLine(s), maxName) }

// Destination is the chat of an operation.
type Destination struct {
	Chat   Chat   `json:"chat"`
	Thread string `json:"thread,omitempty"`
}

// DestinationOf returns the destination of an address.
func DestinationOf(a chela.Address) Destination {
	return Destination{Chat: Chat{ID: a.Peer.ID, Kind: a.Peer.Kind}, Thread: a.Thread}
}

// Button is a button below a message.
type Button struct {
	Label string `json:"label"`
	Data  string `json:"data,omitempty"`
	URL   string `json:"url,omitempty"`
	Style string `json:"style,omitempty"` // primary, success or danger
}

// Part is a message to send.
type Part struct {
	Key string `json:"key"` // the same at each attempt
	Destination
	ReplyTo string     `json:"replyTo,omitempty"`
	Text    string     `json:"text"` // Markdown
	Media   []Media    `json:"media,omitempty"`
	Buttons [][]Button `json:"buttons,omitempty"`
}

// PartOf returns a part as JSON has it.
func PartOf(p channel.Part) Part {
	out := Part{Key: p.Key, Destination: DestinationOf(p.Address), ReplyTo: p.ReplyTo, Text: p.Text}
	for _, m := range p.Media {
		out.Media = append(out.Media, Media{Name: m.Name, Type: m.Type, Data: m.Data})
	}
	for _, row := range p.Buttons {
		var own []Button
		for _, b := range row {
			own = append(own, Button{Label: b.Label, Data: b.Data, URL: b.URL, Style: string(b.Style)})
		}
		out.Buttons = append(out.Buttons, own)
	}
	return out
}

// MediaBytes returns the size of all attachments of a part.
func MediaBytes(p channel.Part) (n int) {
	for _, m := range p.Media {
		n += len(m.Data)
	}
	return n
}

// Edit is a new text of a message.
type Edit struct {
	Destination
	ID   string `json:"id"`
	Text string `json:"text"`
}

// Named is an operation on a message that needs nothing else, such as its deletion.
type Named struct {
	Destination
	ID string `json:"id"`
}

// Reaction is a reaction to a message; the empty emoji removes it.
type Reaction struct {
	Destination
	ID    string `json:"id"`
	Emoji string `json:"emoji"`
}

// Receipt confirms a sent message.
type Receipt struct {
	ID   string    `json:"id"`
	Time time.Time `json:"time,omitzero"` // zero: now
}

// Receipt returns the receipt of a channel, or an error if it is none.
func (r Receipt) Receipt() (channel.Receipt, error) {
	if r.ID == "" || len(r.ID) > maxID || strings.ContainsFunc(r.ID, unicode.IsControl) {
		return channel.Receipt{}, fmt.Errorf("the confirmation has no usable id (1 to %d bytes)", maxID)
	}
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	return channel.Receipt{ID: r.ID, Time: r.Time}, nil
}
