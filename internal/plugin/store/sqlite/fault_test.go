package sqlite_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

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

// TestFullDatabase fills the disk when the log is copied to the database. Commits
// continue as long as the log has room.
func TestFullDatabase(t *testing.T) {
	t.Parallel()
	d := power.New(t)
	db := openOn(t, d)
	var full atomic.Int32
	d.Fail(func(_ int, op power.Op, name string) power.Fault {
		if op == power.Write && name == filepath.Base(d.Path()) {
			full.Add(1)
			return power.NoRoom
		}
		return power.None
	})
	for n := 0; full.Load() < 2; n++ {
		if n == 1000 {
			t.Fatal("the log was never copied")
		}
		if err := db.Update(t.Context(), store.Ordered, func(tx store.Tx) error {
			return tx.SetSetting("a", strings.Repeat(fmt.Sprint(n%10), 200_000))
		}); err != nil {
			t.Fatalf("update %d, with room in the log: %v", n, err)
		}
	}
	d.Fail(nil)
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

// TestSharedCommit has updates with and without a sync share a commit. A synced one
// is on disk when it returns, with all that were confirmed before it, also if another
// of them fails or the shared commit does and each is repeated alone.
func TestSharedCommit(t *testing.T) {
	const held = 9 // the update during which the others arrive
	for _, c := range []struct {
		name  string
		syncs string // of the updates in order: s synced, o ordered, x synced and failing
		fault power.Op
		want  string // numbers of the updates that are on disk
	}{
		{name: "the last is synced", syncs: "oos", want: "0129"},
		{name: "the first is synced", syncs: "soo", want: "0129"},
		{name: "one in the middle is synced", syncs: "oso", want: "0129"},
		{name: "all are synced", syncs: "sss", want: "0129"},
		{name: "none is synced", syncs: "ooo"},
		{name: "the one after the synced one fails", syncs: "sxo", want: "029"},
		{name: "the last is synced and fails", syncs: "sox", want: "019"},
		{name: "the commit fails; the last is synced", syncs: "oos", fault: power.Write, want: "0129"},
		{name: "the commit fails; the first is synced", syncs: "soo", fault: power.Write, want: "09"},
		{name: "the sync fails", syncs: "oso", fault: power.Sync, want: "019"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := power.New(t)
			synctest.Test(t, func(t *testing.T) {
				db := openOn(t, d)
				defer db.Close()
				breakCommit := sync.OnceFunc(func() { // the one in progress
					failed := false
					d.Fail(func(_ int, op power.Op, _ string) power.Fault {
						if op != c.fault || failed {
							return power.None
						}
						failed = true
						return power.Broken
					})
				})
				var wg sync.WaitGroup
				proceed := make(chan struct{})
				wg.Go(func() {
					if err := db.Update(t.Context(), store.Ordered,
						func(tx store.Tx) error { <-proceed; return appendEntry(held)(tx) }); err != nil {
						t.Error(err)
					}
				})
				synctest.Wait()
				for n, kind := range c.syncs {
					wg.Go(func() {
						err := db.Update(t.Context(), kind != 'o', func(tx store.Tx) error {
							if kind == 'x' {
								return errors.ErrUnsupported
							}
							if n == len(c.syncs)-1 {
								breakCommit()
							}
							return appendEntry(n)(tx)
						})
						if failed := kind == 'x'; failed != (err != nil) {
							t.Errorf("update %d: %v", n, err)
						}
						if after := stored(t, d.Cut().Disk(t).Open(t)); kind == 's' &&
							(!after[fmt.Sprint(n)] || !after[fmt.Sprint(held)]) {
							t.Errorf("synced update %d returned, and %v are on disk", n, after)
						}
					})
					synctest.Wait() // they wait in this order
				}
				close(proceed)
				wg.Wait()
				var have string
				after := stored(t, d.Cut().Disk(t).Open(t))
				for n := range 10 {
					if after[fmt.Sprint(n)] {
						have += fmt.Sprint(n)
					}
				}
				if have != c.want {
					t.Errorf("updates %q are on disk, want %q", have, c.want)
				}
			})
		})
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
