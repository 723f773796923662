package spawn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
)

// List returns the children that a session may see: its own, or, for a leaf, those of
// its requester.
func (s *Spawner) List(ctx context.Context, key chela.SessionKey) (subagent.List, error) {
	return store.Get(ctx, s.o.Store,
		func(r store.Reader) (subagent.List, error) { return s.list(r.Sessions(), r.Children(), key) })
}

// ListIn is [Spawner.List] in a transaction.
func (s *Spawner) ListIn(tx store.Tx, key chela.SessionKey) (subagent.List, error) {
	return s.list(tx.Sessions(), tx.Children(), key)
}

func (s *Spawner) list(sessions session.Reader, children subagent.Reader, key chela.SessionKey) (subagent.List, error) {
	m, err := withDepth(sessions, key)
	if err != nil {
		return subagent.List{}, err
	}
	l := subagent.List{Role: s.o.Config.Subagents(m.Agent).RoleAt(m.Bounds.Depth), Of: key}
	if l.Role == subagent.Leaf {
		l.Of = m.Bounds.SpawnedBy
	}
	l.Children, err = children.Of(l.Of)
	return l, err
}

// controlled returns the children that a session names by a target, if it may stop and
// send messages to them.
func (s *Spawner) controlled(tx store.Tx, key chela.SessionKey, target string) ([]subagent.Child, error) {
	l, err := s.ListIn(tx, key)
	if err != nil {
		return nil, err
	}
	if !l.Role.Controls() {
		return nil, chela.Errorf(chela.CodeForbidden,
			"a leaf subagent can list the subagents of its requester, but not stop or steer them")
	}
	return subagent.Find(l.Children, target)
}

// Kill stops the children of a session that the target names, and all below them, in
// one commit. It returns those that were open, each before the ones below it.
func (s *Spawner) Kill(ctx context.Context, key chela.SessionKey, target string) ([]subagent.Child, error) {
	var killed []subagent.Child
	var after func()
	err := s.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		var err error
		killed, after, err = s.KillIn(tx, key, target)
		return err
	})
	if err != nil {
		return nil, err
	}
	after()
	return killed, nil
}

// KillIn is [Spawner.Kill] in a synced transaction. The function that it returns is to
// be called after the commit.
func (s *Spawner) KillIn(tx store.Tx, key chela.SessionKey, target string) ([]subagent.Child, func(), error) {
	named, err := s.controlled(tx, key, target)
	if err != nil {
		return nil, nil, err
	}
	var killed []subagent.Child
	var after []func()
	for _, c := range named {
		if !c.Open() {
			continue
		}
		tree, err := newDescent(tx.Children(), c.Session).open()
		if err != nil {
			return nil, nil, err
		}
		f, err := s.o.Stop(tx, c.Session)
		if err != nil {
			return nil, nil, fmt.Errorf("stop the subagent %q: %w", c.Label, err)
		}
		killed, after = append(append(killed, c), tree...), append(after, f)
	}
	return killed, func() {
		for _, f := range after {
			f()
		}
	}, nil
}

// maxMessage is the maximum length of a message to a child, in bytes.
const maxMessage = 16 << 10

// Steer sends a message to an open child of a session. It joins the run in progress
// before the next model call, or else the next run. The child is announced once, after
// the run that took the message. Its sender, the
// principal in ctx, must be the one whose rights the child has, or the owner.
func (s *Spawner) Steer(ctx context.Context, key chela.SessionKey, target, message string) (subagent.Child, error) {
	id := "steer:" + uuid.NewString()
	var c subagent.Child
	err := s.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		var err error
		c, err = s.SendIn(tx, key, subagent.Message{
			ID:        id,
			Principal: chela.PrincipalFrom(ctx),
			Target:    target,
			Text:      message,
			Mode:      queue.Steer,
		})
		return err
	})
	return c, err
}

// SendIn sends a message to an open child of a session in a synced transaction. The
// child is announced once, after the run that took the message.
func (s *Spawner) SendIn(tx store.Tx, key chela.SessionKey, m subagent.Message) (subagent.Child, error) {
	text := strings.TrimSpace(m.Text)
	switch {
	case text == "":
		return subagent.Child{}, chela.Errorf(chela.CodeInvalid, "message is required: say what the subagent is to change")
	case len(text) > maxMessage:
		return subagent.Child{}, chela.Errorf(chela.CodeInvalid, "message has %d bytes, at most %d are allowed",
			len(text), maxMessage)
	}
	named, err := s.controlled(tx, key, m.Target)
	if err != nil {
		return subagent.Child{}, err
	}
	if len(named) != 1 {
		return subagent.Child{}, chela.Errorf(chela.CodeInvalid, "%q names %d subagents; name one", m.Target, len(named))
	}
	c := named[0]
	if !c.Open() {
		return subagent.Child{}, chela.Errorf(chela.CodeConflict, "the subagent %q has ended (%s); start another one",
			c.Label, c.Outcome)
	}
	// the child has rights of its own
	if who := m.Principal; !who.Covers(c.Principal) || who.ID != c.Principal.ID && !who.IsOwner() {
		return subagent.Child{}, chela.Errorf(chela.CodeForbidden,
			"the subagent %q was started by somebody else, whose rights it has; start another one", c.Label)
	}
	err = store.Enqueue(tx, queue.Item{
		ID:        m.ID,
		Key:       m.ID,
		Session:   c.Session,
		Kind:      queue.Event,
		State:     queue.Waiting,
		Created:   time.Now(),
		Origin:    chela.Origin{Kind: chela.OriginAgent, ID: string(key)},
		Principal: c.Principal,
		Parent:    c.Parent,
		Root:      c.Root,
		Inbound: chela.Inbound{Text: llm.RequesterPrefix + text, Mode: string(m.Mode),
			Address: chela.Address{Channel: chela.LocalChannel}},
	})
	return c, err
}

// sweepEvery is how often Run looks for children to archive.
const sweepEvery = time.Minute

// Run archives and deletes the sessions of children that have ended, and closes the
// records of children that nothing works for any more, until ctx ends.
func (s *Spawner) Run(ctx context.Context) error {
	var told sync.WaitGroup
	told.Go(func() { s.notifyEnded(ctx) })
	defer told.Wait()
	t := time.NewTicker(sweepEvery)
	defer t.Stop()
	for {
		if err := s.sweep(ctx, time.Now()); err != nil && ctx.Err() == nil {
			s.o.Log.Error("clean up after subagents; retrying", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

func (s *Spawner) sweep(ctx context.Context, now time.Time) error {
	var ended, open []subagent.Child
	err := s.o.Store.View(ctx, func(r store.Reader) error {
		var err error
		if ended, err = r.Children().Ended(now); err != nil {
			return err
		}
		open, err = r.Children().Open("")
		return err
	})
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range open {
		errs = append(errs, s.reconcile(ctx, c, now))
	}
	for _, c := range ended {
		keep := s.o.Config.Subagents(c.Requester.Agent()).Archive()
		switch {
		case c.Cleanup == subagent.Delete:
			errs = append(errs, s.remove(ctx, c))
		case keep > 0 && now.Sub(c.Ended) >= keep:
			errs = append(errs, s.removeFiles(c, session.Meta{Key: c.Session, Agent: c.Session.Agent()}), s.archive(ctx, c, now))
		}
	}
	return errors.Join(errs...)
}

// reconcile closes the record of a child whose session has neither a run nor a
// message: its message was cancelled, or its session is gone.
func (s *Spawner) reconcile(ctx context.Context, c subagent.Child, now time.Time) error {
	busy := func(runs run.Reader, items queue.Reader) (bool, error) {
		active, err1 := runs.Active(c.Session)
		waiting, err2 := items.Waiting(c.Session)
		return len(active)+len(waiting) > 0, errors.Join(err1, err2)
	}
	works, err := store.Get(ctx, s.o.Store, func(r store.Reader) (bool, error) { return busy(r.Runs(), r.Queue()) })
	if err != nil || works {
		return err
	}
	return s.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		c, err := tx.Children().Get(c.ID)
		if err != nil || !c.Open() {
			return err
		}
		if works, err := busy(tx.Runs(), tx.Queue()); err != nil || works {
			return err
		}
		c.Ended, c.Outcome, c.Error = now, chela.OutcomeError, "it was cancelled before it began, or its session is gone"
		return report(tx, c, nil)
	})
}

// archive hides the session of a child from lists.
func (s *Spawner) archive(ctx context.Context, c subagent.Child, now time.Time) error {
	return s.o.Store.Update(ctx, store.Ordered, func(tx store.Tx) error {
		c, err := tx.Children().Get(c.ID)
		if err != nil || !c.Archived.IsZero() {
			return err
		}
		m, err := tx.Sessions().Get(c.Session)
		switch {
		case err == nil && m.Archived.IsZero():
			m.Archived = now
			err = tx.Sessions().Put(m)
		case errors.Is(err, chela.ErrNotFound):
			err = nil
		}
		c.Archived = now
		return errors.Join(err, tx.Children().Put(c))
	})
}

// remove deletes the session of a child as soon as its announcement was taken.
func (s *Spawner) remove(ctx context.Context, c subagent.Child) error {
	waits, err := store.Get(ctx, s.o.Store, func(r store.Reader) (bool, error) {
		it, err := r.Queue().ByKey(c.AnnounceKey())
		if errors.Is(err, chela.ErrNotFound) {
			return false, nil
		}
		return it.State == queue.Waiting || it.State == queue.Taken, err
	})
	if err != nil || waits {
		return err
	}
	if err := s.removeFiles(c, session.Meta{Key: c.Session, Agent: c.Session.Agent()}); err != nil {
		return err
	}
	return s.o.Delete(ctx, c.Session)
}
