package inbound

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/usage"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Subagents starts and controls the subagents of sessions in the commits of commands.
// The functions that are returned are to be called after the commit. Errors with a
// code have changed nothing and are for the person.
type Subagents interface {
	ListIn(store.Tx, chela.SessionKey) (subagent.List, error)
	Ask(context.Context, subagent.Request) (subagent.Request, error)
	SpawnIn(store.Tx, subagent.Request) (subagent.Receipt, func(), error)
	KillIn(tx store.Tx, key chela.SessionKey, target string) ([]subagent.Child, func(), error)
	SendIn(store.Tx, chela.SessionKey, subagent.Message) (subagent.Child, error)
}

func agentCommands() []Command {
	const group = "agents"
	return []Command{
		{
			Name: "subagents", Group: group, Scope: chela.ScopeWrite,
			Args:   "[list | kill <target> | log <target> [entries] | info <target> | send <target> <message> | steer <target> <message> | spawn <task>]",
			Help:   "list, stop or start subagents of this session, read what they did, or send them messages",
			before: maySpawn,
			run:    (*call).subagents,
		},
		{
			Name: "kill", Group: group, Args: "<target>", Scope: chela.ScopeWrite,
			Help: "stop a subagent of this session; all stops every one",
			run: func(k *call) (string, error) {
				if k.args == "" {
					return "", refuse{"Usage: /kill <target>"}
				}
				return k.killChildren(k.args)
			},
		},
		{
			Name: "agents", Group: group, Scope: chela.ScopeRead,
			Help:   "list the agents, and what is running in this session and below it",
			before: readTypes,
			run:    (*call).agents,
		},
	}
}

// maySpawn answers /subagents spawn if the tool for it is not available, or hooks forbid
// the subagent.
func maySpawn(ctx context.Context, k *call) (string, error) {
	verb, rest := cut(k.args)
	if !strings.EqualFold(verb, "spawn") {
		return "", nil
	}
	specs, err := k.g.o.Tools(ctx, k.who, k.key)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(specs, func(s tool.Spec) bool { return s.Has(tool.StartsSubagents) }) {
		r, err := k.spawnRequest(rest)
		if err == nil {
			r, err = k.g.o.Subagents.Ask(ctx, r)
			k.spawned = r.Session
		}
		return "", k.g.refusal(err)
	}
	return "Subagents cannot be started here: the tool sessions_spawn is not available in this session. /tools lists those that are.", nil
}

// readTypes reads what is wrong with the files of agent types.
func readTypes(_ context.Context, k *call) (string, error) {
	k.problems = subagent.Problems(k.g.o.Types(k.key.Agent()))
	return "", nil
}

// subagents is /subagents.
func (k *call) subagents() (string, error) {
	verb, rest := cut(k.args)
	target, text := cut(rest)
	switch verb = strings.ToLower(verb); {
	case verb == "" || verb == "list":
		return k.listChildren()
	case verb == "spawn":
		return k.spawn(rest)
	case target == "" || text == "" && (verb == "send" || verb == "steer"):
	case verb == "kill":
		return k.killChildren(rest)
	case verb == "log":
		return k.logChild(target, text)
	case verb == "info":
		return k.infoChild(rest)
	case verb == "send":
		return k.message(target, text, queue.Followup)
	case verb == "steer":
		return k.message(target, text, queue.Steer)
	}
	return "", refuse{
		"Usage: /subagents list, kill <target>, log <target> [entries], info <target>, send <target> <message>, " +
			"steer <target> <message> or spawn <task>. A target is a number of the list, an id, a label or a task name."}
}

// children returns the subagents of a session.
func (k *call) children(key chela.SessionKey) (subagent.List, error) {
	if k.g.o.Subagents == nil {
		return subagent.List{}, refuse{"Subagents are not enabled."}
	}
	return k.g.o.Subagents.ListIn(k.tx, key)
}

// refusal returns an error for the person as one that is the answer to the command.
func (g *Gate) refusal(err error) error {
	if err == nil || chela.IsInternal(err) {
		return err
	}
	return refuse{g.explain(err)}
}

// maxListed is the maximum number of subagents in a list.
const maxListed = 30

// listChildren is /subagents list.
func (k *call) listChildren() (string, error) {
	l, err := k.children(k.key)
	if err != nil {
		return "", err
	}
	if len(l.Children) == 0 {
		return "This session has no subagents. /subagents spawn <task> starts one.", nil
	}
	var b strings.Builder
	b.WriteString("Subagents, newest first:")
	for i, c := range slices.Backward(l.Children) {
		n := len(l.Children) - i
		if n > maxListed {
			fmt.Fprintf(&b, "\n- and %d more", i+1)
			break
		}
		fmt.Fprintf(&b, "\n- %d %s: %s, %s", n, c.Label, k.state(c), humanize.Sentence(c.Task, maxSummary))
	}
	return b.String(), nil
}

// state returns what a subagent does, or how it ended, with its time.
func (k *call) state(c subagent.Child) string {
	at := humanize.Span(c.Runtime(k.now))
	if c.Open() {
		return c.Status() + " for " + at
	}
	return c.Status() + " after " + at
}

// child returns the subagent of the session that a target names.
func (k *call) child(target string) (subagent.Child, error) { return k.childOf(k.key, target) }

func (k *call) childOf(key chela.SessionKey, target string) (subagent.Child, error) {
	l, err := k.children(key)
	if err != nil {
		return subagent.Child{}, err
	}
	found, err := subagent.Find(l.Children, target)
	if err != nil {
		return subagent.Child{}, k.g.refusal(err)
	}
	if len(found) != 1 {
		return subagent.Child{}, refusef("%q names %s. Name one.", target, humanize.Many(len(found), "subagent"))
	}
	return found[0], nil
}

// spawnRequest parses the arguments of /subagents spawn.
func (k *call) spawnRequest(args string) (subagent.Request, error) {
	const syntax = "Usage: /subagents spawn [--agent <id>] [--model <name>] [--thinking <level>] <task>"
	if k.g.o.Subagents == nil {
		return subagent.Request{}, refuse{"Subagents are not enabled."}
	}
	r := subagent.Request{
		ID: k.id(), Requester: k.key, Session: k.spawned, Principal: k.who, Address: k.in.Address,
	}
	for strings.HasPrefix(args, "--") {
		name, rest := cut(args)
		value, rest := cut(rest)
		switch args = rest; name {
		case "--agent":
			r.Agent = chela.AgentID(value)
		case "--model":
			r.Model = value
		case "--thinking":
			r.Think = value
		default:
			return r, refuse{syntax}
		}
	}
	if r.Task = args; r.Task == "" {
		return r, refuse{syntax}
	}
	return r, nil
}

// spawn is /subagents spawn.
func (k *call) spawn(args string) (string, error) {
	r, err := k.spawnRequest(args)
	if err != nil {
		return "", err
	}
	out, after, err := k.g.o.Subagents.SpawnIn(k.tx, r)
	if err != nil {
		return "", k.g.refusal(err)
	}
	k.after = append(k.after, after)
	reply := fmt.Sprintf("Started the subagent %q; %d running. You will be told its result.", out.Child.Label, out.Running)
	if out.Warning != "" {
		reply += " Note: " + out.Warning + "."
	}
	return reply, nil
}

// id returns an id that depends only on the command.
func (k *call) id() chela.RunID { return subagent.IDOf("command\x1f" + dedupeKey(k.who, k.home, k.in)) }

// killChildren stops the subagents that a target names.
func (k *call) killChildren(target string) (string, error) {
	if k.g.o.Subagents == nil {
		return "", refuse{"Subagents are not enabled."}
	}
	killed, after, err := k.g.o.Subagents.KillIn(k.tx, k.key, target)
	if err != nil {
		return "", k.g.refusal(err)
	}
	if len(killed) == 0 {
		return "No such subagent is running.", nil
	}
	k.after = append(k.after, after)
	var labels []string
	for _, c := range killed {
		labels = append(labels, c.Label)
	}
	return "Stopped " + humanize.Many(len(killed), "subagent") + ": " + strings.Join(labels, ", ") + ".", k.recount()
}

// recount reads the usage of subagents again, which their ends have changed.
func (k *call) recount() error {
	m, err := session.Lookup(k.tx.Sessions(), k.key)
	k.meta.Children = m.Children
	return err
}

// message sends a message to a subagent.
func (k *call) message(target, text string, mode queue.Mode) (string, error) {
	if k.g.o.Subagents == nil {
		return "", refuse{"Subagents are not enabled."}
	}
	c, err := k.g.o.Subagents.SendIn(k.tx, k.key, subagent.Message{
		ID: "send:" + string(k.id()), Principal: k.who, Target: target, Text: text, Mode: mode,
	})
	if err != nil {
		return "", k.g.refusal(err)
	}
	return fmt.Sprintf("Sent to the subagent %q.", c.Label), nil
}

// infoChild is /subagents info.
func (k *call) infoChild(target string) (string, error) {
	c, err := k.child(target)
	if err != nil {
		return "", err
	}
	m, err := session.Lookup(k.tx.Sessions(), c.Session)
	if err != nil {
		return "", err
	}
	tokens, cost, priced := c.Tokens, c.NanoUSD, c.Priced
	if c.Open() {
		tokens, cost, priced = m.Tokens, m.NanoUSD, m.Priced && m.Calls > 0
	}
	spent := usage.Tokens(tokens)
	if priced {
		spent += " · " + usage.USD(cost)
	}
	lines := []string{
		"Subagent " + c.Label, "State: " + k.state(c),
		"Task: " + humanize.Truncate(strings.Join(strings.Fields(c.Task), " "), maxLogged),
		"Session: " + string(c.Session), "Id: " + string(c.ID), "Model: " + k.g.o.Model(m).Ref(), "Tokens: " + spent,
		"Cleanup: " + string(c.Cleanup),
	}
	if c.Name != "" {
		lines = append(lines, "Task name: "+c.Name)
	}
	if c.Timeout > 0 {
		lines = append(lines, "Time limit: "+humanize.Span(c.Timeout))
	}
	if c.Error != "" {
		lines = append(lines, "Error: "+c.Error)
	}
	if c.Result != "" {
		lines = append(lines, "Result: "+humanize.Truncate(strings.Join(strings.Fields(c.Result), " "), maxLogged))
	}
	return k.g.o.Redact(strings.Join(lines, "\n- ")), nil
}

const (
	defaultLog = 10  // entries of /subagents log
	maxLog     = 50  // the most that may be asked for
	maxLogged  = 300 // characters of each
)

// logChild is /subagents log: the end of a subagent's transcript.
func (k *call) logChild(target, count string) (string, error) {
	n, err := strconv.Atoi(cmp.Or(count, strconv.Itoa(defaultLog)))
	if err != nil || n < 1 || n > maxLog {
		return "", refusef("%q is not a valid number of entries: use 1 to %d.", count, maxLog)
	}
	c, err := k.child(target)
	if err != nil {
		return "", err
	}
	m, err := k.tx.Sessions().Get(c.Session)
	if err != nil {
		return "", k.g.refusal(chela.Errorf(chela.CodeNotFound, "the session of the subagent %q does not exist any more",
			c.Label))
	}
	entries, err := k.tx.Sessions().Last(m.ID, n)
	if err != nil {
		return "", err
	}
	lines := []string{fmt.Sprintf("Subagent %s: %s.", c.Label, k.state(c))}
	for _, e := range entries {
		if e.Kind == session.KindMessage {
			lines = append(lines, logged(e.Message)...)
		}
	}
	return k.g.o.Redact(strings.Join(lines, "\n- ")), nil
}

// logged returns the lines about a message in a log.
func logged(m *llm.Message) []string {
	who := map[llm.Role]string{llm.RoleUser: "in", llm.RoleAssistant: "out", llm.RoleTool: m.ToolName}[m.Role]
	var lines []string
	if text := humanize.Truncate(strings.Join(strings.Fields(m.PlainText()), " "), maxLogged); text != "" {
		lines = append(lines, who+": "+text)
	}
	for _, p := range m.Parts {
		if p.Kind == llm.PartCall {
			lines = append(lines, "call: "+p.Call.Label())
		}
	}
	return lines
}

// agents is /agents.
func (k *call) agents() (string, error) {
	var b strings.Builder
	b.WriteString("Agents:")
	for _, a := range k.g.o.Agents() {
		b.WriteString("\n- " + string(a.ID))
		if a.Name != "" && a.Name != string(a.ID) {
			b.WriteString(" (" + a.Name + ")")
		}
		b.WriteString(": " + a.Model)
		if a.ID == k.meta.Agent {
			b.WriteString(", this session's")
		}
	}
	if len(k.problems) > 0 {
		b.WriteString("\n\nProblems of agent types:\n- " + strings.Join(k.problems, "\n- "))
	}
	state, err := k.sessionState(k.key)
	if err != nil {
		return "", err
	}
	b.WriteString("\n\nRunning here:\n- this session: " + state)
	n := 0
	err = k.tree(&b, k.key, "  ", &n)
	return b.String(), err
}

// sessionState returns whether a session has a run.
func (k *call) sessionState(key chela.SessionKey) (string, error) {
	active, err := k.tx.Runs().Active(key)
	switch {
	case err != nil:
		return "", err
	case len(active) == 0:
		return "idle", nil
	case slices.ContainsFunc(active, func(r run.Run) bool { return r.State == run.Running }):
		return "running", nil
	case active[0].Waits == run.WaitsChildren:
		return "waiting for results", nil
	case active[0].Waits == run.WaitsRetry:
		return "waiting for another try", nil
	}
	return "waiting for " + string(active[0].Waits), nil
}

// tree writes the open subagents of a session and those below them. n counts the
// lines.
func (k *call) tree(b *strings.Builder, key chela.SessionKey, indent string, n *int) error {
	open, err := k.tx.Children().Open(key)
	if err != nil {
		return err
	}
	for _, c := range open {
		if *n++; *n > maxListed {
			return nil
		}
		state, err := k.sessionState(c.Session)
		if err != nil {
			return err
		}
		if state == "idle" {
			state = "queued"
		}
		fmt.Fprintf(b, "\n%s- %s (agent %s): %s for %s", indent, c.Label, c.Session.Agent(), state,
			humanize.Span(k.now.Sub(c.Created)))
		if err := k.tree(b, c.Session, indent+"  ", n); err != nil {
			return err
		}
	}
	return nil
}
