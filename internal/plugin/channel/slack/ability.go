package slack

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
)

// Typing shows in a thread that the assistant is writing. Slack has no such indicator for
// bots elsewhere, and in threads only for apps that may set a status.
func (b *bot) Typing(ctx context.Context, a chela.Address) error {
	if a.Thread == "" || b.noTyper.Load() {
		return nil
	}
	conv, err := b.conversationOf(ctx, a)
	if err != nil {
		return err
	}
	err = b.settled(ctx, "assistant.threads.setStatus",
		url.Values{"channel_id": {conv}, "thread_ts": {a.Thread}, "status": {"is typing…"}}, nil)
	if e, ok := errors.AsType[*channel.Error](err); ok && e.Permanent {
		if !errors.Is(err, channel.ErrGone) {
			b.noTyper.Store(true)
		}
		b.env.Log.Debug("the app cannot show that it is typing", "err", err)
		return nil
	}
	return err
}

// refused reports whether err is a refusal with a code of Slack's.
func refused(err error, code string) bool {
	e, ok := errors.AsType[*channel.Error](err)
	return ok && strings.HasSuffix(e.Err.Error(), ": "+code)
}

// React sets a reaction on a message instead of the one before, or removes it.
func (b *bot) React(ctx context.Context, a chela.Address, id, emoji string) error {
	conv, err := b.conversationOf(ctx, a)
	if err != nil {
		return err
	}
	word := ""
	if emoji != "" {
		if word = emojiName(emoji); word == "" {
			return &channel.Error{Permanent: true,
				Err: errors.New("slack: the name of this emoji is not known (write it as :name:)")}
		}
	}
	key := [2]string{conv, id}
	before, remembered := b.emojis.Get(key)
	old := []string{before}
	if !remembered && emoji == "" {
		if old, err = b.reactions(ctx, conv, id); err != nil {
			return err
		}
	}
	for _, o := range old {
		if o == "" || o == word {
			continue
		}
		err := b.settled(ctx, "reactions.remove", url.Values{"channel": {conv}, "timestamp": {id}, "name": {o}}, nil)
		if err != nil && !refused(err, "no_reaction") {
			return err
		}
	}
	if word != "" {
		err := b.settled(ctx, "reactions.add", url.Values{"channel": {conv}, "timestamp": {id}, "name": {word}}, nil)
		if err != nil && !refused(err, "already_reacted") {
			return err
		}
	}
	b.emojis.Put(key, word)
	return nil
}

// reactions returns the reactions of the account on a message.
func (b *bot) reactions(ctx context.Context, conv, id string) ([]string, error) {
	if err := b.known(ctx); err != nil {
		return nil, err
	}
	var r struct {
		Message struct {
			Reactions []struct {
				Name  string   `json:"name"`
				Users []string `json:"users"`
			} `json:"reactions"`
		} `json:"message"`
	}
	if _, err := b.read(ctx, "reactions.get", url.Values{"channel": {conv}, "timestamp": {id}, "full": {"true"}},
		&r); err != nil {
		return nil, err
	}
	var out []string
	for _, x := range r.Message.Reactions {
		if slices.Contains(x.Users, b.me().User) {
			out = append(out, x.Name)
		}
	}
	return out, nil
}

// Pin pins a message, or unpins it.
func (b *bot) Pin(ctx context.Context, a chela.Address, id string, pinned bool) error {
	conv, err := b.conversationOf(ctx, a)
	if err != nil {
		return err
	}
	method, done := "pins.add", "already_pinned"
	if !pinned {
		method, done = "pins.remove", "no_pin"
	}
	if err := b.settled(ctx, method, url.Values{"channel": {conv}, "timestamp": {id}}, nil); err != nil &&
		!refused(err, done) {
		return err
	}
	return nil
}

// Read returns the last messages of a conversation or a thread.
func (b *bot) Read(ctx context.Context, a chela.Address, n int) ([]channel.Message, error) {
	conv, err := b.conversationOf(ctx, a)
	if err != nil || n <= 0 {
		return nil, err
	}
	if err := b.known(ctx); err != nil {
		return nil, err
	}
	n = min(n, maxPages*pageSize)
	limit := min(n, pageSize)
	if a.Thread != "" {
		limit = pageSize
	}
	var all []message
	_, err = b.pages(ctx, conv, a.Thread, url.Values{"limit": {strconv.Itoa(limit)}}, func(m message) bool {
		all = append(all, m)
		if a.Thread != "" { // oldest first: the last n are at the end
			if len(all) > n {
				all = all[1:]
			}
			return true
		}
		return len(all) < n
	})
	if err != nil {
		return nil, err
	}
	if a.Thread == "" {
		slices.Reverse(all)
	}
	var out []channel.Message
	for _, m := range all {
		msg := channel.Message{
			ID:     m.TS,
			Own:    b.ours(m),
			Text:   b.plain(ctx, m.Text),
			Time:   when(m.TS),
			Sender: chela.Sender{ID: m.User, Bot: m.BotID != ""},
		}
		if m.User == "" {
			msg.Sender.ID, msg.Sender.Name = m.BotID, m.Username
		} else {
			msg.Sender.Name = b.nameOf(ctx, m.User)
		}
		for _, f := range m.Files {
			msg.Text = strings.TrimSpace(msg.Text + "\n[file " + f.Name + "]")
		}
		out = append(out, msg)
	}
	return out, nil
}

// Search finds people by their names, or conversations by theirs. Without a kind it finds
// both.
func (b *bot) Search(ctx context.Context, kind chela.PeerKind, query string, n int) ([]channel.Entry, error) {
	query = strings.ToLower(strings.TrimLeft(strings.TrimSpace(query), "@#"))
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(s string) bool { return strings.Contains(strings.ToLower(s), query) })
	}
	var out []channel.Entry
	if kind == chela.Direct || kind == "" {
		err := b.list(ctx, "users.list", url.Values{}, func(r listed) bool {
			for _, u := range r.Members {
				if len(out) < n && !u.Deleted && u.ID != "USLACKBOT" && has(u.Name, u.Real, u.Profile.Display, u.Profile.Real) {
					out = append(out, channel.Entry{Peer: chela.Peer{Kind: chela.Direct, ID: u.ID}, Name: u.shown(), Handle: u.Name})
				}
			}
			return len(out) < n
		})
		if err != nil {
			return nil, err
		}
	}
	types := map[chela.PeerKind]string{
		chela.Room:  "public_channel",
		chela.Group: "private_channel,mpim",
		"":          "public_channel,private_channel,mpim",
	}[kind]
	if types == "" || len(out) >= n {
		return out, nil
	}
	err := b.list(ctx, "conversations.list", url.Values{"types": {types}, "exclude_archived": {"true"}},
		func(r listed) bool {
			for _, c := range r.Channels {
				if len(out) < n && has(c.Name) {
					out = append(out, channel.Entry{Peer: chela.Peer{Kind: c.chat().Kind, ID: c.ID}, Name: c.Name})
				}
			}
			return len(out) < n
		})
	return out, err
}

// listed is a page of people or conversations.
type listed struct {
	Members  []user         `json:"members"`
	Channels []conversation `json:"channels"`
}

// list passes pages to f until it returns false.
func (b *bot) list(ctx context.Context, method string, params url.Values, f func(listed) bool) error {
	params.Set("limit", strconv.Itoa(pageSize))
	for range maxPages {
		var r listed
		next, err := b.read(ctx, method, params, &r)
		if err != nil {
			return err
		}
		if !f(r) || next == "" {
			return nil
		}
		params.Set("cursor", next)
	}
	return nil
}
