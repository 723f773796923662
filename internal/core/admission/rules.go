package admission

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Policy says who may write in a kind of chats.
type Policy string

// The policies.
const (
	Pairing  Policy = "pairing"   // listed people and guests; strangers get a code. Direct chats only
	Listed   Policy = "allowlist" // listed people, and in direct chats guests
	Open     Policy = "open"      // everybody
	Disabled Policy = "disabled"  // nobody
)

// Everybody in a list matches all people.
const Everybody = "*"

// Bots says which programs on the platform are heard.
type Bots string

// The values of Bots. The zero Bots is NoBots.
const (
	NoBots       Bots = "off"
	BotsMention  Bots = "mentions" // those that mention the assistant
	EveryBot     Bots = "all"
	groupsPrefix      = "accessGroup:"
)

// Visibility says what of a group the assistant sees as context, besides the messages of
// people who may write: only they are heard.
type Visibility string

// The values of Visibility. The zero Visibility is SeeAll.
const (
	SeeAll    Visibility = "all"
	SeeListed Visibility = "allowlist"       // of people who may write
	SeeQuotes Visibility = "allowlist_quote" // of those, and what they quote
)

// Rules say who may write on an account. The zero Rules admit guests to direct chats and
// nobody else.
type Rules struct {
	DM    Policy   // "": Pairing
	Allow []string // ids of people, "accessGroup:<name>", or Everybody

	Group      Policy          // of groups; "": Listed
	GroupAllow []string        // like Allow, for groups; nil: Allow
	Chats      map[string]Chat // of groups by id, or Everybody; if there are any, all other groups are closed
	Bots       Bots

	// Groups are the named groups of people, by name and channel; Everybody: all channels.
	Groups map[string]map[string][]string

	NoReactions bool // reactions of people are ignored

	History    int        // messages of a group that the assistant sees as context, at most; 0: none
	Visibility Visibility // of them
}

// Chat are the rules of one group. Fields that are not set are those of the account.
type Chat struct {
	Closed     bool
	Policy     Policy
	Allow      []string // nil: of the account
	Unprompted *bool    // whether messages without a mention are answered
	Bots       Bots
	History    *int

	Topics map[string]Chat // by thread
}

// Over returns c with the fields that are not set taken from base.
func (c Chat) Over(base Chat) Chat {
	c.Closed = c.Closed || base.Closed
	c.Policy = cmp.Or(c.Policy, base.Policy)
	c.Bots = cmp.Or(c.Bots, base.Bots)
	if c.Allow == nil {
		c.Allow = base.Allow
	}
	if c.Unprompted == nil {
		c.Unprompted = base.Unprompted
	}
	if c.History == nil {
		c.History = base.History
	}
	return c
}

// Check returns an error if a policy has no meaning.
func (r *Rules) Check() error {
	if !slices.Contains([]Policy{"", Pairing, Listed, Open, Disabled}, r.DM) {
		return fmt.Errorf("dmPolicy: %q is not pairing, allowlist, open or disabled", r.DM)
	}
	group := func(at string, p Policy) error {
		if !slices.Contains([]Policy{"", Listed, Open, Disabled}, p) {
			return fmt.Errorf("%sgroupPolicy: %q is not allowlist, open or disabled", at, p)
		}
		return nil
	}
	if !slices.Contains([]Visibility{"", SeeAll, SeeListed, SeeQuotes}, r.Visibility) {
		return fmt.Errorf("contextVisibility: %q is not all, allowlist or allowlist_quote", r.Visibility)
	}
	errs := []error{group("", r.Group)}
	for _, id := range slices.Sorted(maps.Keys(r.Chats)) {
		errs = append(errs, group("groups."+id+".", r.Chats[id].Policy))
	}
	return errors.Join(errs...)
}

// Outcome is what happens to a message.
type Outcome int

// The outcomes.
const (
	Refuse   Outcome = iota
	Stranger         // the sender gets a code
	Admit
)

// Verdict is what the rules say about a message.
type Verdict struct {
	Outcome
	Reason string // of Refuse, for the log

	// Named says that the sender is listed by id, or is a guest, and not only admitted with
	// everybody.
	Named bool
	// Unprompted says that a group's messages are answered without a mention.
	Unprompted bool
	// History is the number of messages that the assistant sees as context.
	History int
}

// ChatOf returns the rules of a group, and whether it is open.
func (r *Rules) ChatOf(a chela.Address, guild string) (Chat, bool) {
	every, all := r.Chats[Everybody]
	c, own := r.Chats[a.Peer.ID]
	server, of := r.Chats["guild:"+guild]
	switch {
	case own && of && guild != "":
		c = c.Over(server).Over(every)
	case own:
		c = c.Over(every)
	case of && guild != "" && !server.Closed:
		c = server.Over(every)
	case all:
		c = every
	case len(r.Chats) > 0:
		return Chat{}, false
	}
	if t, ok := c.Topics[a.Thread]; ok && a.Thread != "" {
		c = t.Over(c)
	}
	return c, !c.Closed
}

// Decide applies the rules to a message of a channel. guest says that the sender is an
// admitted guest of the account.
func (r *Rules) Decide(in chela.Inbound, guest bool) Verdict {
	if in.Address.Peer.Kind == chela.Group || in.Address.Peer.Kind == chela.Room {
		return r.decideGroup(in)
	}
	if v := r.bot(in, r.Bots, true); v.Reason != "" {
		return v
	}
	named := guest || r.names(r.Allow, in.Address.Channel, in.Sender.ID)
	switch cmp.Or(r.DM, Pairing) {
	case Open, Listed, Pairing:
		switch {
		case named || slices.Contains(r.Allow, Everybody):
			return Verdict{Outcome: Admit, Named: named, Unprompted: true}
		case cmp.Or(r.DM, Pairing) == Pairing:
			return Verdict{Outcome: Stranger}
		}
		return Verdict{Reason: "the sender is not in allowFrom"}
	case Disabled:
		return Verdict{Reason: "direct chats are disabled"}
	}
	return Verdict{Reason: "unknown dmPolicy " + string(r.DM)}
}

func (r *Rules) decideGroup(in chela.Inbound) Verdict {
	c, open := r.ChatOf(in.Address, in.Guild)
	policy := cmp.Or(c.Policy, r.Group, Listed)
	v := Verdict{History: r.History}
	if c.History != nil {
		v.History = *c.History
	}
	v.Unprompted = c.Unprompted != nil && *c.Unprompted
	if b := r.bot(in, cmp.Or(c.Bots, r.Bots), false); b.Reason != "" {
		return b
	}
	list := c.Allow
	if list == nil {
		list = r.GroupAllow
	}
	if list == nil {
		list = r.Allow
	}
	v.Named = r.names(list, in.Address.Channel, in.Sender.ID)
	switch {
	case policy == Disabled:
		v.Reason = "groups are disabled"
	case !open:
		v.Reason = "the group is not in groups"
	case policy == Open || v.Named || slices.Contains(list, Everybody):
		v.Outcome = Admit
	case policy == Listed:
		v.Reason = "the sender is not in groupAllowFrom"
	default:
		v.Reason = "unknown groupPolicy " + string(policy)
	}
	return v
}

// Quotes reports whether the assistant sees what a message quotes.
func (r *Rules) Quotes(in chela.Inbound) bool {
	if cmp.Or(r.Visibility, SeeAll) != SeeListed || in.Quote.Text == "" {
		return true
	}
	quoted := in
	quoted.Sender = in.Quote.Sender
	return r.Decide(quoted, false).Outcome == Admit
}

// bot refuses a program that is not heard.
func (r *Rules) bot(in chela.Inbound, b Bots, direct bool) Verdict {
	if !in.Sender.Bot || b == EveryBot || b == BotsMention && (direct || in.Mentioned) {
		return Verdict{}
	}
	return Verdict{Reason: "the sender is a program (allowBots)"}
}

// names reports whether a list contains a sender by id.
func (r *Rules) names(list []string, channel, id string) bool {
	if id == "" || id == Everybody {
		return false
	}
	return slices.ContainsFunc(list, func(entry string) bool {
		if name, ok := strings.CutPrefix(entry, groupsPrefix); ok {
			members := r.Groups[name] // a missing group has no members
			return slices.Contains(members[channel], id) || slices.Contains(members[Everybody], id) ||
				slices.Contains(members[Everybody], channel+":"+id)
		}
		return entry == id || entry == channel+":"+id
	})
}
