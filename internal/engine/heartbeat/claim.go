package heartbeat

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/hook"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
)

// tick handles a tick of an agent's interval: it is skipped, or becomes a wake. Wakes that
// waited for the tick are due now.
func (s *Service) tick(ctx context.Context, a heartbeat.Settings, base, tick time.Time) error {
	file, exists := s.file(a)
	for _, p := range file.Problems {
		s.o.Log.Warn("HEARTBEAT.md", "agent", a.Agent, "problem", p)
	}
	now := time.Now()
	return s.update(ctx, a.Agent, func(tx store.Tx, st *heartbeat.State) error {
		if !st.Ticked.Equal(base) {
			return nil // another process did
		}
		st.Ticked = tick
		reason := s.skips(tx, a, file, exists, len(file.Due(st.Tasks, base, tick)) > 0)
		wakes, err := tx.Heartbeats().Wakes()
		if err != nil {
			return err
		}
		for _, w := range wakes {
			if w.Agent == a.Agent && w.Mode == heartbeat.NextTick {
				w.Mode, w.Due = heartbeat.Now, now
				if err := tx.Heartbeats().PutWake(w); err != nil {
					return err
				}
			}
		}
		if reason == heartbeat.SkipFile || reason == heartbeat.SkipTasks {
			events, err := hasEvents(tx, a.Session)
			if err != nil {
				return err
			}
			if events {
				reason = ""
			}
		}
		if reason != "" {
			st.Tasks = file.Remember(st.Tasks, base)
			st.Last = heartbeat.Result{
				Agent:   a.Agent,
				Session: a.Session,
				Time:    now,
				Status:  heartbeat.StatusSkipped,
				Reason:  reason,
			}
			return nil
		}
		err = heartbeat.Request(tx.Heartbeats(), heartbeat.Wake{
			Agent: a.Agent, Session: a.Session, Reason: heartbeat.ReasonInterval, Mode: heartbeat.Now,
			Principal: chela.Owner("heartbeat"), At: now.Add(-heartbeat.MergeWithin), Tick: tick, Base: base,
		})
		if chela.CodeOf(err) == chela.CodeUnavailable { // too many wakes are pending; the next tick may succeed
			st.Last = heartbeat.Result{
				Agent:   a.Agent,
				Session: a.Session,
				Time:    now,
				Status:  heartbeat.StatusSkipped,
				Reason:  heartbeat.SkipBusy,
			}
			return nil
		}
		return err
	})
}

// file returns HEARTBEAT.md of an agent.
func (s *Service) file(a heartbeat.Settings) (f heartbeat.File, exists bool) {
	text, exists := s.o.Config.HeartbeatFile(a.Agent)
	return heartbeat.ParseFile(text), exists
}

// skips returns why a tick is skipped; "": it is not. due reports whether a task of the
// file is due.
func (s *Service) skips(tx store.Tx, a heartbeat.Settings, file heartbeat.File, exists, due bool) string {
	to, blocked := s.route(tx, a, a.Session, a.Session)
	switch {
	case !a.Hours.Contains(time.Now()):
		return heartbeat.SkipHours
	case exists && file.Empty():
		return heartbeat.SkipFile
	case len(file.Tasks) > 0 && !due:
		return heartbeat.SkipTasks
	case blocked == "" && s.o.Config.HeartbeatVisibility(to).ShowsNothing():
		return heartbeat.SkipAlerts
	}
	return ""
}

// hasEvents reports whether events wait for the next run of a session.
func hasEvents(tx store.Tx, key chela.SessionKey) (bool, error) {
	items, err := tx.Queue().Waiting(key)
	return slices.ContainsFunc(items, func(it queue.Item) bool { return it.Kind == queue.Event }), err
}

// isBusy reports whether a session has a run, or will have one.
func isBusy(tx store.Tx, key chela.SessionKey) (bool, error) {
	active, err := tx.Runs().Active(key)
	if err != nil || len(active) > 0 {
		return true, err
	}
	items, err := tx.Queue().Waiting(key)
	return slices.ContainsFunc(items, func(it queue.Item) bool { return !it.Next }), err
}

// claim replaces a wake that is due by the queue item of its run. If the session is busy,
// or had a heartbeat just before, the wake stays, and claim returns when it is due again.
func (s *Service) claim(ctx context.Context, a heartbeat.Settings, w heartbeat.Wake) (until time.Time, err error) {
	file, _ := s.file(a)
	id := chela.RunID(heartbeat.RunPrefix + uuid.NewString())
	added, err := s.o.Hooks.HeartbeatPrompt.Decide(ctx,
		hook.HeartbeatPrompt{Context: hook.Context{Agent: a.Agent, Session: w.Session, Run: id}})
	if err != nil {
		return time.Time{}, err
	}
	s.o.Step("heartbeat.claim")
	claimed := false
	err = s.o.Store.Update(ctx, store.Synced, func(tx store.Tx) error {
		until, claimed = time.Time{}, false
		now := time.Now()
		w, err := tx.Heartbeats().Wake(w.Session)
		if errors.Is(err, chela.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if w.Due.After(now) {
			until = w.Due
			return nil
		}
		st, err := tx.Heartbeats().State(a.Agent)
		if err != nil {
			return err
		}
		events, err := hasEvents(tx, w.Session)
		if err != nil {
			return err
		}
		key, isolated := w.Session, a.Isolated && w.Reason == heartbeat.ReasonInterval && !events
		if isolated {
			key += isolatedSuffix
		}
		busy, err := isBusy(tx, key)
		gap := st.Started[key].Add(heartbeat.MinGap)
		switch {
		case err != nil:
			return err
		case busy:
			w = w.Defer(now)
			until = w.Due
			return tx.Heartbeats().PutWake(w)
		case gap.After(now) && !st.Started[key].After(now):
			w.Due, until = gap, gap
			return tx.Heartbeats().PutWake(w)
		}
		if isolated {
			if err := trim(tx, key); err != nil {
				return err
			}
		}
		it, r := s.item(tx, a, w, key, &st, file, events)
		it.ID, it.Key, it.Session, it.Created = string(id), string(id), key, now
		it.Inbound.Text = strings.TrimSpace(added.Answer.Prepend + "\n\n" + it.Inbound.Text + "\n\n" + added.Answer.Append)
		r.ID, r.Begun = id, now
		if isolated {
			it.Overrides.Context = run.ContextFresh
			if a.Light {
				it.Overrides.Context = run.ContextBare
			}
		}
		st.Runs = append(slices.Clone(st.Runs), r)
		st.Runs = st.Runs[max(0, len(st.Runs)-heartbeat.MaxRuns):]
		st.Started = recent(st.Started, now)
		st.Started[key] = now
		if err := store.Enqueue(tx, it); err != nil {
			return err
		}
		claimed = true
		return errors.Join(tx.Heartbeats().DeleteWake(w.Session), tx.Heartbeats().PutState(st))
	})
	if err == nil && claimed {
		s.o.Step("heartbeat.claimed")
	}
	return until, err
}

// isolatedSuffix ends the keys of sessions without a history.
const isolatedSuffix = ":heartbeat"

// recent returns the starts of heartbeats after which a session has to wait.
func recent(all map[chela.SessionKey]time.Time, now time.Time) map[chela.SessionKey]time.Time {
	out := map[chela.SessionKey]time.Time{}
	for key, at := range all {
		if now.Sub(at) < heartbeat.MinGap && !at.After(now) {
			out[key] = at
		}
	}
	return out
}

// maxPast is how many earlier transcripts an isolated session keeps.
const maxPast = 10

// trim deletes an isolated session with its transcripts if they are many and nothing of
// it is open.
func trim(tx store.Tx, key chela.SessionKey) error {
	past, err := tx.Sessions().Past(key)
	if err != nil || len(past) < maxPast {
		return err
	}
	deferred, err := tx.Queue().Deferred()
	if err != nil || slices.ContainsFunc(deferred, func(it queue.Item) bool { return it.Session == key }) {
		return err
	}
	open, err := tx.Children().Open(key)
	if err != nil || len(open) > 0 {
		return err
	}
	return tx.Sessions().Delete(key)
}

// item returns the queue item of a heartbeat in a session and the record of its run. It changes the
// times of tasks in the state.
func (s *Service) item(tx store.Tx, a heartbeat.Settings, w heartbeat.Wake, key chela.SessionKey, st *heartbeat.State,
	file heartbeat.File, events bool) (queue.Item, heartbeat.Run) {
	r := heartbeat.Run{Reason: w.Reason, Tick: w.Tick, Home: w.Session, Model: a.Model, Reasoning: a.Reasoning}
	var due []heartbeat.Task
	if !w.Tick.IsZero() {
		due = file.Due(st.Tasks, w.Base, w.Tick)
		for _, t := range due {
			r.Tasks = append(r.Tasks, t.Name)
		}
		st.Tasks = maps.Clone(file.Remember(st.Tasks, w.Base))
	}
	r.To, r.Blocked = s.route(tx, a, w.Session, key)
	seen := s.o.Config.HeartbeatVisibility(r.To)
	r.ShowOK, r.Indicator = r.Blocked == "" && seen.ShowsOK(), seen.ShowsIndicator()
	if r.Blocked == "" && !seen.ShowsAlerts() {
		r.Blocked = heartbeat.SkipAlerts
	}
	it := queue.Item{
		Kind: queue.Message, State: queue.Waiting, Principal: w.Principal,
		Origin:  chela.Origin{Kind: chela.OriginHeartbeat, ID: w.Reason},
		Inbound: chela.Inbound{Text: a.Message(w, due, events)},
		Overrides: run.Overrides{
			Model: a.Model, Timeout: a.Timeout, Deliver: run.Delivery{Mode: run.DeliverNowhere},
		},
	}
	if a.Light {
		it.Overrides.Context = run.ContextLight
	}
	if r.Blocked == "" {
		it.Overrides.Deliver = run.Delivery{Mode: run.DeliverTo, Address: r.To}
	}
	return it, r
}

// route returns where the alerts of a session go, or why nowhere. The reason is one of the
// Skip constants. in is the session of the run.
func (s *Service) route(tx store.Tx, a heartbeat.Settings, key, in chela.SessionKey) (chela.Address, string) {
	to, reason := s.target(tx.Sessions(), a, key)
	switch {
	case reason != "":
		return chela.Address{}, reason
	case !s.sends(tx, key, to) || !s.sends(tx, in, to):
		return to, heartbeat.SkipSend
	case a.BlockDM && to.Peer.Kind == chela.Direct:
		return to, heartbeat.SkipDM
	case !s.o.Ready(to):
		return to, heartbeat.SkipNotReady
	}
	return to, ""
}

// sends reports whether what a session says is sent to a chat.
func (s *Service) sends(tx store.Tx, key chela.SessionKey, to chela.Address) bool {
	ok, _ := session.MaySend(tx.Sessions(), key, to, s.o.Config.Sends) // no, after an error
	return ok
}

// target returns the address that the settings name.
func (s *Service) target(r session.Reader, a heartbeat.Settings, key chela.SessionKey) (chela.Address, string) {
	here, err := session.Lookup(r, key)
	if err != nil {
		return chela.Address{}, heartbeat.SkipNoRoute
	}
	switch a.Target {
	case heartbeat.TargetNone:
		return chela.Address{}, heartbeat.SkipNoTarget
	case heartbeat.TargetLast:
		if here.Address.Local() {
			return chela.Address{}, heartbeat.SkipNoRoute
		}
		return here.Address, ""
	case heartbeat.TargetOwner:
		if to, ok := session.LastAddress(r, here, s.o.Config.IsOwnerChat); ok {
			return to, ""
		}
		return chela.Address{}, heartbeat.SkipNoTarget
	}
	if a.To == "" {
		to, ok := session.LastAddress(r, here, func(to chela.Address) bool {
			return to.Channel == a.Target && (a.Account == "" || to.Account == a.Account)
		})
		if !ok {
			return chela.Address{}, heartbeat.SkipNoRoute
		}
		return to, ""
	}
	peer, thread := chela.ParsePeer(a.To)
	to := chela.Address{Channel: a.Target, Account: a.Account, Peer: peer, Thread: thread}
	known, ok := session.LastAddress(r, here, func(k chela.Address) bool {
		return k.Channel == a.Target && k.Peer.ID == peer.ID && (peer.Kind == "" || k.Peer.Kind == peer.Kind) &&
			(a.Account == "" || k.Account == a.Account)
	})
	if ok {
		to.Account, to.Peer = known.Account, known.Peer
	}
	if to.Peer.Kind == "" {
		to.Peer.Kind = chela.Direct
	}
	return to, ""
}
