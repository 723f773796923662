package logfile

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLogFile(t *testing.T) {
	t.Run("LG-02 what the file held before counts toward the limit", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "chela.log")
		if err := os.WriteFile(path, bytes.Repeat([]byte("x"), 90), 0o600); err != nil {
			t.Fatal(err)
		}
		l := New(path, 100)
		sizes := func() (sizes []int64) {
			for _, name := range []string{path, path + ".1", path + ".2"} {
				if info, err := os.Stat(name); err == nil {
					sizes = append(sizes, info.Size())
				}
			}
			return sizes
		}
		for _, step := range []struct {
			write int
			want  []int64
		}{{10, []int64{100}}, {1, []int64{101}}, {2, []int64{2, 101}}, {98, []int64{100, 101}}, {3, []int64{103, 101}},
			{4, []int64{4, 103, 101}}} {
			if _, err := l.Write(make([]byte, step.write)); err != nil {
				t.Fatal(err)
			}
			if got := sizes(); !slices.Equal(got, step.want) {
				t.Errorf("after %d bytes more: sizes %v, want %v", step.write, got, step.want)
			}
		}
	})
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
}

// TestFollow follows a log that is rotated at every second line.
func TestFollow(t *testing.T) {
	for _, tt := range []struct {
		name           string
		earlier, lines int // before Last, and between two looks at the log
	}{
		{"no file yet", 0, 1},
		{"one rotation at a time", 3, 2},
		{"LG-03 several rotations at a time", 3, 2 * maxOld},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "chela.log")
				var got, want []string
				n := 0
				l := New(path, 10)
				write := func() {
					t.Helper()
					n++
					if _, err := fmt.Fprintf(l, "line %d\n", n); err != nil {
						t.Fatal(err)
					}
					want = append(want, fmt.Sprint("line ", n))
				}
				for range tt.earlier {
					write()
				}
				want = want[min(2, len(want)):] // the first two are in an older file
				tail := NewTail(path, func(b []byte) { got = append(got, string(b)) })
				defer tail.Close()
				if _, err := tail.Last(10); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- tail.Follow(ctx) }()
				for range 10 {
					for range tt.lines {
						write()
					}
					time.Sleep(time.Second)
					l = New(path, 10) // as after a restart
				}
				cancel()
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		})
	}
	t.Run("a line that is not complete, and a file that is missing for a moment", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
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
			write("1\n2\n3\nfo")
			if n, err := tail.Last(2); err != nil || n != 2 {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- tail.Follow(ctx) }()
			write("ur\n5\n6\n")
			if err := os.Rename(path, path+".1"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			for _, line := range []string{"7\n", "8\n"} {
				write(line)
				time.Sleep(time.Second)
			}
			cancel()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if want := "2 3 four 5 6 7 8"; strings.Join(got, " ") != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	})
}
