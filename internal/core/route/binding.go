package route

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Binding is one of the bindings of the configuration: it routes matching messages to
// an agent. It grants no access.
type Binding struct {
	Agent   Name    `json:"agentId"`
	Match   Match   `json:"match"`
	Session Session `json:"session,omitzero"`
	Type    string  `json:"type,omitempty"` // "" and "route"; others are not used for routing
}

// Name is the name of an agent in the configuration.
type Name string

// ID returns the agent's id; "": the name has none.
func (n Name) ID() chela.AgentID { return chela.AgentIDOf(string(n)) }

// Match is what a message must have to match a binding: all of the fields that are
// set.
type Match struct {
	Channel string `json:"channel"`             // required
	Account ID     `json:"accountId,omitempty"` // "": the channel's default account; Any
	Peer    *Peer  `json:"peer,omitempty"`
	Guild   ID     `json:"guildId,omitempty"`
	Team    ID     `json:"teamId,omitempty"`
	Roles   []ID   `json:"roles,omitempty"` // one of them
}

// Equal reports whether two matches are the same.
func (m Match) Equal(o Match) bool {
	if (m.Peer == nil) != (o.Peer == nil) || m.Peer != nil && (m.Peer.kind() != o.Peer.kind() || m.Peer.ID != o.Peer.ID) {
		return false
	}
	return m.Channel == o.Channel && m.Account == o.Account && m.Guild == o.Guild && m.Team == o.Team &&
		slices.Equal(m.Roles, o.Roles)
}

// String returns the match as the arguments of chela agents bind.
func (m Match) String() string {
	s := m.Channel
	add := func(before string, id ID) {
		if id != "" {
			s += before + string(id)
		}
	}
	add(":", m.Account)
	if m.Peer != nil {
		add(" --peer "+string(m.Peer.kind())+":", m.Peer.ID)
	}
	add(" --guild ", m.Guild)
	add(" --team ", m.Team)
	for _, r := range m.Roles {
		add(" --role ", r)
	}
	return s
}

// Peer is the conversation of a binding.
type Peer struct {
	Kind chela.PeerKind `json:"kind"`
	ID   ID             `json:"id"` // Any: every conversation of the kind
}

// Session is how the sessions of a binding differ from those of others.
type Session struct {
	DMScope DMScope `json:"dmScope,omitempty"` // "": that of the table
}

// ID is an id on a platform, in the configuration a string or a number.
type ID string

// UnmarshalJSON accepts strings, and numbers as they are written.
func (id *ID) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, (*string)(id)) == nil {
		*id = ID(strings.TrimSpace(string(*id)))
		return nil
	}
	var n json.Number
	err := json.Unmarshal(b, &n)
	*id = ID(n)
	return err
}

// Routes reports whether the binding is used for routing.
func (b Binding) Routes() bool { return b.Type == "" || b.Type == "route" }

// Check returns an error about a binding that cannot match any message as intended.
// path is its path in the configuration; has reports whether an agent exists.
func (b Binding) Check(path string, has func(chela.AgentID) bool) error {
	invalid := func(hint, format string, args ...any) error {
		return &chela.Error{Code: chela.CodeInvalid, Message: path + fmt.Sprintf(format, args...), Hint: hint}
	}
	m := b.Match
	switch {
	case b.Agent == "":
		return invalid("chela agents bindings", ".agentId is missing")
	case !has(b.Agent.ID()):
		return invalid("chela agents list", ".agentId: unknown agent %q", string(b.Agent))
	case m.Channel == "":
		return invalid("chela agents bindings", ".match.channel is missing")
	case m.Peer != nil &&
		(m.Peer.ID == "" || !slices.Contains([]chela.PeerKind{chela.Direct, chela.Group, chela.Room}, m.Peer.kind())):
		return invalid("chela agents bindings", ".match.peer: want a kind (direct, group or channel) and an id")
	case slices.Contains(m.Roles, ""):
		return invalid("chela agents bindings", ".match.roles contains an empty role")
	}
	return nil
}

// tier returns the tier in which a query matches; "": it does not match. account is the
// channel's default account.
func (b *Binding) tier(q Query, account chela.AccountID) Tier {
	a, m := q.Address, &b.Match
	if !b.Routes() || m.Channel != a.Channel || !m.account(a.Account, account) ||
		m.Guild != "" && string(m.Guild) != q.Guild || m.Team != "" && string(m.Team) != q.Team ||
		len(m.Roles) > 0 && !slices.ContainsFunc(m.Roles, func(r ID) bool { return slices.Contains(q.Roles, string(r)) }) {
		return ""
	}
	switch {
	case m.Peer != nil:
		return m.Peer.tier(a)
	case m.Guild != "" && len(m.Roles) > 0:
		return ByRoles
	case m.Guild != "":
		return ByGuild
	case m.Team != "":
		return ByTeam
	case m.Account != Any:
		return ByAccount
	}
	return ByChannel
}

// account reports whether an account matches. An address without an account belongs to
// a channel that has only one.
func (m *Match) account(is, def chela.AccountID) bool {
	switch m.Account {
	case Any:
		return true
	case "":
		return is == "" || is == def
	}
	return string(m.Account) == string(is)
}

// kind returns the kind of the peer. Older configurations say dm.
func (p *Peer) kind() chela.PeerKind {
	if p.Kind == "dm" {
		return chela.Direct
	}
	return p.Kind
}

// tier returns the tier in which the conversation of an address matches; "": it does
// not. The conversation of a thread is the thread, and its parent is the address's peer.
func (p *Peer) tier(a chela.Address) Tier {
	switch {
	case a.Peer.ID == "" || p.kind() != a.Peer.Kind:
	case string(p.ID) == a.Peer.ID && a.Thread == "":
		return ByPeer
	case a.Thread != "" && p.thread(a):
		return ByPeer
	case string(p.ID) == a.Peer.ID:
		return ByParentPeer
	case p.ID == Any:
		return ByAnyPeer
	}
	return ""
}

// thread reports whether p is the thread of an address. Threads of rooms have ids of
// their own; those of other peers are numbered within the peer.
func (p *Peer) thread(a chela.Address) bool {
	id := string(p.ID)
	return id == a.Peer.ID+":thread:"+a.Thread || id == a.Peer.ID+":topic:"+a.Thread ||
		a.Peer.Kind == chela.Room && id == a.Thread
}

// Links returns the names of people by their addresses, from the addresses
// ("channel:id") by name. Of several names of an address, the first one in alphabetical
// order counts.
func Links(people map[string][]ID) map[string]string {
	out := map[string]string{}
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(people))) {
		for _, address := range people[name] {
			out[string(address)] = name
		}
	}
	return out
}
