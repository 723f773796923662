package native

import (
	"crypto/sha1"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/kit/needtest"
)

func TestRacyEntries(t *testing.T) {
	needtest.Program(t, "git")
	long := strings.Repeat("long/", 60)
	for _, version := range []string{"2", "4"} {
		t.Run("E1 index of version "+version, func(t *testing.T) {
			dir := t.TempDir()
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "git init -q .; mkdir -p sub/deep "+long+
				"; echo a > a; echo b > ab; echo c > sub/deep/c; ln -s a sub/link; echo x > "+long+"x; echo y > "+long+
				"y; touch empty; echo o > old; touch -d '1 hour ago' old; "+
				"echo z > z; git update-index --index-version "+version+
				"; git add -N z; git add a ab sub long empty old; git ls-files")
			cmd.Dir = dir
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			// z has no content yet
			want := slices.DeleteFunc(strings.Fields(string(out)),
				func(name string) bool { return name == "empty" || name == "old" || name == "z" })
			data, info := readIndex(t, dir)
			all, err := racyEntries(data, uint32(info.ModTime().Unix()-60))
			var got []string
			for _, e := range all {
				got = append(got, e.name)
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%q, %v, want %q", got, err, want)
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			for _, e := range all {
				info, err := root.Lstat(e.name)
				if err != nil {
					t.Fatal(err)
				}
				if same, err := e.same(root, info); err != nil || !same {
					t.Errorf("%s is not the same, %v", e.name, err)
				}
			}
			data[len(data)-30]++
			if _, err := racyEntries(data, 0); err == nil {
				t.Error("a damaged index is no error")
			}
		})
	}
}

// readIndex returns the index of a repository.
func readIndex(t *testing.T, dir string) ([]byte, os.FileInfo) {
	t.Helper()
	name := filepath.Join(dir, ".git", "index")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return data, info
}

func FuzzRacyEntries(f *testing.F) {
	entry := string(make([]byte, 60)) + "\x00\x01a\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	f.Add("DIRC\x00\x00\x00\x02\x00\x00\x00\x01" + entry)
	f.Add("DIRC\x00\x00\x00\x04\x00\x00\x00\x02" + string(make([]byte, 62)) + "\x00ab\x00" +
		string(make([]byte, 62)) + "\x01c\x00")
	f.Add("DIRC\x00\x00\x00\x04\xff\xff\xff\xff" + string(make([]byte, 62)) + "\xff\xff\xff\xff\xff")
	f.Fuzz(func(t *testing.T, index string) {
		sum := sha1.Sum([]byte(index))
		all, _ := racyEntries(append([]byte(index), sum[:]...), 0) // most are not understood
		for _, e := range all {
			if len(e.name) > maxPath || len(e.object) != sha1.Size {
				t.Fatalf("%+v", e)
			}
		}
	})
}
