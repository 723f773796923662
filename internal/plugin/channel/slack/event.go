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
)

const (
	maxFiles = 20 // attachments of a message
	maxNames = 2 * time.Second
)

var (
	// errIgnored says that an event is not a message for the assistant.
	errIgnored = errors.New("ignored")
	// errKind says that the kind of a conversation could not be looked up for now. The
	// message has the kind that the id suggests, which is wrong for newer private channels.
	errKind = errors.New("the conversation cannot be looked up")
)

// callback is the payload of an event.
type callback struct {
	Type    string  `json:"type"`
	TeamID  string  `json:"team_id"`
	EventID string  `json:"event_id"`
	Event   message `json:"event"`
}

// message is a message event. One that reports a change contains the changed message.
type message struct {
	Type        string       `json:"type"`
	Subtype     string       `json:"subtype"`
	Channel     string       `json:"channel"`
	ChannelType string       `json:"channel_type"`
	User        string       `json:"user"`
	BotID       string       `json:"bot_id"`
	Username    string       `json:"username"`
	Team        string       `json:"team"`
	Text        string       `json:"text"`
	TS          string       `json:"ts"`
	ThreadTS    string       `json:"thread_ts"`
	ParentUser  string       `json:"parent_user_id"`
	Files       []file       `json:"files"`
	Attachments []attachment `json:"attachments"`
	Metadata    struct {
		Type    string `json:"event_type"`
		Payload struct {
			Key string `json:"key"`
		} `json:"event_payload"`
	} `json:"metadata"`
	Edited struct {
		TS string `json:"ts"`
	} `json:"edited"`
	Reaction string `json:"reaction"` // of reaction_added: the name of the emoji, and the message
	ItemUser string `json:"item_user"`
	EventTS  string `json:"event_ts"`
	Item     *struct {
		Channel string `json:"channel"`
		TS      string `json:"ts"`
	} `json:"item"`
	Message  *message `json:"message"`
	Previous *message `json:"previous_message"`
}

// file is an attachment as the API describes it.
type file struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Title  string `json:"title"`
	Type   string `json:"mimetype"`
	Mode   string `json:"mode"`
	Size   int    `json:"size"`
	URL    string `json:"url_private"`
	Extern bool   `json:"is_external"`
}

// attachment is a message that is shown in another one.
type attachment struct {
	Share  bool   `json:"is_share"`
	Author string `json:"author_name"`
	Text   string `json:"text"`
}

// interaction is the payload of a pressed button.
type interaction struct {
	Type string `json:"type"`
	Team struct {
		ID string `json:"id"`
	} `json:"team"`
	User struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"user"`
	Channel struct {
		ID string `json:"id"`
	} `json:"channel"`
	Message struct {
		TS       string `json:"ts"`
		ThreadTS string `json:"thread_ts"`
	} `json:"message"`
	Actions []struct {
		Type  string `json:"type"`
		Value string `json:"value"`
		URL   string `json:"url"`
		TS    string `json:"action_ts"`
	} `json:"actions"`
}

// command is the payload of a slash command.
type command struct {
	Command   string `json:"command"`
	Text      string `json:"text"`
	UserID    string `json:"user_id"`
	UserName  string `json:"user_name"`
	ChannelID string `json:"channel_id"`
	ThreadTS  string `json:"thread_ts"`
	TeamID    string `json:"team_id"`
	TriggerID string `json:"trigger_id"`
}

// commandOf reads a command from the fields of a form.
func commandOf(f url.Values) command {
	return command{
		Command:   f.Get("command"),
		Text:      f.Get("text"),
		UserID:    f.Get("user_id"),
		UserName:  f.Get("user_name"),
		ChannelID: f.Get("channel_id"),
		ThreadTS:  f.Get("thread_ts"),
		TeamID:    f.Get("team_id"),
		TriggerID: f.Get("trigger_id"),
	}
}

// inbound returns the message that a payload contains, or errIgnored, or the message and errKind.
// kind is the type of the envelope: events_api, interactive or slash_commands. Names are looked
// up for maxNames at most, since Slack waits for the acknowledgement; what was not found by then
// stays an id.
func (b *bot) inbound(ctx context.Context, kind string, payload json.RawMessage) (chela.Inbound, error) {
	ctx, cancel := context.WithTimeout(ctx, maxNames)
	defer cancel()
	var in chela.Inbound
	var err error
	switch kind {
	case "events_api":
		var c callback
		if err = json.Unmarshal(payload, &c); err == nil {
			in, err = b.event(ctx, c)
		}
	case "interactive":
		var i interaction
		if err = json.Unmarshal(payload, &i); err == nil {
			in, err = b.action(ctx, i)
		}
	case "slash_commands":
		var c command
		if err = json.Unmarshal(payload, &c); err == nil {
			in, err = b.slash(ctx, c)
		}
	default:
		err = errIgnored
	}
	if (err == nil || errors.Is(err, errKind)) && (in.ID == "" || in.Sender.ID == "" || in.Address.Peer.ID == "") {
		err = errors.New("the event has no id, sender or channel")
	}
	return in, err
}

// event returns the message of an event.
func (b *bot) event(ctx context.Context, c callback) (chela.Inbound, error) {
	m, edited := c.Event, false
	if m.Type == "reaction_added" {
		return b.reaction(ctx, c)
	}
	if m.Type != "message" && m.Type != "app_mention" {
		return chela.Inbound{}, errIgnored
	}
	if m.Subtype == "message_changed" {
		// Slack also reports a change when it shows a preview of a link, or when a thread
		// grows. Only a text that its author changed is an edit.
		if m.Message == nil || m.Message.Edited.TS == "" || m.Previous != nil && m.Previous.Text == m.Message.Text {
			return chela.Inbound{}, errIgnored
		}
		inner := *m.Message
		inner.Type, inner.Channel, inner.ChannelType = m.Type, m.Channel, m.ChannelType
		m, edited = inner, true
	}
	switch m.Subtype {
	case "", "file_share", "me_message", "thread_broadcast", "bot_message":
	default:
		return chela.Inbound{}, errIgnored
	}
	me := b.me()
	if m.User == me.User || m.BotID != "" && m.BotID == me.Bot {
		return chela.Inbound{}, errIgnored
	}
	if m.TS == "" || m.Channel == "" {
		return chela.Inbound{}, errors.New("the event has no timestamp or channel")
	}
	in := chela.Inbound{
		ID:     m.TS,
		Team:   c.TeamID,
		Time:   when(m.TS),
		Edited: edited,
		Sender: chela.Sender{ID: m.User, Bot: m.BotID != ""},
	}
	if edited {
		in.ID += ":edit:" + m.Edited.TS
	}
	if in.Team == "" {
		in.Team = m.Team
	}
	if in.Sender.ID == "" { // an integration without a user
		in.Sender.ID, in.Sender.Name = m.BotID, m.Username
	}
	err := b.place(ctx, &in, m.Channel, m.ChannelType, in.Sender.ID)
	if m.User != "" {
		in.Sender.Name = b.nameOf(ctx, m.User)
	}
	if m.ThreadTS != m.TS {
		in.Address.Thread = m.ThreadTS
	}
	text, mentioned := addressed(m.Text, me.User)
	in.Mentioned = in.Address.Peer.Kind != chela.Direct &&
		(mentioned || m.Type == "app_mention" || m.ParentUser == me.User && me.User != "")
	in.Text = b.plain(ctx, text)
	b.attach(ctx, &in, m)
	if in.Text == "" && len(in.Media) == 0 {
		if !mentioned {
			return in, errIgnored
		}
		in.Text = "@" + me.Name // nothing but the mention
	}
	return in, err
}

// reaction returns the message that a reaction to a message of the account stands for.
func (b *bot) reaction(ctx context.Context, c callback) (chela.Inbound, error) {
	e, me := c.Event, b.me()
	if e.Item == nil || e.Item.TS == "" || e.Item.Channel == "" || e.ItemUser != me.User ||
		e.User == me.User || e.Reaction == "" {
		return chela.Inbound{}, errIgnored
	}
	in := chela.Inbound{
		ID:       e.Item.TS + ":reaction:" + e.User + ":" + e.EventTS,
		Team:     c.TeamID,
		Time:     when(e.EventTS),
		Sender:   chela.Sender{ID: e.User},
		ReplyTo:  e.Item.TS,
		Reaction: ":" + e.Reaction + ":",
	}
	err := b.place(ctx, &in, e.Item.Channel, "", e.User)
	in.Sender.Name = b.nameOf(ctx, e.User)
	return in, err
}

// place sets the conversation of a message. kind is the type of the conversation, if the
// event has it. The error is nil or errKind. A wrong kind would put the message into
// another session: it is tried again a few times (see pass) before it is guessed, unless Slack
// refuses the question for good.
func (b *bot) place(ctx context.Context, in *chela.Inbound, id, kind, sender string) error {
	known := map[string]chela.PeerKind{
		"im":      chela.Direct,
		"channel": chela.Room,
		"group":   chela.Group,
		"mpim":    chela.Group,
	}[kind]
	var c chat
	var failed error
	if known != chela.Direct && !(known == "" && strings.HasPrefix(id, "D")) {
		var err error
		if c, err = b.chatOf(ctx, id); err != nil {
			b.env.Log.Debug("a conversation was not found", "id", id, "err", err)
			if e, ok := errors.AsType[*channel.Error](err); known == "" && (!ok || !e.Permanent) {
				failed = errKind
			}
		}
	}
	switch {
	case known != "":
		c.Kind = known
	case c.Kind != "":
	case strings.HasPrefix(id, "D"):
		c.Kind = chela.Direct
	case strings.HasPrefix(id, "G"):
		c.Kind = chela.Group
	default:
		c.Kind = chela.Room
	}
	in.Address = chela.Address{Channel: name, Account: b.account, Peer: chela.Peer{Kind: c.Kind, ID: id}}
	in.Group = c.Title
	if c.Kind == chela.Direct {
		in.Address.Peer.ID, in.Group = sender, ""
		b.opened.Put(sender, id)
	}
	return failed
}

// plain returns a text as people see it, with names looked up.
func (b *bot) plain(ctx context.Context, text string) string {
	left := maxLookups
	lookup := func(f func(string) string) func(string) string {
		return func(id string) string {
			if left--; left < 0 {
				return id
			}
			return f(id)
		}
	}
	return strings.TrimSpace(plain(text, lookup(func(id string) string { return b.nameOf(ctx, id) }),
		lookup(func(id string) string {
			if c, err := b.chatOf(ctx, id); err == nil && c.Title != "" {
				return c.Title
			}
			return id
		})))
}

// attach adds the files of a message, and the message that it shares.
func (b *bot) attach(ctx context.Context, in *chela.Inbound, m message) {
	add := func(text string) { in.Text = strings.TrimSpace(in.Text + "\n" + text) }
	for i, f := range m.Files {
		label := f.Name
		if label == "" {
			label = f.Title
		}
		switch {
		case i >= maxFiles:
			add(fmt.Sprintf("[%d more files]", len(m.Files)-i))
		case f.Extern && f.URL != "":
			add(fmt.Sprintf("[file %s at %s]", label, f.URL))
		case f.URL == "" || f.Mode == "tombstone" || f.Mode == "hidden_by_limit":
			add(strings.TrimSpace("[file "+label) + ", not available]")
		default:
			in.Media = append(in.Media, chela.Media{Name: label, Type: f.Type, Bytes: max(f.Size, 0), Source: f.URL})
		}
		if i >= maxFiles {
			break
		}
	}
	for _, a := range m.Attachments {
		if !a.Share || a.Text == "" {
			continue
		}
		if text := b.plain(ctx, a.Text); in.Text == "" && len(in.Media) == 0 {
			in.Text, in.Forwarded = text, a.Author
		} else {
			in.Quote = chela.Quote{Sender: chela.Sender{Name: a.Author}, Text: text}
		}
		return
	}
}

// action returns the message of a pressed button.
func (b *bot) action(ctx context.Context, i interaction) (chela.Inbound, error) {
	if i.Type != "block_actions" || len(i.Actions) == 0 {
		return chela.Inbound{}, errIgnored
	}
	act := i.Actions[0]
	if act.Type != "button" || act.Value == "" || act.URL != "" || i.Channel.ID == "" {
		return chela.Inbound{}, errIgnored // the button opens a page, or is none of ours
	}
	in := chela.Inbound{
		ID: i.Message.TS + ":action:" + act.TS, Team: i.Team.ID, Time: when(act.TS), Mentioned: true,
		Sender: chela.Sender{ID: i.User.ID}, Text: act.Value, ReplyTo: i.Message.TS,
	}
	if !strings.HasPrefix(act.Value, "/") {
		in.Text = "callback_data: " + act.Value
	}
	err := b.place(ctx, &in, i.Channel.ID, "", i.User.ID)
	in.Sender.Name = b.nameOf(ctx, i.User.ID)
	if i.Message.ThreadTS != i.Message.TS {
		in.Address.Thread = i.Message.ThreadTS
	}
	return in, err
}

// slash returns the message of a slash command. The text of the app's general command is
// the message itself.
func (b *bot) slash(ctx context.Context, c command) (chela.Inbound, error) {
	if c.Command == "" || c.TriggerID == "" || c.UserID == "" || c.ChannelID == "" {
		return chela.Inbound{}, errors.New("the command is not complete")
	}
	in := chela.Inbound{
		ID:        "command:" + c.TriggerID,
		Team:      c.TeamID,
		Time:      time.Now(),
		Mentioned: true,
		Sender:    chela.Sender{ID: c.UserID, Name: c.UserName},
	}
	text := b.plain(ctx, c.Text)
	switch {
	case c.Command != b.command:
		in.Text = strings.TrimSpace(c.Command + " " + text)
	case text == "":
		in.Text = "/help"
	default:
		in.Text = text
	}
	err := b.place(ctx, &in, c.ChannelID, "", c.UserID)
	in.Address.Thread = c.ThreadTS
	return in, err
}

// when returns the time of a timestamp such as "1355517523.000005".
func when(ts string) time.Time {
	whole, part, _ := strings.Cut(ts, ".")
	sec, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || sec < 0 || sec > 1<<40 {
		return time.Now()
	}
	micro, err := strconv.ParseInt((part + "000000")[:6], 10, 64)
	if err != nil || micro < 0 {
		micro = 0
	}
	return time.Unix(sec, micro*1000)
}
