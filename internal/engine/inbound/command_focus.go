package inbound

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
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
	}
}

// focused returns the session that the messages of a chat go to: that of a subagent
// if the chat is focused, otherwise home.
func (g *Gate) focused(ctx context.Context, home chela.SessionKey, a chela.Address) (chela.SessionKey, error) {
	if a.Local() {
		return home, nil
	}
	return store.Get(ctx, g.o.Store, func(r store.Reader) (chela.SessionKey, error) {
		m, err := session.Lookup(r.Sessions(), home)
		if err != nil {
			return home, err
		}
		f := m.Focused(a)
		if f.Session == "" {
			return home, nil
		}
		switch to, err := r.Sessions().Get(f.Session); {
		case errors.Is(err, chela.ErrNotFound):
			return home, nil
		case err != nil:
			return home, err
		case g.o.Focus().Ended(f, to, time.Now()):
			return home, nil
		}
		return f.Session, nil
	})
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
		return "", refusef("This window shows one session. To talk to the subagent %q, open its session: chela chat --session %s", c.Label, c.Session)
	}
	if _, err := k.tx.Sessions().Get(c.Session); err != nil {
		return "", refusal(chela.Errorf(chela.CodeNotFound, "the session of the subagent %q does not exist any more", c.Label))
	}
	if err := subagent.Release(k.tx.Children(), k.meta.Focused(a).Session, a); err != nil {
		return "", err
	}
	c.Thread = a
	k.meta.SetFocus(session.Focus{Address: a, Session: c.Session, Since: k.now})
	return fmt.Sprintf("Messages in this chat go to the subagent %q now. /unfocus ends that.", c.Label), k.tx.Children().Put(c)
}

// focusTarget returns the subagent that a target names: one of the chat's session, or,
// in a thread whose session has none, of the conversation that contains the thread.
func (k *call) focusTarget(target string) (subagent.Child, error) {
	l, err := k.children(k.key)
	if err != nil {
		return subagent.Child{}, err
	}
	if above, _, thread := strings.Cut(string(k.key), ":thread:"); thread && len(l.Children) == 0 {
		return k.childOf(chela.SessionKey(above), target)
	}
	return k.childOf(k.key, target)
}

// showFocus says which subagent gets the messages of the chat.
func (k *call) showFocus() (string, error) {
	const usage = "/focus <target> sends the messages of this chat to a subagent. /subagents lists them."
	f := k.meta.Focused(k.in.Address)
	if f.Session == "" {
		return usage, nil
	}
	c, err := subagent.Lookup(k.tx.Children(), f.Session)
	return fmt.Sprintf("Messages in this chat go to the subagent %q. /unfocus ends that.", c.Label), err
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
