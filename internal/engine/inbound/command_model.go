package inbound

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/session"
)

func modelCommands() []Command {
	const group = "model"
	return []Command{
		{
			Name: "model", Group: group, Args: "[name | number | list | status | default]", Scope: chela.ScopeWrite,
			Help: "show or select the model of this conversation",
			run:  (*call).chooseModel,
			within: func(k *call, args string) bool {
				word, rest := cut(args)
				return rest != "" && k.isModel(word)
			},
		},
		{
			Name: "models", Group: group,
			Help: "list the models",
			run:  func(k *call) (string, error) { return k.listModels(), nil },
		},
		{
			Name: "think", Aliases: []string{"thinking", "t"}, Group: group, Args: "[level | default]", Scope: chela.ScopeWrite,
			Help: "show or set the thinking level",
			run:  (*call).think,
			within: func(_ *call, args string) bool {
				word, rest := cut(args)
				_, whole := llm.ParseLevel(args)
				_, ok := llm.ParseLevel(word)
				return ok && rest != "" && !whole
			},
		},
		{
			Name: "fast", Group: group, Args: "[off | on | auto | default]", Scope: chela.ScopeWrite,
			Help: "use the faster tier of the model's service, at a higher price; auto does so where a person waits",
			run:  (*call).fast, within: oneOf(llm.FastModes[:]),
		},
		{
			Name: "elevated", Group: group, Args: "[off | on | ask | full | default]", Scope: chela.ScopeWrite,
			Help: "let the commands of a sandboxed conversation run on the host, with approval",
			run:  (*call).elevated,
			within: func(_ *call, args string) bool {
				word, rest := cut(args)
				return rest != "" && slices.Contains(sandbox.ElevatedLevels, strings.ToLower(word))
			},
		},
		{
			Name: "exec", Group: group, Args: "[host=… security=… ask=… | default]", Scope: chela.ScopeWrite,
			Help:   "show or restrict where the commands of this conversation run, which of them run, and when a person is asked",
			before: readExecRule, run: (*call).exec,
			within: func(_ *call, args string) bool {
				_, n := takeExec(args)
				return n > 0 && strings.TrimSpace(args[n:]) != ""
			},
		},
		{
			Name: "verbose", Aliases: []string{"v"}, Group: group, Args: "[off | on | full | default]", Scope: chela.ScopeWrite,
			Help: "show tool calls; full also shows their output",
			run: func(k *call) (string, error) {
				return k.set(setting{"Verbose", &k.meta.Verbose, k.g.o.Inherit(k.meta).Verbose, verboseLevels})
			},
			within: oneOf(verboseLevels),
		},
		{
			Name: "reasoning", Aliases: []string{"reason"}, Group: group, Args: "[off | on | stream | default]",
			Scope: chela.ScopeWrite,
			Help:  "show the thoughts of the model before its answer; stream also shows them while it thinks",
			run: func(k *call) (string, error) {
				return k.set(setting{"Reasoning", &k.meta.Reasoning, k.g.o.Inherit(k.meta).Reasoning, reasoningLevels})
			},
			within: oneOf(reasoningLevels),
		},
	}
}

var (
	verboseLevels   = []string{"off", "on", "full"}
	reasoningLevels = []string{"off", "on", "stream"}
)

// oneOf returns a function that reports whether a text begins with one of the words and
// goes on.
func oneOf(words []string) func(*call, string) bool {
	return func(_ *call, args string) bool {
		word, rest := cut(args)
		return rest != "" && slices.Contains(words, strings.ToLower(word))
	}
}

// elevated is /elevated.
func (k *call) elevated() (string, error) {
	e := k.g.o.Elevated(k.who, k.meta)
	if k.args != "" && e.Reason != "" {
		return "", refusef("Elevated rights are not available: %s.", e.Reason)
	}
	own := k.meta
	own.Elevated = ""
	return k.set(setting{"Elevated", &k.meta.Elevated, k.g.o.Elevated(k.who, own).Level, sandbox.ElevatedLevels})
}

// isModel reports whether a word names a known model.
func (k *call) isModel(word string) bool {
	cat := k.g.o.Catalog()
	m, err := cat.Resolve(word)
	if err != nil {
		return false
	}
	_, aliased := cat.Aliases[strings.ToLower(word)]
	_, listed := cat.Lookup(m.Ref())
	return aliased || listed
}

// chooseModel is /model.
func (k *call) chooseModel() (string, error) {
	if x := k.meta.External; x != nil && k.args != "" && k.args != "status" {
		return "", refusef("The coding agent %s answers here, and has its own model. /acp status says more about it.",
			x.Agent)
	}
	switch arg := strings.ToLower(k.args); arg {
	case "", "status":
		own := "default"
		if k.meta.Model != "" {
			own = "selected for this conversation"
		}
		return fmt.Sprintf("Model: %s (%s). /model list shows all models.%s", k.g.o.Model(k.meta).Ref(), own, k.unusable()),
			nil
	case "list":
		return k.listModels(), nil
	case "default", "reset":
		k.meta.Model = ""
	default:
		m, err := k.pick(k.args)
		if err != nil {
			return "", err
		}
		k.meta.Model = m.Ref()
	}
	ref := k.g.o.Model(k.meta).Ref()
	k.publish(chela.Event{Stream: chela.StreamSession, Phase: chela.PhasePatched})
	return "Model: " + ref + "." + k.unusable(), k.note(session.KindModel, ref)
}

// unusable says why the session's model cannot answer; "": it can.
func (k *call) unusable() string {
	err := k.g.o.Unusable(k.meta)
	if err == nil {
		return ""
	}
	text := fmt.Sprintf(" It cannot answer yet: %s.", err)
	if hint := chela.HintOf(err); hint != "" {
		text += " In a terminal: " + hint
	}
	return text
}

// pick returns the model with the name, or with the number in the list.
func (k *call) pick(s string) (llm.Model, error) {
	cat := k.g.o.Catalog()
	if n, err := strconv.Atoi(s); err == nil {
		if n < 1 || n > len(cat.Models) {
			return llm.Model{}, refusef("There is no model number %d. /model list shows all models.", n)
		}
		s = cat.Models[n-1].Ref()
	}
	m, err := cat.Choose(s)
	if err != nil {
		return m, refusef("%s. /model list shows all models.", err)
	}
	return m, nil
}

func (k *call) listModels() string {
	const most = 50
	cat := k.g.o.Catalog()
	if len(cat.Models) == 0 {
		return "No models are known. Use /model <provider/model> to select one."
	}
	now := k.g.o.Model(k.meta).Ref()
	var b strings.Builder
	b.WriteString("Models:")
	for i, m := range cat.Models[:min(len(cat.Models), most)] {
		fmt.Fprintf(&b, "\n%d. %s", i+1, m.Ref())
		if m.Ref() == now {
			b.WriteString(" ←")
		}
	}
	if n := len(cat.Models) - most; n > 0 {
		fmt.Fprintf(&b, "\n\nand %d more", n)
	}
	b.WriteString("\n\nUse /model <name or number> to select one.")
	return b.String()
}

// think is /think.
func (k *call) think() (string, error) {
	m := k.g.o.Model(k.meta)
	s := setting{"Thinking", &k.meta.Think, string(k.g.o.Inherit(k.meta).Think), m.LevelNames()}
	if l, ok := llm.ParseLevel(k.args); ok {
		if !m.Thinks(l) {
			return "", refusef("%s does not support the thinking level %s. Levels: %s.", m.Ref(), l,
				strings.Join(s.values, ", "))
		}
		k.args = string(l)
	}
	before := k.meta.Think
	reply, err := k.set(s)
	if err != nil || k.meta.Think == before {
		return reply, err
	}
	return reply, k.note(session.KindThink, cmp.Or(k.meta.Think, s.inherited))
}

// fast is /fast.
func (k *call) fast() (string, error) {
	m := k.g.o.Model(k.meta)
	arg := strings.ToLower(k.args)
	if (arg == "on" || arg == "auto") && m.Fast == 0 {
		return "", refusef("%s", noFast(m))
	}
	reply, err := k.set(setting{"Fast", &k.meta.Fast, string(k.g.o.Inherit(k.meta).Fast), llm.FastModes[:]})
	if err != nil {
		return "", err
	}
	if m.Fast == 0 {
		return reply + " " + noFast(m), nil
	}
	return fmt.Sprintf("%s In the fast tier, tokens of %s cost %v times the usual price.", reply, m.Ref(), m.Fast), nil
}

// noFast says that a model has no faster tier.
func noFast(m llm.Model) string {
	return m.Ref() + " has no faster tier, or none that Chela knows: some models of Anthropic and OpenAI have one, on the hosts of these services."
}

// fastState returns a fast mode as /status shows it.
func fastState(mode string, m llm.Model) string {
	if mode != "off" && m.Fast == 0 {
		return mode + " (this model has none)"
	}
	return mode
}

// setting is a setting that a session may override.
type setting struct {
	name      string
	own       *string // the session's value; empty: inherited
	inherited string
	values    []string
}

// set shows a setting or changes it.
func (k *call) set(s setting) (string, error) {
	options := " Options: " + strings.Join(s.values, ", ") + ", default."
	arg := strings.ToLower(k.args)
	switch {
	case arg == "":
		return s.state() + options, nil
	case arg == "default" || arg == "inherit" || arg == "reset":
		*s.own = ""
	case slices.Contains(s.values, arg):
		*s.own = arg
		if peer := k.in.Address.Peer.Kind; arg != "off" && (peer == chela.Group || peer == chela.Room) &&
			(s.own == &k.meta.Verbose || s.own == &k.meta.Reasoning) {
			k.publish(chela.Event{Stream: chela.StreamSession, Phase: chela.PhasePatched})
			return s.state() + " Everybody in this group sees it.", nil
		}
	default:
		return "", refusef("%s has no value %q.%s", s.name, k.args, options)
	}
	k.publish(chela.Event{Stream: chela.StreamSession, Phase: chela.PhasePatched})
	return s.state(), nil
}

func (s setting) state() string {
	if *s.own == "" {
		return fmt.Sprintf("%s: %s (default).", s.name, cmp.Or(s.inherited, "off"))
	}
	return fmt.Sprintf("%s: %s.", s.name, *s.own)
}
