package atomicfile

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/kit/needtest"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	read := func(want string, mode fs.FileMode) {
		t.Helper()
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Fatalf("got %q, %v; want %q", got, err, want)
		}
		if info, _ := os.Stat(path); runtime.GOOS != "windows" && info.Mode().Perm() != mode {
			t.Errorf("mode %v, want %v", info.Mode().Perm(), mode)
		}
	}
	for _, step := range []struct {
		data string
		perm fs.FileMode
		want fs.FileMode
	}{
		{"new", 0, 0o600},
		{"", 0o644, 0o600},
		{strings.Repeat("x", 1<<20), 0, 0o600},
	} {
		if err := Write(path, []byte(step.data), step.perm); err != nil {
			t.Fatal(err)
		}
		read(step.data, step.want)
	}
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	read("kept", 0o777)
	if es, _ := os.ReadDir(dir); len(es) != 1 {
		t.Errorf("files in the folder: %v", es)
	}
}

func TestWriteFollowsLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	if err := os.WriteFile(real, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", link); err != nil {
		needtest.Missing(t, "symbolic links")
	}
	if err := Write(link, []byte("new"), 0); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(real); string(got) != "new" {
		t.Errorf("the file contains %q", got)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v %v", info, err)
	}
}

func TestWriteErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Write(filepath.Join(dir, "missing", "f"), nil, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing folder: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(dir, "d"), nil, 0); err == nil {
		t.Error("a folder was replaced")
	}
	root, err := os.OpenRoot(filepath.Join(dir, "d"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := WriteIn(root, "../out", []byte("x"), 0); err == nil {
		t.Error("WriteIn wrote outside the root")
	}
	if es, _ := os.ReadDir(dir); len(es) != 1 {
		t.Errorf("files in the folder: %v", es)
	}
}

// TestInterrupted is the check CF-14: it shows that an interruption at any step leaves the old content
// or the new.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	for _, old := range []string{"", "old"} {
		var steps []string
		write := func(stop string) (string, int) {
			dir := t.TempDir()
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			if old != "" {
				if err := root.WriteFile("f", []byte(old), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err = writeIn(root, "f", []byte("new"), 0, func(step string) error {
				if stop == "" {
					steps = append(steps, step)
				}
				if step == stop {
					return errors.New("interrupted")
				}
				return nil
			})
			if (err != nil) != (stop != "") {
				t.Errorf("%q: error %v", stop, err)
			}
			data, _ := root.ReadFile("f")
			es, _ := os.ReadDir(dir)
			return string(data), len(es)
		}
		if got, _ := write(""); got != "new" {
			t.Fatalf("got %q", got)
		}
		for _, stop := range steps {
			got, entries := write(stop)
			if want := map[bool]string{true: "new", false: old}[stop == "sync directory"]; got != want {
				t.Errorf("interrupted before %q: %q, want %q", stop, got, want)
			}
			if want := map[bool]int{true: 1, false: 0}[got != ""]; entries != want {
				t.Errorf("interrupted before %q: %d files, want %d", stop, entries, want)
			}
		}
	}
}

// TestCreateIn stops CreateIn before each step, as a crash does, and looks for the file.
func TestCreateIn(t *testing.T) {
	t.Parallel()
	create := func(stop, old string) (content string, files int, err error) {
		dir := t.TempDir()
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		if old != "" {
			if err := root.WriteFile("f", []byte(old), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err = createIn(root, "f", 0, func(w io.Writer) error {
			_, err1 := io.WriteString(w, "first ")
			if _, err := root.Lstat("f"); old == "" && err == nil {
				t.Error("the file is there before it is complete")
			}
			if stop == "middle" {
				return errors.New("interrupted")
			}
			_, err2 := io.WriteString(w, "second")
			return errors.Join(err1, err2)
		}, func(step string) error {
			if step == "rename" && stop == "other" { // another program creates it now
				return root.WriteFile("f", []byte("theirs"), 0o600)
			}
			if step == stop {
				return errors.New("interrupted")
			}
			return nil
		})
		data, _ := root.ReadFile("f")
		es, _ := os.ReadDir(dir)
		return string(data), len(es), err
	}
	if got, n, err := create("", ""); got != "first second" || n != 1 || err != nil {
		t.Errorf("%q, %d files, %v", got, n, err)
	}
	for _, stop := range []string{"create", "write", "middle", "sync", "rename"} {
		if got, n, err := create(stop, ""); got != "" || n != 0 || err == nil {
			t.Errorf("stopped at %q: %q, %d files, %v", stop, got, n, err)
		}
	}
	if got, n, err := create("", "old"); got != "old" || n != 1 || !errors.Is(err, fs.ErrExist) {
		t.Errorf("an existing file: %q, %d files, %v", got, n, err)
	}
	if got, n, err := create("other", ""); got != "theirs" || n != 1 || !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file that appears meanwhile: %q, %d files, %v", got, n, err)
	}
}

func TestIsTemp(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		".tmp-" + rand.Text():             true,
		".tmp-":                           false,
		".tmp-mine":                       false,
		rand.Text():                       false,
		".tmp-" + strings.Repeat("a", 26): false,
	} {
		if got := IsTemp(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
