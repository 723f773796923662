//go:build unix

package chelatest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

func TestTools(t *testing.T) {
	t.Run("TOOL-07 invalid arguments: the error names the field and its type, and nothing is run", func(t *testing.T) {
		g := Start(t, Options{Model: uses()})
		c := g.Client()
		for _, tt := range []struct{ call, field, kind string }{
			{`write {"path":"made.txt","content":["a"]}`, "content", "string"},
			{`read {"path":"AGENTS.md","offset":"many"}`, "offset", "integer"},
		} {
			got := c.Ask("main", tt.call).Text
			if !strings.Contains(got, tt.field) || !strings.Contains(got, tt.kind) {
				t.Errorf("%s: %q", tt.call, got)
			}
		}
		if got := c.Ask("main", `write {"path":"made.txt"}`).Text; !strings.Contains(got, "content") {
			t.Errorf("content is missing: %q", got)
		}
		if _, err := os.Stat(filepath.Join(g.Dir, "workspace", "made.txt")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the tool was run: %v", err)
		}
	})
	t.Run("TOOL-08 the error for an unknown tool names the most similar one", func(t *testing.T) {
		c := Start(t, Options{Model: uses()}).Client()
		end := c.Ask("main", `reed {"path":"AGENTS.md"}`)
		if !strings.Contains(end.Text, "reed") || !strings.Contains(end.Text, "read") {
			t.Errorf("answer %q %s", end.Text, end.Error)
		}
	})
	t.Run("a link out of the workspace is rejected", func(t *testing.T) {
		g := Start(t, Options{Model: uses()})
		out := t.TempDir()
		if err := os.WriteFile(filepath.Join(out, "secret.txt"), []byte("canary"), 0o600); err != nil {
			t.Fatal(err)
		}
		ws := filepath.Join(g.Dir, "workspace")
		err := errors.Join(os.Symlink(filepath.Join(out, "secret.txt"), filepath.Join(ws, "file")),
			os.Symlink(out, filepath.Join(ws, "dir")))
		if err != nil {
			t.Fatal(err)
		}
		c := g.Client()
		for _, call := range []string{
			`read {"path":"file"}`, `read {"path":"dir/secret.txt"}`, `read {"path":"../../secret.txt"}`,
			`write {"path":"dir/new.txt","content":"x"}`, `edit {"path":"file","oldText":"canary","newText":"x"}`,
			`ls {"path":"dir"}`,
		} {
			if got := c.Ask("main", call).Text; strings.Contains(got, "canary") || !strings.Contains(got, "outside") {
				t.Errorf("%s: %q", call, got)
			}
		}
		if b, err := os.ReadFile(filepath.Join(out, "secret.txt")); string(b) != "canary" {
			t.Errorf("the file was changed: %q %v", b, err)
		}
		if _, err := os.Stat(filepath.Join(out, "new.txt")); err == nil {
			t.Error("a file was created outside")
		}
	})
	t.Run("100 MB with NUL bytes and invalid characters are read with little memory", bigFile)
	t.Run("the output of a command that prints 200 MB is truncated, with little memory", func(t *testing.T) {
		c := Start(t, Options{Model: uses(), Config: full()}).Client()
		grown := growth()
		end := c.Ask("main", `exec {"command":"echo begin; yes | head -c 200000000; echo end","yieldMs":120000}`)
		if mb := grown(); mb > 64 {
			t.Errorf("the heap grew by %d MB", mb)
		}
		if len(end.Text) > 20_000 || !strings.Contains(end.Text, "begin") || !strings.Contains(end.Text, "end") {
			t.Errorf("%s: %d bytes, %s", end.State, len(end.Text), end.Error)
		}
	})
	t.Run("LOOP-07 a command that never ends is stopped, and no process is left", endless)
}

// growth returns a function that returns the maximum growth of the heap in MB.
func growth() func() int64 {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	size := func() int64 { metrics.Read(sample); return int64(sample[0].Value.Uint64()) }
	begun := size()
	stop, most := make(chan struct{}), make(chan int64)
	go func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		var m int64
		for {
			m = max(m, size())
			select {
			case <-tick.C:
			case <-stop:
				most <- m
				return
			}
		}
	}()
	return func() int64 {
		close(stop)
		return (<-most - begun) >> 20
	}
}

func bigFile(t *testing.T) {
	g := Start(t, Options{Model: uses()})
	path := filepath.Join(g.Dir, "workspace", "big.log")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	for i := range 1000 {
		fmt.Fprintf(&b, "odd %d \x00\xff\xfe é\r\n", i+1001)
	}
	_, err = f.WriteString(b.String())
	// The rest of the file is one line of NUL bytes.
	if err := errors.Join(err, f.Truncate(100<<20), f.Close()); err != nil {
		t.Fatal(err)
	}
	c := g.Client()
	grown := growth()
	if got := c.Ask("main", `read {"path":"big.log"}`).Text; !strings.Contains(got, "line 1\n") ||
		!strings.Contains(got, "line 900\n") {
		t.Errorf("from the top: %.200q", got)
	}
	got := c.Ask("main", `read {"path":"big.log","offset":1500,"limit":3}`).Text
	if !strings.Contains(got, "odd 1500") || !strings.Contains(got, "é") || strings.Contains(got, "\xff") {
		t.Errorf("from the middle: %q", got)
	}
	if end := c.Ask("main", `read {"path":"big.log","offset":2001}`); end.State != wire.StateFinal ||
		len(end.Text) > 100_000 {
		t.Errorf("the end: %s, %d bytes, %s", end.State, len(end.Text), end.Error)
	}
	if end := c.Ask("main", `grep {"pattern":"odd 1999"}`); !strings.Contains(end.Text, "1999") {
		t.Errorf("search: %.200q", end.Text)
	}
	if mb := grown(); mb > 64 {
		t.Errorf("the heap grew by %d MB", mb)
	}
	for _, m := range c.messages("main") {
		if b, err := json.Marshal(m); err != nil || strings.Contains(string(b), `\u0000`) {
			t.Errorf("history: %.200s %v", b, err)
		}
	}
}

func endless(t *testing.T) {
	g := Start(t, Options{Model: uses(), Config: full()})
	c := g.Client()
	run := c.Send("main", `exec {"command":"trap '' HUP; (setsid sleep 4711 & echo $!); sleep 4711 & echo $!; echo $$; wait","timeoutSeconds":600}`)
	var out string
	for strings.Count(out, "\n") < 3 {
		ev, ok := <-c.Events()
		if !ok {
			t.Fatal(c.Err())
		}
		for _, s := range traceOf(t, []wire.Event{ev}, run).tools {
			if s.Partial != nil {
				out += wire.Message{Content: s.Partial.Content}.Text()
			}
		}
	}
	stop := c.Ask("main", "/stop")
	if end := c.Await(run); end.State != wire.StateAborted {
		t.Errorf("%s after %q", end.State, stop.Text)
	}
	for _, word := range strings.Fields(out) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatalf("output %q", out)
		}
		waittest.Until(t, fmt.Sprint("the end of process ", pid), func() bool { return !alive(pid) })
	}
	if next := c.Ask("main", `ls {}`); next.State != wire.StateFinal {
		t.Errorf("next: %s %s", next.State, next.Error)
	}
}

// alive reports whether a process is running and not a zombie.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}
