package discord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

const (
	maxQuestion = 300 // runes
	maxChoice   = 55  // runes
	maxAnswers  = 10
	maxPollTime = 32 * 24 // hours
	maxName     = 100     // runes of the name of a thread
	maxRead     = 100     // messages
	maxFound    = 100     // entries of a directory
	maxGuilds   = 20      // that a directory looks into
	typeThread  = 11
)

// Probe implements channel.Prober.
func (b *bot) Probe(ctx context.Context) error {
	var u user
	if err := b.do(ctx, "GET", "/users/@me", nil, &u); err != nil {
		return err
	}
	if !snowflake(u.ID) {
		return errors.New("discord: the account has no id")
	}
	return nil
}

// pollDraft is a poll to be sent.
type pollDraft struct {
	Question pollText     `json:"question"`
	Answers  []pollAnswer `json:"answers"`
	Hours    int          `json:"duration"`
	Multiple bool         `json:"allow_multiselect"`
}

type pollText struct {
	Text string `json:"text"`
}

type pollAnswer struct {
	Media pollText `json:"poll_media"`
}

// Poll implements channel.Poller. Discord's polls are public, have at most 10 answers, and
// are open for at most 32 days.
func (b *bot) Poll(ctx context.Context, p channel.Poll) (channel.Receipt, error) {
	if n := len(p.Options); n > maxAnswers {
		return channel.Receipt{}, refused("the poll has %d answers: want at most %d", n, maxAnswers)
	}
	hours := int((p.Open + time.Hour - 1) / time.Hour)
	if p.Open <= 0 {
		hours = maxPollTime
	}
	d := &pollDraft{Question: pollText{truncate(p.Question, maxQuestion)},
		Hours: min(max(hours, 1), maxPollTime), Multiple: p.Multiple}
	for _, o := range p.Options {
		d.Answers = append(d.Answers, pollAnswer{pollText{truncate(o, maxChoice)}})
	}
	at, err := b.chat(ctx, p.Address)
	if err != nil {
		return channel.Receipt{}, err
	}
	return b.post(ctx, at, p.Key, []draft{{Poll: d}})
}

// Thread implements channel.Threader. In a thread it makes another one beside it.
func (b *bot) Thread(ctx context.Context, a chela.Address, name string) (chela.Address, error) {
	if a.Peer.Kind == chela.Direct {
		return a, refused("a direct chat has no threads")
	}
	a.Thread = ""
	parent, err := b.room(ctx, a.Peer.ID)
	if err != nil {
		return a, err
	}
	name = truncate(humanize.OneLine(name), maxName)
	if name == "" {
		return a, refused("the thread has no name")
	}
	in := map[string]any{"name": name, "auto_archive_duration": 1440}
	if parent.Type == typeForum || parent.Type == typeMediaChannel {
		in["message"] = map[string]any{"content": name, "allowed_mentions": mentions{[]string{}}}
	} else {
		in["type"] = typeThread
	}
	var p room
	if err := b.do(ctx, "POST", "/channels/"+parent.ID+"/threads", in, &p); err != nil {
		return a, err
	}
	if !snowflake(p.ID) {
		return a, errors.New("discord: the thread has no id")
	}
	p.Type, p.Parent, p.Name = typeThread, parent.ID, cmp.Or(p.Name, name)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.channels.put(p.ID, p)
	a.Thread = p.ID
	return a, nil
}

// Read implements channel.Reader. It returns at most 100 messages.
func (b *bot) Read(ctx context.Context, a chela.Address, n int) ([]channel.Message, error) {
	if n < 1 {
		return nil, nil
	}
	var list []message
	if err := b.onChat(ctx, a, "", "GET", fmt.Sprintf("/messages?limit=%d", min(n, maxRead)), nil, &list); err != nil {
		return nil, err
	}
	self, err := b.identify(ctx)
	if err != nil {
		return nil, err
	}
	var out []channel.Message
	for _, m := range slices.Backward(list) {
		if m.Author == nil {
			continue
		}
		text := m.text(m.Content)
		for _, at := range m.Attachments {
			text = strings.TrimLeft(text+"\n[attachment "+at.Name+"]", "\n")
		}
		out = append(out, channel.Message{
			ID:     m.ID,
			Sender: m.Author.sender(""),
			Own:    m.Author.ID == self.ID,
			Text:   text,
			Time:   m.Time,
		})
	}
	return out, nil
}

// identify returns who the account is, and asks Discord if it is not known.
func (b *bot) identify(ctx context.Context) (user, error) {
	if self := b.me(); self.ID != "" {
		return self, nil
	}
	var self user
	if err := b.do(ctx, "GET", "/users/@me", nil, &self); err != nil {
		return user{}, err
	}
	b.know(self, "")
	return self, nil
}

// Search implements channel.Directory. It looks into the first 20 guilds of the account.
func (b *bot) Search(ctx context.Context, kind chela.PeerKind, query string, n int) ([]channel.Entry, error) {
	n = min(n, maxFound)
	if n < 1 || kind == chela.Group {
		return nil, nil
	}
	var guilds []struct {
		ID string `json:"id"`
	}
	if err := b.do(ctx, "GET", fmt.Sprintf("/users/@me/guilds?limit=%d", maxGuilds), nil, &guilds); err != nil {
		return nil, err
	}
	var out []channel.Entry
	seen := map[string]bool{}
	for _, g := range guilds {
		if !snowflake(g.ID) {
			continue
		}
		var found []channel.Entry
		var err error
		if kind == chela.Room || kind == "" {
			found, err = b.rooms(ctx, g.ID, query)
		}
		if err == nil && kind != chela.Room {
			var more []channel.Entry
			more, err = b.people(ctx, g.ID, query, n)
			found = append(found, more...)
		}
		if err != nil {
			return out, err
		}
		for _, e := range found {
			if seen[e.Peer.ID] {
				continue
			}
			if seen[e.Peer.ID] = true; len(out) < n {
				out = append(out, e)
			}
		}
		if len(out) == n {
			break
		}
	}
	return out, nil
}

// rooms returns the channels of a guild whose names contain the query.
func (b *bot) rooms(ctx context.Context, guild, query string) (out []channel.Entry, err error) {
	var list []room
	if err := b.do(ctx, "GET", "/guilds/"+guild+"/channels", nil, &list); err != nil {
		return nil, err
	}
	query = strings.ToLower(strings.TrimPrefix(query, "#"))
	for _, p := range list {
		const category = 4
		if snowflake(p.ID) && p.Type != category && strings.Contains(strings.ToLower(p.Name), query) {
			out = append(out, channel.Entry{Peer: chela.Peer{Kind: chela.Room, ID: p.ID}, Name: p.Name})
		}
	}
	return out, nil
}

// people returns the members of a guild whose names begin with the query.
func (b *bot) people(ctx context.Context, guild, query string, n int) (out []channel.Entry, err error) {
	self, err := b.identify(ctx)
	if err != nil {
		return nil, err
	}
	path := fmt.Sprintf("/guilds/%s/members?limit=%d", guild, n)
	if query = strings.TrimPrefix(query, "@"); query != "" {
		path = fmt.Sprintf("/guilds/%s/members/search?limit=%d&query=%s", guild, n, url.QueryEscape(query))
	}
	var list []member
	if err := b.do(ctx, "GET", path, nil, &list); err != nil {
		return nil, err
	}
	for _, m := range list {
		if m.User == nil || !snowflake(m.User.ID) || m.User.ID == self.ID {
			continue
		}
		out = append(out, channel.Entry{
			Peer: chela.Peer{Kind: chela.Direct, ID: m.User.ID}, Name: m.User.sender(m.Nick).Name, Handle: m.User.Username,
		})
	}
	return out, nil
}

// Fetch implements channel.Fetcher. It gets content from Discord's hosts only, and follows
// no redirects.
func (b *bot) Fetch(ctx context.Context, m chela.Media, most int) (chela.Media, error) {
	u, err := url.Parse(m.Source)
	if err != nil || !b.content(u) {
		return m, refused("the address of the attachment %q is not one of Discord", m.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, fileTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, m.Source, nil)
	if err != nil {
		return m, refused("the address of the attachment %q is not valid", m.Name)
	}
	r.Header.Set("User-Agent", userAgent)
	c := *b.http
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	a, err := channel.Call(&c, r, int64(most))
	if err != nil && (a.Status == 0 || a.Status == http.StatusOK) { // otherwise the page about the error is too long
		return m, fmt.Errorf("discord: get the attachment %q: %w", m.Name, withoutURL(err))
	}
	err = fmt.Errorf("discord: get the attachment %q: %d %s", m.Name, a.Status, http.StatusText(a.Status))
	switch {
	case a.Status == http.StatusOK:
		m.Data, m.Source, m.Bytes = a.Body, "", 0
		m.Type = cmp.Or(m.Type, a.Header.Get("Content-Type"))
		return m, nil
	case a.Status == http.StatusNotFound || a.Status == http.StatusForbidden || a.Status == http.StatusGone:
		return m, &channel.Error{Permanent: true, Err: fmt.Errorf("%w: %w", err, channel.ErrGone)}
	case a.Status == http.StatusTooManyRequests || a.Status >= 500:
		return m, &channel.Error{RetryAfter: a.RetryAfter(), Err: err}
	}
	return m, &channel.Error{Permanent: true, Err: err}
}
