//go:build unix

package exec_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/chela-ai/chela/internal/core/sandbox/sandboxtest"
	"github.com/chela-ai/chela/internal/plugin/tool/exec"
)

// harmful reports whether a character controls a terminal or makes text look
// different from what it is.
func harmful(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.In(r, unicode.Bidi_Control) ||
		r >= 0xe0000 && r <= 0xe0fff
}

// Hostile commands end, at their time limit at the latest, and leave nothing running.
func TestHostile(t *testing.T) {
	t.Parallel()
	const (
		beat  = `while :; do echo x >> beat; sleep 0.05; done`
		begun = `until [ -s beat ]; do sleep 0.01; done`
	)
	var tests []func()
	for _, c := range []struct {
		name, command string
		left          bool   // it leaves a process that writes to the file beat
		says          string // in the result or the last poll
		pipe          bool   // test without a terminal only: a terminal makes no difference
	}{
		{"forks twice and leaves its session", "(setsid sh -c 'setsid sh -c \"" + beat + "\" & exit' &); " + begun +
			"; echo gone", true, "gone", false},
		{"ignores TERM", "trap '' TERM HUP INT; " + beat, true, "timed out", true},
		{"forks twice and ignores TERM", "(setsid sh -c 'trap \"\" TERM HUP; setsid sh -c \"trap \\\"\\\" TERM HUP; " + beat +
			"\" & exit' &); sleep 0.3; exec sleep 9999", true, "timed out", false},
		{"writes endlessly", "cat /dev/zero | tr '\\0' x", false, "timed out", true},
		{"writes one line of 20 MB", "head -c 20000000 /dev/zero | tr '\\0' x; echo; echo end", false, "end", false},
		{"waits for input", "read x; echo \"<$x>\"", false, "<>", false},
		{"changes its terminal", "stty raw -echo -isig 2>/dev/null; printf '\\033[?1049h\\033[2J\\033c'; echo here", false,
			"here", false},
		{"ends while a grandchild holds the output", "(setsid sh -c '" + beat + "' &) ; " + begun +
			"; echo first", true, "first", false},
		{"stops itself", "kill -STOP $$; echo woken", false, "timed out", false},
		{"forks many processes", "for i in $(seq 50); do (sleep 9999; true) & done; wait", false, "timed out", true},
		{"forks recursively", "echo '[ $1 = 0 ] && { [ $2 ] && { " + beat +
			"; }; exec sleep 9999; }; sh $0 $(($1-1)) $2 & sh $0 $(($1-1)) & wait' > f.sh; sh f.sh 5 x",
			true, "timed out", true},
		{"closes its output and continues", "echo first; exec >/dev/null 2>&1 </dev/null; exec >&- 2>&- <&-; " + beat,
			true, "timed out", true},
		{"closes its output and leaves a process", "echo first; (exec >&- 2>&- <&-; trap '' TERM HUP; setsid sh -c '" + beat +
			"') & " + begun + "; exec >&- 2>&-", true, "first", false},
		{"is killed by KILL", "echo here; kill -KILL $$", false, "ended by SIGKILL", true},
		{"is killed by SEGV", "ulimit -c 0; echo here; kill -SEGV $$; sleep 9999", false, "ended by SIGSEGV", true},
		{"is killed by TERM with children", "sh -c 'trap \"\" TERM; " + beat + "' & " + begun + "; kill -TERM $$; sleep 9999",
			true, "ended by SIGTERM", true},
	} {
		for _, terminal := range []bool{false, true} {
			if terminal && c.pipe {
				continue
			}
			r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{})
			start := func(limit time.Duration) string {
				args := m{"command": c.command, "pty": terminal, "background": true}
				if c.says == "timed out" {
					args["timeoutSeconds"] = limit.Seconds()
				}
				id := r.start(args)
				if strings.HasPrefix(c.command, "read") {
					r.do(m{"action": "write", "sessionId": id, "eof": true})
				}
				return id
			}
			const limit = 1500 * time.Millisecond
			id := start(limit)
			tests = append(tests, func() {
				t.Run(fmt.Sprintf("%s, terminal %v", c.name, terminal), func(t *testing.T) {
					t.Parallel()
					r.t = t
					text, _ := r.end(id)
					limited(limit, func(limit time.Duration) bool { // its processes must have started before
						if _, err := os.Stat(filepath.Join(r.dir, "beat")); c.left && err != nil && c.says == "timed out" {
							text, _ = r.end(start(limit))
							_, err = os.Stat(filepath.Join(r.dir, "beat"))
							return err == nil
						}
						return true
					})
					text = r.firstOutput + text
					if strings.ContainsFunc(text, harmful) {
						t.Errorf("the text contains terminal control characters: %q", text[:min(len(text), 300)])
					}
					if !strings.Contains(text, c.says) {
						t.Errorf("%q is not in %q", c.says, text[max(0, len(text)-300):])
					}
					if c.left {
						file(t, filepath.Join(r.dir, "beat"))
					}
					r.left(t)
				})
			})
		}
	}
	for _, test := range tests { // all commands are running already
		test()
	}
	t.Run("R18 terminal control sequences and deceptive text", func(t *testing.T) {
		const deceit = `stty raw -echo 2>/dev/null; printf '\033[?1049h\033[2J\033c\033]0;a title\007\033]2;another\033\\\033]52;c;Y2FuYXJ5\007\033[5i\033[?1000h` +
			`\033P$qm\033\\\033[21t\033[6n\033[c\0335;A\016\033(0\233\235canary\n` +
			`before\342\200\256after\342\201\246x\363\240\201\201y\r\n\007\010\177\0\001end\033]0;open'; sleep 0.1`
		for _, terminal := range []bool{false, true} {
			r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{})
			seen := ""
			r.update = func(s string) { seen += s }
			text, _, err := r.run(t.Context(), m{"command": deceit, "pty": terminal})
			for where, text := range map[string]string{"the result": text, "the updates": seen} {
				if err != nil || strings.ContainsFunc(text, harmful) || strings.Contains(text, "title") ||
					strings.Contains(text, "Y2FuYXJ5") ||
					!strings.Contains(text, `before\u{202e}after\u{2066}x\u{e0041}y`) || !strings.Contains(text, "end") {
					t.Errorf("terminal %v: %s: %q, %v", terminal, where, text, err)
				}
			}
		}
	})
	t.Run("much more output than is retained", func(t *testing.T) {
		r := newBackgroundFixture(t, exec.CommandOptions{Dir: t.TempDir()}, exec.Options{})
		id := r.start(m{"command": fmt.Sprintf("head -c %d /dev/zero; echo end", sandboxtest.Count(12_000_000, 100_000_000))})
		text, _ := r.end(id)
		if !strings.Contains(text, "end\n\n[exit code 0") {
			t.Errorf("%q", text[max(0, len(text)-100):])
		}
	})
	t.Run("abort of a foreground command that ignores TERM", func(t *testing.T) {
		r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		r.update = func(string) { cancel() }
		if _, _, err := r.run(ctx, m{"command": "trap '' TERM; echo x > beat; echo up; " + beat}); err == nil {
			t.Error("no error")
		}
		r.ended(t)
	})
}
