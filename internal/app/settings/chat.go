package settings

import (
	"cmp"

	"github.com/chela-ai/chela/internal/core/admission"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/policy"
)

// Chat is what the configuration says about a conversation on a channel besides who may
// write.
type Chat struct {
	Key    string // path of Rules
	Rules  policy.ChatRules
	Prompt string   // a part of the system prompt
	Skills []string // of the prompt; nil: those of the agent
}

// chats are sections of chats of one kind, by id or "*".
type chats struct {
	key    string // path
	direct bool
	list   map[string]chat
}

// chats returns the sections of the chats of a channel.
func (s *admissionSection) chats(name string) []chats {
	at := "channels." + name + "."
	out := []chats{{at + "direct", true, s.Direct}, {at + "groups", false, s.Groups}, {at + "channels", false, s.Rooms}}
	for id, g := range s.Guilds {
		out = append(out, chats{at + "guilds." + id + ".channels", false, g.Rooms})
	}
	return out
}

// Chat returns what the configuration says about a conversation. Rules of the chat come
// before those of "*".
func (o *Settings) Chat(a chela.Address) Chat {
	var out Chat
	if a.Local() {
		return out
	}
	for _, id := range [...]string{a.Peer.ID, admission.Everybody} {
		for _, c := range o.account(a).chats {
			own, ok := c.list[id]
			if !ok || c.direct != (a.Peer.Kind == chela.Direct) {
				continue
			}
			key := c.key + "." + id
			if t, ok := own.Topics[a.Thread]; ok && a.Thread != "" {
				out.add(key+".topics."+a.Thread, t)
			}
			out.add(key, own)
		}
	}
	return out
}

// add adds what a section says where nothing has been said yet.
func (c *Chat) add(key string, s chat) {
	c.Prompt = cmp.Or(c.Prompt, s.Prompt)
	if c.Skills == nil {
		c.Skills = s.Skills
	}
	if c.Key == "" && (s.Tools != nil || len(s.BySender) > 0) {
		c.Key, c.Rules = key, s.ChatRules
	}
}
