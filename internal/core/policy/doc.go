// Package policy decides which tools are available to an agent in a
// conversation.
//
// The rules of several sections of the configuration (a profile; lists for all,
// for one provider, agent, chat and sender; lists for sandboxes and subagents)
// form one [Pipeline]: an ordered list of steps, each with the key of its
// section. A step keeps the tools that it allows and removes those that it
// denies. Deny takes precedence over allow, and no later step restores a tool
// that an earlier one removed. [Pipeline.Apply] returns the remaining tools.
// [Pipeline.Explain] returns the step that decided about one tool.
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
//	subagent            built-in restrictions of subagents; tools.subagents.tools
//	owner               tools that only the owner may use: see OwnerOnly
//
// What a step has to know about a tool (groups, profiles, other names, whether it works in a
// sandbox, whether subagents have it) is in the tool's spec. A [Catalog] of all specs makes the
// steps.
//
// Names are compared ignoring case, * matches any text, and "group:fs" stands
// for the tools of a group.
package policy
