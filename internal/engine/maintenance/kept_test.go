package maintenance_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/bus"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/maintenance"
	"github.com/chela-ai/chela/internal/test/power"
)

// put stores sessions of the agent main.
func put(t *testing.T, db store.Store, metas ...session.Meta) {
	t.Helper()
	err := db.Update(t.Context(), store.Synced, func(tx store.Tx) error {
		var errs []error
		for _, m := range metas {
			m.ID, m.Agent, m.Created = string(m.Key), "main", m.Updated
			errs = append(errs, tx.Sessions().Put(m))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// during runs a service for a time.
func during(t *testing.T, d time.Duration, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- run(ctx) }()
	time.Sleep(d)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// deletes returns a Delete that deletes nothing, and tells the sessions that might be
// deleted. used is called before the decision about a session.
func deletes(db store.Store,
	used func(*session.Meta)) (func(context.Context, chela.SessionKey,
	func(store.Tx, session.Meta) (bool, error)) (bool, error), *[]string) {
	permitted := new([]string)
	return func(ctx context.Context, key chela.SessionKey,
		may func(store.Tx, session.Meta) (bool, error)) (ok bool, err error) {
		err = db.Update(ctx, store.Synced, func(tx store.Tx) error {
			m, err := tx.Sessions().Get(key)
			if err != nil {
				return err
			}
			used(&m)
			ok, err = may(tx, m)
			return err
		})
		if ok {
			*permitted = append(*permitted, strings.TrimPrefix(string(key), "agent:main:"))
		}
		return false, err
	}, permitted
}

func TestIsolated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := power.New(t).Open(t)
		old := time.Now()
		time.Sleep(25 * time.Hour)
		put(t, db,
			session.Meta{Key: "agent:main:old", Isolated: true, Updated: old},
			session.Meta{Key: "agent:main:new", Isolated: true, Updated: time.Now()},
			session.Meta{Key: "agent:main:pinned", Isolated: true, Updated: old, Pinned: old},
			session.Meta{Key: "agent:main:archived", Isolated: true, Updated: old, Archived: old},
			session.Meta{Key: "agent:main:works", Isolated: true, Updated: old},
			session.Meta{Key: "agent:main:lasting", Updated: old},
			session.Meta{Key: "agent:main:used", Isolated: true, Updated: old})
		err := db.Update(t.Context(), store.Synced, func(tx store.Tx) error {
			return tx.Runs().Put(run.Run{ID: "r", Session: "agent:main:works", State: run.Suspended, Started: old})
		})
		if err != nil {
			t.Fatal(err)
		}
		remove, permitted := deletes(db, func(m *session.Meta) {
			if m.Key == "agent:main:used" {
				m.Updated = time.Now()
			}
		})
		during(t, 61*time.Minute, maintenance.Isolated{Log: slog.New(slog.DiscardHandler), Store: db, Retain: 24 * time.Hour,
			Delete: remove}.Run)
		if !slices.Equal(*permitted, []string{"old"}) {
			t.Errorf("deleted %q, want the old one, without those that are pinned, archived, at work, lasting, or used since",
				*permitted)
		}
	})
}

func TestSessionAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := power.New(t).Open(t)
		first := time.Now()
		time.Sleep(31 * 24 * time.Hour)
		put(t, db,
			session.Meta{Key: "agent:main:old", Updated: first}, session.Meta{Key: "agent:main:used", Updated: first},
			session.Meta{Key: "agent:main:month", Updated: time.Now().Add(-29 * 24 * time.Hour)})
		remove, permitted := deletes(db, func(m *session.Meta) {
			if m.Key == "agent:main:used" {
				m.Updated = time.Now()
			}
		})
		conf, err := maintenance.ParseSessionConfig([]byte(`{"mode": "enforce"}`))
		if err != nil {
			t.Fatal(err)
		}
		log := slog.New(slog.DiscardHandler)
		during(t, 2*time.Minute, maintenance.Sessions{
			Log:    log,
			Store:  db,
			Bus:    bus.New(log),
			Config: conf,
			Delete: remove,
		}.Run)
		if !slices.Equal(*permitted, []string{"old"}) {
			t.Errorf("deleted %q, want the one that was used 31 days ago", *permitted)
		}
	})
}

func TestJournalAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := power.New(t).Open(t)
		begin := time.Now()
		add := func(id string) {
			err := db.Update(t.Context(), store.Synced, func(tx store.Tx) error {
				return tx.Changes().Add(journal.Change{
					ID:     id,
					Unit:   id,
					Time:   time.Now(),
					Kind:   journal.Config,
					Target: id,
					State:  journal.Done,
				})
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		add("old")
		time.Sleep(2 * 24 * time.Hour)
		add("new")
		time.Sleep(time.Until(begin.Add(91 * 24 * time.Hour)))
		during(t, 2*time.Minute, maintenance.Journal{Log: slog.New(slog.DiscardHandler), Store: db}.Run)
		for id, want := range map[string]bool{"old": false, "new": true} {
			_, err := store.Get(t.Context(), db, func(r store.Reader) (journal.Change, error) { return r.Changes().Get(id) })
			if (err == nil) != want {
				t.Errorf("after 91 and 89 days: %s is there: %t (%v)", id, err == nil, err)
			}
		}
	})
}

func TestHighWater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := power.New(t).Open(t)
		err := db.Update(t.Context(), store.Synced, func(tx store.Tx) error {
			var errs []error
			for i := range 10 { // 20 KB each
				m := session.Meta{
					Key:     chela.SessionKey(fmt.Sprint("agent:main:s", i)),
					ID:      fmt.Sprint("s", i),
					Agent:   "main",
					Created: time.Now(),
					Updated: time.Now().Add(time.Duration(i)),
				}
				e := session.Entry{ID: m.ID, Kind: session.KindNotice, Time: time.Now(), Text: strings.Repeat("x", 20_000)}
				errs = append(errs, tx.Sessions().Put(m), tx.Sessions().Append(m.ID, &e))
			}
			return errors.Join(errs...)
		})
		if err != nil {
			t.Fatal(err)
		}
		for limit, want := range map[string]int{"250kb": 10, "190kb": 7} { // at most 80 % are left
			conf, err := maintenance.ParseSessionConfig([]byte(`{"mode": "enforce", "maxDiskBytes": "` + limit + `"}`))
			if err != nil {
				t.Fatal(err)
			}
			left := 10
			log := slog.New(slog.DiscardHandler)
			during(t, 2*time.Minute, maintenance.Sessions{
				Log:    log,
				Store:  db,
				Bus:    bus.New(log),
				Config: conf,
				Delete: func(context.Context, chela.SessionKey, func(store.Tx, session.Meta) (bool, error)) (bool, error) {
					left--
					return true, nil
				},
			}.Run)
			if left != want {
				t.Errorf("a limit of %s leaves %d of ten transcripts, want %d", limit, left, want)
			}
		}
	})
}
