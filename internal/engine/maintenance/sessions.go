package maintenance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/subagent"
	"github.com/chela-ai/chela/internal/kit/humanize"
)

// SessionConfig is session.maintenance.
type SessionConfig struct {
	Mode       string `json:"mode"`       // warn, enforce; "": warn
	MaxEntries *int   `json:"maxEntries"` // sessions of an agent, 1 to 100,000; nil: 500
}

// The limits of SessionConfig.MaxEntries.
const (
	defaultEntries = 500
	maxEntries     = 100_000
)

// ParseSessionConfig reads session.maintenance; nil: the defaults.
func ParseSessionConfig(raw json.RawMessage) (SessionConfig, error) {
	var c SessionConfig
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &c); err != nil {
			return c, err
		}
	}
	if c.MaxEntries != nil && (*c.MaxEntries < 1 || *c.MaxEntries > maxEntries) {
		return c, &chela.Error{
			Code:    chela.CodeInvalid,
			Message: fmt.Sprintf("maxEntries: %d is out of range, it must be between 1 and %d", *c.MaxEntries, maxEntries),
			Hint:    "chela config set session.maintenance.maxEntries 500",
		}
	}
	return c, nil
}

func (c SessionConfig) entries() int {
	if c.MaxEntries == nil {
		return defaultEntries
	}
	return *c.MaxEntries
}

// Sessions keeps the number of sessions of each agent below a limit. All fields are
// required.
type Sessions struct {
	Log    *slog.Logger
	Store  store.Store
	Bus    *bus.Bus
	Config SessionConfig
	// Delete deletes a session if the function permits it in the transaction, and
	// reports whether it did.
	Delete func(context.Context, chela.SessionKey, func(store.Tx, session.Meta) (bool, error)) (bool, error)
}

// Run checks the number of sessions a minute after the start, and a minute after
// sessions were created, until ctx ends.
func (s Sessions) Run(ctx context.Context) error {
	created := make(chan struct{}, 1)
	defer s.Bus.Subscribe(func(e chela.Event) {
		// The first run of a session creates it.
		if e.Stream == chela.StreamSession && e.Phase == chela.PhaseCreated || e.Stream == chela.StreamLifecycle && e.Phase == chela.PhaseStart {
			select {
			case created <- struct{}{}:
			default:
			}
		}
	})()
	t := time.NewTimer(startDelay)
	defer t.Stop()
	for warned := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		select { // what was created until now is counted
		case <-created:
		default:
		}
		over, err := s.sweep(ctx)
		if err != nil && ctx.Err() == nil {
			s.Log.Warn("delete old sessions; retrying later", "err", err)
		}
		if over > 0 && !warned {
			warned = true
			s.Log.Warn("there are more sessions than session.maintenance.maxEntries", "over", over, "hint", `chela config set session.maintenance.mode enforce`)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-created:
		}
		t.Reset(startDelay)
	}
}

// sweep deletes the oldest sessions of agents that have too many. It returns how many
// more there are that it may not delete because of the mode.
func (s Sessions) sweep(ctx context.Context) (over int, err error) {
	all, err := store.Get(ctx, s.Store, func(r store.Reader) ([]session.Meta, error) {
		_, total, err := r.Sessions().List(session.Query{Archived: session.ArchivedToo, Limit: 1})
		if err != nil || total <= s.Config.entries() { // no agent has more
			return nil, err
		}
		list, _, err := r.Sessions().List(session.Query{Archived: session.ArchivedToo, Limit: total})
		return list, err
	})
	if err != nil {
		return 0, err
	}
	excess := map[chela.AgentID]int{}
	for _, m := range all {
		excess[m.Agent]++
	}
	for id := range excess {
		excess[id] -= s.Config.entries()
	}
	for _, m := range slices.Backward(all) {
		switch {
		case excess[m.Agent] <= 0:
			continue
		case s.Config.Mode != "enforce":
			over++
			excess[m.Agent]--
			continue
		}
		deleted, err := s.Delete(ctx, m.Key, func(tx store.Tx, now session.Meta) (bool, error) {
			if now.ID != m.ID || now.Updated.After(m.Updated) { // somebody uses it
				return false, nil
			}
			keep, err := protected(tx, now)
			return !keep, err
		})
		if err != nil {
			return over, fmt.Errorf("session %s: %w", m.Key, err)
		}
		if deleted {
			excess[m.Agent]--
			s.Log.Info("deleted an old session", "session", m.Key, "updated", m.Updated, "limit", humanize.Many(s.Config.entries(), "session"))
		}
	}
	return over, nil
}

// protected reports whether a session is kept although it is old: main sessions, those
// that are pinned, those that a person has archived, those of groups and threads, and
// those in which work is in progress, or in a session from which they were started.
func protected(tx store.Tx, m session.Meta) (bool, error) {
	child := m.Depth() > 0
	if m.Key == chela.MainSession(m.Agent) || !m.Pinned.IsZero() || !m.Archived.IsZero() && !child {
		return true, nil
	}
	if a := m.Address; !child && !a.Local() && (a.Peer.Kind != chela.Direct || a.Thread != "") {
		return true, nil
	}
	for _, part := range [...]string{":group:", ":channel:", ":thread:", ":topic:"} {
		if !child && strings.Contains(string(m.Key), part) {
			return true, nil
		}
	}
	above, err := session.Above(tx.Sessions(), m)
	if err != nil {
		return false, err
	}
	for _, key := range append([]chela.SessionKey{m.Key}, above...) {
		if busy, err := works(tx.Runs(), tx.Queue(), tx.Children(), key); err != nil || busy {
			return busy, err
		}
	}
	return false, nil
}

// works reports whether a session has a run, a message that waits, a command in the
// background, or a subagent that has not ended, or is one.
func works(runs run.Reader, items queue.Reader, children subagent.Reader, key chela.SessionKey) (bool, error) {
	active, err1 := runs.Active(key)
	waiting, err2 := items.Waiting(key)
	deferred, err3 := items.Deferred()
	open, err4 := children.Open(key)
	own, err5 := subagent.Lookup(children, key)
	inBackground := slices.ContainsFunc(deferred, func(it queue.Item) bool { return it.Session == key })
	return len(active)+len(waiting)+len(open) > 0 || inBackground || own.Open(), errors.Join(err1, err2, err3, err4, err5)
}
