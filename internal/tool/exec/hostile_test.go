//go:build unix

package exec_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chela-ai/chela/internal/tool/exec"
)

// Commands that do what commands should not: each ends within its bound, and
// nothing of it is left.
func TestHostile(t *testing.T) {
	t.Parallel()
	const beat = `while :; do echo x >> beat; sleep 0.05; done`
	var tests []func()
	for _, c := range []struct {
		name, command string
		left          bool   // it leaves something that writes to the file beat
		says          string // in the result or the last poll
		within        time.Duration
	}{
		{"forks twice and leaves its session", "(setsid sh -c 'setsid sh -c \"" + beat + "\" & exit' &); sleep 0.3; echo gone", true, "gone", 12 * time.Second},
		{"ignores TERM", "trap '' TERM HUP INT; " + beat, true, "timed out", 12 * time.Second},
		{"forks twice and ignores TERM", "(setsid sh -c 'trap \"\" TERM HUP; setsid sh -c \"trap \\\"\\\" TERM HUP; " + beat + "\" & exit' &); sleep 0.3; exec sleep 60", true, "timed out", 12 * time.Second},
		{"writes without end", "cat /dev/zero | tr '\\0' x", false, "timed out", 12 * time.Second},
		{"writes one line of 100 MB", "head -c 100000000 /dev/zero | tr '\\0' x; echo; echo end", false, "end", 20 * time.Second},
		{"waits for input", "read x; echo \"<$x>\"", false, "<>", 5 * time.Second},
		{"changes its terminal", "stty raw -echo -isig 2>/dev/null; printf '\\033[?1049h\\033[2J\\033c'; echo here", false, "here", 5 * time.Second},
		{"ends while a grandchild holds the output", "(setsid sh -c '" + beat + "' &) ; sleep 0.2; echo first", true, "first", 12 * time.Second},
		{"stops itself", "kill -STOP $$; echo woken", false, "timed out", 12 * time.Second},
		{"forks many", "for i in $(seq 50); do (sleep 60; true) & done; wait", false, "timed out", 10 * time.Second},
	} {
		for _, terminal := range []bool{false, true} {
			r := newRoom(t, exec.CommandOptions{}, exec.Options{})
			args := m{"command": c.command, "timeoutSeconds": 1.5, "pty": terminal, "background": true}
			if strings.Contains(c.command, "100000000") {
				args["timeoutSeconds"] = 15
			}
			id := r.start(args)
			if strings.HasPrefix(c.command, "read") {
				r.do(m{"action": "write", "sessionId": id, "eof": true})
			}
			tests = append(tests, func() {
				t.Run(fmt.Sprintf("%s, terminal %v", c.name, terminal), func(t *testing.T) {
					r.t = t
					text, d := r.poll(id, 30_000)
					text = r.begun + text
					began, _ := time.Parse(time.RFC3339Nano, d["startedAt"].(string))
					ended, _ := time.Parse(time.RFC3339Nano, d["endedAt"].(string))
					if took := ended.Sub(began); took > c.within {
						t.Errorf("it took %v", took)
					}
					if !strings.Contains(text, c.says) {
						t.Errorf("%q is missing in %q", c.says, text[max(0, len(text)-300):])
					}
					if c.left {
						file(t, filepath.Join(r.dir, "beat"))
						still(t, filepath.Join(r.dir, "beat"))
					}
				})
			})
		}
	}
	for _, test := range tests { // all run side by side already
		test()
	}
	t.Run("a flood of 1 GB", func(t *testing.T) {
		if testing.Short() {
			t.Skip("long")
		}
		r := newRoom(t, exec.CommandOptions{Dir: t.TempDir()}, exec.Options{})
		began := time.Now()
		id := r.start(m{"command": "head -c 1000000000 /dev/zero; echo end"})
		text, _ := r.poll(id, 30_000)
		if !strings.Contains(text, "end\n\n[exit code 0") || time.Since(began) > 30*time.Second {
			t.Errorf("after %v: %q", time.Since(began), text[max(0, len(text)-100):])
		}
	})
	t.Run("an abort in the foreground, of one that ignores TERM", func(t *testing.T) {
		r := newRoom(t, exec.CommandOptions{}, exec.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		r.update = func(string) { cancel() }
		began := time.Now()
		_, _, err := r.run(ctx, m{"command": "trap '' TERM; echo up; " + beat})
		if err == nil || time.Since(began) > 6*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		still(t, filepath.Join(r.dir, "beat"))
	})
}
