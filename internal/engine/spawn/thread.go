package spawn

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/route"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
)

// makeThread creates the thread for a child that is bound to one, unless there is one or
// [Spawner.bind] will refuse. A thread whose child could not be stored stays, empty.
func (s *Spawner) makeThread(ctx context.Context, r subagent.Request, p *prepared) error {
	policy := s.o.Config.Focus()
	if !r.Thread || p.thread != "" || p.session == "" || !policy.On() || !policy.Spawns() {
		return nil
	}
	var at chela.Address
	var in admitted
	err := s.o.Store.View(ctx, func(rd store.Reader) error {
		_, by, err := requester(rd, r)
		if err != nil {
			return err
		}
		at = by
		in, err = s.admit(rd.Sessions(), rd.Children(), r)
		return err
	})
	if err != nil || at.Local() || at.Thread != "" || in.parent.IsChild() {
		return err
	}
	made, err := s.o.Thread(ctx, at, "Subagent: "+cmp.Or(r.Label, r.Name, string(in.agent)))
	if err != nil {
		return chela.Errorf(chela.CodeUnavailable,
			"no subagent was started, because no thread could be created for it: %w. Start it without thread", err)
	}
	p.thread = made.Thread
	return nil
}

// requester returns for whom a child is started, and the chat in which it was asked for.
func requester(rd store.Reader, r subagent.Request) (chela.Principal, chela.Address, error) {
	if r.Run == "" {
		return r.Principal, r.Address, nil
	}
	by, err := rd.Runs().Get(r.Run)
	return by.Principal, by.Address, err
}

// bind focuses a thread on a child: the one in which it is started, or the one that was
// made for it.
func (s *Spawner) bind(tx store.Tx, parent session.Meta, c *subagent.Child, made string) error {
	at := c.Address
	at.Thread = cmp.Or(made, at.Thread)
	switch {
	case !s.o.Config.Focus().On():
		return chela.Errorf(chela.CodeForbidden,
			"threads cannot be bound to subagents (session.threadBindings.enabled is false); start it without thread")
	case parent.IsChild() || at.Local() || at.Thread == "":
		return chela.Errorf(chela.CodeInvalid, "this chat is not a thread; start the subagent without thread")
	}
	home := parent
	if at != c.Address {
		var err error
		if home, err = inThread(tx, parent, at, c.Created); err != nil {
			return err
		}
	}
	err := subagent.Release(tx.Children(), home.Focused(at).Session, at)
	c.Thread = at
	home.SetFocus(session.Focus{Address: at, Session: c.Session, Since: c.Created})
	return errors.Join(err, tx.Sessions().Put(home))
}

// inThread returns the session of a thread in the chat of a session.
func inThread(tx store.Tx, parent session.Meta, at chela.Address, now time.Time) (session.Meta, error) {
	key := route.InThread(cmp.Or(parent.Key.Around(), parent.Key), at.Thread)
	home, err := tx.Sessions().Get(key)
	if errors.Is(err, chela.ErrNotFound) {
		home, err = session.New(key, now), nil
		home.Address = at
	}
	return home, err
}

// FocusThread focuses a new thread in the chat of a session on a session, without a limit.
func FocusThread(tx store.Tx, parent session.Meta, at chela.Address, key chela.SessionKey, now time.Time) error {
	home, err := inThread(tx, parent, at, now)
	if err != nil {
		return err
	}
	home.SetFocus(session.Focus{
		Address: at,
		Session: key,
		Since:   now,
		Idle:    new(time.Duration),
		MaxAge:  new(time.Duration),
	})
	return tx.Sessions().Put(home)
}
