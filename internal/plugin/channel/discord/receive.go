package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

const (
	maxRoles  = 500
	maxMedia  = 16
	maxQuoted = 4000 // runes of a quote
)

// message is a message of Discord.
type message struct {
	ID          string       `json:"id"`
	Channel     string       `json:"channel_id"`
	Guild       string       `json:"guild_id"`
	Type        int          `json:"type"`
	Author      *user        `json:"author"`
	Member      *member      `json:"member"`
	Webhook     string       `json:"webhook_id"`
	Content     string       `json:"content"`
	Time        time.Time    `json:"timestamp"`
	Edited      *time.Time   `json:"edited_timestamp"`
	Mentions    []user       `json:"mentions"`
	Attachments []attachment `json:"attachments"`
	Stickers    []struct {
		Name string `json:"name"`
	} `json:"sticker_items"`
	Embeds []struct {
		Title string `json:"title"`
		Text  string `json:"description"`
	} `json:"embeds"`
	Poll *struct {
		Question struct {
			Text string `json:"text"`
		} `json:"question"`
		Answers []struct {
			Media struct {
				Text string `json:"text"`
			} `json:"poll_media"`
		} `json:"answers"`
	} `json:"poll"`
	Reference *struct {
		Type int    `json:"type"` // 1: forwarded
		ID   string `json:"message_id"`
	} `json:"message_reference"`
	Referenced *message `json:"referenced_message"`
	Snapshots  []struct {
		Message message `json:"message"`
	} `json:"message_snapshots"`
}

// member is what a guild knows about a person.
type member struct {
	User  *user    `json:"user"`
	Nick  string   `json:"nick"`
	Roles []string `json:"roles"`
}

// attachment is a file of a message.
type attachment struct {
	Name string `json:"filename"`
	Type string `json:"content_type"`
	Size int    `json:"size"`
	URL  string `json:"url"`
}

// The types of messages that people write. Others say that somebody joined or the like.
const (
	typeMessage = 0
	typeReply   = 19
)

// room is a channel of Discord.
type room struct {
	ID     string `json:"id"`
	Type   int    `json:"type"`
	Guild  string `json:"guild_id"`
	Parent string `json:"parent_id"`
	Name   string `json:"name"`
}

// thread reports whether the channel is a thread.
func (p room) thread() bool { return p.Type >= 10 && p.Type <= 12 && snowflake(p.Parent) }

// The types of channels whose threads begin with a message.
const (
	typeForum        = 15
	typeMediaChannel = 16
)

// room returns the channel with an id. Discord is asked once for each.
func (b *bot) room(ctx context.Context, id string) (room, error) {
	b.mu.Lock()
	p, ok := b.channels.get(id)
	b.mu.Unlock()
	if ok {
		return p, nil
	}
	if !snowflake(id) {
		return room{}, gone("channel", id)
	}
	if err := b.do(ctx, "GET", "/channels/"+id, nil, &p); err != nil {
		if e, ok := errors.AsType[*channel.Error](err); !ok || !e.Permanent || ctx.Err() != nil {
			return room{}, err
		}
		b.env.Log.Debug("channel is not accessible; taken for a usual one", "id", id, "err", err)
		return room{ID: id}, nil
	}
	p.ID = id
	b.mu.Lock()
	defer b.mu.Unlock()
	b.channels.put(id, p)
	return p, nil
}

// pass processes an event. The sink accepted or finally refused a message when pass returns
// nil; otherwise ctx ended.
func (r *receiver) pass(ctx context.Context, f frame) error {
	return channel.Accept(ctx, r.env.Log, func(ctx context.Context) error { return r.try(ctx, f) })
}

// try processes an event once.
func (r *receiver) try(ctx context.Context, f frame) error {
	switch f.Type {
	case "MESSAGE_CREATE", "MESSAGE_UPDATE":
		var m message
		if err := json.Unmarshal(f.Data, &m); err != nil {
			return chela.Errorf(chela.CodeInvalid, "discord: message: %w", err)
		}
		in, ok, err := r.inbound(ctx, &m, f.Type == "MESSAGE_UPDATE")
		if err != nil || !ok {
			return err
		}
		return r.offer(ctx, m.Channel, in)
	case "MESSAGE_REACTION_ADD":
		var e reacted
		if err := json.Unmarshal(f.Data, &e); err != nil {
			return chela.Errorf(chela.CodeInvalid, "discord: reaction: %w", err)
		}
		in, ok, err := r.reaction(ctx, e)
		if err != nil || !ok {
			return err
		}
		return r.offer(ctx, e.Channel, in)
	case "INTERACTION_CREATE":
		return r.interact(ctx, f.Data)
	case "CHANNEL_UPDATE", "THREAD_UPDATE":
		var p room
		if json.Unmarshal(f.Data, &p) == nil && snowflake(p.ID) {
			r.update(p)
		}
	}
	return nil
}

// reacted is a reaction to a message.
type reacted struct {
	User    string  `json:"user_id"`
	Channel string  `json:"channel_id"`
	Guild   string  `json:"guild_id"`
	Message string  `json:"message_id"`
	Author  string  `json:"message_author_id"`
	Member  *member `json:"member"`
	Emoji   struct {
		Name string `json:"name"`
	} `json:"emoji"`
}

// reaction returns the message that a reaction to a message of the account stands for;
// false: it is to another one.
func (b *bot) reaction(ctx context.Context, e reacted) (in chela.Inbound, ok bool, err error) {
	self := b.me()
	if !snowflake(e.User) || !snowflake(e.Channel) || !snowflake(e.Message) || e.Guild != "" && !snowflake(e.Guild) ||
		e.User == self.ID || e.Author != self.ID || e.Emoji.Name == "" {
		return in, false, nil
	}
	in = chela.Inbound{
		ID:       e.Message + ":reaction:" + e.User + ":" + e.Emoji.Name,
		Guild:    e.Guild,
		Sender:   chela.Sender{ID: e.User},
		ReplyTo:  e.Message,
		Reaction: e.Emoji.Name,
		Time:     time.Now(),
	}
	if m := e.Member; m != nil && m.User != nil {
		in.Sender, in.Roles = m.User.sender(m.Nick), m.Roles[:min(len(m.Roles), maxRoles)]
	}
	in.Address, in.Group, err = b.address(ctx, e.Channel, e.Guild, e.User)
	return in, err == nil, err
}

// update replaces what is known about a channel.
func (b *bot) update(p room) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.channels.get(p.ID); ok {
		b.channels.put(p.ID, p)
	}
}

// offer passes a message to the sink unless it already was.
func (r *receiver) offer(ctx context.Context, at string, in chela.Inbound) error {
	key := at + "/" + in.ID
	r.bot.mu.Lock()
	_, known := r.accepted.get(key)
	r.bot.mu.Unlock()
	if known {
		return nil
	}
	err := r.sink(ctx, in)
	if err == nil || channel.Refused(err) {
		r.bot.mu.Lock()
		r.accepted.put(key, struct{}{})
		r.bot.mu.Unlock()
	}
	return err
}

// address returns where something was written: in a channel, by a person. Group is the
// title of the channel.
func (b *bot) address(ctx context.Context, at, guild, person string) (a chela.Address, group string, err error) {
	a = chela.Address{Channel: Name, Account: b.account}
	if guild == "" {
		a.Peer = chela.Peer{Kind: chela.Direct, ID: person}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.direct.put(person, at)
		return a, "", nil
	}
	p, err := b.room(ctx, at)
	if err != nil {
		return a, "", err
	}
	if p.Name != "" {
		group = "#" + humanize.OneLine(p.Name)
	}
	a.Peer = chela.Peer{Kind: chela.Room, ID: at}
	if p.thread() {
		a.Peer.ID, a.Thread = p.Parent, at
	}
	return a, group, nil
}

// inbound returns a message in the form of the sink; false: it is not passed on.
func (b *bot) inbound(ctx context.Context, m *message, update bool) (in chela.Inbound, ok bool, err error) {
	self := b.me()
	switch {
	case m.Author == nil || !snowflake(m.ID) || !snowflake(m.Channel) || !snowflake(m.Author.ID):
		return in, false, nil
	case m.Guild != "" && !snowflake(m.Guild) || m.Author.ID == self.ID:
		return in, false, nil
	case m.Type != typeMessage && m.Type != typeReply:
		return in, false, nil
	case update && m.Edited == nil: // Discord added the preview of a link
		return in, false, nil
	}
	in = chela.Inbound{ID: m.ID, Guild: m.Guild, Time: m.Time, Sender: m.Author.sender("")}
	if m.Member != nil {
		in.Sender = m.Author.sender(m.Member.Nick)
		in.Roles = m.Member.Roles[:min(len(m.Member.Roles), maxRoles)]
	}
	in.Sender.Bot = in.Sender.Bot || m.Webhook != ""
	if update {
		in.ID, in.Edited, in.Time = fmt.Sprintf("%s:edit:%d", m.ID, m.Edited.UnixMilli()), true, *m.Edited
	}
	in.Mentioned = m.Guild != "" && slices.ContainsFunc(m.Mentions, func(u user) bool { return u.ID == self.ID })
	text := m.Content
	if q := m.Referenced; q != nil && q.Author != nil {
		in.Mentioned = in.Mentioned || m.Guild != "" && q.Author.ID == self.ID
		in.Quote = chela.Quote{Sender: q.Author.sender(""), Text: truncate(q.text(q.Content), maxQuoted)}
	}
	whole := m
	if ref := m.Reference; ref != nil && ref.Type == 1 && len(m.Snapshots) > 0 {
		whole = &m.Snapshots[0].Message
		in.Forwarded, text = "someone in another channel", whole.Content
	} else if ref != nil && snowflake(ref.ID) {
		in.ReplyTo = ref.ID
	}
	in.Text, in.Media = b.media(whole, whole.text(withoutMention(text, self.ID)))
	if in.Text == "" && len(in.Media) == 0 {
		if in.Text = "@" + self.Username; !in.Mentioned {
			return in, false, nil // such as a message whose content the bot may not see
		}
	}
	in.Address, in.Group, err = b.address(ctx, m.Channel, m.Guild, m.Author.ID)
	return in, err == nil, err
}

// withoutMention removes the mentions of an account from the beginning of a text.
func withoutMention(text, self string) string {
	for {
		rest := strings.TrimLeft(text, " \n\t")
		for _, mention := range [...]string{"<@" + self + ">", "<@!" + self + ">"} {
			rest = strings.TrimPrefix(rest, mention)
		}
		if rest == strings.TrimLeft(text, " \n\t") {
			return text
		}
		text = strings.TrimLeft(rest, " \n\t,:")
	}
}

// text returns the text of a message with placeholders for what cannot be shown as text.
func (m *message) text(content string) string {
	lines := []string{}
	if content != "" {
		lines = append(lines, content)
	}
	for _, s := range m.Stickers {
		lines = append(lines, "[sticker "+s.Name+"]")
	}
	if p := m.Poll; p != nil {
		var answers []string
		for _, a := range p.Answers {
			answers = append(answers, a.Media.Text)
		}
		lines = append(lines, "[poll "+p.Question.Text+": "+strings.Join(answers, " / ")+"]")
	}
	if content == "" {
		for _, e := range m.Embeds {
			if text := strings.TrimSpace(e.Title + "\n" + e.Text); text != "" {
				lines = append(lines, "["+text+"]")
			}
		}
	}
	return strings.Join(lines, "\n")
}

// media returns the attachments of a message, and text with placeholders for those that
// cannot be fetched.
func (b *bot) media(m *message, text string) (string, []chela.Media) {
	var out []chela.Media
	for _, a := range m.Attachments {
		u, err := url.Parse(a.URL)
		if err != nil || len(out) == maxMedia || !b.content(u) {
			text = strings.TrimLeft(text+"\n[attachment "+a.Name+"]", "\n")
			continue
		}
		kind := cmp.Or(a.Type, mime.TypeByExtension(path.Ext(a.Name)), "application/octet-stream")
		out = append(out, chela.Media{Name: a.Name, Type: kind, Bytes: max(a.Size, 0), Source: a.URL})
	}
	return text, out
}

// content reports whether a URL is one of an attachment.
func (b *bot) content(u *url.URL) bool { return b.trusts(u, []string{"https"}, contentHosts[:]...) }
