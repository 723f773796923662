package history_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/job"
	"github.com/chela-ai/chela/internal/core/journal"
	"github.com/chela-ai/chela/internal/core/media"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/engine/history"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/plugin/store/sqlite"
)

// noJobs has no jobs.
type noJobs struct{}

func (noJobs) Version(job.Reader, string) (journal.Version, error) { return journal.Version{}, nil }
func (noJobs) Restore(store.Tx, string, journal.Version) (func(), error) {
	return nil, chela.ErrNotFound
}

// fixture is a History with a workspace.
type fixture struct {
	*history.History
	dir   string
	store *sqlite.DB
	files *media.Files
	watch int // see Options
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	dir := t.TempDir()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(dir, "chela.db")})
	if err != nil {
		t.Fatal(err)
	}
	files, err := media.Open(filepath.Join(dir, "media"), 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { files.Close(); db.Close() })
	f := &fixture{dir: filepath.Join(dir, "workspace"), store: db, files: files}
	f.start(t)
	return f
}

// start makes the History, like each process does.
func (f *fixture) start(t testing.TB) {
	t.Helper()
	f.History = history.New(history.Options{
		Log:        slog.New(slog.DiscardHandler),
		Store:      f.store,
		Files:      f.files,
		Jobs:       noJobs{},
		Redact:     func(s string) string { return s },
		Config:     func() journal.Options { return journal.Options{} },
		Tools:      func(chela.AgentID) tool.Set { return tool.Set{} },
		Watch:      f.watch,
		Workspaces: func() map[chela.AgentID]string { return map[chela.AgentID]string{"main": f.dir} },
		Configure:  func(context.Context, string, []byte) error { return nil },
	})
	if err := f.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLinks checks that neither a look nor an undo follows a link out of the workspace.
func TestLinks(t *testing.T) {
	t.Parallel()
	f, outside := newFixture(t), t.TempDir()
	notes := f.write(t, "notes/a.md", "mine\n")
	ctx := journal.WithSource(t.Context(),
		journal.Source{Agent: "main", Session: "agent:main:main", Tool: "write", By: "owner"})
	done, err := f.Plan(ctx, journal.Edit{Kind: journal.File, Target: notes, Before: journal.Content{Exists: true,
		Data: []byte("mine\n"), Mode: 0o600}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Dir(notes)); err != nil {
		t.Fatal(err)
	}
	done(1)
	if err := os.Symlink(outside, filepath.Dir(notes)); err != nil {
		needtest.Missing(t, "symbolic links")
	}
	if err := os.WriteFile(filepath.Join(outside, "b.md"), []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(f.dir, "memory")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "b.md"), filepath.Join(f.dir, "B.md")); err != nil {
		t.Fatal(err)
	}
	list, err := f.Log(t.Context(), history.LogQuery{Agent: "main", Limit: 9})
	for _, c := range list {
		if c.Seen() && !c.After.Link() {
			t.Errorf("%s was read", c.Target)
		}
	}
	if list = slices.DeleteFunc(list, journal.Change.Seen); err != nil || len(list) != 1 || list[0].Target != notes {
		t.Errorf("log: %+v, %v", list, err)
	}
	p, err := f.Preview(t.Context(), "agent:main:main", history.Request{Session: "agent:main:main", Units: 1})
	if err != nil || len(p.Steps) != 1 || p.Possible() != 0 {
		t.Errorf("plan: %+v, %v", p, err)
	}
	if _, err := os.Stat(filepath.Join(outside, "a.md")); err == nil {
		t.Error("the undo has written outside of the workspace")
	}
}

// TestLock checks that a target has one change at a time, whatever the order of the targets.
func TestLock(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	unlock, err := f.Lock(t.Context(), "b", "a", "a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Lock(ctx, "0", "a"); err == nil {
		t.Error("a target was locked twice")
	}
	got := make(chan error)
	go func() {
		unlock, err := f.Lock(t.Context(), "a", "b", "0")
		if err == nil {
			unlock()
		}
		got <- err
	}()
	unlock()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// TestHiddenFolders checks that a look does not record what is being installed.
func TestHiddenFolders(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, name := range []string{"skills/.proposals-replaced/1/SKILL.md", "skills/.install-1/new/SKILL.md",
		"skills/tea/.git/HEAD", "skills/tea/.origin.json", ".agents/skills/tea/SKILL.md"} {
		f.write(t, name, "x\n")
	}
	list, err := f.Log(t.Context(), history.LogQuery{Agent: "main", Limit: 9})
	var got []string
	for _, c := range list {
		got = append(got, f.NameOf(c))
	}
	slices.Sort(got)
	if want := []string{".agents/skills/tea/SKILL.md", "skills/tea/.origin.json"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, want %q, %v", got, want, err)
	}
}

// TestFolder installs, replaces and removes a folder, and takes that back.
func TestFolder(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	dir := filepath.Join(f.dir, "skills", "weather")
	f.write(t, "AGENTS.md", "x\n")
	ctx := journal.WithSource(t.Context(), journal.Source{Agent: "main", Session: "s", Tool: "skills"})
	undo := func(want int) {
		t.Helper()
		if _, err := f.Preview(ctx, "s", history.Request{Session: "s", Units: 1}); err != nil {
			t.Fatal(err)
		}
		_, out, err := f.Apply(ctx, "s", "")
		if err != nil || len(out) != want {
			t.Fatalf("undo: %+v, %v", out, err)
		}
		for _, o := range out {
			if o.Err != nil {
				t.Error(o.Err)
			}
		}
	}
	has := func(want ...string) {
		t.Helper()
		for i := 0; i < len(want); i += 2 {
			data, err := os.ReadFile(filepath.Join(dir, want[i]))
			if got := string(data); got != want[i+1] && (err == nil || want[i+1] != "-") {
				t.Errorf("%s is %q, want %q (%v)", want[i], got, want[i+1], err)
			}
		}
	}
	install := func(files ...string) {
		t.Helper()
		next := ""
		for i := 0; i < len(files); i += 2 {
			next = filepath.Join(f.dir, "skills", ".new")
			f.write(t, filepath.Join("skills", ".new", files[i]), files[i+1])
		}
		err := f.Folder(ctx, dir, next, func() error {
			err := os.RemoveAll(dir)
			if next != "" {
				err = errors.Join(err, os.Rename(next, dir))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	install("SKILL.md", "one", "a/b.txt", "b")
	install("SKILL.md", "two", "c.txt", "c")
	install()
	has("SKILL.md", "-")
	undo(2)
	has("SKILL.md", "two", "c.txt", "c")
	undo(3)
	has("SKILL.md", "one", "a/b.txt", "b", "c.txt", "-")
	undo(2)
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder is still there")
	}
	if _, err := os.Stat(filepath.Dir(dir)); err != nil {
		t.Error("the folder above is gone")
	}
	f.write(t, "skills/.new/SKILL.md", "three")
	fails := errors.New("no")
	if err := f.Folder(ctx, dir, filepath.Join(f.dir, "skills", ".new"),
		func() error { return fails }); !errors.Is(err, fails) {
		t.Error(err)
	}
	list, err := f.Log(ctx, history.LogQuery{Agent: "main", Path: "skills/weather/SKILL.md", Limit: 1})
	if err != nil || len(list) != 1 || list[0].State != journal.Failed {
		t.Errorf("a change that failed: %+v, %v", list, err)
	}
}

// BenchmarkLook looks at a workspace of 200 files that has not changed.
func BenchmarkLook(b *testing.B) {
	f := newFixture(b)
	for i := range 200 {
		f.write(b, fmt.Sprintf("memory/%03d.md", i), "text\n")
	}
	if err := f.Look(b.Context(), "main"); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := f.Look(b.Context(), "main"); err != nil {
			b.Fatal(err)
		}
	}
}
