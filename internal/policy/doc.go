// Package policy decides which tools an agent is offered in a conversation.
//
// What the configuration says in several places (a profile, lists for all, for
// one provider, one agent, one chat, one sender, for sandboxes and for
// subagents) becomes one [Pipeline]: an ordered list of steps, each with the
// key that it comes from. A step keeps the tools that it allows and removes
// those that it denies; deny goes before allow, and no later step brings back
// what an earlier one removed. [Pipeline.Apply] gives the tools that are left,
// and [Pipeline.Explain] says of one tool which step decided.
//
//	profile             agents.<id>.tools.profile, else tools.profile; and alsoAllow
//	provider profile    the same below byProvider
//	global              tools.allow, tools.deny
//	global by provider  tools.byProvider.<provider or provider/model>
//	agent               agents.<id>.tools.allow, .deny
//	agent by provider   agents.<id>.tools.byProvider.<…>
//	chat                channels.<channel>.groups.<id>.tools, .toolsBySender; …direct.<id>
//	sender              agents.<id>.tools.toolsBySender, else tools.toolsBySender
//	sandbox             tools.sandbox.tools, for a conversation in a sandbox
//	subagent            what no child may do; tools.subagents.tools
//	owner               tools that only the owner may use: see OwnerOnly
//
// Names are compared without regard to case, * matches any text, and
// "group:fs" stands for the tools of a group.
package policy
