package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/kit/waittest"
)

// text is output that can be read while it is written.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (x *text) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.Write(p)
}

func (x *text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.String()
}

// await waits until the output contains a string.
func (x *text) await(t *testing.T, piece string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("the output is %q", x.String())
		}
	}()
	waittest.Until(t, fmt.Sprintf("output with %q", piece), func() bool { return strings.Contains(x.String(), piece) })
}

// open starts a script in a terminal.
func (s suite) open(ctx context.Context, t *testing.T, script string) (sandbox.Terminal, *text) {
	t.Helper()
	p := s.plan(t, script)
	p.Terminal = &sandbox.Size{Rows: 24, Cols: 80}
	out := &text{}
	pr, err := s.b.Start(ctx, p, out)
	if errors.Is(err, sandbox.ErrNoTerminal) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	term, ok := pr.(sandbox.Terminal)
	if !ok {
		t.Fatalf("%T is not a Terminal", pr)
	}
	return term, out
}

func (s suite) separateStderr(t *testing.T) {
	p := s.plan(t, "echo 1; echo 2 >&2; echo 3; echo 4 >&2; exit 7")
	var out, errs bytes.Buffer
	p.Stderr = &errs
	pr, err := s.b.Start(t.Context(), p, &out)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	if e, err := wait(t, pr); err != nil || e.Code != 7 || out.String() != "1\n3\n" || errs.String() != "2\n4\n" {
		t.Errorf("got %q and %q, %+v, %v", out.String(), errs.String(), e, err)
	}
}

func (s suite) terminal(t *testing.T) {
	pr, out := s.open(t.Context(), t, "tty; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all; stty size; echo err >&2; exit 3")
	e, err := wait(t, pr)
	if err != nil || e.Code != 3 {
		t.Errorf("%+v, %v", e, err)
	}
	for _, want := range []string{"/dev/", "all\r\n", "24 80\r\n", "err\r\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in %q", want, out.String())
		}
	}
}

func (s suite) typed(t *testing.T) {
	pr, out := s.open(t.Context(), t,
		`trap 'echo interrupted; exit 5' INT; read -r x; echo "<$x>"; while :; do sleep 0.05; done`)
	if _, err := pr.Write([]byte("a b\r")); err != nil {
		t.Error(err)
	}
	out.await(t, "<a b>")
	if _, err := pr.Write([]byte{3}); err != nil {
		t.Error(err)
	}
	if e, err := wait(t, pr); err != nil || e.Code != 5 || !strings.Contains(out.String(), "interrupted") {
		t.Errorf("%+v, %v: %q", e, err, out.String())
	}
	if _, err := pr.Write([]byte("x")); err == nil {
		t.Error("Write after the end: no error")
	}
}

func (s suite) writeDeadline(t *testing.T) {
	pr, out := s.open(t.Context(), t, "stty raw -echo; echo up; exec "+endless)
	out.await(t, "up")
	if err := pr.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := pr.Write(make([]byte, 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes, %v; want the deadline's error", n, err)
	}
	pr.Kill()
	if _, err := wait(t, pr); err != nil {
		t.Error(err)
	}
}

func (s suite) terminalSettings(t *testing.T) {
	one, _ := s.open(t.Context(), t, "stty raw -echo -isig rows 7; printf '\\033[?1049h\\033[5;7r\\033c'")
	two, out := s.open(t.Context(), t, "read -r x; stty -a; stty size")
	if _, err := wait(t, one); err != nil {
		t.Error(err)
	}
	if _, err := two.Write([]byte("\r")); err != nil { // only now it looks at its settings
		t.Error(err)
	}
	if _, err := wait(t, two); err != nil || !strings.Contains(out.String(), " echo ") ||
		!strings.Contains(out.String(), "24 80") {
		t.Errorf("%v: %q", err, out.String())
	}
}

func (s suite) heldTerminal(t *testing.T) {
	pr, out := s.open(t.Context(), t, `(trap "" HUP TERM; while :; do sleep 0.05; done) & echo up; sleep 0.2; exit 4`)
	e, err := wait(t, pr)
	if err != nil || e.Code != 4 || !strings.Contains(out.String(), "up") {
		t.Errorf("%+v, %v: %q", e, err, out.String())
	}
}
