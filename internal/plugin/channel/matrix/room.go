package matrix

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/chela"
)

// room is what is known about a room.
type room struct {
	title     string
	other     string            // the other person in a room of two; empty: it is a group
	names     map[string]string // display names of the members
	encrypted bool
}

// known returns what is known about a room, and asks the homeserver if nothing is. What is known
// is dropped when an event changes it; see noteState.
func (b *bot) known(ctx context.Context, id string) (*room, error) {
	b.mu.Lock()
	r := b.rooms[id]
	b.mu.Unlock()
	if r != nil {
		return r, nil
	}
	r = &room{names: map[string]string{}}
	var members struct {
		Joined map[string]struct {
			Name string `json:"display_name"`
		} `json:"joined"`
	}
	mctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := b.do(mctx, http.MethodGet, path("/_matrix/client/v3/rooms/%s/joined_members", id), nil, "", nil, maxSync,
		&members); err != nil {
		return nil, err
	}
	me := b.user()
	for user, m := range members.Joined {
		r.names[user] = m.Name
		if user != me && len(members.Joined) == 2 {
			r.other = user
		}
	}
	var name struct {
		Name string `json:"name"`
	}
	if err := b.stateOf(ctx, id, "m.room.name", &name); err != nil {
		return nil, err
	}
	r.title = name.Name
	var encryption struct {
		Algorithm string `json:"algorithm"`
	}
	if err := b.stateOf(ctx, id, "m.room.encryption", &encryption); err != nil {
		return nil, err
	}
	r.encrypted = encryption.Algorithm != ""
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.rooms) >= maxRooms {
		clear(b.rooms)
	}
	b.rooms[id] = r
	return r, nil
}

// stateOf reads the content of a state event. If there is none, out is not changed.
func (b *bot) stateOf(ctx context.Context, id, kind string, out any) error {
	err := b.get(ctx, path("/_matrix/client/v3/rooms/%s/state/%s", id, kind), nil, out)
	if errors.Is(err, channel.ErrGone) {
		return nil
	}
	return err
}

// noteState forgets what is known about a room if an event changes it.
func (b *bot) noteState(id string, e event) {
	if e.State == nil {
		return
	}
	switch e.Type {
	case "m.room.member":
		var c struct {
			Membership string `json:"membership"`
			Name       string `json:"displayname"`
		}
		b.mu.Lock()
		r := b.rooms[id]
		same := false
		if r != nil && json.Unmarshal(e.Content, &c) == nil {
			name, member := r.names[*e.State]
			same = member == (c.Membership == "join") && (!member || name == c.Name)
		}
		b.mu.Unlock()
		if !same {
			b.dropRoom(id)
		}
	case "m.room.name", "m.room.encryption":
		b.dropRoom(id)
	}
}

func (b *bot) dropRoom(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.rooms, id)
}

// address returns the address of a message of a person in a room.
func (b *bot) address(id, thread string, r *room) chela.Address {
	a := chela.Address{Channel: Name, Account: b.account, Peer: chela.Peer{Kind: chela.Group, ID: id}, Thread: thread}
	if r.other != "" {
		a.Peer = chela.Peer{Kind: chela.Direct, ID: r.other}
		b.mu.Lock()
		defer b.mu.Unlock()
		if _, ok := b.state.Direct[r.other]; ok || len(b.state.Direct) < maxDirect {
			b.state.Direct[r.other] = id
		}
	}
	return a
}

// roomOf returns the id of the room of an address. It creates a room for a person with
// whom there is none.
func (b *bot) roomOf(ctx context.Context, a chela.Address) (string, error) {
	if err := b.session(ctx); err != nil {
		return "", err
	}
	id := a.Peer.ID
	switch {
	case strings.HasPrefix(id, "#"):
		return b.resolve(ctx, id)
	case a.Peer.Kind != chela.Direct || strings.HasPrefix(id, "!"):
		return id, nil
	}
	b.create.Lock()
	defer b.create.Unlock()
	b.mu.Lock()
	candidates := slices.Clone(b.direct[id])
	if last := b.state.Direct[id]; last != "" {
		candidates = append(candidates, last)
	}
	b.mu.Unlock()
	for _, c := range slices.Backward(candidates) { // the last one is the room that was used last
		r, err := b.known(ctx, c)
		if err == nil && r.other == id && !r.encrypted {
			return c, nil
		}
		if refused, ok := errors.AsType[*channel.Error](err); err != nil && (!ok || !refused.Permanent) {
			return "", err
		}
	}
	return b.createDirect(ctx, id)
}

// resolve returns the id of a room that has an alias.
func (b *bot) resolve(ctx context.Context, alias string) (string, error) {
	var out struct {
		RoomID string `json:"room_id"`
	}
	err := b.get(ctx, path("/_matrix/client/v3/directory/room/%s", alias), nil, &out)
	return out.RoomID, err
}

// createDirect creates a room with a person. The person is invited to it. The account data at the
// homeserver name it, so that a process that was killed afterwards finds it again.
func (b *bot) createDirect(ctx context.Context, user string) (string, error) {
	if !strings.HasPrefix(user, "@") || !strings.Contains(user, ":") {
		return "", &channel.Error{Permanent: true, Err: fmt.Errorf("matrix: %q is not a user id such as @ann:example.org",
			user)}
	}
	var out struct {
		RoomID string `json:"room_id"`
	}
	in := map[string]any{"is_direct": true, "preset": "trusted_private_chat", "invite": []string{user}}
	if err := b.call(ctx, http.MethodPost, "/_matrix/client/v3/createRoom", nil, in, &out); err != nil {
		return "", err
	}
	b.mu.Lock()
	me := b.me
	b.rooms[out.RoomID] = &room{other: user, names: map[string]string{me: b.shown}}
	b.state.Direct[user] = out.RoomID
	b.direct[user] = append(b.direct[user], out.RoomID)
	data, err := json.Marshal(b.direct)
	b.mu.Unlock()
	if err != nil {
		return "", err
	}
	// Clients show the room as a direct chat because of this. The chat works without it.
	if err := b.call(ctx, http.MethodPut, path("/_matrix/client/v3/user/%s/account_data/m.direct", me), nil,
		json.RawMessage(data), &struct{}{}); err != nil {
		b.env.Log.Debug("room not marked as direct", "room", out.RoomID, "err", err)
	}
	return out.RoomID, nil
}

// Read implements channel.Reader.
func (b *bot) Read(ctx context.Context, a chela.Address, n int) ([]channel.Message, error) {
	id, err := b.roomOf(ctx, a)
	if err != nil {
		return nil, err
	}
	r, err := b.known(ctx, id)
	if err != nil {
		return nil, err
	}
	events, err := b.latest(ctx, id)
	if err != nil {
		return nil, err
	}
	edits := map[string]string{}
	var out []channel.Message
	for _, e := range events {
		c := e.content()
		switch {
		case len(out) >= n || e.Type != "m.room.message" || e.State != nil || c.MsgType == "":
		case c.Relates.Type == "m.replace":
			if _, newer := edits[e.Sender+c.Relates.ID]; !newer {
				edits[e.Sender+c.Relates.ID] = c.New.Body
			}
		case c.Relates.Type == "m.thread" && c.Relates.ID != a.Thread, a.Thread != "" &&
			c.Relates.ID != a.Thread && e.ID != a.Thread:
		default:
			text := c.text()
			if edited, ok := edits[e.Sender+e.ID]; ok {
				text = edited
			}
			out = append(out, channel.Message{
				ID:     e.ID,
				Sender: r.sender(e, c),
				Own:    e.Sender == b.user(),
				Text:   text,
				Time:   e.time(),
			})
		}
	}
	slices.Reverse(out)
	return out, nil
}

// latest returns the last events of a room, newest first.
func (b *bot) latest(ctx context.Context, id string) ([]event, error) {
	var page struct {
		Chunk []event `json:"chunk"`
	}
	err := b.get(ctx, path("/_matrix/client/v3/rooms/%s/messages", id), url.Values{"dir": {"b"}, "limit": {"100"}}, &page)
	return page.Chunk, err
}
