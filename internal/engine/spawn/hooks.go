package spawn

import (
	"cmp"
	"context"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
)

// aboutChild describes a child for hooks.
func aboutChild(c subagent.Child) hook.Subagent {
	return hook.Subagent{
		Context: hook.Context{
			Agent: c.Session.Agent(), Session: c.Session, Run: c.ID,
			Requester: hook.RequesterAt(c.Address, c.Principal.ID, c.Principal.IsOwner()),
		},
		Child: c.Session, Parent: c.Requester, Label: c.Label, Mode: "run",
	}
}

// spawning asks hooks whether a child may be started.
func (s *Spawner) spawning(ctx context.Context, r subagent.Request, p *prepared) error {
	point := &s.o.Hooks.SubagentSpawning
	if !point.Any() || p.session == "" {
		return nil
	}
	c := subagent.Child{ID: r.ID, Session: p.session, Requester: r.Requester, Label: cmp.Or(r.Label, r.Name)}
	err := s.o.Store.View(ctx, func(rd store.Reader) (err error) {
		c.Principal, c.Address, err = requester(rd, r)
		return err
	})
	if err != nil {
		return err
	}
	out, err := point.Decide(ctx, hook.SubagentSpawning{Subagent: aboutChild(c), Task: r.Task, Thread: r.Thread})
	switch {
	case err != nil:
		return err
	case out.Answer.Status == "error":
		return chela.Errorf(chela.CodeForbidden, "no subagent was started: %s", out.Answer.Error)
	}
	if out.Answer.Ready {
		p.thread = out.Answer.Thread
	}
	return nil
}

// telling notes that hooks will be told of the start of a child, which may end before.
func (s *Spawner) telling(key chela.SessionKey) {
	if key == "" || !s.o.Hooks.SubagentSpawned.Any() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.untold[key] = make(chan struct{})
}

// told notes that hooks were told of the start of a child.
func (s *Spawner) told(key chela.SessionKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.untold[key]; c != nil {
		close(c)
		delete(s.untold, key)
	}
}

// awaitTold waits until hooks were told of the start of a child.
func (s *Spawner) awaitTold(ctx context.Context, key chela.SessionKey) {
	s.mu.Lock()
	c := s.untold[key]
	s.mu.Unlock()
	if c == nil {
		return
	}
	select {
	case <-c:
	case <-ctx.Done():
	}
}

// Ending asks hooks where the result of a child is announced, before the commit that
// ends its run. See runner.Options.Ending.
func (s *Spawner) Ending(ctx context.Context, r *run.Run) {
	point := &s.o.Hooks.SubagentDeliveryTarget
	s.awaitTold(ctx, r.Session)
	if !point.Any() || !r.Session.IsChild() {
		return
	}
	ctx = context.WithoutCancel(ctx)
	c, err := store.Get(ctx, s.o.Store,
		func(rd store.Reader) (subagent.Child, error) { return subagent.Lookup(rd.Children(), r.Session) })
	if err != nil || !c.Open() {
		return
	}
	out, err := point.Decide(ctx,
		hook.SubagentDeliveryTarget{Subagent: aboutChild(c), Origin: hook.TargetOf(c.ReplyAddress())})
	if err == nil && out.Answer.Origin != nil {
		at := out.Answer.Origin.Address()
		r.Decided.Announce = &at
	}
}

// maxEnded is the number of ends of runs that may wait to be reported to hooks.
const maxEnded = 256

// notifyEnded tells hooks of children that have ended, until ctx ends.
func (s *Spawner) notifyEnded(ctx context.Context) {
	ended := make(chan chela.SessionKey, maxEnded)
	cancel := s.o.Bus.Subscribe(func(e chela.Event) {
		if e.Stream != chela.StreamLifecycle || e.End == nil || !s.o.Hooks.SubagentEnded.Any() || !e.Session.IsChild() {
			return
		}
		select {
		case ended <- e.Session:
		default:
			s.o.Log.Warn("too many subagents ended at once; hooks are not told of one", "session", e.Session)
		}
	})
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return
		case key := <-ended:
			c, err := store.Get(ctx, s.o.Store,
				func(rd store.Reader) (subagent.Child, error) { return subagent.Lookup(rd.Children(), key) })
			if err != nil || c.ID == "" || c.Open() {
				continue
			}
			e := hook.SubagentEnded{
				Subagent: aboutChild(c),
				Kind:     "subagent",
				Outcome:  string(c.Outcome),
				Reason:   c.Error,
				Ended:    c.Ended,
			}
			if c.Silent == subagent.Stopped {
				e.Outcome = "killed"
			}
			s.o.Hooks.SubagentEnded.Notify(ctx, e)
		}
	}
}
