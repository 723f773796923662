package matrix

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
)

const (
	poll       = 30 * time.Second // of a request to /sync
	perRoom    = 50               // messages of a room in an answer
	maxGap     = 500              // messages of a room that are read when an answer has a gap
	maxInvites = 100              // invitations that are remembered
	maxRooms   = 10_000           // rooms that are remembered
)

// filter limits the answers of /sync to what is used.
var filter = `{"presence":{"types":[]},"account_data":{"types":["m.direct"]},"room":{"account_data":{"types":[]},"ephemeral":{"types":[]},` +
	`"state":{"lazy_load_members":true,"types":["m.room.member","m.room.name","m.room.encryption"]},` +
	`"timeline":{"lazy_load_members":true,"limit":` + strconv.Itoa(perRoom) + `}}}`

// answer is an answer of /sync.
type answer struct {
	Next        string `json:"next_batch"`
	AccountData struct {
		Events []event `json:"events"`
	} `json:"account_data"`
	Rooms struct {
		Join   map[string]joined  `json:"join"`
		Invite map[string]invited `json:"invite"`
		Leave  map[string]any     `json:"leave"`
	} `json:"rooms"`
}

// joined is a room that the account is in.
type joined struct {
	State struct {
		Events []event `json:"events"`
	} `json:"state"`
	Timeline struct {
		Events  []event `json:"events"`
		Limited bool    `json:"limited"`
		Before  string  `json:"prev_batch"`
	} `json:"timeline"`
}

// invited is a room that the account is invited to.
type invited struct {
	State struct {
		Events []event `json:"events"`
	} `json:"invite_state"`
}

// Run implements channel.Channel.
func (b *bot) Run(ctx context.Context, sink channel.Sink) error {
	return channel.Reconnect(ctx, b.env, func(ctx context.Context, up func()) error {
		if err := b.session(ctx); err != nil {
			return err
		}
		for first := true; ; first = false {
			if err := b.sync(ctx, sink, first); err != nil {
				return b.expired(err)
			}
			if first {
				up()
			}
		}
	})
}

// sync makes one request to /sync and passes on what it answers. The first request after
// a pause does not wait for news.
//
// The position is stored when every room was passed on. A kill before that repeats the answer,
// whose messages have the same ids. Without a position the rooms are skipped: their messages are
// older than the account here.
func (b *bot) sync(ctx context.Context, sink channel.Sink, first bool) error {
	b.mu.Lock()
	since := b.state.Since
	b.mu.Unlock()
	q := url.Values{"filter": {filter}, "timeout": {strconv.FormatInt(poll.Milliseconds(), 10)}}
	if first {
		q.Set("timeout", "0")
	}
	if since != "" {
		q.Set("since", since)
	}
	var a answer
	rctx, cancel := context.WithTimeout(ctx, poll+timeout)
	err := b.do(rctx, http.MethodGet, "/_matrix/client/v3/sync", q, "", nil, maxSync, &a)
	cancel()
	if err != nil {
		return err
	}
	if a.Next == "" {
		return errors.New("matrix: the answer of /sync has no next_batch")
	}
	b.noteDirect(a.AccountData.Events)
	for id := range a.Rooms.Leave {
		b.dropRoom(id)
	}
	for _, id := range slices.Sorted(maps.Keys(a.Rooms.Join)) {
		j := a.Rooms.Join[id]
		if since == "" {
			continue
		}
		if err := b.room(ctx, sink, id, j, since); err != nil {
			return err
		}
	}
	if a.Next != since {
		if err := b.saveState(a.Next); err != nil {
			return err
		}
	}
	return b.invitations(ctx, a.Rooms.Invite)
}

// noteDirect stores the account data about direct rooms.
func (b *bot) noteDirect(events []event) {
	for _, e := range events {
		direct := map[string][]string{}
		if e.Type == "m.direct" && json.Unmarshal(e.Content, &direct) == nil {
			b.mu.Lock()
			b.direct = direct
			b.mu.Unlock()
		}
	}
}

// room passes on the messages of a room.
func (b *bot) room(ctx context.Context, sink channel.Sink, id string, j joined, since string) error {
	me := b.user()
	events, entered := j.Timeline.Events, false
	for _, e := range j.State.Events {
		b.noteState(id, e)
	}
	for i, e := range j.Timeline.Events {
		b.noteState(id, e)
		if e.joins(me) {
			events, entered = j.Timeline.Events[i+1:], true // older messages are not for the account
		}
	}
	if j.Timeline.Limited && !entered && j.Timeline.Before != "" {
		missed, err := b.missed(ctx, id, since, j.Timeline.Before)
		if err != nil && !final(err) {
			return err
		}
		if err != nil {
			b.env.Log.Warn("missed messages cannot be read", "room", id, "err", err)
		}
		events = append(missed, events...)
	}
	last := ""
	for _, e := range events {
		if e.Sender == me || e.State != nil || e.ID == "" {
			continue
		}
		if e.Type == "m.room.encrypted" {
			if !b.told[id] && len(b.told) < maxRooms {
				b.told[id] = true
				b.env.Log.Warn("messages of an encrypted room cannot be read; create a room without encryption", "room", id)
			}
			continue
		}
		in, ok, err := b.inbound(ctx, id, e)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		log := b.env.Log.With("id", in.ID)
		if err := channel.Accept(ctx, log, func(ctx context.Context) error { return sink(ctx, in) }); err != nil {
			return err
		}
		last = e.ID
	}
	if last != "" {
		b.markRead(ctx, id, last)
	}
	return nil
}

// missed returns the messages of a room between two positions, oldest first; if there are
// too many, the newest ones.
func (b *bot) missed(ctx context.Context, id, since, before string) ([]event, error) {
	var out []event
	for from := before; len(out) < maxGap; {
		var page struct {
			Chunk []event `json:"chunk"`
			End   string  `json:"end"`
		}
		q := url.Values{"dir": {"b"}, "from": {from}, "to": {since}, "limit": {"100"}}
		if err := b.get(ctx, path("/_matrix/client/v3/rooms/%s/messages", id), q, &page); err != nil {
			return nil, err
		}
		me := b.user()
		for _, e := range page.Chunk {
			if e.joins(me) {
				page.End = ""
				break
			}
			out = append(out, e)
		}
		if page.End == "" || page.End == from || len(page.Chunk) == 0 {
			break
		}
		from = page.End
	}
	slices.Reverse(out)
	return out, nil
}

// markRead marks the messages of a room up to id as read. It is not important.
func (b *bot) markRead(ctx context.Context, room, id string) {
	err := b.call(ctx, http.MethodPost, path("/_matrix/client/v3/rooms/%s/receipt/m.read/%s", room, id), nil,
		struct{}{}, &struct{}{})
	if err != nil {
		b.env.Log.Debug("messages not marked as read", "room", room, "err", err)
	}
}

// invitations accepts the invitations that the configuration permits.
func (b *bot) invitations(ctx context.Context, invited map[string]invited) error {
	me := b.user()
	for id, in := range invited {
		if len(b.invites) >= maxInvites {
			break
		}
		for _, e := range in.State.Events {
			if e.Type == "m.room.member" && e.State != nil && *e.State == me {
				if b.mayJoin(ctx, id, e.Sender) {
					b.invites[id] = e.Sender
				} else {
					b.env.Log.Info("invitation not accepted (see channels.matrix.autoJoin)", "room", id, "from", e.Sender)
				}
			}
		}
	}
	for id, from := range b.invites {
		err := b.call(ctx, http.MethodPost, path("/_matrix/client/v3/rooms/%s/join", id), nil, struct{}{}, &struct{}{})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if is(err, "M_UNKNOWN_TOKEN") {
			return err
		}
		refused, _ := errors.AsType[*channel.Error](err)
		if err == nil || refused != nil && refused.Permanent {
			delete(b.invites, id)
		}
		if err != nil {
			b.env.Log.Warn("cannot join a room", "room", id, "from", from, "err", err)
			continue
		}
		b.dropRoom(id)
		b.env.Log.Info("joined a room", "room", id, "from", from)
	}
	return nil
}

// mayJoin reports whether the invitation of a person to a room is accepted. What an
// invitation says about the room is not trusted.
func (b *bot) mayJoin(ctx context.Context, id, from string) bool {
	if b.c.AutoJoin != "allowlist" {
		return b.c.AutoJoin == "always"
	}
	return slices.ContainsFunc(b.c.AutoJoinAllowlist, func(name string) bool {
		if strings.HasPrefix(name, "#") {
			room, err := b.resolve(ctx, name)
			return err == nil && room == id
		}
		return name == "*" || name == id || name == from
	})
}

// user returns the user id of the account.
func (b *bot) user() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.me
}
