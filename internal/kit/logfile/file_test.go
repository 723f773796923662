package logfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLogFile(t *testing.T) {
	t.Run("LG-02 rotation at the limit keeps 5", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "logs", "chela.log")
		for n := range 8 {
			l := New(path, 0)
			if _, err := fmt.Fprintln(l, "file", n); err != nil {
				t.Fatal(err)
			}
			if err := l.file.Truncate(MaxSize + 1); err != nil {
				t.Fatal(err)
			}
			l.file.Close()
		}
		files, err := os.ReadDir(filepath.Dir(path))
		if err != nil || len(files) != 1+maxOld {
			t.Fatalf("%d files, %v; want the log and %d older ones", len(files), err, maxOld)
		}
		for n, want := range map[string]string{"": "file 7", ".1": "file 6", ".5": "file 2"} {
			b, err := os.ReadFile(path + n)
			if err != nil || !strings.HasPrefix(string(b), want+"\n") {
				t.Errorf("%s: %.10q, %v; want %s", path+n, b, err, want)
			}
		}
	})
	t.Run("LG-03 follow continues after a rotation", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "chela.log")
		write := func(s string) {
			t.Helper()
			f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteString(s); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		tail := NewTail(path, func(b []byte) { got = append(got, string(b)) })
		defer tail.Close()
		step := func() {
			t.Helper()
			for range 2 {
				if err := tail.poll(); err != nil {
					t.Fatal(err)
				}
			}
		}
		write("1\n2\n3\nfo")
		if n, err := tail.Last(2); err != nil || n != 2 {
			t.Fatal(err)
		}
		write("ur\n5\n")
		step()
		write("6\n")
		if err := os.Rename(path, path+".1"); err != nil {
			t.Fatal(err)
		}
		step() // the file is missing for a moment
		write("7\n")
		step()
		write("8\n")
		step()
		if want := "2 3 four 5 6 7 8"; strings.Join(got, " ") != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
