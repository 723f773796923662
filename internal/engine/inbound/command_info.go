package inbound

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
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
					"/new starts a new conversation, /model selects the model and /think its thinking level. /commands lists all commands.", nil
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
			Name: "tools", Group: group, Args: "[verbose]", Help: "list the tools available here",
			before: tools,
		},
		{
			Name: "usage", Group: group, Args: "[off | tokens | full | default | cost]", Scope: chela.ScopeWrite,
			Help: "show a usage line below each answer; cost shows the usage so far",
			run:  (*call).usage,
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
			Name: "config", Group: group, Args: "show [path] | get <path> | set <path> <value> | unset <path>", Scope: chela.ScopeAdmin,
			Help:   "show or change the configuration, if commands.config is true",
			before: configure,
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
	window := int64(model.Window())
	lines = append(lines, fmt.Sprintf("Context: %s of %s (%d%%)", humanize.Count(m.Context), humanize.Count(window), 100*m.Context/window))
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
	lines = append(lines, fmt.Sprintf("Thinking: %s · verbose: %s · usage: %s",
		cmp.Or(m.Think, string(in.Think), "off"), cmp.Or(m.Verbose, in.Verbose, "off"), cmp.Or(m.Usage, in.Usage, "off")))
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

// usage is /usage.
func (k *call) usage() (string, error) {
	if strings.EqualFold(k.args, "cost") {
		return k.cost()
	}
	return k.set(setting{"Usage line", &k.meta.Usage, k.g.o.Inherit(k.meta).Usage, []string{"off", "tokens", "full"}})
}

// cost is /usage cost: the usage of this session.
func (k *call) cost() (string, error) {
	day := k.now.UTC().Truncate(24 * time.Hour)
	since := day.AddDate(0, 0, -29)
	sums, err := k.tx.Usage().Sums(usage.Query{Session: k.key, Since: since})
	if err != nil {
		return "", err
	}
	if len(sums) == 0 {
		return "No usage in the last 30 days.", nil
	}
	var lines []string
	for _, span := range []struct {
		name string
		days int
	}{{"Today", 1}, {"7 days", 7}, {"30 days", 30}} {
		from := day.AddDate(0, 0, 1-span.days).Format(time.DateOnly)
		var in []usage.Sum
		for _, s := range sums {
			if s.Day >= from {
				in = append(in, s)
			}
		}
		lines = append(lines, "- "+span.name+": "+spent(usage.Total(in...)))
	}
	lines = append(lines, "", "By model:")
	for _, s := range byModel(sums) {
		lines = append(lines, "- "+s.Provider+"/"+s.Model+": "+spent(s))
	}
	return strings.Join(lines, "\n"), nil
}

// byModel returns the usage of each model, in order of first use.
func byModel(sums []usage.Sum) []usage.Sum {
	var out []usage.Sum
	at := map[string]int{}
	for _, s := range sums {
		ref := s.Provider + "/" + s.Model
		i, ok := at[ref]
		if !ok {
			i = len(out)
			at[ref] = i
			out = append(out, usage.Sum{Provider: s.Provider, Model: s.Model})
		}
		t := usage.Total(out[i], s)
		t.Provider, t.Model = s.Provider, s.Model
		out[i] = t
	}
	return out
}

// spent formats a sum. It shows no cost if the price is unknown.
func spent(s usage.Sum) string {
	if s.Calls == 0 {
		return "no calls"
	}
	out := humanize.Many(s.Calls, "call") + ", " + usage.Tokens(s.Tokens)
	switch {
	case s.Priced():
		out += " · " + usage.USD(s.NanoUSD)
	case s.Unpriced < s.Calls:
		out += " · " + usage.USD(s.NanoUSD) + " and " + humanize.Many(s.Unpriced, "call") + " without a known price"
	}
	return out
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
