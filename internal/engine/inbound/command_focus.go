package inbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

func focusCommands() []Command {
	const group = "agents"
	return []Command{
		{
			Name: "focus", Group: group, Args: "[<target>]", Scope: chela.ScopeWrite, home: true,
			Help: "send the messages of this chat to a subagent until /unfocus",
			run:  (*call).focus,
		},
		{
			Name: "unfocus", Group: group, Scope: chela.ScopeWrite, home: true,
			Help: "send the messages of this chat to its own session again",
			run:  (*call).unfocus,
		},
		{
			Name: "session", Group: group, Args: "[idle | max-age] [<duration> | off | default]",
			Scope: chela.ScopeWrite, home: true,
			Help: "show or set when /focus ends here: after a time without a message, or in all",
			run:  (*call).focusLimits,
		},
	}
}

// focused returns the session that the messages of a chat go to: that of a subagent
// if the chat is focused, otherwise home.
func (g *Gate) focused(ctx context.Context, home chela.SessionKey,
	a chela.Address) (key chela.SessionKey, activation string, err error) {
	if a.Local() {
		return home, "", nil
	}
	key, err = store.Get(ctx, g.o.Store, func(r store.Reader) (chela.SessionKey, error) {
		m, err := session.Lookup(r.Sessions(), home)
		if err != nil {
			return home, err
		}
		activation = m.Activation
		f, err := g.focusOf(r.Sessions(), m, a)
		return cmp.Or(f.Session, home), err
	})
	return key, activation, err
}

// focusOf returns the focus of a chat; the zero Focus if it has none, or if it has ended.
func (g *Gate) focusOf(sessions session.Reader, m session.Meta, a chela.Address) (session.Focus, error) {
	f := m.Focused(a)
	if f.Session == "" {
		return f, nil
	}
	to, err := sessions.Get(f.Session)
	if errors.Is(err, chela.ErrNotFound) {
		return session.Focus{}, nil
	}
	if err != nil || g.o.Focus().Ended(f, to, time.Now()) || to.External != nil && !to.Archived.IsZero() {
		return session.Focus{}, err
	}
	return f, nil
}

// focus is /focus.
func (k *call) focus() (string, error) {
	a := k.in.Address
	switch {
	case !k.g.o.Focus().On():
		return "", refuse{"Chats cannot be focused here: session.threadBindings.enabled is false."}
	case k.args == "":
		return k.showFocus()
	}
	c, err := k.focusTarget(k.args)
	switch {
	case err != nil:
		return "", err
	case a.Local():
		return "", refusef(
			"This window shows one session. To talk to the subagent %q, open its session: chela chat --session %s",
			c.Label, c.Session)
	}
	if _, err := k.tx.Sessions().Get(c.Session); err != nil {
		return "", k.g.refusal(chela.Errorf(chela.CodeNotFound, "the session of the subagent %q does not exist any more",
			c.Label))
	}
	if err := subagent.Release(k.tx.Children(), k.meta.Focused(a).Session, a); err != nil {
		return "", err
	}
	c.Thread = a
	k.meta.SetFocus(session.Focus{Address: a, Session: c.Session, Since: k.now})
	return fmt.Sprintf("Messages in this chat go to the subagent %q now. /unfocus ends that.", c.Label),
		k.tx.Children().Put(c)
}

// focusTarget returns the subagent that a target names: one of the chat's session, or,
// in a thread whose session has none, of the conversation that contains the thread.
func (k *call) focusTarget(target string) (subagent.Child, error) {
	l, err := k.children(k.key)
	if err != nil {
		return subagent.Child{}, err
	}
	if above := k.key.Around(); above != "" && len(l.Children) == 0 {
		return k.childOf(above, target)
	}
	return k.childOf(k.key, target)
}

// showFocus says which subagent gets the messages of the chat.
func (k *call) showFocus() (string, error) {
	const usage = "/focus <target> sends the messages of this chat to a subagent. /subagents lists them."
	f, err := k.g.focusOf(k.tx.Sessions(), k.meta, k.in.Address)
	if err != nil || f.Session == "" {
		return usage, err
	}
	return k.focusState(f)
}

// unfocus is /unfocus.
func (k *call) unfocus() (string, error) {
	a := k.in.Address
	if k.meta.Focused(a).Session == "" {
		return "This chat is not focused on a subagent.", nil
	}
	if err := subagent.Release(k.tx.Children(), k.meta.Focused(a).Session, a); err != nil {
		return "", err
	}
	k.meta.SetFocus(session.Focus{Address: a})
	return "Messages in this chat go to its own session again.", nil
}

// focusLimits is /session.
func (k *call) focusLimits() (string, error) {
	f, err := k.g.focusOf(k.tx.Sessions(), k.meta, k.in.Address)
	switch {
	case err != nil:
		return "", err
	case f.Session == "" && k.in.Address.Local():
		return "", refuse{"This window shows one session, and is not focused on a subagent."}
	case f.Session == "":
		return "", refuse{"This chat is not focused on a subagent. /focus <target> does that."}
	}
	name, value, _ := strings.Cut(strings.ToLower(k.args), " ")
	var limit **time.Duration
	switch name {
	case "":
		return k.focusState(f)
	case "idle":
		limit = &f.Idle
	case "max-age":
		limit = &f.MaxAge
	default:
		return "", refuse{"/session idle <duration> and /session max-age <duration> set when /focus ends here."}
	}
	switch value = strings.TrimSpace(value); value {
	case "":
		return k.focusState(f)
	case "default":
		*limit = nil
	case "off":
		*limit = new(time.Duration)
	default:
		d, err := humanize.ParseDuration(value)
		if err != nil || d == 0 {
			return "", refusef("%q is no duration. Examples: 90m, 12h, 2d, off.", value)
		}
		*limit = &d
	}
	k.meta.SetFocus(f)
	return k.focusState(f)
}

// focusState says to which subagent the messages of the chat go, and until when.
func (k *call) focusState(f session.Focus) (string, error) {
	c, err := subagent.Lookup(k.tx.Children(), f.Session)
	text := fmt.Sprintf("Messages in this chat go to the subagent %q", c.Label)
	if c.ID == "" && err == nil {
		var m session.Meta
		if m, err = session.Lookup(k.tx.Sessions(), f.Session); m.External != nil {
			text = fmt.Sprintf("Messages in this chat go to the coding agent %s, in %s", m.External.Agent, m.External.Dir)
		}
	}
	switch idle, age := k.g.o.Focus().Limits(f); {
	case idle > 0 && age > 0:
		text += fmt.Sprintf(" until there is none for %s, at most until %s after /focus",
			humanize.Span(idle), humanize.Span(age))
	case idle > 0:
		text += fmt.Sprintf(" until there is none for %s", humanize.Span(idle))
	case age > 0:
		text += fmt.Sprintf(" until %s after /focus", humanize.Span(age))
	}
	return text + ". /unfocus ends that.", err
}
