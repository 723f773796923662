package storetest

import (
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/lease"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
)

// acquire tries to acquire a lease, in a synced commit.
func acquire(t *testing.T, s store.Store, name, owner string) (l lease.Lease, ok bool) {
	t.Helper()
	if err := s.Update(t.Context(), store.Synced, func(tx store.Tx) (err error) {
		l, ok, err = tx.Leases().Acquire(name, owner)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return l, ok
}

func beat(t *testing.T, s store.Store, owner string, ttl time.Duration) {
	t.Helper()
	update(t, s, func(tx store.Tx) error { return tx.Leases().Beat(owner, ttl) })
}

func testLeases(t *testing.T, s store.Store) {
	name := lease.Session(keyA)
	read := func(name string) lease.Lease {
		return get(t, s, func(r store.Reader) (lease.Lease, error) { return r.Leases().Get(name) })
	}
	held := func(l lease.Lease, value string) error {
		return store.Held(t.Context(), s, l, store.Synced, func(tx store.Tx) error { return tx.SetSetting("by", value) })
	}
	write := func(l lease.Lease, value string) {
		t.Helper()
		if err := held(l, value); err != nil {
			t.Errorf("held: %v", err)
		}
		same(t, "written", get(t, s, func(r store.Reader) (string, error) { return r.Setting("by") }), value)
	}
	taken := func(owner string) lease.Lease {
		t.Helper()
		l, ok := acquire(t, s, name, owner)
		if !ok || l.Owner != owner || l.Name != name {
			t.Fatalf("acquire for %s: %+v, %v", owner, l, ok)
		}
		same(t, "lease", read(name), l)
		return l
	}
	same(t, "none", read(name), lease.Lease{Name: name})
	fails(t, "a free lease", held(read(name), "stale"), chela.ErrFenced)
	l1 := taken("p1")
	write(l1, "1")

	t.Run("its owner acquires it again", func(t *testing.T) {
		l2 := taken("p1")
		if l2.Fence <= l1.Fence {
			t.Errorf("fence %d after %d", l2.Fence, l1.Fence)
		}
		fails(t, "superseded by a run", held(l1, "stale"), chela.ErrFenced)
		write(l2, "2")
		l1 = l2
	})
	t.Run("denied while its owner is alive", func(t *testing.T) {
		beat(t, s, "p1", time.Hour)
		l, ok := acquire(t, s, name, "p2")
		same(t, "acquired", ok, false)
		same(t, "the lease is unchanged", l, l1)
		write(l1, "3")
	})
	t.Run("acquired from a dead owner", func(t *testing.T) {
		beat(t, s, "p1", 0)
		l2 := taken("p2")
		if l2.Fence <= l1.Fence {
			t.Errorf("fence %d after %d", l2.Fence, l1.Fence)
		}
		fails(t, "superseded by a process", held(l1, "stale"), chela.ErrFenced)
		update(t, s, func(tx store.Tx) error { return tx.Leases().Release(l1) })
		write(l2, "4")
		l1 = l2
	})
	t.Run("acquired after a release", func(t *testing.T) {
		beat(t, s, "p2", time.Hour)
		update(t, s, func(tx store.Tx) error { return tx.Leases().Release(l1) })
		same(t, "free", read(name), lease.Lease{Name: name, Fence: l1.Fence})
		fails(t, "after the release", held(l1, "stale"), chela.ErrFenced)
		if l3 := taken("p3"); l3.Fence <= l1.Fence {
			t.Errorf("fence %d after %d", l3.Fence, l1.Fence)
		}
	})
	t.Run("leases of other names", func(t *testing.T) {
		for _, name := range []string{"channel:telegram:bot", lease.Session(keyB)} {
			if l, ok := acquire(t, s, name, "p1"); !ok || l != (lease.Lease{Name: name, Owner: "p1", Fence: 1}) {
				t.Errorf("%s: %+v, %v", name, l, ok)
			}
		}
		fails(t, "never held", held(lease.Lease{Name: lease.Session("other"), Owner: "p1", Fence: 1}, "stale"),
			chela.ErrFenced)
	})
	t.Run("live owners", func(t *testing.T) {
		beat(t, s, "p4", time.Hour)
		beat(t, s, "p4", time.Hour)
		for owner, want := range map[string]bool{"p1": false, "p2": true, "p4": true, "none": false, "": false} {
			same(t, owner, get(t, s, func(r store.Reader) (bool, error) { return r.Leases().Alive(owner) }), want)
		}
	})
	t.Run("orphans", func(t *testing.T) { testOrphans(t, s) })
}

func testOrphans(t *testing.T, s store.Store) {
	states := []run.State{run.Running, run.Running, run.Running, run.Running, run.Suspended, run.OK}
	owners := []string{"alive", "dead", "me", "", "dead", "dead"}
	beat(t, s, "alive", time.Hour)
	beat(t, s, "dead", -time.Second)
	for i, owner := range owners {
		key := chela.SessionKey("agent:main:orphan-" + string(rune('a'+i)))
		update(t, s, func(tx store.Tx) error {
			return tx.Runs().Put(run.Run{ID: chela.RunID(key), Session: key, State: states[i], Started: at(i)})
		})
		if owner != "" {
			acquire(t, s, lease.Session(key), owner)
		}
	}
	orphans := func(key chela.SessionKey, owner string) []string {
		var ids []string
		for _, r := range get(t, s, func(r store.Reader) ([]run.Run, error) { return r.Runs().Orphans(key, owner) }) {
			ids = append(ids, string(r.ID[len(r.ID)-1:]))
		}
		return ids
	}
	same(t, "of all sessions", orphans("", "me"), []string{"b", "c", "d"})
	same(t, "for the live process", orphans("", "alive"), []string{"a", "b", "c", "d"})
	same(t, "of a session", orphans("agent:main:orphan-b", "me"), []string{"b"})
	same(t, "of a session with a live owner", orphans("agent:main:orphan-a", "me"), []string(nil))
	same(t, "of a suspended run", orphans("agent:main:orphan-e", "me"), []string(nil))
}
