package spawn

import (
	"cmp"
	"context"
	"errors"

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
	if err != nil || at.Local() || at.Thread != "" || in.parent.Bounds.Depth > 0 {
		return err
	}
	made, err := s.o.Thread(ctx, at, "Subagent: "+cmp.Or(r.Label, r.Name, string(in.agent)))
	if err != nil {
		return chela.Errorf(chela.CodeUnavailable, "no subagent was started, because no thread could be created for it: %w. Start it without thread", err)
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
	at, home := c.Address, parent
	at.Thread = cmp.Or(made, at.Thread)
	switch {
	case !s.o.Config.Focus().On():
		return chela.Errorf(chela.CodeForbidden, "threads cannot be bound to subagents (session.threadBindings.enabled is false); start it without thread")
	case parent.Bounds.Depth > 0 || at.Local() || at.Thread == "":
		return chela.Errorf(chela.CodeInvalid, "this chat is not a thread; start the subagent without thread")
	}
	if at != c.Address {
		var err error
		key := route.InThread(cmp.Or(parent.Key.Around(), parent.Key), at.Thread)
		if home, err = tx.Sessions().Get(key); errors.Is(err, chela.ErrNotFound) {
			home, err = session.New(key, c.Created), nil
			home.Address = at
		}
		if err != nil {
			return err
		}
	}
	err := subagent.Release(tx.Children(), home.Focused(at).Session, at)
	c.Thread = at
	home.SetFocus(session.Focus{Address: at, Session: c.Session, Since: c.Created})
	return errors.Join(err, tx.Sessions().Put(home))
}
