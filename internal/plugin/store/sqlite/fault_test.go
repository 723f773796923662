package sqlite_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
	"github.com/chela-ai/chela/internal/test/power"
)

// openOn opens the database on the disk. After a fault the log is rewritten on that
// disk too.
func openOn(t *testing.T, d *power.Disk) *sqlite.DB {
	t.Helper()
	db := d.Open(t)
	db.SetRewrite(d.Rewrite)
	return db
}

// appendEntry returns an update that writes two rows.
func appendEntry(n int) func(store.Tx) error {
	return func(tx store.Tx) error {
		text := strings.Repeat(fmt.Sprint(n), 2000)
		e := &session.Entry{ID: fmt.Sprint(n), Kind: session.KindMessage, Message: llm.User(text)}
		return errors.Join(tx.Sessions().Append("t", e), tx.SetSetting(fmt.Sprint(n), text))
	}
}

// stored returns the ids of the stored commits and checks that they are complete
// and ordered.
func stored(t *testing.T, db *sqlite.DB) map[string]bool {
	t.Helper()
	found := make(map[string]bool)
	err := db.View(t.Context(), func(r store.Reader) error {
		list, err := r.Sessions().Entries("t", 0, 0)
		for i, e := range list {
			found[e.ID] = true
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
	return found
}

// TestFaults makes each operation on the disk fail once. Confirmed commits are
// stored; synced commits survive a power cut; commits refused because the disk is
// full are not stored; and the store continues to work.
func TestFaults(t *testing.T) {
	t.Parallel()
	const commits = 6
	play := func(t *testing.T, fail func(n int, op power.Op, name string) power.Fault) *power.Disk {
		d := power.New(t)
		db := openOn(t, d)
		d.Fail(fail)
		durable, visible := map[string]bool{}, map[string]bool{}
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
					durable[k] = true
				}
			}
			have := stored(t, db)
			for k := range visible {
				if !have[k] {
					t.Fatalf("commit %s was confirmed and is missing", k)
				}
			}
			if len(have) != len(visible) {
				t.Fatalf("stored %v, confirmed %v", have, visible)
			}
			if n%3 != 2 {
				continue
			}
			after := d.Cut().Disk(t).Open(t)
			have = stored(t, after)
			for k := range durable {
				if !have[k] {
					t.Fatalf("after commit %d and a power cut: %s is missing", n, k)
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

func TestDiskFull(t *testing.T) {
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
		t.Errorf("stored %v, want only the first", have)
	}
	d.Fail(nil)
	if err := db.Update(t.Context(), store.Ordered, appendEntry(99)); err != nil {
		t.Errorf("with free space again: %v", err)
	}
}

// TestBrokenDisk makes all operations fail for a while.
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
		t.Errorf("when the disk works again: %v", err)
	}
	if have := stored(t, d.Cut().Disk(t).Open(t)); len(have) != 1 || !have["9"] {
		t.Errorf("stored %v, want only 9", have)
	}
}

// TestCloseAfterFault closes a store whose last sync failed: earlier confirmed
// commits are stored, also after an immediate power cut.
func TestCloseAfterFault(t *testing.T) {
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
		have := stored(t, d.AfterKill().Disk(t).Open(t))
		if !have["0"] || !have["1"] || !have["2"] {
			t.Errorf("after a kill: %v", have)
		}
		if have := stored(t, d.Cut().Disk(t).Open(t)); !have["0"] || !again && !have["2"] {
			t.Errorf("after a power cut: %v", have)
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
		var images []power.Image // before each operation
		d.Fail(func(int, power.Op, string) power.Fault {
			images = append(images, d.AfterKill())
			return power.None
		})
		if err := db.Update(t.Context(), store.Synced, appendEntry(1)); err != nil {
			t.Fatal(err)
		}
		d.Fail(nil)
		if len(images) < 5 {
			t.Fatalf("%d operations to kill at", len(images))
		}
		for i, image := range append(images, d.AfterKill()) {
			after := image.Disk(t).Open(t)
			have := stored(t, after)
			if !have["0"] {
				t.Errorf("killed at %d: the commit before is missing", i)
			}
			if i == len(images) && !have["1"] {
				t.Errorf("killed after the commit: it is missing")
			}
			if err := after.Update(t.Context(), store.Synced, appendEntry(2)); err != nil {
				t.Errorf("killed at %d: %v", i, err)
			}
			if have := stored(t, after); !have["2"] {
				t.Errorf("killed at %d: the next commit is missing", i)
			}
			after.Close()
		}
	})
}
