package policy

import "slices"

// Conversation is what the rules of a pipeline depend on.
type Conversation struct {
	Provider  string // of the model that answers
	Model     string // its id, without the provider
	Chat      Place  // what the chat's own configuration says
	ChatKey   string // where it stands: channels.telegram.groups.-100
	Sender    Sender
	Sandboxed bool
	Depth     int // of a subagent; 0: not one
	MaxDepth  int // to which subagents may have children
}

// New returns the steps that hold for a conversation: global is tools, agent
// is agents.<id>.tools, where agentKey is what is written before ".tools".
// Steps that say nothing are not in it.
func New(global, agent Config, agentKey string, c Conversation) Pipeline {
	all, own := scope{"tools", global}, scope{agentKey + ".tools", agent}
	p := Pipeline{
		profile("profile", own.rules(), all.rules()),
		profile("provider profile", own.provider(c), all.provider(c)),
		lists("global", all.rules()),
		lists("global by provider", all.provider(c)),
		lists("agent", own.rules()),
		lists("agent by provider", own.provider(c)),
		lists("chat", c.chat()),
		lists("sender", sender(c, own, all)),
	}
	if c.Sandboxed {
		p = append(p, sandbox(own.sandbox(), all.sandbox()))
	}
	if c.Depth > 0 {
		p = append(p, Step{Label: "subagent", Deny: childless(c)}, lists("subagent", all.subagents()), lists("subagent", own.subagents()))
	}
	return slices.DeleteFunc(p, Step.empty)
}

// Owner is the label of the step that OwnerOnly makes.
const Owner = "owner"

// OwnerOnly is the step that keeps tools from everybody but the owner.
func OwnerOnly(names ...string) Step { return Step{Label: Owner, Deny: expand(names)} }

// scope is a configuration, and where it stands.
type scope struct {
	key string
	Config
}

// place is rules, and where they stand.
type place struct {
	key string
	Rules
}

func (s scope) rules() place     { return place{s.key, s.Rules} }
func (s scope) sandbox() place   { return place{s.key + ".sandbox.tools", s.Sandbox.Tools} }
func (s scope) subagents() place { return place{s.key + ".subagents.tools", s.Subagents.Tools} }

// provider returns what is said of the conversation's model: the rules of
// provider/model go before those of the provider.
func (s scope) provider(c Conversation) place {
	for _, want := range []string{c.Provider + "/" + c.Model, c.Provider} {
		if name, ok := entry(s.ByProvider, want); ok && c.Provider != "" {
			return place{s.key + ".byProvider." + name, s.ByProvider[name]}
		}
	}
	return place{}
}

// lists is the step of a place's allow and deny.
func lists(label string, p place) Step {
	return Step{Label: label, Key: p.key, Allow: expand(p.Allow), Deny: expand(p.Deny)}
}

// profile is the step of the first place that names a profile, with what the
// first place that says alsoAllow adds.
func profile(label string, places ...place) Step {
	i := slices.IndexFunc(places, func(p place) bool { return p.profile() != "" })
	if i < 0 {
		return Step{}
	}
	name := places[i].profile()
	allow, limited := profiles[name]
	if !limited {
		return Step{}
	}
	s := Step{Label: label, Key: places[i].key + ".profile", Profile: name, Allow: expand(allow)}
	if j := slices.IndexFunc(places, func(p place) bool { return len(p.AlsoAllow) > 0 }); j >= 0 {
		s.Allow = append(s.Allow, expand(places[j].AlsoAllow)...)
	}
	return s
}

// chat returns what the chat's configuration says of the sender, else of all.
func (c Conversation) chat() place {
	if r, entry, ok := c.Sender.of(c.Chat.BySender); ok {
		return place{c.ChatKey + ".toolsBySender." + entry, r}
	}
	if c.Chat.Tools != nil {
		return place{c.ChatKey + ".tools", *c.Chat.Tools}
	}
	return place{}
}

// sender returns the rules of the first scope that has some for the sender.
func sender(c Conversation, scopes ...scope) place {
	for _, s := range scopes {
		if r, entry, ok := c.Sender.of(s.BySender); ok {
			return place{s.key + ".toolsBySender." + entry, r}
		}
	}
	return place{}
}

// What a sandbox allows and denies when nothing is configured.
var (
	sandboxAllow = []string{"group:fs", "exec", "process", "image", "sessions_list", "sessions_history", "sessions_search", "sessions_send", "sessions_spawn", "sessions_yield", "subagents", "session_status"}
	sandboxDeny  = []string{"browser", "canvas", "group:nodes", "cron", "gateway", "message"}
)

// sandbox is the step for a conversation in a sandbox: the agent's lists in
// the place of those for all, and these in the place of the built-in ones.
func sandbox(agent, global place) Step {
	s := Step{Label: "sandbox", Allow: sandboxAllow, Deny: sandboxDeny}
	also := slices.Concat(global.AlsoAllow, agent.AlsoAllow)
	for _, p := range []place{global, agent} {
		if len(p.Allow) > 0 {
			s.Key, s.Allow = p.key, p.Allow
		}
		if len(p.Deny) > 0 {
			s.Key, s.Deny = p.key, p.Deny
		}
	}
	s.Allow, s.Deny = expand(slices.Concat(s.Allow, also)), expand(s.Deny)
	// What is allowed by name is not held back by a list nobody wrote.
	if len(agent.Deny) == 0 && len(global.Deny) == 0 {
		s.Deny = slices.DeleteFunc(s.Deny, func(n string) bool { return match(expand(also), n) != "" })
	}
	return s
}

// childless are the tools that a subagent never has: those that speak to
// others or change the gateway; and, where it may have no children, those that
// make and see them.
func childless(c Conversation) []string {
	deny := []string{"gateway", "agents_list", "cron", "message", "sessions_send", "sessions_delete"}
	if c.Depth >= c.MaxDepth {
		deny = append(deny, "sessions_list", "sessions_history", "sessions_spawn")
	}
	return deny
}
