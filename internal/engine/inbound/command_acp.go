package inbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/acp"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/engine/spawn"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// Coders starts and ends coding agents, which answer in sessions instead of a model.
type Coders interface {
	// Coder returns the agent with a name, which works in a folder; both may be empty. An
	// error is for the person.
	Coder(id chela.AgentID, name, dir string) (session.External, error)
	// Coders returns the agents that may be used, and why agents are switched off.
	Coders() (agents []acp.Check, on error)
	// CoderState returns the state of the program of a session.
	CoderState(chela.SessionKey) acp.State
	// StopCoder ends the program of a session.
	StopCoder(chela.SessionKey)
	// SetCoderMode sets the mode of the agent of a session, whose program must run.
	SetCoderMode(ctx context.Context, key chela.SessionKey, mode string) error
}

const acpUsage = "Usage: /acp spawn [<agent>] [--cwd <folder>] [--thread auto | here | off] [--bind here | off] [--mode persistent | oneshot] [--label <name>]; " +
	"/acp status, sessions, cancel, steer <message>, set-mode <mode>, close or doctor."

func acpCommands() []Command {
	return []Command{{
		Name: "acp", Group: "agents", Scope: chela.ScopeAdmin, home: true,
		Args:   "[spawn <agent> | status | sessions | cancel | steer <message> | set-mode <mode> | close [<number> | all] | doctor]",
		Help:   "let a coding agent, such as Claude Code, answer in this chat",
		before: prepareACP,
		run:    (*call).acp,
	}}
}

// acpSpawn is a parsed /acp spawn.
type acpSpawn struct {
	agent, dir, label string
	thread            string // auto, here, off
	bind              string // here, off
	once              bool

	external session.External
	made     chela.Address // the thread that was made; zero: none
}

// parseSpawn parses the arguments of /acp spawn. A value reaches to the next option.
func parseSpawn(args string) (acpSpawn, error) {
	var s acpSpawn
	words := strings.Fields(args)
	// phones join two dashes
	isOption := func(w string) bool { return strings.HasPrefix(w, "--") || strings.HasPrefix(w, "—") }
	if len(words) > 0 && !isOption(words[0]) {
		s.agent, words = words[0], words[1:]
	}
	for len(words) > 0 {
		name := strings.TrimLeft(words[0], "-—")
		end := slices.IndexFunc(words[1:], isOption)
		if end < 0 {
			end = len(words) - 1
		}
		value := strings.Trim(strings.Join(words[1:1+end], " "), `"'“”`)
		if !isOption(words[0]) || value == "" {
			return s, refuse{acpUsage}
		}
		words = words[1+end:]
		lower := strings.ToLower(value)
		known := true
		switch name {
		case "cwd":
			s.dir = value
		case "label":
			s.label = humanize.Truncate(value, subagent.MaxLabel)
		case "bind":
			s.bind, known = lower, lower == "here" || lower == "off"
		case "thread":
			s.thread, known = lower, lower == "auto" || lower == "here" || lower == "off"
		case "mode":
			s.once, known = lower == "oneshot", lower == "oneshot" || lower == "persistent"
		default:
			known = false
		}
		if !known {
			return s, refusef("--%s %s is not known. %s", name, value, acpUsage)
		}
	}
	if s.bind == "here" && s.thread != "" && s.thread != "off" {
		return s, refuse{"--bind here and --thread exclude each other."}
	}
	return s, nil
}

// prepareACP does for /acp what cannot be done in its transaction.
func prepareACP(ctx context.Context, k *call) (string, error) {
	if k.g.o.Coders == nil {
		return "Coding agents are not available here.", nil
	}
	verb, rest := cut(k.args)
	switch strings.ToLower(verb) {
	case "spawn":
		s, err := parseSpawn(rest)
		if err != nil {
			return "", err
		}
		if s.external, err = k.g.o.Coders.Coder(k.home.Agent(), s.agent, s.dir); err != nil {
			return "", err
		}
		a := k.in.Address
		if s.thread == "auto" && !a.Local() && a.Thread == "" && k.g.o.Thread != nil {
			if s.made, err = k.g.o.Thread(ctx, a, s.name()); err != nil {
				return "", chela.Errorf(chela.CodeUnavailable, "no thread could be created, and nothing was started: %w", err)
			}
		}
		k.coder = &s
	case "set-mode":
		key, err := k.boundCoder(ctx)
		if err != nil || key == "" {
			return "No coding agent answers in this chat.", err
		}
		if err := k.g.o.Coders.SetCoderMode(ctx, key, rest); err != nil {
			return "", err
		}
	case "doctor":
		return k.g.acpDoctor(), nil
	}
	return "", nil
}

// name returns the name of a new conversation.
func (s *acpSpawn) name() string {
	return cmp.Or(s.label, s.external.Agent+": "+filepath.Base(s.external.Dir))
}

// boundCoder returns the session of the coding agent that answers in the chat; "": none does.
func (k *call) boundCoder(ctx context.Context) (chela.SessionKey, error) {
	return store.Get(ctx, k.g.o.Store, func(r store.Reader) (chela.SessionKey, error) {
		m, err := session.Lookup(r.Sessions(), k.home)
		if err != nil {
			return "", err
		}
		x, err := k.g.coderOf(r.Sessions(), m, k.in.Address)
		return x.Key, err
	})
}

// coderOf returns the session of the coding agent that answers in a chat whose session is
// home; the zero Meta: none does.
func (g *Gate) coderOf(sessions session.Reader, home session.Meta, a chela.Address) (session.Meta, error) {
	if home.External != nil {
		return home, nil
	}
	f, err := g.focusOf(sessions, home, a)
	if err != nil || f.Session == "" {
		return session.Meta{}, err
	}
	m, err := sessions.Get(f.Session)
	if err != nil || m.External == nil {
		return session.Meta{}, err
	}
	return m, nil
}

// acpDoctor says which coding agents can be used.
func (g *Gate) acpDoctor() string {
	agents, on := g.o.Coders.Coders()
	var b strings.Builder
	if on != nil {
		b.WriteString(g.explain(on) + "\n")
	}
	b.WriteString("Coding agents:")
	for _, a := range agents {
		state := "ready"
		if a.Err != nil {
			state = strings.TrimPrefix(g.explain(a.Err), "coding agent "+a.Name+": ")
		}
		mark := ""
		if a.Default {
			mark = ", the default"
		}
		fmt.Fprintf(&b, "\n- %s (%s%s): %s", a.Name, a.Command, mark, state)
	}
	return b.String() + "\nWhether an agent is logged in is seen when it gets its first message."
}

// acp is /acp.
func (k *call) acp() (string, error) {
	verb, rest := cut(k.args)
	switch strings.ToLower(verb) {
	case "spawn":
		return k.spawnCoder(k.coder)
	case "", "status":
		return k.coderStatus()
	case "sessions":
		return k.listCoders()
	case "cancel", "steer", "set-mode", "close":
	default:
		return "", refuse{acpUsage}
	}
	m, err := k.g.coderOf(k.tx.Sessions(), k.meta, k.in.Address)
	if err != nil {
		return "", err
	}
	if strings.EqualFold(verb, "close") {
		return k.closeCoders(m, rest)
	}
	if m.Key == "" {
		return "", refuse{"No coding agent answers in this chat. /acp spawn <agent> starts one."}
	}
	switch strings.ToLower(verb) {
	case "cancel":
		n, after, err := k.g.o.StopRuns(k.tx, m.Key)
		if err != nil {
			return "", err
		}
		k.after = append(k.after, after)
		if n == 0 {
			return fmt.Sprintf("%s is not working on anything.", m.External.Agent), nil
		}
		return fmt.Sprintf("Stopped what %s is doing. It stays here.", m.External.Agent), nil
	case "set-mode":
		x := *m.External
		x.Mode = rest
		m.External = &x
		return fmt.Sprintf("The mode of %s is %s now.", x.Agent, rest), k.putCoder(m)
	}
	if rest == "" {
		return "", refuse{"Usage: /acp steer <message>"}
	}
	it := k.item(k.now)
	it.ID, it.Key, it.Session = "acp:"+string(k.id()), "acp:"+string(k.id()), m.Key
	it.Inbound.Text, it.Inbound.Mode, it.Inbound.Media = rest, string(queue.Interrupt), nil
	if k.writer.ID != "" {
		it.Principal = k.writer
	}
	if err := store.Enqueue(k.tx, it); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s stops what it is doing, and gets the message.", m.External.Agent), nil
}

// putCoder stores the session of a coding agent, which may be that of the command.
func (k *call) putCoder(m session.Meta) error {
	if m.Key == k.meta.Key {
		k.meta = m
		return nil
	}
	return k.tx.Sessions().Put(m)
}

// spawnCoder is /acp spawn.
func (k *call) spawnCoder(s *acpSpawn) (string, error) {
	a, x := k.in.Address, s.external
	x.Once, x.By = s.once, k.who.ID
	key := chela.SessionKey(fmt.Sprintf("agent:%s:acp:%s", k.meta.Agent, k.id()))
	m := session.New(key, k.now)
	m.Label, m.Address, m.Group, m.External = s.name(), a, k.in.Group, &x
	bind := s.bind != "off"
	where := "in this chat"
	switch {
	case a.Local():
		bind = false
	case !bind:
	case !k.g.o.Focus().On():
		return "", refuse{"Chats cannot be bound here: session.threadBindings.enabled is false."}
	case s.made != (chela.Address{}):
		m.Address, where = s.made, "in the new thread"
		if err := spawn.FocusThread(k.tx, k.meta, s.made, key, k.now); err != nil {
			return "", err
		}
	default:
		if err := subagent.Release(k.tx.Children(), k.meta.Focused(a).Session, a); err != nil {
			return "", err
		}
		k.meta.SetFocus(session.Focus{
			Address: a,
			Session: key,
			Since:   k.now,
			Idle:    new(time.Duration),
			MaxAge:  new(time.Duration),
		})
	}
	if err := k.tx.Sessions().Put(m); err != nil {
		return "", err
	}
	k.events = append(k.events, chela.Event{Session: key, Stream: chela.StreamSession, Phase: chela.PhaseCreated})
	const rights = " It is a program with all rights of yours, outside of the sandbox; what it asks permission for is asked here."
	if !bind {
		return fmt.Sprintf("%s is ready to work in %s. Talk to it: chela chat --session %s.", x.Agent, x.Dir, key) + rights,
			nil
	}
	return fmt.Sprintf(
		"Messages %s go to %s now, which works in %s. /acp close ends that; commands such as /status and /stop stay here.",
		where, x.Agent, x.Dir) + rights, nil
}

// coderStatus is /acp status.
func (k *call) coderStatus() (string, error) {
	m, err := k.g.coderOf(k.tx.Sessions(), k.meta, k.in.Address)
	if err != nil {
		return "", err
	}
	if m.Key == "" {
		return "No coding agent answers in this chat. " + acpUsage, nil
	}
	lines := []string{"Coding agent " + m.External.Agent + ": " + k.coderState(m), "Folder: " + m.External.Dir,
		"Session: " + string(m.Key)}
	s := k.g.o.Coders.CoderState(m.Key)
	if s.Version != "" {
		lines = append(lines, "Program: "+s.Version)
	}
	if len(s.Modes) > 0 {
		lines = append(lines, fmt.Sprintf("Mode: %s (of %s; /acp set-mode)", s.Mode, strings.Join(s.Modes, ", ")))
	}
	return strings.Join(lines, "\n- "), nil
}

// coderState says what a coding agent does.
func (k *call) coderState(m session.Meta) string {
	switch s := k.g.o.Coders.CoderState(m.Key); {
	case s.Waits:
		return "waits for a decision"
	case s.Busy:
		return "working"
	case s.Running:
		return "idle"
	case m.External.Remote == "":
		return "starts with the first message"
	}
	return "not running; it starts with the next message"
}

// coders returns the sessions of coding agents that are not closed.
func (k *call) coders() ([]session.Meta, error) {
	all, _, err := k.tx.Sessions().List(session.Query{Agent: k.meta.Agent, Search: ":acp:", Limit: maxListed})
	return slices.DeleteFunc(all, func(m session.Meta) bool { return m.External == nil }), err
}

// listCoders is /acp sessions.
func (k *call) listCoders() (string, error) {
	all, err := k.coders()
	if err != nil || len(all) == 0 {
		return "There are no coding agents. /acp spawn <agent> starts one.", err
	}
	var b strings.Builder
	b.WriteString("Coding agents, newest first:")
	for i, m := range all {
		fmt.Fprintf(&b, "\n- %d %s: %s, in %s (%s)", i+1, m.Label, k.coderState(m), m.External.Dir, m.Key)
	}
	return b.String() + "\n/acp close <number> ends one.", nil
}

// closeCoders is /acp close.
func (k *call) closeCoders(here session.Meta, target string) (string, error) {
	list := []session.Meta{here}
	if target != "" {
		all, err := k.coders()
		if err != nil {
			return "", err
		}
		list = all
		if !strings.EqualFold(target, "all") {
			list = nil
			for i, m := range all {
				if fmt.Sprint(i+1) == target || strings.EqualFold(m.Label, target) || string(m.Key) == target {
					list = append(list, m)
				}
			}
		}
	} else if here.Key == "" {
		return "", refuse{"No coding agent answers in this chat. /acp sessions lists those of others."}
	}
	if len(list) == 0 {
		return "", refusef("There is no coding agent %q. /acp sessions lists them.", target)
	}
	var names []string
	for _, m := range list {
		_, after, err := k.g.o.StopRuns(k.tx, m.Key)
		if err != nil {
			return "", err
		}
		k.after = append(k.after, after, func() { k.g.o.Coders.StopCoder(m.Key) })
		if m, err = k.tx.Sessions().Get(m.Key); err != nil && !errors.Is(err, chela.ErrNotFound) {
			return "", err
		}
		if names = append(names, m.Label); m.Key == k.home {
			continue // a binding of the configuration made it
		}
		m.Archived = k.now
		if err := k.tx.Sessions().Put(m); err != nil {
			return "", err
		}
		if a := k.in.Address; k.meta.Focused(a).Session == m.Key {
			k.meta.SetFocus(session.Focus{Address: a})
		}
	}
	return "Closed " + strings.Join(names, ", ") + ".", nil
}
