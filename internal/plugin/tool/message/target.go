package message

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
)

// target is the destination of a message: an address on a channel, or a local
// session.
type target struct {
	address chela.Address
	session chela.SessionKey // set for a local session
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

// kinds are the prefixes of ids that name the kind of chat.
var kinds = map[string]chela.PeerKind{
	"user": chela.Direct, "direct": chela.Direct, "dm": chela.Direct, "uuid": chela.Direct, "username": chela.Direct,
	"group": chela.Group, "chat": chela.Group, "chat_id": chela.Group, "conversation": chela.Group,
	"channel": chela.Room, "room": chela.Room,
}

// localNames are the channel names for chats that clients read.
var localNames = []string{chela.LocalChannel, "repl", "web", "webchat", "tui", "terminal"}

// parsedTarget is a target as written: channel:kind:id:topic:thread.
// Everything except the id is optional.
type parsedTarget struct {
	channel string
	kind    chela.PeerKind
	id      string
	thread  string
}

// parse parses a target. A word before a colon is the name of a channel
// unless it names a kind of chat.
func parse(s string) parsedTarget {
	var w parsedTarget
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

// isName reports whether a word may be the name of a channel or a kind.
// Platform ids that contain a colon begin with other characters.
func isName(s string) bool {
	for i, r := range s {
		if (r < 'a' || r > 'z') && (i == 0 || r != '-' && r != '_' && (r < '0' || r > '9')) {
			return false
		}
	}
	return s != ""
}

// target determines the destination of a message.
func (t messageTool) target(ctx context.Context, c tool.Call, a args) (target, error) {
	here, err := t.replyAddress(ctx, c)
	if err != nil {
		return target{}, err
	}
	w := parse(a.To)
	w.thread = cmp.Or(a.Thread, w.thread)
	named := strings.ToLower(strings.TrimSpace(a.Channel))
	if named != "" && w.channel != "" && named != w.channel {
		return target{}, fmt.Errorf("the target %q is on %s, but the channel is %s; omit one of them", a.To, w.channel, named)
	}
	name := cmp.Or(named, w.channel)
	if strings.HasPrefix(w.id, "agent:") && name == "" || slices.Contains(localNames, name) || name == "" && w.id == "" && here.Local() {
		return t.session(ctx, c, here, w.id)
	}
	if name == "" {
		if name, err = t.defaultChannel(here); err != nil {
			return target{}, err
		}
	}
	if err := t.checkRunning(name); err != nil {
		return target{}, err
	}
	to, err := t.chat(ctx, c, here, name, w)
	if err != nil {
		return target{}, err
	}
	if a.Account != "" {
		to.address.Account = chela.AccountID(a.Account)
	}
	return to, t.checkCross(here, to)
}

// defaultChannel returns the channel to use if none is named: that of this
// chat, or the only one configured.
func (t messageTool) defaultChannel(here chela.Address) (string, error) {
	if !here.Local() {
		return here.Channel, nil
	}
	names := t.names()
	switch len(names) {
	case 1:
		return names[0], nil
	case 0:
		return "", errors.New("no channel is configured; there is only this local chat, which receives your answer (channel local)")
	}
	return "", fmt.Errorf("channel is missing: choose one of %s", strings.Join(names, ", "))
}

func (t messageTool) names() []string { return slices.Sorted(maps.Keys(t.Channels())) }

// checkRunning returns an error if messages cannot be sent on a channel.
func (t messageTool) checkRunning(name string) error {
	reason, ok := t.Channels()[name]
	switch {
	case ok && reason == "":
		return nil
	case ok:
		return fmt.Errorf("channel %s is not running: %s", name, reason)
	}
	if names := t.names(); len(names) > 0 {
		return fmt.Errorf("there is no channel %q; available are %s, and local", name, strings.Join(names, ", "))
	}
	return fmt.Errorf("there is no channel %q; no channels are configured, only local sessions (channel local)", name)
}

// chat returns the chat with that id on a channel. For a chat that has
// written before, the account and kind are known.
func (t messageTool) chat(ctx context.Context, c tool.Call, here chela.Address, name string, w parsedTarget) (target, error) {
	if here.Channel == name && (w.id == "" || w.id == here.Peer.ID) && (w.kind == "" || w.kind == here.Peer.Kind) {
		here.Thread = cmp.Or(w.thread, here.Thread)
		return target{address: here}, nil
	}
	if w.id == "" {
		return target{}, fmt.Errorf("to is missing: give a chat on %s", name)
	}
	known, err := t.knownAddresses(ctx, c.Agent, name)
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

// knownAddresses returns the addresses on a channel from which messages were
// received, the latest first.
func (t messageTool) knownAddresses(ctx context.Context, agent chela.AgentID, name string) ([]chela.Address, error) {
	return store.Get(ctx, t.Store, func(r store.Reader) (out []chela.Address, err error) {
		list, _, err := r.Sessions().List(session.Query{Agent: agent, Archived: session.ArchivedToo, Limit: 1000})
		for _, m := range list {
			if m.Address.Channel == name {
				out = append(out, m.Address)
			}
		}
		return out, err
	})
}

// session returns a local chat: the current session, or the one with that
// key.
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
		return to, fmt.Errorf("session %s belongs to another agent", to.session)
	}
	_, err := store.Get(ctx, t.Store, func(r store.Reader) (session.Meta, error) { return r.Sessions().Get(to.session) })
	if errors.Is(err, chela.ErrNotFound) {
		return to, fmt.Errorf("there is no session %s", to.session)
	}
	if err == nil && !here.Local() && to.session != c.Session {
		err = t.checkCross(here, to)
	}
	return to, err
}

// checkCross returns an error if a chat on a channel may not send to the
// target. Local chats belong to the owner and may send everywhere.
func (t messageTool) checkCross(here chela.Address, to target) error {
	if here.Local() {
		return nil
	}
	if to.name() != here.Channel {
		if t.CrossContext.Across {
			return nil
		}
		return fmt.Errorf("chats on %s may not send to %s (tools.message.crossContext.allowAcrossProviders)", here.Channel, to.name())
	}
	if to.address.Peer != here.Peer && t.CrossContext.Within != nil && !*t.CrossContext.Within {
		return fmt.Errorf("this chat may not send to other chats on %s (tools.message.crossContext.allowWithinProvider)", here.Channel)
	}
	return nil
}
