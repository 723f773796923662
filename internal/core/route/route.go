// Package route decides which agent and which session answer a message.
package route

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
)

// DMScope determines how direct conversations are grouped into sessions.
type DMScope string

// The scopes.
const (
	Main              DMScope = "main"                     // one session for all direct conversations
	PerPeer           DMScope = "per-peer"                 // one session per person, across channels
	PerChannelPeer    DMScope = "per-channel-peer"         // one session per person and channel
	PerAccountChannel DMScope = "per-account-channel-peer" // one session per person, channel and own account
)

// DefaultAccount is the default account of a channel whose configuration names none.
const DefaultAccount chela.AccountID = "default"

// Any as an account or as the id of a peer matches all of them.
const Any = "*"

// Table holds the routing rules. The zero value routes everything to the default
// agent, and all direct conversations to its main session.
type Table struct {
	Default  chela.AgentID              // "": chela.DefaultAgent
	Strict   bool                       // messages of channels that match no binding have no route
	Bindings []Binding                  // in the order of the configuration
	Accounts map[string]chela.AccountID // default accounts by channel; absent: DefaultAccount
	DMScope  DMScope                    // "": main
	Links    map[string]string          // names of people by "channel:id"; see [Links]
}

// Query is what the rules are applied to: the address of a message, and what the
// platform knows about the conversation and its sender.
type Query struct {
	Address chela.Address
	Guild   string   // the server that contains the conversation; "": none or unknown
	Team    string   // the workspace that contains it; "": none or unknown
	Roles   []string // the roles of the sender in the guild
}

// QueryOf returns the query of a message.
func QueryOf(in chela.Inbound) Query {
	return Query{Address: in.Address, Guild: in.Guild, Team: in.Team, Roles: in.Roles}
}

// Route is the destination of a message. The zero Route says that there is none.
type Route struct {
	Agent     chela.AgentID
	Session   chela.SessionKey
	MatchedBy Tier
}

// Tier names the rule that determined a route.
type Tier string

// The tiers, the most specific one first.
const (
	ByPeer       Tier = "binding.peer"
	ByParentPeer Tier = "binding.peer.parent" // of a thread
	ByAnyPeer    Tier = "binding.peer.wildcard"
	ByRoles      Tier = "binding.guild+roles"
	ByGuild      Tier = "binding.guild"
	ByTeam       Tier = "binding.team"
	ByAccount    Tier = "binding.account"
	ByChannel    Tier = "binding.channel" // any account
	ByDefault    Tier = "default"
)

// order lists the tiers of bindings by precedence.
var order = [...]Tier{ByPeer, ByParentPeer, ByAnyPeer, ByRoles, ByGuild, ByTeam, ByAccount, ByChannel}

// Resolve returns the route of a message. The matching binding of the most specific
// tier determines the agent. Within a tier, bindings that name an account precede those
// for any account; otherwise the first one counts. Messages of local clients always
// have a route, to the default agent. Two conversations of groups with different peers
// or threads never share a session.
func (t *Table) Resolve(q Query) Route {
	r := Route{Agent: cmp.Or(t.Default, chela.DefaultAgent), MatchedBy: ByDefault}
	if q.Address.Local() {
		r.Session = chela.MainSession(r.Agent)
		return r
	}
	scope := t.DMScope
	if b, by := t.find(q); b != nil {
		r.Agent, r.MatchedBy, scope = b.Agent.ID(), by, cmp.Or(b.Session.DMScope, scope)
	} else if t.Strict {
		return Route{}
	}
	r.Session = t.session(r.Agent, scope, q.Address)
	return r
}

// find returns the binding that determines the route, and its tier; nil: none matches.
func (t *Table) find(q Query) (*Binding, Tier) {
	var found *Binding
	best := 2 * len(order)
	for i := range t.Bindings {
		b := &t.Bindings[i]
		by := b.tier(q, cmp.Or(t.Accounts[q.Address.Channel], DefaultAccount))
		rank := 2 * slices.Index(order[:], by)
		if b.Match.Account == Any {
			rank++
		}
		if by != "" && rank < best {
			found, best = b, rank
		}
	}
	if found == nil {
		return nil, ""
	}
	return found, order[best/2]
}

// session returns the key of the agent's session for an address.
func (t *Table) session(agent chela.AgentID, scope DMScope, a chela.Address) chela.SessionKey {
	key := "agent:" + string(agent) + ":"
	channel, peer := escape(a.Channel), escape(a.Peer.ID)
	if name, ok := t.Links[a.Channel+":"+a.Peer.ID]; ok {
		peer = escape(name)
	}
	switch {
	case a.Peer.Kind == chela.Group || a.Peer.Kind == chela.Room:
		key += channel + ":" + string(a.Peer.Kind) + ":" + escape(a.Peer.ID)
	case scope == PerPeer:
		key += "direct:" + peer
	case scope == PerChannelPeer:
		key += channel + ":direct:" + peer
	case scope == PerAccountChannel:
		key += channel + ":" + escape(string(a.Account)) + ":direct:" + peer
	default:
		key += chela.MainKey
	}
	if a.Thread != "" {
		return InThread(chela.SessionKey(key), a.Thread)
	}
	return chela.SessionKey(key)
}

// InThread returns the session of a thread in the chat of a session.
func InThread(key chela.SessionKey, thread string) chela.SessionKey {
	return key + chela.SessionKey(":thread:"+escape(thread))
}

// escape returns an id in a form that is safe in a session key: without blanks,
// control characters and ":thread:".
func escape(s string) string {
	if !strings.ContainsFunc(s, reserved) && !strings.Contains(s, ":thread:") {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if reserved(r) || r == ':' {
			fmt.Fprintf(&b, "%%%02X", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func reserved(r rune) bool { return r <= ' ' || r == 0x7f || r == '%' }
