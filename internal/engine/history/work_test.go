package history_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/engine/history"
)

// TestProcessEnds checks that what commands deleted is undone as a whole if the process ends
// right after their run, or is killed before the run ends.
func TestProcessEnds(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed %v", killed), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			var gone []string
			for i := range 100 {
				gone = append(gone, f.write(t, fmt.Sprintf("p/f%d.txt", i), "text\n"))
			}
			src := journal.Source{Agent: "main", Session: "agent:main:main", Run: "r", Call: "c", Tool: "exec", By: "owner"}
			err := f.store.Update(t.Context(), store.Ordered, func(tx store.Tx) error {
				return tx.Runs().Put(run.Run{ID: "r", Session: src.Session, SessionID: "s", Agent: "main", State: run.Running, Started: time.Now()})
			})
			if err != nil {
				t.Fatal(err)
			}
			f.Started(t.Context(), src)
			for _, path := range gone {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
			if !killed {
				f.Ended("r")
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				if err := f.Run(ctx); err != nil {
					t.Fatal(err)
				}
			}
			f.start(t)
			f.write(t, "mine.txt", "mine\n")
			p, err := f.Preview(t.Context(), src.Session, history.Request{Session: src.Session, Units: 1})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range p.Steps {
				got = append(got, s.Target)
			}
			if killed { // what a person did after the kill cannot be told from what the command did
				gone = append(gone, f.dir+"/mine.txt")
			}
			slices.Sort(gone)
			if slices.Sort(got); !slices.Equal(got, gone) {
				t.Errorf("%d steps of %d: %q", len(got), len(gone), got)
			}
		})
	}
}

// TestWork checks that files of the workspace that commands change or delete have a way
// back, and which files are left out.
func TestWork(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	gone, changed := f.write(t, "src/main.go", "package main\n"), f.write(t, "notes.txt", "one\n")
	for _, name := range []string{".git/HEAD", ".env", "node_modules/x/index.js", "src/.cache/a", "id_rsa"} {
		f.write(t, name, "x\n")
	}
	if err := f.Look(t.Context(), "main"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	f.write(t, "notes.txt", "another\n")
	list, err := f.Log(t.Context(), history.LogQuery{Agent: "main", Limit: 9})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range list {
		if c.Before.Same(c.After) { // found at first
			continue
		}
		got = append(got, f.NameOf(c))
		if _, err := f.Restore(t.Context(), c, c.Before); err != nil {
			t.Error(err)
		}
	}
	slices.Sort(got)
	if want := []string{"notes.txt", "src/main.go"}; !slices.Equal(got, want) {
		t.Errorf("changes of %q, want %q", got, want)
	}
	for path, want := range map[string]string{gone: "package main\n", changed: "one\n"} {
		if data, err := os.ReadFile(path); string(data) != want {
			t.Errorf("%s is %q, want %q (%v)", path, data, want, err)
		}
	}
	all, err := f.Log(t.Context(), history.LogQuery{Agent: "main", Limit: 99})
	for _, c := range all {
		if n := f.NameOf(c); n != "notes.txt" && n != "src/main.go" {
			t.Errorf("%s is recorded (%v)", n, err)
		}
	}
}
