package sqlite_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/llm"
	"github.com/chela-ai/chela/internal/session"
	"github.com/chela-ai/chela/internal/store"
	"github.com/chela-ai/chela/internal/store/sqlite"
	"github.com/chela-ai/chela/internal/store/storetest/power"
)

// openOn opens the database on the disk; after a fault its log is written
// again on that disk too.
func openOn(t *testing.T, d *power.Disk) *sqlite.DB {
	t.Helper()
	db := d.Open(t)
	db.SetRewrite(d.Rewrite)
	return db
}

// appendEntry is a commit of two rows.
func appendEntry(n int) func(store.Tx) error {
	return func(tx store.Tx) error {
		text := strings.Repeat(fmt.Sprint(n), 2000)
		e := &session.Entry{ID: fmt.Sprint(n), Kind: session.KindMessage, Message: llm.User(text)}
		return errors.Join(tx.Sessions().Append("t", e), tx.SetSetting(fmt.Sprint(n), text))
	}
}

// stored returns which of the commits are there, each whole and in order.
func stored(t *testing.T, db *sqlite.DB) map[string]bool {
	t.Helper()
	there := make(map[string]bool)
	err := db.View(t.Context(), func(r store.Reader) error {
		list, err := r.Sessions().Entries("t", 0, 0)
		for i, e := range list {
			there[e.ID] = true
			if e.Seq != int64(i+1) {
				t.Errorf("entry %s at %d: seq %d", e.ID, i+1, e.Seq)
			}
			if v, err := r.Setting(e.ID); err != nil || v != e.Message.PlainText() {
				t.Errorf("entry %s without its setting: %v", e.ID, err)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return there
}

// TestFaults has each operation on the disk fail once. What was confirmed is
// there; a synced confirmation outlives the power; what was refused for lack
// of room is not there; and the store goes on.
func TestFaults(t *testing.T) {
	t.Parallel()
	const commits = 6
	play := func(t *testing.T, fail func(n int, op power.Op, name string) power.Fault) *power.Disk {
		d := power.New(t)
		db := openOn(t, d)
		d.Fail(fail)
		certain, visible := map[string]bool{}, map[string]bool{}
		for n := range commits {
			sync := store.Sync(n%3 == 2)
			err := db.Update(t.Context(), sync, appendEntry(n))
			switch {
			case err == nil:
				visible[fmt.Sprint(n)] = true
			case !errors.Is(err, chela.ErrFull) && chela.CodeOf(err) != chela.CodeUnavailable:
				t.Errorf("commit %d: error %v, code %s", n, err, chela.CodeOf(err))
			}
			if err == nil && bool(sync) {
				for k := range visible {
					certain[k] = true
				}
			}
			have := stored(t, db)
			for k := range visible {
				if !have[k] {
					t.Fatalf("commit %s was confirmed and is gone", k)
				}
			}
			if len(have) != len(visible) {
				t.Fatalf("there are %v, confirmed were %v", have, visible)
			}
			if n%3 != 2 {
				continue
			}
			after := d.Cut().Disk(t).Open(t)
			have = stored(t, after)
			for k := range certain {
				if !have[k] {
					t.Fatalf("after commit %d and a cut: %s is gone", n, k)
				}
			}
			after.Close()
		}
		d.Fail(nil)
		if err := db.Update(t.Context(), store.Synced, appendEntry(commits)); err != nil {
			t.Errorf("after the fault: %v", err)
		}
		if err := db.Check(t.Context()); err != nil {
			t.Error(err)
		}
		return d
	}
	var ops []power.Op
	play(t, func(_ int, op power.Op, _ string) power.Fault {
		ops = append(ops, op)
		return power.None
	})
	if len(ops) < 20 {
		t.Fatalf("%d operations", len(ops))
	}
	for _, fault := range []power.Fault{power.NoRoom, power.Broken} {
		for n, op := range ops {
			if fault == power.NoRoom && op != power.Write {
				continue
			}
			t.Run(fmt.Sprintf("%d/%d", fault, n), func(t *testing.T) {
				t.Parallel()
				play(t, func(i int, op power.Op, _ string) power.Fault {
					if i != n {
						return power.None
					}
					return fault
				})
			})
		}
	}
}

func TestNoRoom(t *testing.T) {
	t.Parallel()
	d := power.New(t)
	db := openOn(t, d)
	if err := db.Update(t.Context(), store.Synced, appendEntry(0)); err != nil {
		t.Fatal(err)
	}
	d.Fail(func(_ int, op power.Op, _ string) power.Fault {
		if op == power.Write {
			return power.NoRoom
		}
		return power.None
	})
	var wg sync.WaitGroup
	for n := 1; n < 20; n++ {
		wg.Go(func() {
			err := db.Update(t.Context(), store.Sync(n%2 == 0), appendEntry(n))
			if !errors.Is(err, chela.ErrFull) || chela.CodeOf(err) != chela.CodeFull || chela.HintOf(err) == "" {
				t.Errorf("update %d: %v (code %s, hint %q)", n, err, chela.CodeOf(err), chela.HintOf(err))
			}
		})
	}
	wg.Wait()
	if have := stored(t, db); len(have) != 1 {
		t.Errorf("there are %v, want the first only", have)
	}
	d.Fail(nil)
	if err := db.Update(t.Context(), store.Ordered, appendEntry(99)); err != nil {
		t.Errorf("when there is room again: %v", err)
	}
}

// TestBrokenDisk has everything fail for a while.
func TestBrokenDisk(t *testing.T) {
	t.Parallel()
	d := power.New(t)
	db := openOn(t, d)
	d.Fail(func(int, power.Op, string) power.Fault { return power.Broken })
	for n := range 3 {
		err := db.Update(t.Context(), store.Synced, appendEntry(n))
		if chela.CodeOf(err) != chela.CodeUnavailable {
			t.Errorf("update %d: have %v, want code %s", n, err, chela.CodeUnavailable)
		}
	}
	d.Fail(nil)
	if err := db.Update(t.Context(), store.Synced, appendEntry(9)); err != nil {
		t.Errorf("when it works again: %v", err)
	}
	if have := stored(t, d.Cut().Disk(t).Open(t)); len(have) != 1 || !have["9"] {
		t.Errorf("there are %v, want 9 only", have)
	}
}

// TestCloseAfterAFault closes a store whose last sync failed: what was
// confirmed before stays, also when the power is cut right after.
func TestCloseAfterAFault(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		d := power.New(t)
		db := openOn(t, d)
		for n := range 3 {
			if err := db.Update(t.Context(), store.Sync(n == 0), appendEntry(n)); err != nil {
				t.Fatal(err)
			}
		}
		d.Fail(func(_ int, op power.Op, _ string) power.Fault {
			if op == power.Sync {
				return power.Broken
			}
			return power.None
		})
		if err := db.Update(t.Context(), store.Synced, appendEntry(3)); err == nil {
			t.Fatal("no error")
		}
		if !again {
			d.Fail(nil)
		}
		if err := db.Close(); (err != nil) != again {
			t.Errorf("close: %v", err)
		}
		have := stored(t, d.Kept().Disk(t).Open(t))
		if !have["0"] || !have["1"] || !have["2"] {
			t.Errorf("after the process: %v", have)
		}
		if have := stored(t, d.Cut().Disk(t).Open(t)); !have["0"] || !again && !have["2"] {
			t.Errorf("after a cut: %v", have)
		}
	}
}

func TestKill(t *testing.T) {
	t.Parallel()
	t.Run("SESS-06 a kill in the middle of an append: the session loads and continues", func(t *testing.T) {
		d := power.New(t)
		db := openOn(t, d)
		if err := db.Update(t.Context(), store.Ordered, appendEntry(0)); err != nil {
			t.Fatal(err)
		}
		var left []power.Image // before each operation
		d.Fail(func(int, power.Op, string) power.Fault {
			left = append(left, d.Kept())
			return power.None
		})
		if err := db.Update(t.Context(), store.Synced, appendEntry(1)); err != nil {
			t.Fatal(err)
		}
		d.Fail(nil)
		if len(left) < 5 {
			t.Fatalf("%d moments to kill at", len(left))
		}
		for i, image := range append(left, d.Kept()) {
			after := image.Disk(t).Open(t)
			have := stored(t, after)
			if !have["0"] {
				t.Errorf("killed at %d: the commit before is gone", i)
			}
			if i == len(left) && !have["1"] {
				t.Errorf("killed after the commit: it is gone")
			}
			if err := after.Update(t.Context(), store.Synced, appendEntry(2)); err != nil {
				t.Errorf("killed at %d: %v", i, err)
			}
			if have := stored(t, after); !have["2"] {
				t.Errorf("killed at %d: it does not continue", i)
			}
			after.Close()
		}
	})
}
