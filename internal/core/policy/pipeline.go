package policy

import (
	"slices"

	"github.com/chela-ai/chela/internal/core/tool"
)

// Conversation is the context that the rules depend on.
type Conversation struct {
	Provider  string    // of the model that answers
	Model     string    // its id, without the provider
	Chat      ChatRules // from the chat's configuration
	ChatKey   string    // path of Chat: channels.telegram.groups.-100
	Sender    Sender
	Sandboxed bool
	Depth     int // of a subagent; 0: not a subagent
	MaxDepth  int // maximum depth of subagents
}

// Pipeline returns the steps for a conversation. global is the section tools, agent
// is agents.<id>.tools, and agentKey is the path before ".tools". Steps without
// rules are omitted.
func (k Catalog) Pipeline(global, agent Config, agentKey string, c Conversation) Pipeline {
	all, own := scope{"tools", global}, scope{agentKey + ".tools", agent}
	p := Pipeline{
		k.profiles("profile", own.rules(), all.rules()),
		k.profiles("provider profile", own.provider(c), all.provider(c)),
		k.lists("global", all.rules()),
		k.lists("global by provider", all.provider(c)),
		k.lists("agent", own.rules()),
		k.lists("agent by provider", own.provider(c)),
		k.lists("chat", c.chat()),
		k.lists("sender", sender(c, own, all)),
	}
	if c.Sandboxed {
		p = append(p, k.sandbox(own.sandbox(), all.sandbox()))
	}
	if c.Depth > 0 {
		p = append(p,
			Step{Label: "every subagent", Deny: k.where(func(t *tool.Spec) bool { return t.Subagents == tool.NoSubagents })})
		if c.Depth >= c.MaxDepth {
			p = append(p, Step{Label: "subagent that may start none (maxSpawnDepth)",
				Deny: k.where(func(t *tool.Spec) bool { return t.Subagents == tool.Parents })})
		}
		p = append(p, k.lists("subagent", all.subagents()), k.lists("subagent", own.subagents()))
	}
	return slices.DeleteFunc(p, Step.empty)
}

// Sandbox is the label of the steps of a conversation in a sandbox.
const Sandbox = "sandbox"

// Owner is the label of the step of OwnerOnly.
const Owner = "owner"

// OwnerOnly returns the step that denies tools to everyone except the owner.
func OwnerOnly(names ...string) Step {
	s := Step{Label: Owner}
	for _, n := range names {
		s.Deny = append(s.Deny, fold(n))
	}
	return s
}

// Limit returns the step of rules that are not in the configuration, such as those of
// an agent type. Its lists may contain groups.
func (k Catalog) Limit(label string, allow, deny []string) Step {
	return k.step(Step{Label: label, Allow: k.Expand(allow), Deny: k.Expand(deny)})
}

// step returns a step with its unknown names.
func (k Catalog) step(s Step) Step {
	s.Unknown = k.unknown(s.Allow)
	return s
}

// scope is a section of the configuration with its path.
type scope struct {
	key string
	Config
}

// source is a list of rules with its path.
type source struct {
	key string
	Rules
}

func (s scope) rules() source     { return source{s.key, s.Rules} }
func (s scope) sandbox() source   { return source{s.key + ".sandbox.tools", s.Sandbox.Tools} }
func (s scope) subagents() source { return source{s.key + ".subagents.tools", s.Subagents.Tools} }

// provider returns the rules for the conversation's model. Rules for
// provider/model take precedence over rules for the provider.
func (s scope) provider(c Conversation) source {
	for _, want := range []string{c.Provider + "/" + c.Model, c.Provider} {
		if name, ok := entry(s.ByProvider, want); ok && c.Provider != "" {
			return source{s.key + ".byProvider." + name, s.ByProvider[name]}
		}
	}
	return source{}
}

// lists returns the step of a source's allow and deny lists.
func (k Catalog) lists(label string, p source) Step {
	return k.step(Step{Label: label, Key: p.key, Allow: k.Expand(p.Allow), Deny: k.Expand(p.Deny)})
}

// profiles returns the step of the first source with a profile, extended by the
// first alsoAllow.
func (k Catalog) profiles(label string, sources ...source) Step {
	var also []string
	if j := slices.IndexFunc(sources, func(p source) bool { return len(p.AlsoAllow) > 0 }); j >= 0 {
		also = k.Expand(sources[j].AlsoAllow)
	}
	i := slices.IndexFunc(sources, func(p source) bool { return p.profile() != "" })
	if i < 0 {
		return Step{Label: label, Also: also}
	}
	name := sources[i].profile()
	allow := k.profile(name)
	if allow == nil {
		return Step{Label: label, Also: also}
	}
	return k.step(Step{Label: label, Key: sources[i].key + ".profile", Profile: name, Allow: append(allow, also...)})
}

// chat returns the chat's rules for the sender, or else for everyone.
func (c Conversation) chat() source {
	if r, entry, ok := c.Sender.of(c.Chat.BySender); ok {
		return source{c.ChatKey + ".toolsBySender." + entry, r}
	}
	if c.Chat.Tools != nil {
		return source{c.ChatKey + ".tools", *c.Chat.Tools}
	}
	return source{}
}

// sender returns the rules of the first scope that has rules for the sender.
func sender(c Conversation, scopes ...scope) source {
	for _, s := range scopes {
		if r, entry, ok := c.Sender.of(s.BySender); ok {
			return source{s.key + ".toolsBySender." + entry, r}
		}
	}
	return source{}
}

// sandbox returns the step of a conversation in a sandbox: the agent's lists
// replace the global ones, which replace what the specs say.
func (k Catalog) sandbox(agent, global source) Step {
	s := Step{
		Label: Sandbox, Allow: k.where(func(t *tool.Spec) bool { return t.Sandboxed == tool.Inside }),
		Deny: k.where(func(t *tool.Spec) bool { return t.Sandboxed == tool.Outside }),
	}
	also := slices.Concat(global.AlsoAllow, agent.AlsoAllow)
	for _, p := range []source{global, agent} {
		if len(p.Allow) > 0 {
			s.Key, s.Allow = p.key, p.Allow
		}
		if len(p.Deny) > 0 {
			s.Key, s.Deny = p.key, p.Deny
		}
	}
	also = k.Expand(also)
	s.Allow, s.Deny, s.Also = append(append([]string{}, k.Expand(s.Allow)...), also...), k.Expand(s.Deny), also
	// An explicit alsoAllow overrides what the specs deny.
	if len(agent.Deny) == 0 && len(global.Deny) == 0 {
		s.Deny = slices.DeleteFunc(s.Deny, func(n string) bool { return match(also, n) != "" })
	}
	return k.step(s)
}
