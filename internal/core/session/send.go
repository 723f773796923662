package session

import (
	"cmp"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
)

// Values of Meta.Send.
const (
	SendOn  = "on"
	SendOff = "off"
)

// SendPolicy is the section session.sendPolicy: what sessions without a setting of their
// own send to chats. The zero value permits everything.
type SendPolicy struct {
	Rules   []SendRule `json:"rules"`
	Default string     `json:"default"` // allow or deny, for what no rule matches; "": allow
}

// SendRule permits or denies what matches. If several rules match, one that denies
// decides.
type SendRule struct {
	Action string    `json:"action"` // allow or deny; "": allow
	Match  SendMatch `json:"match"`
}

// SendMatch is what a message must have: all fields that are set. The case of letters is
// ignored.
type SendMatch struct {
	Channel  string `json:"channel"`
	ChatType string `json:"chatType"` // a chela.PeerKind, or dm
	// KeyPrefix begins the key of the session with or without agent:<id>:, RawKeyPrefix
	// begins the whole key.
	KeyPrefix    string `json:"keyPrefix"`
	RawKeyPrefix string `json:"rawKeyPrefix"`
}

// Allows reports whether a session may send to a chat. The setting of the session decides
// before the rules. chat is the session of the chat, whose key the rules match like that
// of the session itself.
func (p SendPolicy) Allows(m Meta, to chela.Address, chat chela.SessionKey) bool {
	if m.Send != "" {
		return m.Send != SendOff
	}
	allowed := false
	for _, r := range p.Rules {
		switch {
		case !r.Match.matches(to, m.Key) && !r.Match.matches(to, chat):
		case strings.EqualFold(r.Action, "deny"):
			return false
		default:
			allowed = true
		}
	}
	return allowed || !strings.EqualFold(p.Default, "deny")
}

// SendAlways is a policy without rules: only the setting of the session decides.
func SendAlways(m Meta, to chela.Address) bool { return SendPolicy{}.Allows(m, to, m.Key) }

// MaySend reports whether a session, which need not be stored, sends to a chat by a policy
// such as [SendAlways].
func MaySend(r Reader, key chela.SessionKey, to chela.Address, policy func(Meta, chela.Address) bool) (bool, error) {
	m, err := Lookup(r, key)
	return err == nil && policy(m, to), err
}

func (s SendMatch) matches(to chela.Address, key chela.SessionKey) bool {
	raw := strings.ToLower(string(key))
	bare := raw
	if rest, ok := strings.CutPrefix(raw, "agent:"); ok {
		if _, name, ok := strings.Cut(rest, ":"); ok {
			bare = name
		}
	}
	begins := func(key, prefix string) bool {
		return strings.HasPrefix(key, strings.ToLower(strings.TrimSpace(prefix)))
	}
	kind := strings.ToLower(strings.TrimSpace(s.ChatType))
	return (s.Channel == "" || strings.EqualFold(strings.TrimSpace(s.Channel), to.Channel)) &&
		(kind == "" || cmp.Or(chela.PeerKindOf(kind), chela.PeerKind(kind)) == to.Peer.Kind) &&
		(begins(raw, s.KeyPrefix) || begins(bare, s.KeyPrefix)) && begins(raw, s.RawKeyPrefix)
}
