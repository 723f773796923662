package inbound

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/figure"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/session"
)

func sessionCommands() []Command {
	const group = "session"
	return []Command{
		{
			Name: "new", follows: true, Group: group, Args: "[model] [text] | undo", Scope: chela.ScopeWrite,
			Help: "begin a new conversation; undo brings the last one back",
			run:  func(k *call) (string, error) { return k.fresh("new") },
		},
		{
			Name: "reset", follows: true, Group: group, Args: "[text]", Scope: chela.ScopeWrite,
			Help: "begin a new conversation with the same settings",
			run:  func(k *call) (string, error) { return k.fresh("reset") },
		},
		{
			Name: "stop", Aliases: []string{"abort"}, Group: group,
			Help: "end what is in progress, and forget what waits",
			run:  (*call).halt,
		},
		{
			Name: "steer", follows: true, Aliases: []string{"tell"}, Group: group, Args: "<message>",
			Help: "say something to the run in progress",
			run:  (*call).steer,
		},
		{
			Name: "queue", Group: group, Args: "[mode] [debounce:2s] [cap:20] [drop:summarize|old|new] | default", Scope: chela.ScopeWrite,
			Help: "what a message does while a run is in progress",
			run:  (*call).queue,
			within: func(args string) bool {
				word, rest := cut(args)
				_, ok := queue.ParseMode(word)
				return ok && slices.ContainsFunc(strings.Fields(rest), func(w string) bool { return !strings.ContainsAny(w, ":：") })
			},
		},
		{
			Name: "name", Aliases: []string{"title"}, Group: group, Args: "[name]", Scope: chela.ScopeWrite,
			Help: "name this conversation",
			run:  (*call).name,
		},
	}
}

// fresh begins a new conversation.
func (k *call) fresh(reason string) (string, error) {
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
	if _, _, err := k.cancel("a new conversation was begun"); err != nil {
		return "", err
	}
	m, err := session.Reset(k.tx.Sessions(), k.key, reason, k.now)
	if err != nil {
		return "", err
	}
	if model != "" {
		m.Model = model
	}
	k.meta = m
	k.then, k.follow = text, text != "" || len(k.in.Media) > 0
	k.tell(chela.Event{Stream: chela.StreamSession, Phase: "reset"})
	reply := "New conversation, with " + k.g.o.Model(m).Ref() + "."
	if m.Previous != "" {
		reply += " /new undo brings the last one back."
	}
	if len(k.stop) > 0 {
		reply = "The run in progress was stopped. " + reply
	}
	return reply, nil
}

func (k *call) undo() (string, error) {
	if k.meta.Previous == "" {
		return "", refuse{"There is no earlier conversation to go back to."}
	}
	if _, _, err := k.cancel("the last conversation was brought back"); err != nil {
		return "", err
	}
	m, err := session.UndoReset(k.tx.Sessions(), k.key, k.now)
	if err != nil {
		return "", err
	}
	k.meta = m
	k.tell(chela.Event{Stream: chela.StreamSession, Phase: "reset"})
	return "The last conversation is back. /new undo again returns to the one you left.", nil
}

// halt is /stop.
func (k *call) halt() (string, error) {
	messages, runs, err := k.cancel("stopped before it began")
	if err != nil {
		return "", err
	}
	var parts []string
	if runs > 0 {
		parts = append(parts, "the run in progress")
	}
	if messages > 0 {
		parts = append(parts, figure.Many(messages, "waiting message"))
	}
	if len(parts) == 0 {
		return "Nothing is in progress.", nil
	}
	return "Stopped " + strings.Join(parts, " and ") + ".", nil
}

// steer is a message that goes into the run in progress, whatever the queue's
// mode; to an idle session it is a message like others.
func (k *call) steer() (string, error) {
	if k.args == "" && len(k.in.Media) == 0 {
		return "", refuse{"What is to be said? /steer <message>"}
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
		return "This conversation has no name. /name <name> gives it one.", nil
	case label == "":
		return "This conversation is named " + k.meta.Label + ".", nil
	case len([]rune(label)) > most:
		return "", refusef("A name has at most %d characters.", most)
	}
	k.meta.Label = label
	k.tell(chela.Event{Stream: chela.StreamSession, Phase: "patched"})
	return "Named " + label + ".", nil
}

// queue is /queue: all of its words are good, or nothing is changed.
func (k *call) queue() (string, error) {
	if k.args == "" {
		return k.queueState()
	}
	if word := strings.ToLower(k.args); word == "default" || word == "reset" {
		k.meta.Queue = session.QueuePrefs{}
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

func setQueue(q *session.QueuePrefs, word string) error {
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
			return refusef("%q is no time to wait: 0 to 60s, for example debounce:2s.", value)
		}
		q.Debounce = d
	case "cap":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > 1000 {
			return refusef("%q is no number of messages: 1 to 1000, for example cap:20.", value)
		}
		q.Cap = n
	case "drop":
		d, ok := queue.ParseDrop(value)
		if !ok {
			return refusef("There is no rule %q. Rules: summarize, old, new.", value)
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

// policy is what is in force, and whether the session itself says so.
func (k *call) policy() (queue.Policy, bool) {
	p := k.g.o.Inherit(k.meta).Queue
	q := k.meta.Queue
	if q.Mode != "" {
		p.Mode = queue.Mode(q.Mode)
	}
	if q.Debounce != 0 {
		p.Debounce = q.Debounce
	}
	if q.Cap != 0 {
		p.Cap = q.Cap
	}
	if q.Drop != "" {
		p.Drop = queue.Drop(q.Drop)
	}
	if p.Mode == "" {
		p.Mode = queue.Collect
	}
	if p.Cap < 1 {
		p.Cap = queue.DefaultCap
	}
	if p.Drop == "" {
		p.Drop = queue.Summarize
	}
	return p, q != (session.QueuePrefs{})
}

func (k *call) queueState() (string, error) {
	p, own := k.policy()
	from := "default"
	if own {
		from = "this session"
	}
	waiting, err := k.tx.Queue().Waiting(k.key)
	return fmt.Sprintf("Queue: %s debounce:%s cap:%d drop:%s (%s), %s waiting. Modes: %s.",
		p.Mode, p.Debounce, p.Cap, p.Drop, from, figure.Many(len(waiting), "message"), modes()), err
}

// cut divides a text into its first word and the rest.
func cut(s string) (word, rest string) {
	s = strings.TrimSpace(s)
	i := strings.IndexAny(s, " \t\n")
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimSpace(s[i:])
}
