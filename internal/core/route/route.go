// Package route maps an address to the agent and the session that answer it.
package route

import (
	"cmp"
	"fmt"
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

// Table holds the routing rules. The zero value routes everything to the default
// agent, and all direct conversations to its main session.
type Table struct {
	Default chela.AgentID // "": chela.DefaultAgent
	DMScope DMScope       // "": main
}

// Route is the destination of a message.
type Route struct {
	Agent     chela.AgentID
	Session   chela.SessionKey
	MatchedBy string // the rule that matched: "default"
}

// Resolve returns the route of messages from a. Every address has a route. Two
// addresses of groups with different peers or threads never share a session.
func (t *Table) Resolve(a chela.Address) Route {
	agent := cmp.Or(t.Default, chela.DefaultAgent)
	r := Route{Agent: agent, MatchedBy: "default"}
	if a.Local() {
		r.Session = chela.MainSession(agent)
		return r
	}
	key := "agent:" + string(agent) + ":"
	channel, peer := escape(a.Channel), escape(a.Peer.ID)
	switch {
	case a.Peer.Kind == chela.Group || a.Peer.Kind == chela.Room:
		key += channel + ":" + string(a.Peer.Kind) + ":" + peer
	case t.DMScope == PerPeer:
		key += "direct:" + peer
	case t.DMScope == PerChannelPeer:
		key += channel + ":direct:" + peer
	case t.DMScope == PerAccountChannel:
		key += channel + ":" + escape(string(a.Account)) + ":direct:" + peer
	default:
		key += chela.MainKey
	}
	if a.Thread != "" {
		key += ":thread:" + escape(a.Thread)
	}
	r.Session = chela.SessionKey(key)
	return r
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
