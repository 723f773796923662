package message

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/tool"
)

// target is where a message goes: an address on a channel, or a local session.
type target struct {
	address chela.Address
	session chela.SessionKey // of a local one
}

func (t target) local() bool { return t.session != "" }

func (t target) name() string {
	if t.local() {
		return chela.LocalChannel
	}
	return t.address.Channel
}

func (t target) id() string {
	if t.local() {
		return string(t.session)
	}
	id := t.address.Peer.ID
	if t.address.Thread != "" {
		id += topic + t.address.Thread
	}
	return id
}

// String returns channel:chat.
func (t target) String() string { return t.name() + ":" + t.id() }

const topic = ":topic:"

// kinds are the words before an id that say what it is of.
var kinds = map[string]chela.PeerKind{
	"user": chela.Direct, "direct": chela.Direct, "dm": chela.Direct, "uuid": chela.Direct, "username": chela.Direct,
	"group": chela.Group, "chat": chela.Group, "chat_id": chela.Group, "conversation": chela.Group,
	"channel": chela.Room, "room": chela.Room,
}

// locals are the words for chats that clients read.
var locals = []string{chela.LocalChannel, "repl", "web", "webchat", "tui", "terminal"}

// written is a target as it was written: channel:kind:id:topic:thread, of which
// all but the id may be left out.
type written struct {
	channel string
	kind    chela.PeerKind
	id      string
	thread  string
}

// parse reads a target. A word before a colon is a channel's name unless it says
// what kind of chat it is.
func parse(s string) written {
	var w written
	s = strings.TrimSpace(s)
	if word, rest, ok := strings.Cut(s, ":"); ok && isName(word) && word != "agent" {
		if _, kind := kinds[word]; !kind {
			w.channel, s = word, rest
		}
	}
	if word, rest, ok := strings.Cut(s, ":"); ok && kinds[word] != "" {
		w.kind, s = kinds[word], rest
	}
	w.id = s
	if i := strings.LastIndex(s, topic); i >= 0 {
		w.id, w.thread = s[:i], s[i+len(topic):]
	}
	return w
}

// isName reports whether a word may be the name of a channel or a kind: ids of
// platforms that hold a colon begin otherwise.
func isName(s string) bool {
	for i, r := range s {
		if (r < 'a' || r > 'z') && (i == 0 || r != '-' && r != '_' && (r < '0' || r > '9')) {
			return false
		}
	}
	return s != ""
}

// target finds out where a message is to go.
func (t messageTool) target(ctx context.Context, c tool.Call, a args) (target, error) {
	here, err := t.here(ctx, c)
	if err != nil {
		return target{}, err
	}
	w := parse(a.To)
	w.thread = cmp.Or(a.Thread, w.thread)
	named := strings.ToLower(strings.TrimSpace(a.Channel))
	if named != "" && w.channel != "" && named != w.channel {
		return target{}, fmt.Errorf("the target %q is on %s, and the channel is %s: leave one of them out", a.To, w.channel, named)
	}
	name := cmp.Or(named, w.channel)
	if strings.HasPrefix(w.id, "agent:") && name == "" || slices.Contains(locals, name) || name == "" && w.id == "" && here.Local() {
		return t.session(ctx, c, here, w.id)
	}
	if name == "" {
		if name, err = t.only(here); err != nil {
			return target{}, err
		}
	}
	if err := t.running(name); err != nil {
		return target{}, err
	}
	to, err := t.chat(ctx, c, here, name, w)
	if err != nil {
		return target{}, err
	}
	if a.Account != "" {
		to.address.Account = chela.AccountID(a.Account)
	}
	return to, t.allowed(here, to)
}

// only returns the channel that is meant when none is named: that of this chat,
// or the only one.
func (t messageTool) only(here chela.Address) (string, error) {
	if !here.Local() {
		return here.Channel, nil
	}
	names := t.names()
	switch len(names) {
	case 1:
		return names[0], nil
	case 0:
		return "", errors.New("no channel is configured; there is only this local chat, which reads your answer (channel local)")
	}
	return "", fmt.Errorf("channel: which one? There are %s", strings.Join(names, ", "))
}

func (t messageTool) names() []string { return slices.Sorted(maps.Keys(t.Channels())) }

// running returns why a channel cannot be sent to.
func (t messageTool) running(name string) error {
	why, ok := t.Channels()[name]
	switch {
	case ok && why == "":
		return nil
	case ok:
		return fmt.Errorf("channel %s is not running: %s", name, why)
	}
	if names := t.names(); len(names) > 0 {
		return fmt.Errorf("there is no channel %q; there are %s, and local", name, strings.Join(names, ", "))
	}
	return fmt.Errorf("there is no channel %q: none is configured; there are local sessions only (channel local)", name)
}

// chat returns the chat of that id on a channel. One that has written before is
// known with its account and kind.
func (t messageTool) chat(ctx context.Context, c tool.Call, here chela.Address, name string, w written) (target, error) {
	if here.Channel == name && (w.id == "" || w.id == here.Peer.ID) && (w.kind == "" || w.kind == here.Peer.Kind) {
		here.Thread = cmp.Or(w.thread, here.Thread)
		return target{address: here}, nil
	}
	if w.id == "" {
		return target{}, fmt.Errorf("to: which chat on %s?", name)
	}
	known, err := t.known(ctx, c.Agent, name)
	if err != nil {
		return target{}, err
	}
	to := chela.Address{Channel: name, Peer: chela.Peer{Kind: cmp.Or(w.kind, chela.Direct), ID: w.id}, Thread: w.thread}
	if here.Channel == name {
		to.Account = here.Account
	}
	for _, k := range known {
		if k.Peer.ID == w.id && (w.kind == "" || w.kind == k.Peer.Kind) {
			to.Account, to.Peer = k.Account, k.Peer
			break
		}
	}
	return target{address: to}, nil
}

// known returns the addresses on a channel from which somebody has written, the
// latest first.
func (t messageTool) known(ctx context.Context, agent chela.AgentID, name string) ([]chela.Address, error) {
	var out []chela.Address
	err := t.Store.View(ctx, func(r store.Reader) error {
		out = nil
		list, _, err := r.Sessions().List(session.Query{Agent: agent, Archived: session.ArchivedToo, Limit: 1000})
		for _, m := range list {
			if m.Address.Channel == name {
				out = append(out, m.Address)
			}
		}
		return err
	})
	return out, err
}

// session returns a local chat: this one, or the one with that key.
func (t messageTool) session(ctx context.Context, c tool.Call, here chela.Address, key string) (target, error) {
	to := target{session: c.Session}
	if key != "" && key != "default" {
		k, err := chela.ParseSessionKey(key, c.Agent)
		if err != nil {
			return to, err
		}
		to.session = k
	}
	if to.session.Agent() != c.Agent {
		return to, fmt.Errorf("session %s is another agent's", to.session)
	}
	err := t.Store.View(ctx, func(r store.Reader) error {
		_, err := r.Sessions().Get(to.session)
		return err
	})
	if errors.Is(err, chela.ErrNotFound) {
		return to, fmt.Errorf("there is no session %s", to.session)
	}
	if err == nil && !here.Local() && to.session != c.Session {
		err = t.allowed(here, to)
	}
	return to, err
}

// allowed holds what a chat on a channel may have others told. The local chats
// are the owner's: they may write everywhere.
func (t messageTool) allowed(here chela.Address, to target) error {
	if here.Local() {
		return nil
	}
	if to.name() != here.Channel {
		if t.Cross.Across {
			return nil
		}
		return fmt.Errorf("from %s nothing may be sent to %s (tools.message.crossContext.allowAcrossProviders)", here.Channel, to.name())
	}
	if to.address.Peer != here.Peer && t.Cross.Within != nil && !*t.Cross.Within {
		return fmt.Errorf("from this chat nothing may be sent to others on %s (tools.message.crossContext.allowWithinProvider)", here.Channel)
	}
	return nil
}
