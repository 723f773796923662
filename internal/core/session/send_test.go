package session_test

import (
	"encoding/json"
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
)

func TestSendPolicy(t *testing.T) {
	t.Parallel()
	chat := func(channel string, kind chela.PeerKind) chela.Address {
		return chela.Address{Channel: channel, Peer: chela.Peer{Kind: kind, ID: "7"}}
	}
	group, direct, room := chat("discord", chela.Group), chat("discord", chela.Direct), chat("discord", chela.Room)
	const key = chela.SessionKey("agent:work:discord:group:7")
	for _, c := range []struct {
		name, policy string
		own          string
		key          chela.SessionKey
		to           chela.Address
		want         bool
	}{
		{"no policy", `{}`, "", key, group, true},
		{"the default denies", `{"default": "deny"}`, "", key, group, false},
		{"an allowing rule before the default",
			`{"rules": [{"action": "allow", "match": {"channel": "discord"}}], "default": "deny"}`, "", key, group, true},
		{"a rule without an action allows", `{"rules": [{"match": {"channel": "discord"}}], "default": "deny"}`, "",
			key, group, true},
		{"a rule that does not match", `{"rules": [{"action": "allow", "match": {"channel": "slack"}}], "default": "deny"}`,
			"", key, group, false},
		{"a denying rule after an allowing one",
			`{"rules": [{"action": "allow", "match": {}}, {"action": "deny", "match": {"chatType": "group"}}]}`,
			"", key, group, false},
		{"all fields must match", `{"rules": [{"action": "deny", "match": {"channel": "discord", "chatType": "group"}}]}`,
			"", key, direct, true},
		{"the kinds of chats differ", `{"rules": [{"action": "deny", "match": {"chatType": "channel"}}]}`, "",
			key, group, true},
		{"a room", `{"rules": [{"action": "deny", "match": {"chatType": "channel"}}]}`, "", key, room, false},
		{"dm is direct", `{"rules": [{"action": "deny", "match": {"chatType": "dm"}}]}`, "", key, direct, false},
		{"letters", `{"rules": [{"action": "DENY", "match": {"channel": "Discord ", "keyPrefix": "Discord:Group"}}]}`,
			"", key, group, false},
		{"a prefix without the agent", `{"rules": [{"action": "deny", "match": {"keyPrefix": "discord:group:"}}]}`,
			"", key, group, false},
		{"a prefix with the agent", `{"rules": [{"action": "deny", "match": {"keyPrefix": "agent:work:"}}]}`,
			"", key, group, false},
		{"another agent", `{"rules": [{"action": "deny", "match": {"rawKeyPrefix": "agent:main:"}}]}`, "", key, group, true},
		{"a raw prefix has the agent", `{"rules": [{"action": "deny", "match": {"rawKeyPrefix": "discord:group:"}}]}`, "",
			key, group, true},
		{"the chat of another session", `{"rules": [{"action": "deny", "match": {"keyPrefix": "discord:group:7"}}]}`, "",
			"agent:work:cron:1", group, false},
		{"the session that sends", `{"rules": [{"action": "deny", "match": {"keyPrefix": "cron:"}}]}`, "",
			"agent:work:cron:1", group, false},
		{"on, whatever the rules say", `{"default": "deny"}`, session.SendOn, key, group, true},
		{"off, whatever the rules say", `{"rules": [{"action": "allow", "match": {}}]}`, session.SendOff, key, group, false},
	} {
		var p session.SendPolicy
		if err := json.Unmarshal([]byte(c.policy), &p); err != nil {
			t.Fatal(err)
		}
		if got := p.Allows(session.Meta{Key: c.key, Send: c.own}, c.to, key); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
