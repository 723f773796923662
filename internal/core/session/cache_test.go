package session_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/plan"
	"github.com/chela-ai/chela/internal/core/session"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
)

// source is a stored transcript that counts the entries read from it.
type source struct {
	es   []session.Entry
	read int
}

func (s *source) load(after int64) ([]session.Entry, error) {
	s.read += len(s.es) - int(after)
	return slices.Clone(s.es[after:]), nil
}

func TestCache(t *testing.T) {
	t.Parallel()
	t.Run("only new entries are read, and message pointers stay the same", func(t *testing.T) {
		c := session.NewCache(1 << 20)
		src := &source{es: history("u:hi", "a:ok")}
		first, err := c.Messages("s", 0, src.load)
		if err != nil {
			t.Fatal(err)
		}
		src.es = history("u:hi", "a:ok", "u:more", "a:yes")
		c.Append("s", &src.es[2]) // the second entry is not appended
		second, _ := c.Messages("s", 0, src.load)
		if src.read != 3 {
			t.Errorf("%d entries read, want 2 and then 1", src.read)
		}
		if len(second) != 4 || first[0] != second[0] || second[2] != src.es[2].Message {
			t.Errorf("second list %q", lines(second))
		}
	})
	t.Run("nothing is read if the newest entry is cached", func(t *testing.T) {
		c := session.NewCache(1 << 20)
		src := &source{es: history("u:hi")}
		c.Messages("s", 0, src.load)
		src.es = history("u:hi", "a:ok", "u:more")
		c.Append("s", &src.es[1]) // the third entry is not appended
		if ms, err := c.Messages("s", 2, src.load); err != nil || len(ms) != 2 || src.read != 1 {
			t.Errorf("%d messages, %d entries read, %v; want 2 and 1", len(ms), src.read, err)
		}
		if ms, err := c.Messages("s", 3, src.load); err != nil || len(ms) != 3 || src.read != 2 {
			t.Errorf("%d messages, %d entries read, %v; want 3 and 2", len(ms), src.read, err)
		}
	})
	t.Run("an entry after a gap is skipped", func(t *testing.T) {
		c := session.NewCache(1 << 20)
		src := &source{es: history("u:1")}
		c.Messages("s", 0, src.load)
		src.es = history("u:1", "a:2", "u:3")
		c.Append("s", &src.es[2], &src.es[0])
		got, _ := c.Messages("s", 0, src.load)
		if d := cmp.Diff([]string{"user 1", "assistant 2", "user 3"}, lines(got)); d != "" {
			t.Error(d)
		}
	})
	t.Run("the least recently used transcript is evicted", func(t *testing.T) {
		big := "u:" + strings.Repeat("x", 10_000)
		c := session.NewCache(50_000) // messages count twice, so two transcripts fit
		srcs := map[string]*source{}
		use := func(id string) {
			if srcs[id] == nil {
				srcs[id] = &source{es: history(big)}
			}
			if ms, err := c.Messages(id, 0, srcs[id].load); err != nil || len(ms) != 1 {
				t.Fatal(ms, err)
			}
		}
		use("a")
		use("b")
		use("a")
		use("c") // evicts b
		use("a")
		use("b")
		if a, b := srcs["a"].read, srcs["b"].read; a != 1 || b != 2 {
			t.Errorf("a was read %d times, b %d times; want 1 and 2", a, b)
		}
	})
	t.Run("trimming keeps the last used one", func(t *testing.T) {
		c := session.NewCache(1 << 20)
		read := map[string]int{}
		use := func(id string) {
			src := &source{es: history("u:" + strings.Repeat("x", 10_000))}
			if ms, err := c.Messages(id, 0, src.load); err != nil || len(ms) != 1 {
				t.Fatal(ms, err)
			}
			read[id] += src.read
		}
		for range 2 {
			use("a")
			use("b")
			c.Trim(10)
		}
		if d := cmp.Diff(map[string]int{"a": 2, "b": 1}, read); d != "" {
			t.Error(d)
		}
	})
	t.Run("a transcript that grows is evicted", func(t *testing.T) {
		c := session.NewCache(50_000)
		src := &source{es: history("u:hi", "c:1")}
		c.Messages("s", 0, src.load)
		src.es = history("u:hi", "c:1", "r:1")
		src.es[2].Message.Parts = []llm.Part{llm.Text(strings.Repeat("x", 30_000))}
		c.Append("s", &src.es[2])
		if ms, err := c.Messages("s", 0, src.load); err != nil || len(ms) != 3 || src.read != 5 {
			t.Errorf("%d messages, %d entries read, %v; want 3 and 5", len(ms), src.read, err)
		}
	})
	t.Run("a transcript larger than the limit is returned but not cached", func(t *testing.T) {
		c := session.NewCache(10)
		src := &source{es: history("u:hi")}
		for range 2 {
			if ms, err := c.Messages("s", 0, src.load); err != nil || len(ms) != 1 {
				t.Fatal(ms, err)
			}
		}
		if src.read != 2 {
			t.Errorf("read %d times, want 2", src.read)
		}
	})
	t.Run("an error of load is returned", func(t *testing.T) {
		c := session.NewCache(1 << 20)
		want := errors.New("no disk")
		if _, err := c.Messages("s", 0, func(int64) ([]session.Entry, error) { return nil, want }); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	})
	t.Run("concurrent use", func(t *testing.T) {
		c := session.NewCache(30_000)
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 50 {
					src := &source{es: history("u:hi", "a:"+strings.Repeat("y", 500))}
					id := fmt.Sprint((g + i) % 16)
					if ms, err := c.Messages(id, 0, src.load); err != nil || len(ms) != 2 {
						t.Error(len(ms), err)
					}
					c.Append(id, &src.es[1])
				}
			})
		}
		wg.Wait()
	})
}

func TestExpired(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("here", 2*3600)
	at := func(day, hour, min int) time.Time { return time.Date(2026, 3, day, hour, min, 0, 0, zone) }
	six := 6
	for _, c := range []struct {
		name   string
		p      session.ResetPolicy
		m      session.Meta
		now    time.Time
		reason string
	}{
		{"none", session.ResetPolicy{Mode: "none", IdleMinutes: 1}, session.Meta{Started: at(1, 0, 0)}, at(9, 0, 0), ""},
		{"no mode", session.ResetPolicy{}, session.Meta{Started: at(1, 0, 0)}, at(9, 0, 0), ""},
		{"a new session", session.ResetPolicy{Mode: "daily"}, session.Meta{}, at(9, 0, 0), ""},
		{"daily, before four", session.ResetPolicy{Mode: "daily"}, session.Meta{Started: at(8, 9, 0)}, at(9, 3, 59), ""},
		{"daily, before four, begun before four", session.ResetPolicy{Mode: "daily"}, session.Meta{Started: at(8, 3, 0)},
			at(9, 3, 59), "daily"},
		{"daily, at four", session.ResetPolicy{Mode: "daily"}, session.Meta{Started: at(8, 9, 0)}, at(9, 4, 0), "daily"},
		{"daily, activity does not postpone it", session.ResetPolicy{Mode: "daily"},
			session.Meta{Started: at(8, 9, 0), Active: at(9, 3, 59), Updated: at(9, 3, 59)}, at(9, 8, 0), "daily"},
		{"daily, begun after four", session.ResetPolicy{Mode: "daily"}, session.Meta{Started: at(9, 4, 1)}, at(9, 23, 0), ""},
		{"daily, another hour", session.ResetPolicy{Mode: "daily", AtHour: &six},
			session.Meta{Started: at(8, 9, 0)}, at(9, 5, 0), ""},
		{"daily, in the zone of now", session.ResetPolicy{Mode: "daily"}, session.Meta{Started: at(9, 3, 0).UTC()},
			at(9, 5, 0), "daily"},
		{"idle", session.ResetPolicy{Mode: "idle", IdleMinutes: 30}, session.Meta{Started: at(9, 1, 0), Active: at(9, 5, 0)},
			at(9, 5, 31), "idle"},
		{"idle, not yet", session.ResetPolicy{Mode: "idle", IdleMinutes: 30},
			session.Meta{Started: at(9, 1, 0), Active: at(9, 5, 0)}, at(9, 5, 30), ""},
		{"idle, only messages of persons count", session.ResetPolicy{Mode: "idle", IdleMinutes: 30},
			session.Meta{Started: at(9, 1, 0), Active: at(9, 5, 0), Updated: at(9, 6, 0)}, at(9, 6, 1), "idle"},
		{"idle, never active", session.ResetPolicy{Mode: "idle", IdleMinutes: 30},
			session.Meta{Started: at(9, 1, 0)}, at(9, 1, 20), ""},
		{"both, idle first", session.ResetPolicy{Mode: "daily", IdleMinutes: 10},
			session.Meta{Started: at(9, 5, 0), Active: at(9, 5, 0)}, at(9, 6, 0), "idle"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := session.Expired(c.p, c.m, c.now); got != c.reason {
				t.Errorf("got %q, want %q", got, c.reason)
			}
		})
	}
}

func database(t *testing.T) store.Store {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "chela.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestUndoReset(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	const key = "agent:main:main"
	err := database(t).Update(t.Context(), store.Synced, func(tx store.Tx) error {
		s := tx.Sessions()
		es := history("u:hi", "a:ok", "a:more", "a:and more")
		es[1].Usage, es[1].NanoUSD = &llm.Usage{Input: 9}, 5
		es[2].Usage, es[2].NanoUSD = &llm.Usage{Input: 4, CacheRead: 2}, 3
		es[3].Usage = &llm.Usage{Output: 1}
		m := session.Meta{Key: key, ID: "old", Agent: "main", Created: at, Started: at, Updated: at, Active: at}
		if err := errors.Join(s.Put(m), s.Append("old", &es[0], &es[1], &es[2], &es[3])); err != nil {
			return err
		}
		if _, err := session.UndoReset(s, key, at); !errors.Is(err, chela.ErrNotFound) &&
			chela.CodeOf(err) != chela.CodeNotFound {
			t.Errorf("without a reset: %v", err)
		}
		day := at.Add(24 * time.Hour)
		if _, err := session.Reset(s, key, "daily", day); err != nil {
			return err
		}
		if back, err := session.UndoReset(s, key, day); err != nil || back.ID != "old" || back.Previous != "" {
			t.Errorf("undo with an empty transcript: %+v, %v", back, err)
		}
		planned, err := s.Get(key)
		planned.Plan = plan.Plan{Steps: []plan.Step{{ID: "a", Title: "a", State: plan.Pending}}}
		if err := errors.Join(err, s.Put(planned)); err != nil {
			return err
		}
		fresh, err := session.Reset(s, key, "daily", day)
		if err != nil || fresh.Plan.Open() {
			t.Errorf("the plan after a reset: %+v, %v", fresh.Plan, err)
		}
		next := history("u:new", "a:unpriced", "a:priced")
		next[1].Usage, next[1].NanoUSD = &llm.Usage{Input: 1}, -1
		next[2].Usage = &llm.Usage{}
		if err := s.Append(fresh.ID, &next[0], &next[1], &next[2]); err != nil {
			return err
		}
		undone := day.Add(time.Hour)
		back, err := session.UndoReset(s, key, undone)
		if err != nil {
			return err
		}
		want := m
		want.Previous, want.Started, want.Updated, want.Active = fresh.ID, undone, undone, undone
		want.Tokens, want.Context = llm.Usage{Input: 13, CacheRead: 2, Output: 1}, 6
		want.NanoUSD, want.Priced, want.Calls = 8, true, 3
		if d := cmp.Diff(want, back); d != "" {
			t.Errorf("restored (-want +got)\n%s", d)
		}
		wantPast := []session.Past{{ID: fresh.ID, Started: day, Ended: undone, Reason: "undo", Entries: 3}}
		if past, err := s.Past(key); err != nil || !cmp.Equal(past, wantPast) {
			t.Errorf("past %+v, %v; want %+v", past, err, wantPast)
		}
		if why := session.Expired(session.ResetPolicy{Mode: "daily"}, back, day.Add(time.Minute)); why != "" {
			t.Errorf("the restored session expired at once: %s", why)
		}
		again, err := session.UndoReset(s, key, day)
		if err == nil && (again.ID != fresh.ID || again.Previous != "old" || again.Priced || again.NanoUSD != 0 ||
			again.Tokens.Input != 1) {
			t.Errorf("second undo: %+v", again)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCheckSeen compares what a sender saw with a long transcript.
func TestCheckSeen(t *testing.T) {
	t.Parallel()
	const key, entries = "agent:main:main", 1201
	id := func(n int) *string { s := fmt.Sprint("e", n); return &s }
	none, unknown := "", "unknown"
	db := database(t)
	err := db.Update(t.Context(), store.Ordered, func(tx store.Tx) error {
		err := tx.Sessions().Put(session.Meta{Key: key, ID: "t", Previous: "before"})
		for n := range entries {
			err = errors.Join(err, tx.Sessions().Append("t", &session.Entry{ID: *id(n + 1), Kind: session.KindNotice}))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = db.View(t.Context(), func(r store.Reader) error {
		for _, c := range []struct {
			key  chela.SessionKey
			seen chela.Seen
			want error
		}{
			{key, chela.Seen{}, nil},
			{key, chela.Seen{Transcript: "t", Last: id(entries)}, nil},
			{key, chela.Seen{Transcript: "t", Last: id(entries - 1)}, session.ErrChanged},
			{key, chela.Seen{Last: id(1), Earlier: true}, nil},
			{key, chela.Seen{Last: &unknown, Earlier: true}, session.ErrChanged},
			{key, chela.Seen{Last: &none, Earlier: true}, session.ErrChanged},
			{key, chela.Seen{Transcript: "before"}, session.ErrChanged},
			{"agent:main:new", chela.Seen{Transcript: "t", Last: &none}, nil},
		} {
			if err := session.CheckSeen(r.Sessions(), c.key, c.seen); !errors.Is(err, c.want) {
				t.Errorf("%s, %+v: %v, want %v", c.key, c.seen, err, c.want)
			}
		}
		for _, n := range []int{1, 201, 202, 701, 702, 1200, entries} {
			if seq, err := session.Locate(r.Sessions(), "t", *id(n)); seq != int64(n) || err != nil {
				t.Errorf("entry %d: %d, %v", n, seq, err)
			}
		}
		_, err := session.Locate(r.Sessions(), "t", unknown)
		if !errors.Is(err, chela.ErrNotFound) {
			t.Errorf("unknown entry: %v", err)
		}
		m, err := session.Lookup(r.Sessions(), "agent:ops:new")
		if d := cmp.Diff(session.Meta{Key: "agent:ops:new", Agent: "ops"}, m); d != "" {
			t.Errorf("a new session (-want +got)\n%s", d)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	db := database(t)
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	const key = "agent:main:main"
	var was, now session.Meta
	var past []session.Past
	err := db.Update(t.Context(), store.Synced, func(tx store.Tx) error {
		s := tx.Sessions()
		was = session.Meta{
			Key: key, ID: "old", Agent: "main", Title: "Hello", Model: "openai/gpt", Usage: "full",
			Created: at, Started: at, Updated: at, Active: at, Calls: 3, NanoUSD: 5, Context: 100, Aborted: true,
			Tokens: llm.Usage{Input: 9},
		}
		if err := s.Put(was); err != nil {
			return err
		}
		es := history("u:hi", "a:ok")
		if err := s.Append("old", &es[0], &es[1]); err != nil {
			return err
		}
		var err error
		if now, err = session.Reset(s, key, "new", at.Add(time.Hour)); err != nil {
			return err
		}
		// An empty transcript is not archived.
		again, err := session.Reset(s, key, "new", at.Add(time.Hour))
		if err == nil && (again.ID == now.ID || again.Previous != "old") {
			t.Errorf("reset of an empty session: %+v", again)
		}
		if past, err = s.Past(key); err != nil {
			return err
		}
		_, err = session.Reset(s, "agent:main:none", "new", at)
		if !errors.Is(err, chela.ErrNotFound) {
			t.Errorf("unknown session: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := was
	want.Title, want.Tokens, want.Calls, want.NanoUSD, want.Context, want.Aborted = "", llm.Usage{}, 0, 0, 0, false
	want.ID, want.Previous, want.Opened = now.ID, "old", "new"
	want.Started, want.Updated, want.Active = at.Add(time.Hour), at.Add(time.Hour), at.Add(time.Hour)
	if d := cmp.Diff(want, now); d != "" || now.ID == "old" {
		t.Errorf("(-want +got)\n%s", d)
	}
	wantPast := []session.Past{{ID: "old", Started: at, Ended: at.Add(time.Hour), Reason: "new", Entries: 2}}
	if d := cmp.Diff(wantPast, past); d != "" {
		t.Errorf("past (-want +got)\n%s", d)
	}
}
