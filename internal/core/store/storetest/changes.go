package storetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/store"
)

// change returns a change of a file with all fields set.
func change(id string, n int, target string) journal.Change {
	ref := func(s string) string { return strings.Repeat(s, 32) }
	return journal.Change{
		ID:       id,
		Time:     at(n),
		Home:     keyA,
		Unit:     "run-1",
		Origin:   origin,
		Doubt:    "<doubt>",
		Kind:     journal.File,
		Target:   target,
		From:     "/w/old",
		Folder:   "/w/notes",
		Source:   journal.Source{Agent: "main", Session: keyB, Run: "run-1", Call: "call-1", Tool: "write", By: "owner"},
		Before:   journal.Version{Exists: true, Ref: ref("a"), Hash: "h1", Size: 100, Mode: 0o640},
		After:    journal.Version{Exists: true, Ref: ref("b"), Hash: "h2", Size: 200, Mode: 0o600, Modified: at(n)},
		State:    journal.Done,
		Undoes:   []string{"x", "y"},
		UndoneBy: "z",
	}
}

func testChanges(t *testing.T, s store.Store) {
	a, b, c := change("a", 1, "/w/a.md"), change("b", 2, "/w/b.md"), change("c", 3, "/w/notes/a.md")
	b.Home, b.Unit, b.State, b.Agent = keyB, "run-2", journal.Planned, "ops"
	c.Kind, c.Run = journal.Config, "run-3"
	add := func(list ...journal.Change) {
		t.Helper()
		update(t, s, func(tx store.Tx) error { return tx.Changes().Add(list...) })
	}
	read := func(q journal.Query) (ids string) {
		t.Helper()
		for _, c := range get(t, s, func(r store.Reader) ([]journal.Change, error) { return r.Changes().List(q) }) {
			ids += c.ID
		}
		return ids
	}
	one := func(id string) journal.Change {
		t.Helper()
		c := get(t, s, func(r store.Reader) (journal.Change, error) { return r.Changes().Get(id) })
		if c.Seq <= 0 {
			t.Errorf("%s has the seq %d", id, c.Seq)
		}
		c.Seq = 0
		return c
	}
	add(a, b, c)
	same(t, "a change", one("a"), a)
	seq := get(t, s, func(r store.Reader) (journal.Change, error) { return r.Changes().Get("b") }).Seq
	for _, q := range []struct {
		name string
		q    journal.Query
		want string
	}{
		{"all", journal.Query{}, "cba"},
		{"two", journal.Query{Limit: 2}, "cb"},
		{"before", journal.Query{Before: seq}, "a"},
		{"agent", journal.Query{Agent: "ops"}, "b"},
		{"home", journal.Query{Home: keyA}, "ca"},
		{"run", journal.Query{Run: "run-3"}, "c"},
		{"unit", journal.Query{Unit: "run-2"}, "b"},
		{"target", journal.Query{Target: "/w/a.md"}, "a"},
		{"folder", journal.Query{Below: "/w"}, "cba"},
		{"folder with a slash", journal.Query{Below: "/w/notes/"}, "c"},
		{"beginning of a folder", journal.Query{Below: "/w/no"}, ""},
		{"since", journal.Query{Since: at(2)}, "cb"},
		{"until", journal.Query{Until: at(2)}, "a"},
		{"conditions", journal.Query{Home: keyA, Since: at(2), Limit: 1}, "c"},
	} {
		same(t, q.name, read(q.q), q.want)
	}
	open := func() (ids string) {
		for _, c := range get(t, s, func(r store.Reader) ([]journal.Change, error) { return r.Changes().Open() }) {
			ids += c.ID
		}
		return ids
	}
	same(t, "planned", open(), "b")
	b.State, b.After.Ref, b.UndoneBy = journal.Done, "", ""
	update(t, s, func(tx store.Tx) error { return tx.Changes().Set(b) })
	same(t, "a changed one", one("b"), b)
	same(t, "planned after it was done", open(), "")
	err := s.Update(t.Context(), store.Ordered,
		func(tx store.Tx) error { return tx.Changes().Set(change("none", 1, "/w")) })
	fails(t, "set of an unknown change", err, chela.ErrNotFound)

	newer := change("d", 4, "/w/a.md")
	failed := change("e", 5, "/w/a.md")
	failed.State = journal.Failed
	add(newer, failed)
	latest := func(folder string) (ids string) {
		for _, c := range get(t, s, func(r store.Reader) ([]journal.Change, error) { return r.Changes().Latest(folder) }) {
			ids += c.ID
		}
		return ids
	}
	same(t, "latest", latest("/w"), "bd")
	latestOf := func(targets ...string) (ids string) {
		for _, c := range get(t, s,
			func(r store.Reader) ([]journal.Change, error) { return r.Changes().LatestOf(targets...) }) {
			ids += c.ID
		}
		return ids
	}
	same(t, "latest of targets", latestOf("/w/a.md", "/w/none", b.Target), "bd")
	same(t, "latest of a target", latestOf("/w/a.md"), "d")
	same(t, "latest of no target", latestOf(), "")
	update(t, s, func(tx store.Tx) error { return tx.Changes().Delete("e", "none") })
	same(t, "after a deletion", read(journal.Query{}), "dcba")
	t.Run("prune", func(t *testing.T) { testPruneChanges(t, s, read, one) })
}

// testPruneChanges prunes the changes a to d of testChanges.
func testPruneChanges(t *testing.T, s store.Store, read func(journal.Query) string, one func(string) journal.Change) {
	prune := func(before time.Time, size int64, want int) {
		t.Helper()
		update(t, s, func(tx store.Tx) error {
			n, err := tx.Changes().Prune(before, size)
			same(t, "pruned", n, want)
			return err
		})
	}
	const large = 1 << 30
	prune(at(0), large, 0)
	removed, planned := change("f", 1, "/w/gone"), change("g", 1, "/w/planned")
	removed.After, planned.State = journal.Version{}, journal.Planned
	update(t, s, func(tx store.Tx) error { return tx.Changes().Add(removed, planned) })
	refs := func() []string {
		list := get(t, s, store.Reader.Media)
		slices.Sort(list)
		return slices.Compact(list)
	}
	same(t, "references", refs(), []string{strings.Repeat("a", 32), strings.Repeat("b", 32)})
	prune(at(3), large, 2) // a is not the newest of its file, f is a deletion
	same(t, "left", read(journal.Query{}), "gdcb")
	b := one("b")
	if !b.Seen() || b.Before.Ref != "" || len(b.Undoes) > 0 || b.Tool == "" {
		t.Errorf("the newest change of a file that is too old: %+v", b)
	}
	prune(at(9), large, 1) // c is of the configuration
	same(t, "left", read(journal.Query{}), "gdb")
	same(t, "references", refs(), []string{strings.Repeat("a", 32), strings.Repeat("b", 32)}) // a: of the planned one
	prune(at(0), 2*(journal.RowSize+300), 1)
	same(t, "left", read(journal.Query{}), "gd")
}
