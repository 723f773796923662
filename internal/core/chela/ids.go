package chela

import (
	"fmt"
	"strings"
)

// AgentID identifies an agent: a separate assistant with its own workspace and sessions.
// It matches [a-z0-9][a-z0-9_-]{0,63}.
type AgentID string

// DefaultAgent is the agent if the configuration names none.
const DefaultAgent AgentID = "main"

// Agent describes an agent in lists.
type Agent struct {
	ID    AgentID
	Name  string // for people; empty: the id
	Model string // provider/model that its sessions use by default
}

// RunID identifies one run. A run started by a client's message has the
// client's idempotency key as its id.
type RunID string

// AccountID is one configured identity on a channel, such as a bot token.
type AccountID string

// SessionKey identifies a session, for example "agent:main:main" or
// "agent:main:telegram:group:-1001". At most one run is active for a key at any time.
type SessionKey string

// MainKey is the last part of the key of an agent's main session.
const MainKey = "main"

// MainSession returns the key of the agent's main session.
func MainSession(a AgentID) SessionKey {
	return SessionKey("agent:" + string(a) + ":" + MainKey)
}

// maxKey is the maximum length of a session key in bytes.
const maxKey = 512

// ParseSessionKey returns the canonical form of a key written by a client. "main" and ""
// mean the main session of def; a key without the prefix "agent:", "cron:" or "hook:"
// belongs to def. Keys with control characters, blanks or more than 512 bytes are
// invalid.
func ParseSessionKey(s string, def AgentID) (SessionKey, error) {
	if len(s) > maxKey {
		return "", fmt.Errorf("session key: %d bytes, at most %d", len(s), maxKey)
	}
	for _, r := range s {
		if r <= ' ' || r == 0x7f {
			return "", fmt.Errorf("session key %q: blanks and control characters are not allowed", s)
		}
	}
	switch {
	case s == "" || s == MainKey:
		return MainSession(def), nil
	case strings.HasPrefix(s, "cron:"), strings.HasPrefix(s, "hook:"):
		return SessionKey(s), nil
	case strings.HasPrefix(s, "agent:"):
		parts := strings.SplitN(s, ":", 3)
		if len(parts) < 3 || parts[2] == "" || !ValidAgentID(parts[1]) {
			return "", fmt.Errorf("session key %q: want agent:<agent>:<name>", s)
		}
		return SessionKey(s), nil
	}
	return SessionKey("agent:" + string(def) + ":" + s), nil
}

// Agent returns the agent of the key, or [DefaultAgent] for cron and hook keys, which
// contain no agent.
func (k SessionKey) Agent() AgentID {
	rest, ok := strings.CutPrefix(string(k), "agent:")
	if !ok {
		return DefaultAgent
	}
	id, _, _ := strings.Cut(rest, ":")
	return AgentID(id)
}

// Name returns the key without the agent.
func (k SessionKey) Name() string {
	rest, ok := strings.CutPrefix(string(k), "agent:")
	if !ok {
		return string(k)
	}
	_, name, _ := strings.Cut(rest, ":")
	return name
}

// KeyKind is what a session is for, as its key says.
type KeyKind string

// The kinds of keys.
const (
	KeyMain     KeyKind = MainKey
	KeyGroup    KeyKind = "group" // of a group or a room, or of a topic in it
	KeyCron     KeyKind = "cron"
	KeyHook     KeyKind = "hook"
	KeySubagent KeyKind = "subagent"
	KeyOther    KeyKind = "other"
)

// Kind returns the kind of the key. Each kind is recognized at its place in the key, since
// the ids of people and jobs in other places may contain anything.
func (k SessionKey) Kind() KeyKind {
	name := k.Name()
	parts := strings.Split(name, ":")
	switch n := len(parts); {
	case name == MainKey:
		return KeyMain
	case n >= 2 && parts[n-2] == "subagent":
		return KeySubagent
	case n >= 2 && parts[0] == "cron":
		return KeyCron
	case n >= 2 && parts[0] == "hook":
		return KeyHook
	case n >= 3 && parts[0] != "direct" && (parts[1] == "group" || parts[1] == "channel"):
		return KeyGroup
	}
	return KeyOther
}

// Around returns the session of the chat that contains the thread or topic of the key;
// empty: the key is not that of a thread.
func (k SessionKey) Around() SessionKey {
	at := max(strings.LastIndex(string(k), ":thread:"), strings.LastIndex(string(k), ":topic:"))
	return k[:max(at, 0)]
}

// Depth returns the number of ancestors in the key of the session of a subagent. The
// key does not name those of other agents. It is 0 for other sessions.
func (k SessionKey) Depth() int { return strings.Count(string(k), childPart) }

// IsChild reports whether the key is that of the session of a subagent.
func (k SessionKey) IsChild() bool { return k.Depth() > 0 }

// Child returns the key of the session of a subagent that k starts. It is one of the
// agent, and begins with k if k is the session of a subagent of the same agent.
func (k SessionKey) Child(agent AgentID, id string) SessionKey {
	if !k.IsChild() || k.Agent() != agent {
		k = SessionKey("agent:" + agent)
	}
	return k + SessionKey(childPart+id)
}

// childPart precedes the id of a subagent in the key of its session.
const childPart = ":subagent:"

// ValidAgentID reports whether s is a valid AgentID.
func ValidAgentID(s string) bool {
	if s == "" || len(s) > 64 || s[0] == '-' || s[0] == '_' {
		return false
	}
	for _, c := range []byte(s) {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}

// AgentIDOf derives an id from a name: it converts the name to lower case and replaces
// invalid characters by dashes. It returns "" if no valid character remains.
func AgentIDOf(name string) AgentID {
	var b []byte
	for _, c := range []byte(strings.ToLower(strings.TrimSpace(name))) {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			c = '-'
		}
		if c != '-' || len(b) > 0 && b[len(b)-1] != '-' {
			b = append(b, c)
		}
	}
	s := strings.TrimLeft(string(b), "-_")
	return AgentID(strings.TrimRight(s[:min(len(s), 64)], "-_"))
}
