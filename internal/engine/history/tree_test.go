package history_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/engine/history"
)

// changes returns what the newest changes did, oldest first, without what was found at first.
func (f *fixture) changes(t testing.TB, from int) (out []string, n int) {
	t.Helper()
	list, err := f.Log(t.Context(), history.LogQuery{Agent: "main", All: true, Limit: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list[:len(list)-from] {
		switch {
		case c.Seen():
			continue
		case !c.Before.Exists:
			out = append(out, "+"+f.NameOf(c))
		case !c.After.Exists:
			out = append(out, "-"+f.NameOf(c))
		default:
			out = append(out, "~"+f.NameOf(c))
		}
	}
	slices.Sort(out)
	return out, len(list)
}

// TestLooks checks that a look finds each kind of change after an earlier one, whether the
// system reports it or not.
func TestLooks(t *testing.T) {
	t.Parallel()
	for _, many := range []int{1, 0} {
		t.Run(fmt.Sprintf("watched from %d files on", many), func(t *testing.T) { looks(t, many) })
	}
}

func looks(t *testing.T, many int) {
	f := newFixture(t)
	f.watch = many
	f.start(t)
	for _, name := range []string{"a/b/c.txt", "a/d.txt", "e.txt", "memory/m.md"} {
		f.write(t, name, "1\n")
	}
	_, n := f.changes(t, 0)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	path := func(name string) string { return filepath.Join(f.dir, filepath.FromSlash(name)) }
	for _, tt := range []struct {
		name   string
		change func()
		want   string
	}{
		{"nothing", func() {}, ""},
		{"a file in new folders", func() { f.write(t, "x/y/z.txt", "2\n") }, "+x/y/z.txt"},
		{"that file", func() { f.write(t, "x/y/z.txt", "3\n") }, "~x/y/z.txt"},
		{"a folder is moved", func() { must(os.Rename(path("a"), path("q"))) }, "+q/b/c.txt +q/d.txt -a/b/c.txt -a/d.txt"},
		{"a file in the moved folder", func() { f.write(t, "q/b/c.txt", "4\n") }, "~q/b/c.txt"},
		{"a folder is deleted", func() { must(os.RemoveAll(path("q"))) }, "-q/b/c.txt -q/d.txt"},
		{"the folder comes back", func() { f.write(t, "q/b/c.txt", "5\n") }, "+q/b/c.txt"},
		{"a part of the assistant", func() { f.write(t, ".agents/skills/s/SKILL.md", "6\n") }, "+.agents/skills/s/SKILL.md"},
		{"what is not kept", func() { f.write(t, "node_modules/a.js", "7\n"); f.write(t, "sub/.env", "7\n") }, ""},
		{"more than the system reports", func() {
			for i := range 12_000 {
				f.write(t, fmt.Sprint("e", i%2, ".txt"), fmt.Sprint(i))
			}
			must(os.Remove(path("e.txt")))
		}, "+e0.txt +e1.txt -e.txt"},
	} {
		tt.change()
		var got []string
		if got, n = f.changes(t, n); strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// BenchmarkLookChanged looks at a workspace in which one file has changed.
func BenchmarkLookChanged(b *testing.B) {
	for _, files := range []int{2000, 20_000} {
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			f := newFixture(b)
			for i := range files {
				f.write(b, fmt.Sprintf("src/d%d/e%d/f%d.go", i/200, i/10, i), strings.Repeat(fmt.Sprintln(i), 500))
			}
			if err := f.Look(b.Context(), "main"); err != nil {
				b.Fatal(err)
			}
			n := 0
			for b.Loop() {
				n++
				f.write(b, "src/d0/e0/f0.go", fmt.Sprintln("changed", n))
				if err := f.Look(b.Context(), "main"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFirstLook looks at a workspace for the first time.
func BenchmarkFirstLook(b *testing.B) {
	for _, files := range []int{2000, 20_000} {
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				f := newFixture(b)
				for i := range files {
					f.write(b, fmt.Sprintf("src/d%d/e%d/f%d.go", i/200, i/10, i), strings.Repeat(fmt.Sprintln(i), 500))
				}
				b.StartTimer()
				if err := f.Look(b.Context(), "main"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
