package maintenance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
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

	// Durations, such as "30d"; 0: no limit.
	PruneAfter json.RawMessage `json:"pruneAfter"`            // since the last use of a session; nil: 30 days
	Retention  json.RawMessage `json:"resetArchiveRetention"` // since the reset that ended a transcript; nil: PruneAfter

	// Sizes, such as "500mb".
	MaxDisk   json.RawMessage `json:"maxDiskBytes"`   // of all transcripts; nil or 0: no limit
	HighWater json.RawMessage `json:"highWaterBytes"` // at which deletion stops; also a percentage; nil: 80 % of MaxDisk

	limits limits
}

// limits is the parsed form of a SessionConfig; 0: no limit.
type limits struct {
	age, archive    time.Duration
	disk, highWater int64
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
	var err error
	c.limits, err = c.parseLimits()
	return c, err
}

// parseLimits reads the durations and sizes, which are strings or numbers.
func (c SessionConfig) parseLimits() (l limits, err error) {
	text := func(raw json.RawMessage) string { return strings.Trim(string(raw), `" `) }
	l.age, l.disk = 30*24*time.Hour, 0
	if len(c.PruneAfter) > 0 {
		if l.age, err = humanize.ParseDuration(text(c.PruneAfter)); err != nil {
			return l, fmt.Errorf("pruneAfter: %w", err)
		}
	}
	l.archive = l.age
	if len(c.Retention) > 0 {
		if l.archive, err = humanize.ParseDuration(text(c.Retention)); err != nil {
			return l, fmt.Errorf("resetArchiveRetention: %w", err)
		}
	}
	if len(c.MaxDisk) > 0 {
		if l.disk, err = humanize.ParseBytes(text(c.MaxDisk)); err != nil {
			return l, fmt.Errorf("maxDiskBytes: %w", err)
		}
	}
	l.highWater = l.disk / 5 * 4
	switch percent, ok := strings.CutSuffix(text(c.HighWater), "%"); {
	case ok:
		n, err := strconv.Atoi(strings.TrimSpace(percent))
		if err != nil || n < 1 || n > 100 {
			return l, fmt.Errorf("highWaterBytes: %q: want a size or a percentage, for example 80%%", text(c.HighWater))
		}
		l.highWater = l.disk / 100 * int64(n)
	case percent != "":
		if l.highWater, err = humanize.ParseBytes(percent); err != nil {
			return l, fmt.Errorf("highWaterBytes: %w", err)
		}
	}
	l.highWater = min(l.highWater, l.disk)
	return l, nil
}

func (c SessionConfig) entries() int {
	if c.MaxEntries == nil {
		return defaultEntries
	}
	return *c.MaxEntries
}

// Sessions keeps the number of sessions of each agent, their age, and the size of their
// transcripts below limits. All fields are required.
type Sessions struct {
	Log    *slog.Logger
	Store  store.Store
	Bus    *bus.Bus
	Config SessionConfig
	// Delete deletes a session if the function permits it in the transaction, and
	// reports whether it did.
	Delete func(context.Context, chela.SessionKey, func(store.Tx, session.Meta) (bool, error)) (bool, error)
}

// Run checks the limits a minute after the start, a minute after sessions were created,
// and every six hours, until ctx ends.
func (s Sessions) Run(ctx context.Context) error {
	created := make(chan struct{}, 1)
	defer s.Bus.Subscribe(func(e chela.Event) {
		// The first run of a session creates it.
		if e.Stream == chela.StreamSession && e.Phase == chela.PhaseCreated ||
			e.Stream == chela.StreamLifecycle && e.Phase == chela.PhaseStart {
			select {
			case created <- struct{}{}:
			default:
			}
		}
	})()
	t := time.NewTimer(startDelay)
	defer t.Stop()
	for warned, warnedSize := false, false; ; {
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
			s.Log.Warn("there are more sessions than session.maintenance.maxEntries", "over", over,
				"hint", `chela config set session.maintenance.mode enforce`)
		}
		size, err := s.reclaim(ctx)
		if err != nil && ctx.Err() == nil {
			s.Log.Warn("delete old transcripts; retrying later", "err", err)
		}
		if size > 0 && !warnedSize {
			warnedSize = true
			s.Log.Warn("the transcripts are larger than session.maintenance.maxDiskBytes", "size", humanize.Bytes(size),
				"limit", humanize.Bytes(s.Config.limits.disk), "hint", `chela config set session.maintenance.mode enforce`)
		}
		t.Reset(pruneEvery)
		select {
		case <-ctx.Done():
			return nil
		case <-created:
			t.Reset(startDelay)
		case <-t.C:
			t.Reset(0)
		}
	}
}

// sweep deletes the oldest sessions of agents that have too many. It returns how many
// more there are that it may not delete because of the mode.
func (s Sessions) sweep(ctx context.Context) (over int, err error) {
	excess, err := store.Get(ctx, s.Store,
		func(r store.Reader) (map[chela.AgentID]int, error) { return r.Sessions().Counts() })
	if err != nil {
		return 0, err
	}
	for id, n := range excess {
		excess[id] = max(n-s.Config.entries(), 0)
		over += excess[id]
	}
	age := s.Config.limits.age
	if s.Config.Mode != "enforce" || over == 0 && age <= 0 {
		return over, nil
	}
	return 0, s.oldest(ctx, func(m session.Meta) (deleted, more bool, err error) {
		old := age > 0 && time.Since(m.Updated) > age
		if excess[m.Agent] > 0 || old {
			if deleted, err = s.remove(ctx, m); deleted && excess[m.Agent] > 0 {
				excess[m.Agent]--
				over--
			}
		}
		return deleted, old || over > 0, err
	})
}

// pageSize is how many sessions are held in memory at once.
const pageSize = 500

// oldest passes sessions to f, which says whether it deleted them and wants more. Those
// that were not used for the longest time are first.
func (s Sessions) oldest(ctx context.Context, f func(session.Meta) (deleted, more bool, err error)) error {
	for kept := 0; ; {
		page, err := store.Get(ctx, s.Store, func(r store.Reader) ([]session.Meta, error) {
			list, _, err := r.Sessions().List(session.Query{Archived: session.ArchivedToo, Order: session.ByAge, Offset: kept,
				Limit: pageSize})
			return list, err
		})
		if err != nil || len(page) == 0 {
			return err
		}
		for _, m := range page {
			deleted, more, err := f(m)
			if err != nil || !more {
				return err
			}
			if !deleted {
				kept++
			}
		}
	}
}

// remove deletes a session unless it is protected or was used after it was read.
func (s Sessions) remove(ctx context.Context, m session.Meta) (bool, error) {
	deleted, err := s.Delete(ctx, m.Key, func(tx store.Tx, now session.Meta) (bool, error) {
		if now.ID != m.ID || now.Updated.After(m.Updated) { // somebody uses it
			return false, nil
		}
		keep, err := protected(tx, now)
		return !keep, err
	})
	if err != nil {
		return false, fmt.Errorf("session %s: %w", m.Key, err)
	}
	if deleted {
		s.Log.Info("deleted an old session", "session", m.Key, "updated", m.Updated)
	}
	return deleted, nil
}

// protected reports whether a session is kept although it is old: main sessions, those
// that are pinned, those that a person has archived, those of groups and threads, and
// those in which work is in progress, or in a session from which they were started.
func protected(tx store.Tx, m session.Meta) (bool, error) {
	child := m.IsChild()
	if m.Key == chela.MainSession(m.Agent) || !m.Pinned.IsZero() || !m.Archived.IsZero() && !child {
		return true, nil
	}
	if a := m.Address; !child && !a.Local() && (a.Peer.Kind != chela.Direct || a.Thread != "") {
		return true, nil
	}
	if !child && (m.Key.Kind() == chela.KeyGroup || m.Key.Around() != "") {
		return true, nil
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
