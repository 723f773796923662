package history_test

import (
	"context"
	"errors"
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
				return tx.Runs().Put(run.Run{
					ID:        "r",
					Session:   src.Session,
					SessionID: "s",
					Agent:     "main",
					State:     run.Running,
					Started:   time.Now(),
				})
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

// TestStays checks that a folder whose files are recorded stays recorded, whatever a command
// puts into it or beside it, and that a new folder of a cache is left out.
func TestStays(t *testing.T) {
	t.Parallel()
	for name, mark := range map[string]func(t *testing.T, f *fixture){
		"CACHEDIR.TAG":              func(t *testing.T, f *fixture) { f.write(t, "src/CACHEDIR.TAG", "x") },
		".gitignore":                func(t *testing.T, f *fixture) { f.write(t, ".gitignore", "build\n") },
		".gitignore in another one": func(t *testing.T, f *fixture) { f.write(t, "src/.gitignore", "/bin/\n") },
	} {
		for _, after := range []string{"nothing", "a restart", "a folder that was moved"} {
			t.Run(fmt.Sprintf("HS-01 %s, then %s", name, after), func(t *testing.T) {
				f := newFixture(t)
				files := []string{f.write(t, "src/bin/a.txt", "text\n"), f.write(t, "src/b.txt", "text\n"),
					f.write(t, "build/c.txt", "text\n")}
				look := func() {
					t.Helper()
					if after == "a restart" {
						f.start(t)
					}
					if err := f.Look(t.Context(), "main"); err != nil {
						t.Fatal(err)
					}
				}
				look()
				mark(t, f)
				f.write(t, "new/CACHEDIR.TAG", "x")
				f.write(t, "new/large.bin", "x")
				f.write(t, "from/d.txt", "x")
				look()
				if after == "a folder that was moved" { // all files are compared
					if err := os.Rename(f.dir+"/from", f.dir+"/to"); err != nil {
						t.Fatal(err)
					}
					look()
				}
				for _, path := range files {
					f.write(t, path[len(f.dir)+1:], "other text\n")
				}
				look()
				if err := os.RemoveAll(f.dir); err != nil {
					t.Fatal(err)
				}
				look()
				list, err := f.Log(t.Context(), history.LogQuery{Agent: "main", Limit: 99})
				if err != nil {
					t.Fatal(err)
				}
				gone := map[string]bool{}
				for _, c := range list {
					if c.After.Exists {
						continue
					}
					if gone[c.Target] = true; slices.Contains(files, c.Target) {
						if _, err := f.Restore(t.Context(), c, c.Before); err != nil {
							t.Error(err)
						}
					}
				}
				for _, path := range files {
					if data, err := os.ReadFile(path); string(data) != "other text\n" {
						t.Errorf("%s is %q (%v)", path, data, err)
					}
				}
				if gone[f.dir+"/new/large.bin"] {
					t.Error("a new folder of a cache is recorded")
				}
			})
		}
	}
}

// TestClosedFolder brings files back into folders that are closed to their owner.
func TestClosedFolder(t *testing.T) {
	t.Parallel()
	for _, mode := range []os.FileMode{0o311, 0o555} {
		t.Run(fmt.Sprintf("HS-02 mode %o", mode), func(t *testing.T) {
			f := newFixture(t)
			gone := f.write(t, "a/b/gone.txt", "text\n")
			if err := f.Look(t.Context(), "main"); err != nil {
				t.Fatal(err)
			}
			dir := f.dir + "/a/b"
			if err := errors.Join(os.Remove(gone), os.Chmod(dir, mode)); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
			list, err := f.Log(t.Context(), history.LogQuery{Agent: "main", Limit: 1})
			if err != nil || len(list) != 1 || list[0].After.Exists {
				t.Fatalf("%+v, %v", list, err)
			}
			if _, err := f.Restore(t.Context(), list[0], list[0].Before); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(dir)
			if err != nil || info.Mode().Perm() != mode {
				t.Errorf("%v, %v", info, err)
			}
			if data, err := os.ReadFile(gone); string(data) != "text\n" {
				t.Errorf("%q, %v", data, err)
			}
		})
	}
}
