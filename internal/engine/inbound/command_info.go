package inbound

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

func infoCommands() []Command {
	const group = "info"
	return []Command{
		{
			Name: "help", Group: group, Help: "show how to start", inline: true,
			run: func(*call) (string, error) {
				return "Type what you want Chela to do. /status shows the state of this session, /stop stops the run in progress, " +
					"/new starts a new conversation, /undo takes back what the last turns changed, /model selects the model and /think its thinking level. " +
					"/commands lists all commands. In the terminal, /quit or Ctrl-D quits.", nil
			},
		},
		{
			Name: "commands", Group: group, Help: "list the commands", inline: true,
			run: func(k *call) (string, error) { return k.list(), nil },
		},
		{
			Name: "status", Group: group, Scope: chela.ScopeRead, Help: "show model, context, cost and queue", inline: true,
			run: (*call).status,
		},
		{
			Name: "context", Group: group, Args: "[list | detail | json]", Scope: chela.ScopeRead,
			Help:   "show what the model is sent and how full its window is",
			before: showContext,
		},
		{
			Name: "tools", Group: group, Args: "[verbose]", Help: "list the tools available here",
			before: tools,
		},
		{
			Name: "whoami", Aliases: []string{"id"}, Group: group, Help: "show your identity and permissions", inline: true,
			run: func(k *call) (string, error) { return k.whoami(), nil },
		},
		{
			Name: "approve", Group: group, Args: "[id] allow-once | allow-always | deny", Scope: chela.ScopeApprovals,
			Help:   "decide a pending approval",
			before: approve,
		},
		{
			Name: "config", Group: group, Args: "show [path] | get <path> | set <path> <value> | unset <path>",
			Scope:  chela.ScopeAdmin,
			Help:   "show or change the configuration, if commands.config is true",
			before: configure,
		},
		{
			Name: "debug", Group: group, Args: "show | set <path> <value> | unset <path> | reset", Scope: chela.ScopeAdmin,
			Help:   "override the configuration until the gateway stops, if commands.debug is true",
			before: debug,
		},
	}
}

// list is /commands.
func (k *call) list() string {
	var b strings.Builder
	group := ""
	for _, c := range Commands() {
		if c.Group != group {
			if group = c.Group; b.Len() > 0 {
				b.WriteString("\n\n")
			}
			b.WriteString(strings.ToUpper(group[:1]) + group[1:])
		}
		b.WriteString("\n- " + c.usage() + ": " + c.Help)
		if len(c.Aliases) > 0 {
			b.WriteString(" (also /" + strings.Join(c.Aliases, ", /") + ")")
		}
		if !c.allowed(k.who) {
			b.WriteString(" (not permitted)")
		}
		if c.Name == "skill" {
			for _, s := range k.g.skillsOf(k.key.Agent()) {
				b.WriteString("\n- /" + s.Name + " [input]: " + humanize.Sentence(s.Skill.Description, maxSummary))
			}
		}
	}
	return b.String()
}

// status is /status.
func (k *call) status() (string, error) {
	o, m := k.g.o, k.meta
	model := o.Model(m)
	in := o.Inherit(m)
	p, _ := k.policy()
	waiting, err := k.tx.Queue().Waiting(k.key)
	if err != nil {
		return "", err
	}
	active, err := k.tx.Runs().Active(k.key)
	if err != nil {
		return "", err
	}
	lines := []string{"Chela " + cmp.Or(o.Version, "(unknown version)")}
	if !o.Started.IsZero() {
		lines[0] += ", up " + humanize.Span(k.now.Sub(o.Started))
	}
	name := "Model: " + model.Ref()
	if m.Fallback != "" {
		name += " (" + m.Fallback + " answered instead)"
	}
	lines = append(lines, name)
	lines = append(lines, "Context: "+k.fill())
	if m.Compactions > 0 {
		lines = append(lines, fmt.Sprintf("🧹 Compactions: %d", m.Compactions))
	}
	tokens := "Tokens: " + usage.Tokens(m.Tokens)
	if m.Priced && m.Calls > 0 {
		tokens += " · " + usage.USD(m.NanoUSD)
	}
	lines = append(lines, tokens)
	if c := m.Children; c.Runs > 0 {
		below := humanize.Many(c.Runs, "subagent") + ": " + usage.Tokens(c.Tokens)
		if !c.Unpriced {
			below += " · " + usage.USD(c.NanoUSD)
		}
		lines = append(lines, below)
	}
	lines = append(lines, fmt.Sprintf("Thinking: %s · fast: %s · verbose: %s · reasoning: %s · usage: %s",
		cmp.Or(m.Think, string(in.Think), "off"), fastState(cmp.Or(m.Fast, string(in.Fast), "off"), model),
		cmp.Or(m.Verbose, in.Verbose, "off"), cmp.Or(m.Reasoning, in.Reasoning, "off"), cmp.Or(m.Usage, in.Usage, "off")))
	if e := m.Exec; !e.IsZero() {
		lines = append(lines, fmt.Sprintf("Commands: host %s · security %s · ask %s",
			cmp.Or(e.Host, "default"), cmp.Or(e.Security, "default"), cmp.Or(e.Ask, "default")))
	}
	if k.sending(m) == session.SendOff {
		from := "this session"
		if m.Send == "" {
			from = "default"
		}
		lines = append(lines, "Sending: off ("+from+"); answers are only stored")
	}
	if m.Media != "" {
		lines = append(lines, "Attachments: "+m.Media)
	}
	state := "idle"
	if len(active) > 0 {
		state = "busy"
		if !o.Live(k.key) {
			state = string(active[0].State)
		}
	}
	lines = append(lines,
		fmt.Sprintf("Queue: %s, %s, %s waiting", p.Mode, state, humanize.Many(queue.Messages(waiting), "message")),
		"Session: "+string(k.key))
	return strings.Join(lines, "\n- "), nil
}

// whoami is /whoami.
func (k *call) whoami() string {
	a := k.in.Address
	lines := []string{"Identity: " + k.who.ID}
	if k.in.Sender.ID != "" && !a.Local() {
		lines = append(lines, "On "+a.Channel+": "+strings.TrimSpace(k.in.Sender.ID+" "+k.in.Sender.Name))
	}
	var scopes []string
	for _, s := range k.who.Scopes {
		scopes = append(scopes, string(s))
	}
	if len(scopes) > 0 {
		lines = append(lines, "Scopes: "+strings.Join(scopes, ", "))
	}
	return strings.Join(append(lines, "Session: "+string(k.key)), "\n- ")
}
