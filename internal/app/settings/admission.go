package settings

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/chela-ai/chela/internal/core/admission"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/policy"
)

// defaultHistory is the number of messages of a group that the assistant sees as context.
const defaultHistory = 50

// people are ids on a channel, as text.
type people []string

// UnmarshalJSON accepts strings, and numbers as they are written.
func (p *people) UnmarshalJSON(b []byte) error {
	var list []Person
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	*p = make(people, len(list))
	for i, id := range list {
		(*p)[i] = string(id)
	}
	return nil
}

// heard is allowBots.
type heard admission.Bots

// UnmarshalJSON accepts a boolean or "mentions".
func (h *heard) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "true":
		*h = heard(admission.EveryBot)
	case "false":
		*h = heard(admission.NoBots)
	case `"mentions"`:
		*h = heard(admission.BotsMention)
	default:
		return fmt.Errorf("allowBots: %s is not true, false or \"mentions\"", b)
	}
	return nil
}

// admissionSection is the part of the section of an account that says who may write.
type admissionSection struct {
	Policy admission.Policy `json:"dmPolicy"`
	DM     struct {
		Policy admission.Policy `json:"policy"`
		Allow  people           `json:"allowFrom"`
	} `json:"dm"`
	Allow      people               `json:"allowFrom"`
	Group      admission.Policy     `json:"groupPolicy"`
	GroupAllow people               `json:"groupAllowFrom"`
	Groups     map[string]chat      `json:"groups"`
	Rooms      rooms                `json:"channels"` // of Slack
	Guilds     map[string]guild     `json:"guilds"`   // of Discord
	Direct     map[string]chat      `json:"direct"`   // private chats, by id of the person
	Bots       heard                `json:"allowBots"`
	History    *int                 `json:"historyLimit"`
	Visibility admission.Visibility `json:"contextVisibility"`
	Reactions  string               `json:"reactionNotifications"` // off, own; other values of OpenClaw are own
}

// chat is the section of a group, a room or a topic.
type chat struct {
	Enabled *bool            `json:"enabled"`
	Allowed *bool            `json:"allow"` // as enabled
	Policy  admission.Policy `json:"groupPolicy"`
	Allow   people           `json:"allowFrom"`
	Users   people           `json:"users"` // as allowFrom
	Mention *bool            `json:"requireMention"`
	Bots    heard            `json:"allowBots"`
	History *int             `json:"historyLimit"`
	Topics  map[string]chat  `json:"topics"`

	Prompt string   `json:"systemPrompt"`
	Skills []string `json:"skills"` // nil: those of the agent
	policy.ChatRules
}

// rooms are the sections of rooms, by id.
type rooms map[string]chat

// UnmarshalJSON accepts a list as none: the channels of IRC are names to join.
func (r *rooms) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		return nil
	}
	return json.Unmarshal(b, (*map[string]chat)(r))
}

// guild is the section of a server with its rooms.
type guild struct {
	chat
	Rooms map[string]chat `json:"channels"`
}

// rules returns the rules of a group.
func (c chat) rules() admission.Chat {
	out := admission.Chat{
		Closed: isFalse(c.Enabled) || isFalse(c.Allowed), Policy: c.Policy, Allow: c.Allow, Bots: admission.Bots(c.Bots),
		History: c.History,
	}
	if out.Allow == nil && c.Users != nil {
		out.Allow = c.Users
	}
	if c.Mention != nil {
		unprompted := !*c.Mention
		out.Unprompted = &unprompted
	}
	for id, t := range c.Topics {
		if out.Topics == nil {
			out.Topics = map[string]admission.Chat{}
		}
		out.Topics[id] = t.rules()
	}
	return out
}

func isFalse(b *bool) bool { return b != nil && !*b }

// rules returns the rules of an account.
func (s *admissionSection) rules(groups map[string]AccessGroup, history int) *admission.Rules {
	r := &admission.Rules{
		DM:          cmp.Or(s.Policy, s.DM.Policy),
		Allow:       s.Allow,
		Group:       s.Group,
		GroupAllow:  s.GroupAllow,
		Bots:        admission.Bots(s.Bots),
		History:     history,
		Visibility:  s.Visibility,
		NoReactions: s.Reactions == "off",
		Chats:       map[string]admission.Chat{},
		Groups:      map[string]map[string][]string{},
	}
	if r.Allow == nil {
		r.Allow = s.DM.Allow
	}
	if s.History != nil {
		r.History = *s.History
	}
	for name, g := range groups {
		r.Groups[name] = map[string][]string{}
		for channel, ids := range g.Members {
			r.Groups[name][channel] = ids
		}
	}
	for id, c := range s.Groups {
		r.Chats[id] = c.rules()
	}
	for id, c := range s.Rooms {
		r.Chats[id] = c.rules()
	}
	for id, g := range s.Guilds {
		name := "guild:" + id
		if id == admission.Everybody {
			name = id
		}
		server := g.chat.rules()
		if len(g.Rooms) > 0 { // then the others are closed
			server.Closed = true
		}
		for room, c := range g.Rooms {
			if room == admission.Everybody {
				server = c.rules().Over(g.chat.rules())
				continue
			}
			r.Chats[room] = c.rules().Over(g.chat.rules())
		}
		r.Chats[name] = server
	}
	return r
}

// AccessGroup is a named group of people.
type AccessGroup struct {
	Members map[string]people `json:"members"` // by channel; "*": all channels
}

// Admission returns the rules of an account of a channel.
func (o *Settings) Admission(a chela.Address) *admission.Rules {
	return o.account(a).rules
}

// account is what the section of an account of a channel says to the engine.
type account struct {
	rules *admission.Rules
	style styleSection
	chats []chats
}

// account returns the account of an address.
func (o *Settings) account(a chela.Address) account {
	accounts := o.accounts[a.Channel]
	if c, ok := accounts[string(a.Account)]; ok {
		return c
	}
	if c, ok := accounts[""]; ok {
		return c
	}
	// the channel is not configured
	return account{rules: &admission.Rules{DM: admission.Disabled, Group: admission.Disabled}}
}

// joinAccounts reads the sections of all accounts: that of channels.defaults, over which
// is that of the channel, over which is that of the account.
func (o *Settings) joinAccounts(s Sections) error {
	var all map[string]map[string]json.RawMessage
	if raw := s.Section("channels"); raw != nil {
		if err := json.Unmarshal(raw, &all); err != nil {
			return fmt.Errorf("configuration, channels: %w", err)
		}
	}
	groups := map[string]AccessGroup{}
	if raw := s.Section("accessGroups"); raw != nil {
		if err := json.Unmarshal(raw, &groups); err != nil {
			return fmt.Errorf("configuration, accessGroups: %w", err)
		}
	}
	history := defaultHistory
	if h := o.Messages.GroupChat.History; h != nil {
		history = *h
	}
	o.accounts = map[string]map[string]account{}
	var errs []error
	for name, section := range all {
		if name == channelDefaults {
			continue
		}
		base := maps.Clone(all[channelDefaults])
		if base == nil {
			base = map[string]json.RawMessage{}
		}
		maps.Copy(base, section)
		accounts := o.Channels[name].Accounts
		o.accounts[name] = map[string]account{}
		for _, id := range append(slices.Sorted(maps.Keys(accounts)), "") {
			at, own := "channels."+name, maps.Clone(base)
			if id != "" {
				at += ".accounts." + id
				var members map[string]json.RawMessage
				if err := json.Unmarshal(accounts[id], &members); err != nil {
					errs = append(errs, fmt.Errorf("configuration, %s: %w", at, err))
					continue
				}
				maps.Copy(own, members)
			}
			var people admissionSection
			var a account
			if err := errors.Join(readPart(own, admissionKeys, &people), readPart(own, styleKeys, &a.style)); err != nil {
				errs = append(errs, fmt.Errorf("configuration, %s: %w", at, err))
				continue
			}
			a.rules, a.chats = people.rules(groups, history), people.chats(name)
			if err := errors.Join(a.rules.Check(), a.style.check()); err != nil {
				errs = append(errs, fmt.Errorf("configuration, %s: %w", at, err))
				continue
			}
			o.accounts[name][id] = a
		}
	}
	return errors.Join(errs...)
}

// readPart decodes the members of a section with the given names. Other members are of the
// channel, and may have any form.
func readPart(section map[string]json.RawMessage, names []string, into any) error {
	part := map[string]json.RawMessage{}
	for _, name := range names {
		if raw, ok := section[name]; ok {
			part[name] = raw
		}
	}
	raw, err := json.Marshal(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// admissionKeys are the members of admissionSection.
var admissionKeys = []string{
	"dmPolicy", "dm", "allowFrom", "groupPolicy", "groupAllowFrom", "groups", "channels", "guilds", "direct", "allowBots",
	"historyLimit", "contextVisibility", "reactionNotifications",
}
