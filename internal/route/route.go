// Package route says which agent answers an address, and in which session.
package route

import (
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/chela"
)

// DMScope says how direct conversations are divided into sessions.
type DMScope string

// The scopes.
const (
	Main              DMScope = "main"                     // one session for all
	PerPeer           DMScope = "per-peer"                 // one for each person, over all channels
	PerChannelPeer    DMScope = "per-channel-peer"         // and each channel
	PerAccountChannel DMScope = "per-account-channel-peer" // and each account of ours on it
)

// Table is the rules. The zero value routes everything to the default agent
// and all direct conversations to its main session.
type Table struct {
	Default chela.AgentID // "": chela.DefaultAgent
	DMScope DMScope       // "": main
}

// Route is where a message goes.
type Route struct {
	Agent     chela.AgentID
	Session   chela.SessionKey
	MatchedBy string // the rule that decided: "default"
}

// Resolve returns where messages from a go. It is total: every address has a
// route, and addresses that differ in peer or thread of a group never share a
// session.
func (t *Table) Resolve(a chela.Address) Route {
	agent := t.Default
	if agent == "" {
		agent = chela.DefaultAgent
	}
	r := Route{Agent: agent, MatchedBy: "default"}
	if a.Local() {
		r.Session = chela.MainSession(agent)
		return r
	}
	key := "agent:" + string(agent) + ":"
	channel, peer := quote(a.Channel), quote(a.Peer.ID)
	switch {
	case a.Peer.Kind == chela.Group || a.Peer.Kind == chela.Room:
		key += channel + ":" + string(a.Peer.Kind) + ":" + peer
	case t.DMScope == PerPeer:
		key += "direct:" + peer
	case t.DMScope == PerChannelPeer:
		key += channel + ":direct:" + peer
	case t.DMScope == PerAccountChannel:
		key += channel + ":" + quote(string(a.Account)) + ":direct:" + peer
	default:
		key += chela.MainKey
	}
	if a.Thread != "" {
		key += ":thread:" + quote(a.Thread)
	}
	r.Session = chela.SessionKey(key)
	return r
}

// quote makes an id safe to stand in a key: it holds no blank or control
// character, and nothing that reads as the thread of a key.
func quote(s string) string {
	if !strings.ContainsFunc(s, odd) && !strings.Contains(s, ":thread:") {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if odd(r) || r == ':' {
			fmt.Fprintf(&b, "%%%02X", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func odd(r rune) bool { return r <= ' ' || r == 0x7f || r == '%' }
