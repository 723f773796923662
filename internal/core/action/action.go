package action

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/channel"
)

// Action is the name of an action.
type Action string

// The actions.
const (
	Send      Action = "send"
	Broadcast Action = "broadcast" // Send to several chats
	Poll      Action = "poll"
	React     Action = "react" // sets the reaction of the account on a message, or removes it
	Edit      Action = "edit"
	Delete    Action = "delete"
	Pin       Action = "pin"
	Unpin     Action = "unpin"
	Read      Action = "read" // the last messages of a chat
	Thread    Action = "thread-create"
	Search    Action = "search" // people and chats by their names
)

// kind is what is known of an action.
type kind struct {
	action  Action
	aliases []string
	able    func(channel.Channel) bool
	gates   []string // keys of channels.<name>.actions that switch it off, besides its name
}

// kinds are all actions, in the order in which they are listed.
var kinds = [...]kind{
	{Send, []string{"reply", "sendattachment", "thread-reply"}, func(channel.Channel) bool { return true },
		[]string{"sendMessage", "messages"}},
	{Broadcast, nil, func(channel.Channel) bool { return true }, []string{"send", "sendMessage", "messages"}},
	{Poll, nil, is[channel.Poller], []string{"polls"}},
	{React, []string{"reactions", "reaction"}, is[channel.Reactor], []string{"reactions"}},
	{Edit, nil, is[channel.Editor], []string{"editMessage", "messages"}},
	{Delete, []string{"unsend"}, is[channel.Deleter], []string{"deleteMessage", "messages", "unsend"}},
	{Pin, nil, is[channel.Pinner], []string{"pins"}},
	{Unpin, nil, is[channel.Pinner], []string{"pin", "pins"}},
	{Read, nil, is[channel.Reader], []string{"readMessages", "messages"}},
	{Thread, []string{"thread", "topic-create"}, is[channel.Threader], []string{"threads", "createForumTopic"}},
	{Search, []string{"member-info", "channel-list", "directory"}, is[channel.Directory],
		[]string{"memberInfo", "channelInfo"}},
}

// is reports whether a channel has an ability. The channel may be a nil pointer of its type.
func is[ability any](c channel.Channel) bool {
	_, ok := channel.As[ability](c)
	return ok
}

// Parse returns the action with a name or an alias, in any case. The empty name is [Send].
func Parse(name string) (Action, bool) {
	name = strings.ToLower(strings.TrimSpace(name))
	if name == "" {
		return Send, true
	}
	for _, k := range kinds {
		if string(k.action) == name || slices.Contains(k.aliases, name) {
			return k.action, true
		}
	}
	return "", false
}

// Of returns the actions that a channel can carry out, in their usual order. c may be a nil
// pointer of the channel's type; nil: not known, and so only those of every channel.
func Of(c channel.Channel) []Action {
	var out []Action
	for _, k := range kinds {
		if k.able(c) {
			out = append(out, k.action)
		}
	}
	return out
}

// All returns all actions in their usual order.
func All() []Action {
	var out []Action
	for _, k := range kinds {
		out = append(out, k.action)
	}
	return out
}

// Allowed reports whether the section of an account does not switch an action off. Its
// member "actions" has names of actions, or OpenClaw's names for them, with false.
func Allowed(section json.RawMessage, a Action) bool {
	var s struct {
		Actions map[string]json.RawMessage `json:"actions"`
	}
	if len(section) == 0 || json.Unmarshal(section, &s) != nil {
		return true
	}
	off := func(name string) bool { return bytes.Equal(bytes.TrimSpace(s.Actions[name]), []byte("false")) }
	i := slices.IndexFunc(kinds[:], func(k kind) bool { return k.action == a })
	return i < 0 || !off(string(a)) && !slices.ContainsFunc(kinds[i].gates, off)
}
