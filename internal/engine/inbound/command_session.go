package inbound

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

func sessionCommands() []Command {
	const group = "session"
	return []Command{
		{
			Name: "new", message: true, Group: group, Args: "[model] [text] | undo", Scope: chela.ScopeWrite,
			Help: "start a new conversation; undo restores the previous one",
			run:  func(k *call) (string, error) { return k.reset("new") },
		},
		{
			Name: "reset", message: true, Group: group, Args: "[text] | soft [text]", Scope: chela.ScopeWrite,
			Help: "start a new conversation with the same settings; soft keeps it, and begins the next message like the first one",
			run: func(k *call) (string, error) {
				if word, rest := cut(k.args); strings.EqualFold(word, session.Soft) {
					return k.refresh(rest)
				}
				return k.reset("reset")
			},
		},
		{
			Name: "compact", Group: group, Args: "[what to keep] | undo | explain", Scope: chela.ScopeWrite,
			Help:   "summarize the conversation to free context; undo restores it, explain shows what was kept",
			before: explainCompaction,
			run:    (*call).compact,
		},
		{
			Name: "stop", Aliases: []string{"abort"}, Group: group,
			Help: "stop the run in progress and cancel waiting messages",
			run:  (*call).halt,
		},
		{
			Name: "retry", Group: group, Scope: chela.ScopeWrite,
			Help: "send the last message that failed, was stopped or was given up again",
			run:  (*call).retry,
		},
		{
			Name: "steer", message: true, Aliases: []string{"tell"}, Group: group, Args: "[subagent] <message>",
			Help: "send a message to the run in progress, or to a subagent",
			run:  (*call).steer,
		},
		{
			Name: "queue", Group: group, Args: "[mode] [debounce:2s] [cap:20] [drop:summarize|old|new] | default",
			Scope: chela.ScopeWrite,
			Help:  "set how messages are queued while a run is in progress",
			run:   (*call).queue,
			within: func(_ *call, args string) bool {
				word, rest := cut(args)
				_, ok := queue.ParseMode(word)
				return ok && slices.ContainsFunc(strings.Fields(rest), func(w string) bool { return !strings.ContainsAny(w, ":：") })
			},
		},
		{
			Name: "name", Aliases: []string{"title"}, Group: group, Args: "[name]", Scope: chela.ScopeWrite,
			Help: "show or set the name of this conversation",
			run:  (*call).name,
		},
		{
			Name: "send", Group: group, Args: "[on | off | inherit]", Scope: chela.ScopeWrite,
			Help: "send answers to this chat, or only store them",
			run:  (*call).send,
		},
	}
}

// reset is /new and /reset.
func (k *call) reset(reason string) (string, error) {
	if reason == "new" && strings.EqualFold(k.args, "undo") {
		return k.undo()
	}
	text := k.args
	model := ""
	if word, rest := cut(text); reason == "new" && word != "" && k.isModel(word) {
		m, err := k.pick(word)
		if err != nil {
			return "", err
		}
		model, text = m.Ref(), rest
	}
	stopped, err := k.leave("a new conversation was started")
	if err != nil {
		return "", err
	}
	m, err := session.Reset(k.tx.Sessions(), k.key, reason, k.now)
	if err != nil {
		return "", err
	}
	if model != "" {
		m.Model = model
	}
	k.ended(reason, k.meta, m)
	k.meta = m
	k.then, k.follow = text, text != "" || len(k.in.Media) > 0
	k.publish(chela.Event{Stream: chela.StreamSession, Phase: chela.PhaseReset})
	if k.follow {
		return stopped.String(), nil
	}
	reply := "New conversation with " + k.g.o.Model(m).Ref() + "."
	if m.Previous != "" {
		reply += " /new undo restores the previous one."
	}
	return strings.TrimSpace(stopped.String() + " " + reply), nil
}

// refresh is /reset soft. It stops nothing. Its message gets a run of its own, because the
// one in progress keeps the system prompt that it began with.
func (k *call) refresh(text string) (string, error) {
	k.meta.Refresh()
	if k.then, k.follow = text, text != "" || len(k.in.Media) > 0; k.follow {
		k.mode = queue.Followup
		return "", nil
	}
	return "The conversation is kept. The next message starts with the workspace files, skills and daily notes as they are then.", nil
}

// undo is /new undo.
func (k *call) undo() (string, error) {
	if k.meta.Previous == "" {
		return "", refuse{"There is no previous conversation to restore."}
	}
	stopped, err := k.leave("the previous conversation was restored")
	if err != nil {
		return "", err
	}
	old := k.meta
	m, err := session.UndoReset(k.tx.Sessions(), k.key, k.now)
	if err != nil {
		return "", err
	}
	k.ended("undo", old, m)
	k.meta = m
	k.publish(chela.Event{Stream: chela.StreamSession, Phase: chela.PhaseReset})
	return strings.TrimSpace(stopped.String() +
		" The previous conversation is restored. Use /new undo again to return to the other one."), nil
}

// halt is /stop.
func (k *call) halt() (string, error) {
	n, err := k.cancel("stopped before it started")
	if err != nil {
		return "", err
	}
	return cmp.Or(n.String(), "No run is in progress."), nil
}

// steer is /steer: its message steers the run in progress, regardless of the queue
// mode. In an idle session it is an ordinary message. If the first word names an open
// subagent of the session, the rest is sent to that subagent.
func (k *call) steer() (string, error) {
	if k.args == "" && len(k.in.Media) == 0 {
		return "", refuse{"Usage: /steer [subagent] <message>"}
	}
	word, rest := cut(k.args)
	if rest != "" && len(k.in.Media) == 0 && k.who.May(chela.ScopeWrite) && k.g.o.Subagents != nil {
		l, err := k.children(k.key)
		if err != nil {
			return "", err
		}
		if c, ok := subagent.Named(l.Children, word); ok && l.Role.Controls() {
			return k.message(string(c.ID), rest, queue.Steer)
		}
	}
	k.follow, k.then, k.mode = true, k.args, queue.Steer
	return "", nil
}

// name is /name.
func (k *call) name() (string, error) {
	const most = 100
	label := strings.Join(strings.Fields(k.args), " ")
	switch {
	case label == "" && k.meta.Label == "":
		return "This conversation has no name. Use /name <name> to set one.", nil
	case label == "":
		return "This conversation is named " + k.meta.Label + ".", nil
	case len([]rune(label)) > most:
		return "", refusef("A name has at most %d characters.", most)
	}
	k.meta.Label = label
	k.publish(chela.Event{Stream: chela.StreamSession, Phase: chela.PhasePatched})
	return "Named " + label + ".", nil
}

// queue is /queue. If one of its words is invalid, nothing is changed.
func (k *call) queue() (string, error) {
	if k.args == "" {
		return k.queueState()
	}
	if word := strings.ToLower(k.args); word == "default" || word == "reset" {
		k.meta.Queue = queue.Prefs{}
		return k.queueState()
	}
	q := k.meta.Queue
	for _, word := range strings.Fields(k.args) {
		if err := setQueue(&q, word); err != nil {
			return "", err
		}
	}
	k.meta.Queue = q
	return k.queueState()
}

func setQueue(q *queue.Prefs, word string) error {
	name, value, ok := strings.Cut(strings.Replace(word, "：", ":", 1), ":")
	if !ok {
		m, ok := queue.ParseMode(word)
		if !ok {
			return refusef("There is no queue mode %q. Modes: %s.", word, modes())
		}
		q.Mode = string(m)
		return nil
	}
	switch strings.ToLower(name) {
	case "debounce":
		d, err := time.ParseDuration(value)
		if ms, aerr := strconv.Atoi(value); aerr == nil {
			d, err = time.Duration(ms)*time.Millisecond, nil
		}
		if err != nil || d < 0 || d > time.Minute {
			return refusef("%q is not a valid time: use 0 to 60s, for example debounce:2s.", value)
		}
		q.Debounce = d
	case "cap":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > 1000 {
			return refusef("%q is not a valid number of messages: use 1 to 1000, for example cap:20.", value)
		}
		q.Cap = n
	case "drop":
		d, ok := queue.ParseDrop(value)
		if !ok {
			return refusef("There is no drop rule %q. Rules: summarize, old, new.", value)
		}
		q.Drop = string(d)
	default:
		return refusef("There is no queue option %q. Options: debounce, cap, drop.", name)
	}
	return nil
}

func modes() string {
	var s []string
	for _, m := range queue.Modes {
		s = append(s, string(m))
	}
	return strings.Join(s, ", ")
}

// policy returns the effective queue policy and whether the session overrides it.
func (k *call) policy() (queue.Policy, bool) {
	q := k.meta.Queue
	return k.g.o.Inherit(k.meta).Queue.With(q).Effective(), q != (queue.Prefs{})
}

func (k *call) queueState() (string, error) {
	p, own := k.policy()
	from := "default"
	if own {
		from = "this session"
	}
	waiting, err := k.tx.Queue().Waiting(k.key)
	return fmt.Sprintf("Queue: %s debounce:%s cap:%d drop:%s (%s), %s waiting. Modes: %s.",
		p.Mode, p.Debounce, p.Cap, p.Drop, from, humanize.Many(queue.Messages(waiting), "message"), modes()), err
}

// cut splits a text into its first word and the rest.
func cut(s string) (word, rest string) {
	s = strings.TrimSpace(s)
	i := strings.IndexAny(s, " \t\n")
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimSpace(s[i:])
}

// send is /send.
func (k *call) send() (string, error) {
	inherited := k.meta
	inherited.Send = ""
	return k.set(setting{"Sending", &k.meta.Send, k.sending(inherited), []string{session.SendOn, session.SendOff}})
}

// sending returns whether what a session says is sent to the chat of the command, or, if
// a client wrote it, to the last chat of the session.
func (k *call) sending(m session.Meta) string {
	to := k.in.Address
	if to.Local() {
		to = m.Address
	}
	if k.g.o.Sends(m, to) {
		return session.SendOn
	}
	return session.SendOff
}
