package needtest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/chela-ai/chela/internal/kit/needtest"
)

// recorder is a testing.TB that keeps how a test ended.
type recorder struct {
	testing.TB
	outcome string
}

func (r *recorder) Helper() {}

func (r *recorder) Skipf(format string, args ...any) {
	r.outcome = "skipped: " + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.outcome = "failed: " + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// outcome returns how f ended a test, or "".
func outcome(t *testing.T, f func(testing.TB)) string {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() { defer close(done); f(r) }()
	<-done
	return r.outcome
}

func TestProgram(t *testing.T) {
	missing := func(t testing.TB) { needtest.Program(t, "no-such-program") }
	for _, c := range []struct{ strict, want string }{
		{"", "skipped: needs no-such-program"},
		{"0", "skipped: needs no-such-program"},
		{"1", "failed: needs no-such-program, which this machine lacks (CHELA_TEST_STRICT=1)"},
	} {
		t.Setenv("CHELA_TEST_STRICT", c.strict)
		if got := outcome(t, missing); got != c.want {
			t.Errorf("strict %q: got %q, want %q", c.strict, got, c.want)
		}
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "there.exe")
	if err := os.WriteFile(file, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	var got string
	if end := outcome(t, func(t testing.TB) { got = needtest.Program(t, "there.exe") }); end != "" || got != file {
		t.Errorf("got %q and %q, want %q", got, end, file)
	}
}
