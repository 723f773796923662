package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/plugin/store/table"
)

func TestClose(t *testing.T) {
	t.Parallel()
	d := open(t)
	mustSet(t, d, "a", "1")
	wakes := d.Wakes(t.Context(), store.TopicQueue)

	started, proceed := make(chan struct{}), make(chan struct{})
	viewed, updated := make(chan error, 1), make(chan error, 1)
	go func() {
		viewed <- d.View(t.Context(), func(r store.Reader) error {
			close(started)
			<-proceed
			_, err := r.Setting("a")
			return err
		})
	}()
	<-started
	go func() {
		updated <- d.Update(t.Context(), store.Ordered, func(tx store.Tx) error { return tx.SetSetting("b", "2") })
	}()
	if err := <-updated; err != nil {
		t.Errorf("update: %v", err)
	}
	closed := make(chan error, 1)
	go func() { closed <- d.Close() }()
	close(proceed)
	if err := errors.Join(<-viewed, <-closed); err != nil {
		t.Errorf("view and close: %v", err)
	}
	for range wakes { // until it is closed
	}
	if err := d.Update(t.Context(), store.Ordered, func(store.Tx) error { return nil }); !errors.Is(err, chela.ErrClosed) {
		t.Errorf("update: have %v, want %v", err, chela.ErrClosed)
	}
	if err := d.View(t.Context(), func(store.Reader) error { return nil }); !errors.Is(err, chela.ErrClosed) {
		t.Errorf("view: have %v, want %v", err, chela.ErrClosed)
	}
	if _, ok := <-d.Wakes(t.Context(), store.TopicQueue); ok {
		t.Error("received a wake from a closed database")
	}
	if v := settingOf(t, openAt(t, d.opts.Path), "b"); v != "2" {
		t.Errorf("after reopening: %q, want 2", v)
	}
}

func TestIdleReaders(t *testing.T) {
	path := filepath.Join(t.TempDir(), "chela.db")
	synctest.Test(t, func(t *testing.T) {
		d, err := Open(t.Context(), Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		idle := d.readers.Idle
		for range 3 {
			settingOf(t, d, "a")
			if n := idle(); n != 1 {
				t.Errorf("%d connections after reading, want 1", n)
			}
			time.Sleep(idleReader - time.Second)
			settingOf(t, d, "a") // resets the idle timer
			time.Sleep(idleReader - time.Second)
			if n := idle(); n != 1 {
				t.Errorf("%d connections, want 1", n)
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if n := idle(); n != 0 {
				t.Errorf("%d connections when idle, want 0", n)
			}
		}
	})
}

// TestReadsAfterFailedOpens reads while the database cannot be opened, more often
// than there are connections for reading, and then again.
func TestReadsAfterFailedOpens(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open file cannot be moved")
	}
	synctest.Test(t, func(t *testing.T) {
		d := open(t)
		mustSet(t, d, "a", "1")
		time.Sleep(2 * idleReader) // no connection for reading is left
		if err := os.Rename(d.opts.Path, d.opts.Path+".away"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for range 2 * maxReaders {
			if err := d.View(ctx, func(store.Reader) error { return nil }); err == nil || ctx.Err() != nil {
				t.Errorf("without the file: %v", err)
			}
		}
		if _, err := os.Stat(d.opts.Path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("reading made a file: %v", err)
		}
		if err := os.Rename(d.opts.Path+".away", d.opts.Path); err != nil {
			t.Fatal(err)
		}
		if v := settingOf(t, d, "a"); v != "1" {
			t.Errorf("with the file: %q", v)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestManyItems uses a queue with 20,000 final items: the frequent queries use an index
// after a restart, and old items can be pruned.
func TestManyItems(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chela.db")
	d, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	const total = 20_000
	base := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	if _, err := d.writer.c.Exec(`WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1)
INSERT INTO item (id, key, session, kind, principal, inbound, call, state, run, note, created, origin, overrides, next, skipped, owner, parent, root, result)
SELECT 'id-' || n, 'key-' || n, 's-' || (n % 100), 'message', '{}', '{}', '', iif(n % 1000 = 0, 'waiting', 'done'), 'run-' || n, '', ?2 + n, '', '', 0, 0, '', '', '', '' FROM n`,
		total, base.UnixNano()); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = openAt(t, path)
	err = d.Update(t.Context(), store.Ordered, func(tx store.Tx) error {
		q := tx.Queue()
		r, err := q.Put(queue.Item{ID: "x", Key: "key-7777", Session: "s-1"})
		if err != nil || r.New {
			t.Errorf("a known key: %+v, %v", r, err)
		}
		keys, err1 := q.Sessions()
		waiting, err2 := q.Waiting("s-0")
		if len(keys) != 1 || len(waiting) != total/1000 {
			t.Errorf("%d sessions, %d waiting", len(keys), len(waiting))
		}
		return errors.Join(err1, err2, q.Finish("run-5"))
	})
	if err != nil {
		t.Fatal(err)
	}
	used := 0
	for _, sql := range slices.Collect(maps.Keys(d.writer.c.stmts)) {
		if strings.Contains(sql, " item ") {
			usesIndex(t, d.writer.c, sql)
			used++
		}
	}
	if used < 5 {
		t.Errorf("only %d statements about items", used)
	}
	err = d.Update(t.Context(), store.Ordered, func(tx store.Tx) error {
		n, err := tx.Queue().Prune(base.Add(time.Duration(total/2+1) * time.Nanosecond))
		if want := total/2 - total/2000; n != want {
			t.Errorf("pruned %d, want %d", n, want)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPlans checks that each frequent query uses an index.
func TestPlans(t *testing.T) {
	t.Parallel()
	d := open(t)
	for _, sql := range []string{
		"SELECT seq, id, inbound FROM item WHERE session = 's' AND state = 'waiting' ORDER BY seq",
		"SELECT DISTINCT session FROM item WHERE state = 'waiting' ORDER BY session",
		"UPDATE item SET state = 'done' WHERE state = 'taken' AND (id = 'r' AND run = 'r' OR run = 'r' AND run <> '' AND run <> id)",
		"SELECT n FROM call WHERE run = 'r' AND state <> 'closed' ORDER BY n",
		"SELECT n FROM call WHERE session = 's' AND detached AND state <> 'closed' ORDER BY n",
		"SELECT n FROM run WHERE state IN ('running', 'suspended') AND session = 's' ORDER BY started, n",
		"SELECT session FROM run WHERE state IN ('running', 'suspended') AND state = 'running'",
		"SELECT seq FROM outbox WHERE state IN ('draft', 'pending', 'attempted') ORDER BY seq LIMIT -1",
		"SELECT seq FROM outbox WHERE run = 'r' ORDER BY part, seq",
		"SELECT max(pos) FROM entry WHERE pos > 1 AND pos < 2",
		"SELECT n FROM usage WHERE run = 'r' AND n >= 1",
		"SELECT n FROM approval WHERE decision = '' ORDER BY created, n",
	} {
		usesIndex(t, d.writer.c, sql)
	}
}

// usesIndex checks that a statement reads no table from the beginning to the end.
func usesIndex(t *testing.T, c *conn, sql string) {
	t.Helper()
	err := c.Query(func(r *table.Row) error {
		r.Skip(3)
		if plan := r.Text(); strings.HasPrefix(plan, "SCAN") && !strings.Contains(plan, "INDEX") {
			t.Errorf("%s\n%s", plan, sql)
		}
		return nil
	}, "EXPLAIN QUERY PLAN "+sql)
	if err != nil {
		t.Errorf("%s: %v", sql, err)
	}
}

// TestForeignWriter writes to the file with another program, between two commits
// and during one.
func TestForeignWriter(t *testing.T) {
	t.Parallel()
	d := open(t)
	mustSet(t, d, "a", "1")
	c, err := dial(d.opts.Path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	other := func(sql string) {
		t.Helper()
		if err := c.script(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	other("PRAGMA busy_timeout = 5000; UPDATE setting SET value = '2' WHERE name = 'a'")
	if err := d.Update(t.Context(), store.Ordered, func(tx store.Tx) error {
		v, err := tx.Setting("a")
		if v != "2" {
			t.Errorf("have %q, want the value of the other program", v)
		}
		return errors.Join(err, tx.SetSetting("b", v))
	}); err != nil {
		t.Fatal(err)
	}
	other("BEGIN IMMEDIATE; UPDATE setting SET value = '3' WHERE name = 'b'")
	done := make(chan error)
	go func() {
		done <- d.Update(t.Context(), store.Ordered, func(tx store.Tx) error {
			v, err := tx.Setting("b")
			return errors.Join(err, tx.SetSetting("b", v+"4"))
		})
	}()
	for waits := false; !waits; runtime.Gosched() {
		d.writer.mu.Lock()
		waits = d.writer.busy
		d.writer.mu.Unlock()
	}
	other("COMMIT")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if v := settingOf(t, d, "b"); v != "34" {
		t.Errorf("have %q, want the value written after the other program's", v)
	}
}

// TestLogStaysSmall makes commits that fill the log many times over.
func TestLogStaysSmall(t *testing.T) {
	t.Parallel()
	d := open(t)
	for n := range 3000 {
		err := d.Update(t.Context(), store.Ordered, func(tx store.Tx) error {
			return tx.SetSetting(strconv.Itoa(n%50), strings.Repeat(strconv.Itoa(n/50%10), 10_000))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	fi, err := os.Stat(d.opts.Path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if fi.Size() > 8<<20 {
		t.Errorf("log size %d bytes", fi.Size())
	}
}

// TestDeletedIsGone checks that no page contains the text of a deleted session, so
// that neither a disk reader nor a salvage finds it.
func TestDeletedIsGone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chela.db")
	d, err := Open(t.Context(), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	conversations(t, d, 0, 20)
	if err := d.Update(t.Context(), store.Synced,
		func(tx store.Tx) error { return tx.Sessions().Delete("agent:main:s-15") }); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), "14.2 14.2") || strings.Contains(string(b), "15.2 15.2") {
		t.Error("the deleted text is still stored, or the text of another session is missing")
	}
	report, err := Recover(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(readSessions(t, path)); n != 19 || len(report.Damaged)+len(report.Orphaned) > 0 {
		t.Errorf("%d sessions, want 19; %+v", n, report)
	}
}
