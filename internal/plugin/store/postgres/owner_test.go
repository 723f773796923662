package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/store/postgres"
	"github.com/chela-ai/chela/internal/plugin/store/postgres/postgrestest"
)

// soon is how long the ownership lasts in tests that wait for its end.
const soon = 6 * time.Second

// expire ends the right of the owner, as the clock does for one that renews nothing.
const expire = "UPDATE alive SET until = '-infinity' WHERE fence = 1"

func set(name, value string) func(store.Tx) error {
	return func(tx store.Tx) error { return tx.SetSetting(name, value) }
}

func setting(t *testing.T, d *postgres.DB, name string) string {
	t.Helper()
	v, err := store.Get(t.Context(), d, func(r store.Reader) (string, error) { return r.Setting(name) })
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// waiting is a database that another process owns, until it is opened.
type waiting struct {
	owner  chan string // the first one that was reported
	opened chan *postgres.DB
}

// standby opens a database in the background.
func standby(t *testing.T, o postgres.Options) waiting {
	t.Helper()
	w := waiting{owner: make(chan string, 1), opened: make(chan *postgres.DB, 1)}
	o.Standby = func(owner string, err error) {
		if err == nil {
			select {
			case w.owner <- owner:
			default:
			}
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() { cancel(); wg.Wait() })
	wg.Go(func() {
		d, err := postgres.Open(ctx, o)
		if err != nil {
			if ctx.Err() == nil {
				t.Errorf("open: %v", err)
			}
			return
		}
		w.opened <- d
		<-ctx.Done()
		if err := d.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return w
}

func TestOwnership(t *testing.T) {
	server := postgrestest.Start(t)
	t.Run("a second process waits for the end of the first, and knows it", func(t *testing.T) {
		t.Parallel()
		url := server.URL()
		d, err := postgres.Open(t.Context(), postgres.Options{URL: url, TTL: patient, Name: "first"})
		if err != nil {
			t.Fatal(err)
		}
		w := standby(t, postgres.Options{URL: url, TTL: patient, Name: "second"})
		if got := waittest.For(t, "the owner", w.owner); got != "first" {
			t.Errorf("owner %q, want first", got)
		}
		lasts := fmt.Sprintf(
			"SELECT until > clock_timestamp() AND until <= clock_timestamp() + interval '%d milliseconds' FROM alive",
			patient.Milliseconds())
		if got := strings.TrimSpace(server.Exec(t, url, lasts)); !strings.Contains(got, "t") {
			t.Errorf("the right lasts for TTL at most: %q", got)
		}
		if err := d.Update(t.Context(), store.Ordered, set("a", "1")); err != nil || !d.Held() {
			t.Errorf("update of the owner: %v, held %v", err, d.Held())
		}
		if err := d.Close(); err != nil { // releases it, although its time is not over
			t.Fatal(err)
		}
		second := waittest.For(t, "the takeover", w.opened)
		if got := setting(t, second, "a"); got != "1" {
			t.Errorf("the second one reads %q, want 1", got)
		}
	})
	t.Run("who does not wait is told who has the database", func(t *testing.T) {
		t.Parallel()
		url := server.URL()
		open(t, postgres.Options{URL: url, Name: "the first one"})
		_, err := postgres.Open(t.Context(), postgres.Options{URL: url, TTL: time.Second})
		if chela.CodeOf(err) != chela.CodeConflict || !strings.Contains(err.Error(), "the first one") ||
			chela.HintOf(err) == "" {
			t.Errorf("error %v, hint %q", err, chela.HintOf(err))
		}
	})
	t.Run("LOOP-14 an owner that was cut off and is superseded stores nothing", func(t *testing.T) {
		t.Parallel()
		url, link := server.URL(), server.Link(t)
		d := open(t, postgres.Options{URL: link.Over(url)})
		w := standby(t, postgres.Options{URL: url, TTL: patient})
		if err := d.Update(t.Context(), store.Synced, set("a", "before")); err != nil {
			t.Fatal(err)
		}
		waittest.For(t, "the standby", w.owner)
		link.Cut()
		server.Exec(t, url, expire)
		second := waittest.For(t, "the takeover", w.opened)
		link.Repair()
		if err := d.Update(t.Context(), store.Synced, set("a", "after")); !errors.Is(err, chela.ErrFenced) {
			t.Errorf("update of the first one: %v, want %v", err, chela.ErrFenced)
		}
		waittest.For(t, "the loss", d.Lost())
		if d.Held() {
			t.Error("the first one believes that it holds the database")
		}
		if got := setting(t, second, "a"); got != "before" {
			t.Errorf("a is %q, want before", got)
		}
	})
	t.Run("an owner that cannot reach the database stops in time", func(t *testing.T) {
		t.Parallel()
		url, link := server.URL(), server.Link(t)
		d := open(t, postgres.Options{URL: link.Over(url), TTL: soon})
		link.Cut()
		waittest.For(t, "the loss", d.Lost())
		if err := d.Update(t.Context(), store.Synced, set("a", "1")); !errors.Is(err, chela.ErrFenced) || d.Held() {
			t.Errorf("update: %v; held %v", err, d.Held())
		}
	})
	t.Run("an owner that stops in the middle of a transaction is superseded", func(t *testing.T) {
		t.Parallel()
		url, link := server.URL(), server.Link(t)
		d, err := postgres.Open(t.Context(), postgres.Options{URL: link.Over(url), TTL: soon})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		begun, proceed, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		var once sync.Once
		go func() {
			ended <- d.Update(context.Background(), store.Synced, func(tx store.Tx) error {
				err := tx.SetSetting("a", "late")
				once.Do(func() { close(begun) })
				<-proceed
				return errors.Join(err, tx.SetSetting("b", "late"))
			})
		}()
		<-begun
		w := standby(t, postgres.Options{URL: url, TTL: soon})
		var second *postgres.DB
		for second == nil {
			select {
			case second = <-w.opened:
			case <-time.After(50 * time.Millisecond): // a process that stops renews nothing
				server.Exec(t, url, expire)
			}
		}
		close(proceed)
		if err := <-ended; !errors.Is(err, chela.ErrFenced) {
			t.Errorf("the transaction: %v, want %v", err, chela.ErrFenced)
		}
		if a, b := setting(t, second, "a"), setting(t, second, "b"); a != "" || b != "" {
			t.Errorf("it stored %q and %q", a, b)
		}
	})
	for again, name := range [...]string{"a new database", "a database that was released"} {
		t.Run("one of several processes that start at once gets "+name, func(t *testing.T) {
			t.Parallel()
			url := server.URL()
			for range again {
				d, err := postgres.Open(t.Context(), postgres.Options{URL: url, TTL: patient})
				if err != nil {
					t.Fatal(err)
				}
				if err := d.Close(); err != nil {
					t.Fatal(err)
				}
			}
			opened := make(chan bool, 16)
			for range cap(opened) {
				w := standby(t, postgres.Options{URL: url, TTL: patient, Name: "one"})
				go func() {
					select {
					case <-w.opened:
						opened <- true
					case <-w.owner:
						opened <- false
					case <-t.Context().Done():
					}
				}()
			}
			owners := 0
			for range cap(opened) {
				if waittest.For(t, "a process", opened) {
					owners++
				}
			}
			if fence := server.Exec(t, url, "SELECT fence FROM owner"); owners != 1 || fence != fmt.Sprint(again+1) {
				t.Errorf("%d owners, fence %s; want one", owners, fence)
			}
		})
	}
	t.Run("an idle owner notices that it was superseded", func(t *testing.T) {
		t.Parallel()
		url := server.URL()
		d := open(t, postgres.Options{URL: url, TTL: soon})
		server.Exec(t, url, "BEGIN; UPDATE owner SET fence = fence + 1; UPDATE alive SET fence = fence + 1; COMMIT")
		waittest.For(t, "the loss", d.Lost())
	})
	t.Run("a database of a newer version is refused", func(t *testing.T) {
		t.Parallel()
		url := server.URL()
		d, err := postgres.Open(t.Context(), postgres.Options{URL: url, TTL: patient})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		server.Exec(t, url, "UPDATE version SET n = 99")
		if _, err := postgres.Open(t.Context(), postgres.Options{URL: url, TTL: patient}); err == nil ||
			!strings.Contains(err.Error(), "version 99") {
			t.Errorf("error %v", err)
		}
	})
}

// count adds 1 to a setting.
func count(tx store.Tx) error {
	v, err := tx.Setting("count")
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(v)
	return tx.SetSetting("count", strconv.Itoa(n+1))
}

func TestBroken(t *testing.T) {
	server := postgrestest.Start(t)
	for _, tt := range [...]struct {
		name  string
		after bool
	}{{"a commit that does not reach the server is repeated", false},
		{"a commit whose answer is lost is not repeated", true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			url, link := server.URL(), server.Link(t)
			d := open(t, postgres.Options{URL: link.Over(url)})
			for i := range 3 {
				lost := link.Lose("COMMIT\x00", tt.after)
				if err := d.Update(t.Context(), store.Synced, count); err != nil {
					t.Fatal(err)
				}
				waittest.For(t, "the loss", lost)
				if got := setting(t, d, "count"); got != fmt.Sprint(i+1) {
					t.Fatalf("count %s, want %d", got, i+1)
				}
			}
		})
	}
	t.Run("sessions that the server ends lose and double nothing", func(t *testing.T) {
		t.Parallel()
		url := server.URL()
		d := open(t, postgres.Options{URL: url + "&application_name=ended"})
		const writers, rounds = 8, 12
		var wg sync.WaitGroup
		done := make(chan struct{})
		for range writers {
			wg.Go(func() {
				for range rounds {
					if err := d.Update(t.Context(), store.Synced, count); err != nil {
						t.Errorf("update: %v", err)
					}
				}
			})
		}
		go func() { wg.Wait(); close(done) }()
		for ended := false; !ended; {
			server.Exec(t, url, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'ended'")
			select {
			case <-done:
				ended = true
			case <-time.After(30 * time.Millisecond):
			}
		}
		if got, want := setting(t, d, "count"), fmt.Sprint(writers*rounds); got != want {
			t.Errorf("count %s, want %s", got, want)
		}
	})
}

func TestRestart(t *testing.T) {
	server := postgrestest.Start(t)
	d := open(t, postgres.Options{URL: server.URL()})
	if err := d.Update(t.Context(), store.Synced, count); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	updated := make(chan error, 1)
	go func() { updated <- d.Update(context.Background(), store.Synced, count) }()
	server.Restart(t)
	if err := waittest.For(t, "the update", updated); err != nil {
		t.Fatal(err)
	}
	if got := setting(t, d, "count"); got != "2" {
		t.Errorf("count %s, want 2", got)
	}
}
