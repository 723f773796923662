package power_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/test/power"
)

func set(name string) func(store.Tx) error {
	return func(tx store.Tx) error { return tx.SetSetting(name, "1") }
}

func has(name string) power.Fact {
	return func(r store.Reader) error {
		v, err := r.Setting(name)
		if err == nil && v != "1" {
			err = errors.New(name + " is missing")
		}
		return err
	}
}

// turn accepts a message, stores a reply and reports it.
func turn(t testing.TB, s store.Store, report func(power.Fact)) {
	ctx := context.Background()
	commit := func(sync store.Sync, name string) {
		if err := s.Update(ctx, sync, set(name)); err != nil {
			t.Fatal(err)
		}
	}
	commit(store.Synced, "accepted")
	report(has("accepted"))
	commit(store.Ordered, "started")
	commit(store.Ordered, "answered")
	commit(store.Synced, "ended")
	report(has("answered"))
	report(has("ended"))
	commit(store.Ordered, "after")
}

func TestSweep(t *testing.T) { power.Sweep(t, turn) }

func TestCutLosesOrderedCommits(t *testing.T) {
	d := power.New(t)
	s := power.Record(t, d, nil)
	turn(t, s, s.Report)
	if b := s.Broken(t); len(b) > 0 {
		t.Errorf("broken: %v", b)
	}
	commits := s.Commits()
	want := []struct{ last, missing string }{{"", "accepted"}, {"accepted", "started"}, {"accepted", "started"},
		{"accepted", "started"}, {"ended", "after"}, {"ended", "after"}}
	if len(commits) != len(want) {
		t.Fatalf("%d commits, want %d", len(commits), len(want))
	}
	for k, w := range want {
		db := commits[k].Image.Disk(t).Open(t)
		err := db.View(t.Context(), func(r store.Reader) error {
			if w.last != "" {
				if err := has(w.last)(r); err != nil {
					t.Errorf("commit %d: %v", k, err)
				}
			}
			if has(w.missing)(r) == nil {
				t.Errorf("commit %d: %s is stored", k, w.missing)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	// After a kill nothing is lost.
	db := d.AfterKill().Disk(t).Open(t)
	if err := db.View(t.Context(), has("after")); err != nil {
		t.Errorf("after a kill: %v", err)
	}
	if got := commits[1].String(); !strings.Contains(got, "synced commit of power_test.turn") {
		t.Errorf("caller: %s", got)
	}
}

// TestTornDisk checks that the store opens after a cut that retains any part of the
// unsynced writes.
func TestTornDisk(t *testing.T) {
	d := power.New(t)
	db := d.Open(t)
	synced := 0
	for n := range 60 {
		sync := store.Sync(n%7 == 0)
		if err := db.Update(t.Context(), sync, func(tx store.Tx) error {
			if err := tx.SetSetting(fmt.Sprint(n), "1"); err != nil {
				return err
			}
			return tx.SetSetting("last", strings.Repeat(fmt.Sprint(n), 3000))
		}); err != nil {
			t.Fatal(err)
		}
		if sync {
			synced = n
		}
		after := d.Torn(uint64(n)).Disk(t).Open(t)
		if err := after.Check(t.Context()); err != nil {
			t.Fatalf("commit %d: %v", n, err)
		}
		err := after.View(t.Context(), func(r store.Reader) error {
			missing := 0
			for i := range n + 1 {
				if v, err := r.Setting(fmt.Sprint(i)); err != nil || v == "" {
					missing = i
					break
				}
			}
			if missing > 0 && missing <= synced {
				t.Errorf("commit %d: %d is missing, %d was synced", n, missing, synced)
			}
			for i := missing; missing > 0 && i <= n; i++ {
				if v, _ := r.Setting(fmt.Sprint(i)); v != "" {
					t.Errorf("commit %d: %d is stored without %d", n, i, missing)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		after.Close()
	}
}
