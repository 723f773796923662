package history_test

import (
	"os"
	"slices"
	"testing"

	"github.com/chela-ai/chela/internal/engine/history"
)

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
