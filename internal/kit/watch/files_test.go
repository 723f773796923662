package watch

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := func(s string) string { return filepath.Join(dir, s) }
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(name(file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		write("a", "1")
		var names atomic.Value
		names.Store([]string{name("a"), name("later")})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		var reports atomic.Int64
		changed := func() {}
		w := Files{
			Every: time.Second, Quiet: func() time.Duration { return 300 * time.Millisecond },
			Names:   func() []string { return names.Load().([]string) },
			Changed: func() { reports.Add(1); changed() },
		}
		go func() { done <- w.Run(ctx) }()
		tells := func(what string, want int) {
			t.Helper()
			time.Sleep(3 * time.Second)
			synctest.Wait()
			if got := int(reports.Swap(0)); got != want {
				t.Errorf("%s: %d reports, want %d", what, got, want)
			}
		}
		tells("files written before", 1)
		tells("nothing", 0)
		write("a", "two")
		tells("a longer text", 1)
		write("later", "x")
		tells("a new file", 1)

		write("new", "two")
		if err := os.Rename(name("new"), name("a")); err != nil {
			t.Fatal(err)
		}
		tells("CF-09 a replaced file", 1)
		times := func(file string) {
			t.Helper()
			if err := os.Chtimes(name(file), time.Now(), time.Unix(1e9, 0)); err != nil {
				t.Fatal(err)
			}
		}
		times("a")
		tells("another time", 1)
		write("a", "longer")
		times("a")
		tells("another size at the same time", 1)
		write("new", "LONGER")
		times("new")
		if err := os.Rename(name("new"), name("a")); err != nil {
			t.Fatal(err)
		}
		tells("a replaced file of the same size and time", 1)
		if err := os.Remove(name("later")); err != nil {
			t.Fatal(err)
		}
		tells("a removed file", 1)

		for i := range 10 {
			time.Sleep(200 * time.Millisecond)
			write("a", strconv.Itoa(100000+i)+" of ten")
		}
		tells("CF-08 ten saves in a row", 1)

		write("b", "")
		names.Store([]string{name("a"), name("later"), name("b")})
		tells("one more watched file", 1)
		changed = func() { names.Store([]string{name("a"), name("b")}) }
		write("a", "without later")
		tells("a change of the set of files that a change makes", 1)
		changed = func() {
			changed = func() {}
			names.Store([]string{name("a"), name("b"), name("new")})
			write("a", "as the first change was read")
		}
		write("a", "with new")
		tells("a change while another one that adds a file is handled", 2)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
