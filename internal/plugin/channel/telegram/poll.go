package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/kit/backoff"
)

const (
	pollTime   = 30 * time.Second // how long Telegram waits for an update
	maxUpdates = 100              // of one answer
	maxAlbum   = 10               // messages
	albumTime  = time.Second      // how long the next message of an album is awaited
)

// allowedUpdates are the kinds of updates that the bot receives.
var allowedUpdates = []string{"message", "edited_message", "channel_post", "edited_channel_post",
	"callback_query", "message_reaction"}

// poll asks for updates from the cursor on until a call fails.
func (b *bot) poll(ctx context.Context, sink channel.Sink, c *cursor, up func()) error {
	// Telegram refuses getUpdates while a webhook is set, as by an earlier configuration.
	if err := b.api.call(ctx, "deleteWebhook", params{"drop_pending_updates": false}, nil); err != nil {
		return transient(err)
	}
	up = sync.OnceFunc(up)
	for {
		wait := pollTime
		if c.waits {
			wait = 0
		}
		var raw []json.RawMessage
		in := params{"offset": c.offset, "limit": maxUpdates, "timeout": int(wait.Seconds()),
			"allowed_updates": allowedUpdates}
		// Telegram answers after wait at the latest; the rest is for the network.
		if err := b.api.callWithin(ctx, wait+15*time.Second, "getUpdates", in, &raw); err != nil {
			return transient(err)
		}
		up()
		if err := b.batch(ctx, sink, c, raw); err != nil {
			return err
		}
		if c.waits {
			if err := backoff.Sleep(ctx, albumTime); err != nil {
				return err
			}
		}
	}
}

// cursor is the position in the updates.
type cursor struct {
	offset int64 // of the first update that is not confirmed
	// The messages of an album are updates of their own, which may be in different
	// answers. An album is passed on when no further message has come in albumTime; until
	// then the offset stays before it.
	waits bool           // for further messages of an album
	sizes map[string]int // of the albums in the last answer
	ahead map[int64]bool // updates after the offset that were accepted, as messages of an album
}

// batch passes the updates of one answer on, and moves the cursor.
//
// The cursor moves update by update, after each was accepted: an error, or a kill, makes Telegram
// deliver the rest again. Messages of an album that were accepted before it was their turn are in
// ahead, and are then passed over.
func (b *bot) batch(ctx context.Context, sink channel.Sink, c *cursor, raw []json.RawMessage) error {
	updates := make([]*update, 0, len(raw))
	albums := map[string][]*update{}
	for _, r := range raw {
		u := parseUpdate(r)
		if u.ID == 0 {
			continue
		}
		updates = append(updates, u)
		if key := u.album(); key != "" && !c.ahead[u.ID] {
			albums[key] = append(albums[key], u)
		}
	}
	if len(updates) == 0 && len(raw) > 0 {
		return errors.New("telegram getUpdates: the updates have no ids")
	}
	sizes := c.sizes
	c.waits, c.sizes = false, map[string]int{}
	next := int64(0)
	for _, u := range updates {
		group := []*update{u}
		if key := u.album(); key != "" {
			group = albums[key]
			// The album is complete if it did not grow between two answers. A full answer
			// cannot show more of it as long as the offset stays.
			if n := len(group); n > 0 && n < maxAlbum && sizes[key] != n && len(raw) < maxUpdates {
				c.waits = true
				for key, list := range albums {
					c.sizes[key] = len(list)
				}
				c.confirm(u.ID)
				return nil
			}
			albums[key] = nil
		}
		if !c.ahead[u.ID] && len(group) > 0 {
			if err := b.pass(ctx, sink, group); err != nil {
				return err
			}
			for _, item := range group {
				c.ahead[item.ID] = true
			}
		}
		// Telegram may begin with lower ids after a week without updates.
		next = max(next, u.ID+1)
		c.offset = next
	}
	if next != 0 {
		c.confirm(next)
	}
	return nil
}

// confirm moves the offset.
func (c *cursor) confirm(offset int64) {
	c.offset = offset
	for id := range c.ahead {
		if id < offset {
			delete(c.ahead, id)
		}
	}
}

// pass passes the message of updates on until it is accepted or refused for good.
func (b *bot) pass(ctx context.Context, sink channel.Sink, group []*update) error {
	in, ok := b.inbound(group)
	if ok {
		log := b.env.Log.With("chat", in.Address.Peer.ID, "message", in.ID)
		if err := channel.Accept(ctx, log, func(ctx context.Context) error { return sink(ctx, in) }); err != nil {
			return err
		}
	}
	b.answerCallback(ctx, group[0])
	return nil
}

// answerCallback ends the waiting indicator of a pressed button.
func (b *bot) answerCallback(ctx context.Context, u *update) {
	if u.Callback == nil || u.Callback.ID == "" {
		return
	}
	if err := b.api.callWithin(ctx, 10*time.Second, "answerCallbackQuery", params{"callback_query_id": u.Callback.ID},
		nil); err != nil {
		b.env.Log.Debug("press of a button not answered", "err", err) // it expires by itself
	}
}
