//go:build unix

package exec_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/sandbox/sandboxtest"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/tool/tooltest"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
	"github.com/chela-ai/chela/internal/plugin/tool/exec"
)

// TestMain runs more tests at a time than there are processors: they wait for
// commands.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

type m = map[string]any

// fixture is a workspace with the tool.
type fixture struct {
	t      *testing.T
	tool   tool.Tool
	dir    string
	update func(string)
}

// mode returns the rules of a mode.
func mode(word string) func(chela.AgentID) (*allowlist.Rules, error) {
	return func(chela.AgentID) (*allowlist.Rules, error) {
		p, err := allowlist.ParseMode(word)
		return &allowlist.Rules{Policy: p}, err
	}
}

func newFixture(t *testing.T, o exec.Options) *fixture {
	t.Helper()
	if o.Broker == nil {
		o.Broker = host.Broker{}
	}
	if o.Rules == nil {
		o.Rules = mode("full")
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * waittest.Limit // on a busy machine the default could end a command
	}
	tl, err := exec.New(o)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{t, tl, dir, func(string) {}}
}

// maxLimit is the last time limit that limited tries.
const maxLimit = 2 * waittest.Limit

// limited calls try with longer and longer time limits until what must happen before the
// limit has happened, which takes a busy machine longer than the first limit. It gives up
// after maxLimit.
func limited(limit time.Duration, try func(limit time.Duration) (happened bool)) {
	for ; ; limit = min(4*limit, maxLimit) {
		if try(limit) || limit == maxLimit {
			return
		}
	}
}

func (b *fixture) plan(args m) (tool.Plan, tool.Call, error) {
	b.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		b.t.Fatal(err)
	}
	c := tool.Call{ID: "1", Args: raw, Agent: "main", Dir: b.dir, Update: b.update}
	p, err := b.tool.(tool.Planner).Plan(b.t.Context(), c)
	c.Plan = &p
	return p, c, err
}

type details struct {
	ExitCode   int
	Signal     string
	DurationMs int64
	TimedOut   bool
	Truncated  bool
	Left       int
}

// run plans and runs a call.
func (b *fixture) run(ctx context.Context, args m) (string, details, error) {
	b.t.Helper()
	p, c, err := b.plan(args)
	if err != nil {
		b.t.Fatalf("plan %v: %v", args, err)
	}
	if p.Deny != "" {
		b.t.Fatalf("plan %v: denied: %s", args, p.Deny)
	}
	r, err := b.tool.Run(ctx, c)
	var d details
	if r.Details != nil {
		if err := json.Unmarshal(r.Details, &d); err != nil {
			b.t.Fatal(err)
		}
	}
	if r.IsError {
		b.t.Errorf("%v: the result is an error", args)
	}
	if len(r.Content) == 0 {
		return "", d, err
	}
	if !utf8.ValidString(r.Content[0].Text) {
		b.t.Errorf("%v: invalid UTF-8", args)
	}
	return r.Content[0].Text, d, err
}

// text runs a command, which must run.
func (b *fixture) text(args m) (string, details) {
	b.t.Helper()
	s, d, err := b.run(b.t.Context(), args)
	if err != nil {
		b.t.Fatalf("run %v: %v", args, err)
	}
	return s, d
}

func TestConformance(t *testing.T) {
	b := newFixture(t, exec.Options{})
	tooltest.Run(t, b.tool, tooltest.Options{
		Args: []string{
			`{"command":"ls -la; cat a"}`, `{"command":"echo x > b; exit 3"}`, `{"command":"git status"}`,
			`{"command":"true","timeoutSeconds":5}`,
			`{"command":"echo $X","env":{"X":"y"}}`, `{"command":"pwd","workdir":"."}`, `{"command":"printf '\\377\\000x'"}`,
		},
		Setup: func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "a"), []byte("a"), 0o644); err != nil {
				t.Fatal(err)
			}
		},
	})
}

func TestRun(t *testing.T) {
	t.Parallel()
	t.Run("EX-01 pwd", func(t *testing.T) {
		b := newFixture(t, exec.Options{})
		if s, d := b.text(m{"command": "pwd"}); s != b.dir || d.ExitCode != 0 {
			t.Errorf("got %q %+v", s, d)
		}
	})
	t.Run("EX-02 both streams and the exit code", func(t *testing.T) {
		b := newFixture(t, exec.Options{})
		if s, d := b.text(m{"command": "echo a; echo b >&2; exit 3"}); s != "a\nb\n\n[exit code 3]" || d.ExitCode != 3 {
			t.Errorf("got %q %+v", s, d)
		}
	})
	t.Run("EX-03 long output is cut to its ends", func(t *testing.T) {
		b := newFixture(t, exec.Options{})
		s, d := b.text(m{"command": "head -c 12500 /dev/zero | tr '\\0' a; head -c 12500 /dev/zero | tr '\\0' z"})
		if !strings.HasPrefix(s, strings.Repeat("a", 5000)+"\n\n[") ||
			!strings.HasSuffix(s, "]\n\n"+strings.Repeat("z", 5000)) ||
			!strings.Contains(s, "25000 characters") || !d.Truncated {
			t.Errorf("got %d bytes, %q %+v", len(s), s[4990:len(s)-4990], d)
		}
	})
	t.Run("EX-04 no output", func(t *testing.T) {
		b := newFixture(t, exec.Options{})
		if s, _ := b.text(m{"command": "true"}); s != "[succeeded, no output]" {
			t.Errorf("got %q", s)
		}
		if s, _ := b.text(m{"command": "false"}); s != "[exit code 1; no output]" {
			t.Errorf("got %q", s)
		}
	})
	t.Run("EX-05 time limit", func(t *testing.T) {
		b := newFixture(t, exec.Options{})
		var err error
		if b.tool, err = exec.New(exec.Options{Broker: host.Broker{}, Rules: mode("full")}); err != nil {
			t.Fatal(err)
		}
		if p, _, err := b.plan(m{"command": "sleep 60"}); err != nil || !strings.Contains(p.Text, "at most 30s") {
			t.Errorf("the default limit: %q, %v", p.Text, err)
		}
		limited(300*time.Millisecond, func(limit time.Duration) bool {
			s, d := newFixture(t, exec.Options{Timeout: limit}).text(m{"command": "echo partial; sleep 9999"})
			if !strings.Contains(s, "[timed out after "+humanize.Span(limit)) || !d.TimedOut {
				t.Errorf("got %q %+v", s, d)
			}
			if early := !strings.HasPrefix(s, "partial\n\n"); early && limit < maxLimit {
				return false
			} else if early {
				t.Errorf("got %q", s)
			}
			return true
		})
	})
	t.Run("EX-08 the time limit ends the whole process group", func(t *testing.T) {
		b := newFixture(t, exec.Options{})
		limited(400*time.Millisecond, func(limit time.Duration) bool {
			s, d := b.text(m{"command": "(while :; do echo x >> beat; sleep 0.05; done) & wait",
				"timeoutSeconds": limit.Seconds()})
			if !d.TimedOut || !strings.Contains(s, "timed out") {
				t.Errorf("got %q %+v", s, d)
			}
			_, err := os.Stat(filepath.Join(b.dir, "beat"))
			return err == nil
		})
		b.ended(t)
	})
	t.Run("EX-11 the shell is named", func(t *testing.T) {
		b := newFixture(t, exec.Options{})
		if s, _ := b.text(m{"command": "echo $OPENCLAW_SHELL $CHELA_SHELL"}); s != "exec exec" {
			t.Errorf("got %q", s)
		}
	})
	t.Run("EX-18 an abort ends the whole process group", func(t *testing.T) {
		b := newFixture(t, exec.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		b.update = func(string) { cancel() }
		s, _, err := b.run(ctx,
			m{"command": "(while :; do echo x >> beat; sleep 0.05; done) & until [ -s beat ]; do sleep 0.01; done; echo up; wait"})
		if !errors.Is(err, context.Canceled) || !strings.HasPrefix(s, "up") {
			t.Errorf("got %q, %v", s, err)
		}
		b.ended(t)
	})
	t.Run("EX-21 truncation does not split characters", func(t *testing.T) {
		b := newFixture(t, exec.Options{})
		for _, c := range []string{"x", "你", "𝄞"} {
			write := func(n int) string {
				f := filepath.Join(b.dir, "f")
				if err := os.WriteFile(f, []byte(strings.Repeat(c, n)), 0o644); err != nil {
					t.Fatal(err)
				}
				s, _ := b.text(m{"command": "cat f"})
				return s
			}
			if s := write(10_000); s != strings.Repeat(c, 10_000) {
				t.Errorf("10 000 × %s: %d characters", c, utf8.RuneCountInString(s))
			}
			for _, n := range []int{10_001, 25_000, 100_000} {
				half := strings.Repeat(c, 5000)
				if s := write(n); !strings.HasPrefix(s, half+"\n") || !strings.HasSuffix(s, "\n"+half) ||
					!strings.Contains(s, "characters in total") {
					t.Errorf("%d × %s: %d characters", n, c, utf8.RuneCountInString(s))
				}
			}
		}
	})
	t.Run("SEED-03 10 000 characters are not cut, 10 001 are", func(t *testing.T) {
		b := newFixture(t, exec.Options{})
		if s, d := b.text(m{"command": "printf '%010000d' 1"}); len(s) != 10_000 || d.Truncated {
			t.Errorf("%d characters, %+v", len(s), d)
		}
		if s, d := b.text(m{"command": "printf '%010001d' 1"}); !strings.Contains(s, "10001 characters") || !d.Truncated {
			t.Errorf("%d characters, %+v", len(s), d)
		}
	})
	t.Run("EX-22 each call starts in the workspace", func(t *testing.T) {
		b := newFixture(t, exec.Options{})
		os.Mkdir(filepath.Join(b.dir, "sub"), 0o755)
		b.text(m{"command": "cd /tmp"})
		if s, _ := b.text(m{"command": "pwd"}); s != b.dir {
			t.Errorf("got %q", s)
		}
		for _, w := range []string{"sub", "./sub/", b.dir + "/sub"} {
			if s, _ := b.text(m{"command": "pwd", "workdir": w}); s != b.dir+"/sub" {
				t.Errorf("workdir %s: %q", w, s)
			}
		}
		for _, w := range []string{"missing", "/no/such"} {
			if _, _, err := b.plan(m{"command": "pwd", "workdir": w}); err == nil {
				t.Errorf("workdir %s: no error", w)
			}
		}
	})
	t.Run("remaining processes are ended and reported", func(t *testing.T) {
		b := newFixture(t, exec.Options{})
		s, d := b.text(m{"command": "(while :; do echo x >> beat; sleep 0.05; done) >/dev/null 2>&1 & until [ -s beat ]; do sleep 0.01; done; echo started"})
		if !strings.HasPrefix(s, "started\n\n[") || !strings.Contains(s, "were ended") || d.Left == 0 {
			t.Errorf("got %q %+v", s, d)
		}
		b.ended(t)
	})
	t.Run("signal", func(t *testing.T) {
		b := newFixture(t, exec.Options{})
		if s, d := b.text(m{"command": "kill -KILL $$"}); !strings.Contains(s, "ended by SIGKILL") || d.Signal != "SIGKILL" {
			t.Errorf("got %q %+v", s, d)
		}
	})
	t.Run("binary output", func(t *testing.T) {
		b := newFixture(t, exec.Options{})
		if s, _ := b.text(m{"command": "printf 'a\\377\\000b'"}); s != "a\ufffdb" {
			t.Errorf("got %q", s)
		}
	})
}

// ended fails if the heartbeat file was never written or a process still works in
// the directory of the fixture.
func (b *fixture) ended(t *testing.T) {
	t.Helper()
	if info, err := os.Stat(filepath.Join(b.dir, "beat")); err != nil || info.Size() == 0 {
		t.Error("the heartbeat file is empty, so nothing is tested")
	}
	b.left(t)
}

// left fails if a process still works in the directory of the fixture.
func (b *fixture) left(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Log("without /proc remaining processes are not found")
		return
	}
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil || len(links) == 0 {
		t.Fatalf("%d processes, %v", len(links), err)
	}
	for _, link := range links {
		if dir, err := os.Readlink(link); err == nil && dir == b.dir {
			words, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
			t.Errorf("a process still runs: %s %q", link, words)
		}
	}
}

func TestMuchOutput(t *testing.T) {
	b := newFixture(t, exec.Options{})
	var before, after runtime.MemStats
	for _, size := range []string{"3000000", strconv.Itoa(sandboxtest.Count(30_000_000, 200_000_000))} {
		t.Run("EX-16 "+size+" bytes in little memory", func(t *testing.T) {
			b.t = t
			updates := 0
			b.update = func(s string) { updates += len(s) }
			runtime.GC() // count reachable memory only
			runtime.ReadMemStats(&before)
			start := time.Now()
			s, d := b.text(m{"command": "head -c " + size + " /dev/zero | tr '\\0' x"})
			rounds := int(time.Since(start)/(100*time.Millisecond)) + 2 // of updates, at most
			runtime.GC()
			runtime.ReadMemStats(&after)
			if !strings.Contains(s, size+" characters in total") || !d.Truncated {
				t.Errorf("the cut is not reported: %q", s[5000:len(s)-5000])
			}
			if after.HeapAlloc > before.HeapAlloc+2<<20 {
				t.Errorf("%d more bytes are in use", after.HeapAlloc-before.HeapAlloc)
			}
			// an update takes some; holding the larger output takes more than twice that
			if n := after.TotalAlloc - before.TotalAlloc; n > 15<<20+uint64(rounds)<<17 {
				t.Errorf("%d bytes were allocated in %d rounds", n, rounds)
			}
			if updates > rounds<<14 {
				t.Errorf("%d bytes of updates in %d rounds", updates, rounds)
			}
		})
	}
}

func TestUpdates(t *testing.T) {
	t.Parallel()
	t.Run("EX-23 updates while the command runs", func(t *testing.T) {
		b := newFixture(t, exec.Options{})
		var mu sync.Mutex
		var updates []string
		b.update = func(s string) {
			mu.Lock()
			defer mu.Unlock()
			updates = append(updates, s)
			for _, i := range "12345" { // it goes on when an update has come
				if strings.ContainsRune(s, i) {
					if err := os.WriteFile(filepath.Join(b.dir, string(i)), nil, 0o600); err != nil {
						t.Error(err)
					}
				}
			}
		}
		s, _ := b.text(m{"command": "for i in 1 2 3 4 5; do echo 你$i; until [ -e $i ]; do sleep 0.01; done; done"})
		if len(updates) < 5 || strings.TrimSpace(strings.Join(updates, "")) != s {
			t.Errorf("updates %q, result %q", updates, s)
		}
	})
	t.Run("a character written in parts is forwarded whole", func(t *testing.T) {
		b := newFixture(t, exec.Options{})
		var all []string
		b.update = func(s string) { all = append(all, s) }
		s, _ := b.text(m{"command": `printf 'a\344'; sleep 0.3; printf '\275\240'`})
		if s != "a你" || strings.Join(all, "") != s {
			t.Errorf("updates %q, result %q", all, s)
		}
	})
	t.Run("fast output is merged", func(t *testing.T) {
		b := newFixture(t, exec.Options{})
		var all strings.Builder
		n := 0
		b.update = func(s string) { n++; all.WriteString(s) }
		began := time.Now()
		s, _ := b.text(m{"command": "i=0; while [ $i -lt 2000 ]; do printf 你; i=$((i+1)); done"})
		if rounds := int(time.Since(began)/(100*time.Millisecond)) + 2; all.String() != s || n > rounds {
			t.Errorf("%d updates in at most %d rounds, %d of %d bytes", n, rounds, all.Len(), len(s))
		}
	})
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "BASH_ENV", "ENV",
		"NODE_OPTIONS", "PYTHONPATH", "PERL5OPT", "RUBYOPT", "GIT_SSH_COMMAND", "GIT_CONFIG_COUNT", "path", "A=B", "1A", "",
		"BASH_FUNC_ls%%", "CHELA_STATE_DIR"} {
		t.Run("EX-10 "+name+" is rejected", func(t *testing.T) {
			b := newFixture(t, exec.Options{})
			if _, _, err := b.plan(m{"command": "true", "env": m{name: "/evil"}}); err == nil ||
				!strings.Contains(err.Error(), "env:") {
				t.Errorf("error %v", err)
			}
		})
	}
	t.Run("only listed variables are inherited", func(t *testing.T) {
		environ := []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
		listed := []string{"HOME", "USER", "LOGNAME", "LANG", "LC_TIME", "TERM", "TMPDIR", "SHELL", "TZ"}
		others := []string{
			"CHELA_STATE_DIR", "CHELA_GATEWAY_TOKEN", "CHELA_GATEWAY_PASSWORD", "CHELA_CONFIG", "CHELA_X", "chela_x",
			"OPENCLAW_GATEWAY_TOKEN", "OPENCLAW_X", "CLAWDBOT_X",
			"XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_SESSION_ID", "DBUS_SESSION_BUS_ADDRESS",
			"NOTIFY_SOCKET", "LISTEN_FDS", "INVOCATION_ID", "DISPLAY",
			"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "LD_PRELOAD",
			"LD_LIBRARY_PATH", "GIT_DIR", "GIT_SSH_COMMAND",
			"BASH_ENV", "ENV", "PYTHONPATH", "NODE_OPTIONS", "HTTP_PROXY", "EDITOR", "MY_HOME", "HOMEX", "LCX", "PATHX",
		}
		for _, name := range append(slices.Clone(listed), others...) {
			environ = append(environ, name+"=/tmp")
		}
		b := newFixture(t, exec.Options{Environ: environ, PathPrepend: []string{"/opt/first"}})
		s, _ := b.text(m{"command": "env", "env": m{"MINE": "a b"}})
		var names []string
		for line := range strings.Lines(s) {
			name, _, _ := strings.Cut(line, "=")
			names = append(names, name)
		}
		slices.Sort(names)
		want := append(listed, "CHELA_RUN", "CHELA_SHELL", "LC_ALL", "MINE", "OPENCLAW_SHELL", "PATH", "PWD")
		slices.Sort(want)
		if !slices.Equal(names, want) {
			t.Errorf("got %v, want %v", names, want)
		}
		if !strings.Contains(s, "PATH=/opt/first:/usr/bin:/bin\n") || !strings.Contains(s, "MINE=a b\n") {
			t.Errorf("got %s", s)
		}
	})
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	const (
		runs   = "runs"
		asks   = "asks"
		denied = "denied"
	)
	b := func(o exec.Options) *fixture { return newFixture(t, o) }
	ask := exec.Options{Rules: mode("ask"), Interactive: true}
	full := exec.Options{Rules: mode("full")}
	for _, tt := range []struct {
		name string
		o    exec.Options
		args m
		want string
		says string // part of the reason or the refusal
	}{
		{"a single program that only reads runs", ask, m{"command": "ls -la"}, runs, ""},
		{"without a sandbox, a pipe needs a shell and asks", ask, m{"command": "ls -la | head"}, asks, "no sandbox"},
		{"without a sandbox, a builtin runs as a program", ask, m{"command": "echo x"}, runs, ""},
		{"without a sandbox, a builtin without a program asks", ask, m{"command": "type ls"}, asks, "no sandbox"},
		{"without a sandbox, a search of a folder asks", ask, m{"command": "grep -r x ."}, asks, "no sandbox"},
		{"a private file asks", ask, m{"command": "cat .env"}, asks, "private"},
		{"a private file as the value of an option asks", ask, m{"command": "ls -I.env"}, asks, "private"},
		{"a file outside asks", ask, m{"command": "cat ../x"}, asks, "outside"},
		{"the passwords of the system ask", ask, m{"command": "cat /etc/shadow"}, asks, "private"},
		{"the environment of a process asks", ask, m{"command": "cat /proc/1/environ"}, asks, "private"},
		{"a program in the workspace asks", ask, m{"command": "./ls"}, asks, ""},
		{"EX-20 a hidden command in full mode asks", exec.Options{Rules: mode("full"), Interactive: true},
			m{"command": "X=/; rm -rf $X"}, asks, "known only when it runs"},
		{"EX-20 a hidden command in full mode without a person", full, m{"command": "echo / | xargs rm -rf"}, denied,
			"known only when it runs"},
		{"variables in full mode run", full, m{"command": "X=a; ls $X"}, runs, ""},
		{"other commands ask", ask, m{"command": "touch x"}, asks, "touch may change files"},
		{"nobody to ask", exec.Options{Rules: mode("ask")}, m{"command": "touch x"}, denied, "--yes"},
		{"nobody to ask about a read-only command", exec.Options{Rules: mode("ask")}, m{"command": "ls"}, runs, ""},
		{"full runs", full, m{"command": "touch x"}, runs, ""},
		{"EX-14 deny", exec.Options{Rules: mode("deny"), Interactive: true}, m{"command": "ls"}, denied, "tools.exec.mode"},
		{"allowlist refuses without asking", exec.Options{Rules: mode("allowlist"), Interactive: true},
			m{"command": "touch x"}, denied, "allowlist"},
		{"allowlist runs a read-only command", exec.Options{Rules: mode("allowlist")}, m{"command": "ls"}, runs, ""},
		{"always asks about a read-only command", exec.Options{Rules: mode("always"), Interactive: true}, m{"command": "ls"},
			asks, "every command"},
		{"EX-09 a dangerous command in full mode", full, m{"command": "rm -rf /"}, denied, "deletes an entire system"},
		{"EX-09 a look-alike", full, m{"command": "rm -rf ./build"}, runs, ""},
		{"EX-09 dd --help", full, m{"command": "dd --help"}, runs, ""},
		{"a configured pattern", exec.Options{Rules: mode("full"), DangerousPatterns: []string{"^shutdown"}},
			m{"command": "shutdown now"}, denied, "pattern"},
		{"EX-17 security ask hardens full", exec.Options{Rules: mode("full"), Interactive: true},
			m{"command": "touch x", "security": "ask"}, asks, "touch"},
		{"EX-24 security off does not loosen", ask, m{"command": "touch x", "security": "off"}, asks, ""},
		{"EX-24 ask false does not loosen", ask, m{"command": "touch x", "ask": false}, asks, ""},
		{"EX-24 ask true asks always", ask, m{"command": "ls", "ask": true}, asks, ""},
		{"EX-24 ask always", ask, m{"command": "ls", "ask": "always"}, asks, ""},
		{"EX-24 security deny", full, m{"command": "ls", "security": "deny"}, denied, ""},
		{"EX-24 security allowlist", full, m{"command": "touch x", "security": "allowlist"}, denied, ""},
		{"EX-24 security review", exec.Options{Rules: mode("full"), Interactive: true},
			m{"command": "touch x", "security": "review"}, asks, ""},
		{"EX-24 host local", full, m{"command": "ls", "host": "local"}, runs, ""},
		{"a read-only command outside the workspace asks", ask, m{"command": "ls", "workdir": "/"}, asks,
			"outside the workspace"},
		{"variables ask", ask, m{"command": "ls", "env": m{"X": "y"}}, asks, "environment"},
		{"EX-19 signing in to a channel", full, m{"command": "openclaw channels login whatsapp"}, denied, "themselves"},
		{"EX-19 signing in to a channel with chela", full, m{"command": "cd /tmp && chela channels login x"},
			denied, "themselves"},
		{"EX-19 giving an approval", full, m{"command": "/approve 123 allow-always"}, denied, "by a person"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, c, err := b(tt.o).plan(tt.args)
			if err != nil {
				t.Fatal(err)
			}
			got, says := runs, p.Reason
			switch {
			case p.Deny != "":
				got, says = denied, p.Deny
			case p.Ask:
				got = asks
			}
			if got != tt.want || !strings.Contains(says, tt.says) {
				t.Errorf("%s: %q, want %s: %q", got, says, tt.want, tt.says)
			}
			if reads := p.Effect == tool.Reads; reads && got == asks && tt.says != "every command" && tt.args["ask"] == nil {
				t.Error("it asks about a read-only command")
			}
			c.Plan = nil // without a plan the command is judged again
			if tt.want != runs {
				if _, err := b(tt.o).tool.Run(t.Context(), c); err == nil {
					t.Error("the command ran")
				}
			}
		})
	}
	t.Run("EX-17 timeoutSec is timeoutSeconds", func(t *testing.T) {
		if got := b(full).tool.Spec().Aliases["timeoutSec"]; got != "timeoutSeconds" {
			t.Errorf("timeoutSec is an alias of %q", got)
		}
		if p, _, err := b(ask).plan(m{"command": "ls", "timeoutSeconds": 5, "security": "ask"}); err != nil ||
			!strings.Contains(p.Text, "at most 5s") {
			t.Errorf("%q, %v", p.Text, err)
		}
	})
	t.Run("EX-12 host sandbox without a sandbox", func(t *testing.T) {
		for _, args := range []m{{"command": "ls", "host": "sandbox"}, {"command": "ls", "sandbox": true},
			{"command": "ls", "host": "kitchen-pi"}} {
			if _, _, err := b(full).plan(args); err == nil {
				t.Errorf("%v: no error", args)
			}
		}
	})
}

// Commands that are judged read-only change nothing.
func TestReadingChangesNothing(t *testing.T) {
	t.Parallel()
	b := newFixture(t, exec.Options{Rules: mode("allowlist")})
	for name, text := range map[string]string{
		"a.txt":    "one\ntwo\n",
		"b.txt":    "two\n",
		"-o":       "x",
		"-delete":  "x",
		"sub/c.go": "package c\n",
	} {
		path := filepath.Join(b.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := tooltest.Tree(t, b.dir)
	ran := 0
	for _, command := range []string{
		"ls -la", "cat *", "cat -- -o", "wc -l a.txt", "grep -n two a.txt", "find . -name '*.txt'", "find . -type f",
		"find . -delete", "find . -exec rm {} +", "sort a.txt b.txt", "sort -o a.txt b.txt", "sort *", "uniq a.txt b.txt",
		"uniq a.txt", "sort -uoa.txt b.txt",
		"sed -n '1,2p' a.txt", "sed -n 'w out' a.txt", "awk '{print > \"out\"}' a.txt", "cat a.txt > b.txt",
		"cat a.txt | tee out", "test -f a.txt", "[ -d sub ]", "date", "id", "uname -a", "git status", "tar -cf out a.txt",
		"file a.txt", "file -C -m a.txt", "printf '%s\\n' a b", "printf -v x y", "xxd a.txt", "xxd a.txt out",
		"jq . a.txt", "tree", "tree -o out", "tree -Lo 1 out", "du -sh .", "stat a.txt", "md5sum a.txt",
		"comm -12 a.txt b.txt", "cut -c1 a.txt", "cmp a.txt b.txt", "head -1 a.txt", "tail -n 1 a.txt", "nl a.txt",
		"tac a.txt", "od -c a.txt", "realpath a.txt", "basename a.txt", "echo a > out", "true", "pwd", "which ls", "df -h",
		"readlink -f a.txt", "cat -",
	} {
		p, c, err := b.plan(m{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		if p.Deny != "" {
			continue
		}
		ran++
		if _, err := b.tool.Run(t.Context(), c); err != nil {
			t.Errorf("%s: %v", command, err)
		}
		if diff := cmp.Diff(before, tooltest.Tree(t, b.dir)); diff != "" {
			t.Fatalf("%s is judged read-only, but changed the workspace: %s", command, diff)
		}
	}
	if ran < 25 { // some are not installed
		t.Errorf("only %d commands ran", ran)
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	b := newFixture(t, exec.Options{})
	base, _, err := b.plan(m{"command": "echo a"})
	if err != nil {
		t.Fatal(err)
	}
	os.Mkdir(filepath.Join(b.dir, "sub"), 0o755)
	for _, args := range []m{{"command": "echo  a"}, {"command": "echo a", "workdir": "sub"},
		{"command": "echo a", "env": m{"X": "1"}}} {
		if p, _, err := b.plan(args); err != nil || p.Hash == base.Hash {
			t.Errorf("%v has the same hash, %v", args, err)
		}
	}
	p, c, err := b.plan(m{"command": "echo one && echo two > f", "env": m{"X": "a\nb"}, "timeoutSeconds": 5000})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"echo one && echo two > f\n", "in " + b.dir, "at most 30m\n", `with X=a\nb`} {
		if !strings.Contains(p.Text, want) {
			t.Errorf("the text lacks %q:\n%s", want, p.Text)
		}
	}
	// The planned command runs, and no other.
	c.Args = json.RawMessage(`{"command":"echo changed"}`)
	r, err := b.tool.Run(t.Context(), c)
	if err != nil || !strings.HasPrefix(r.Content[0].Text, "one") {
		t.Errorf("got %+v, %v", r, err)
	}
	t.Run("after a restart only the approved command runs", func(t *testing.T) {
		b := newFixture(t, exec.Options{Rules: mode("ask"), Interactive: true})
		p, c, err := b.plan(m{"command": "echo x > f"})
		if err != nil || !p.Ask {
			t.Fatalf("%+v, %v", p, err)
		}
		c.Plan.Value = nil // it does not survive a restart
		approved := c.Args
		c.Args = json.RawMessage(`{"command":"echo y > f"}`)
		if _, err := b.tool.Run(t.Context(), c); err == nil {
			t.Error("another command ran")
		}
		c.Args = approved
		if _, err := b.tool.Run(t.Context(), c); err != nil {
			t.Error(err)
		}
		if data, _ := os.ReadFile(filepath.Join(b.dir, "f")); string(data) != "x\n" {
			t.Errorf("the file has %q", data)
		}
	})
	t.Run("absurd time limits", func(t *testing.T) {
		b := newFixture(t, exec.Options{Timeout: time.Hour, MaxTimeout: time.Minute})
		for _, s := range []float64{0, 1e300, -1, 61} {
			if p, _, err := b.plan(m{"command": "ls", "timeoutSeconds": s}); err != nil ||
				!strings.Contains(p.Text, "at most 1m") {
				t.Errorf("%g: %q, %v", s, p.Text, err)
			}
		}
	})
	t.Run("SEED-03 complete approval text", func(t *testing.T) {
		long := "echo " + strings.Repeat("x", 4000) + "; rm -r y"
		if p, _, _ := b.plan(m{"command": long}); !strings.Contains(p.Text, long) {
			t.Error("the command is cut")
		}
	})
}

func TestNew(t *testing.T) {
	t.Parallel()
	if _, err := exec.New(exec.Options{}); err == nil {
		t.Error("no broker: no error")
	}
	if _, err := exec.New(exec.Options{Broker: host.Broker{}, DangerousPatterns: []string{"("}}); err == nil {
		t.Error("a bad pattern: no error")
	}
	for _, s := range []string{"full", "off", "ask", "auto", "review", "allowlist", "deny", "always", "", "on-miss"} {
		if _, err := allowlist.ParseMode(s); err != nil {
			t.Errorf("mode %q: %v", s, err)
		}
	}
	if _, err := allowlist.ParseMode("yolo"); err == nil {
		t.Error("mode yolo: no error")
	}
}

// TestHiddenValues checks that commands do not write what stands for hidden values.
func TestHiddenValues(t *testing.T) {
	t.Parallel()
	b := newFixture(t, exec.Options{})
	for command, refused := range map[string]bool{
		"cat > .env <<'EOF'\nAPI_KEY=***\nDEBUG=false\nEOF":  true,
		"echo 'API_KEY=***' >> .env":                         true,
		"printf 'A=1\\nB=***\\n' | tee .env":                 true,
		"cat > app.conf <<EOF\nversion = [redacted]\nEOF":    true,
		"sed -i 's/^token.*/token: [redacted]/' config.yaml": true,
		"grep -F '[redacted]' chela.log":                     false,
		"cat > page.md <<'EOF'\ntitle\n***\nEOF":             false,
		"cat > .env.example <<'EOF'\nAPI_KEY=***\nEOF":       false,
		"sed -i 's/^DEBUG=.*/DEBUG=false/' .env":             false,
	} {
		_, _, err := b.plan(m{"command": command})
		if got := err != nil && strings.Contains(err.Error(), "that you were not shown"); got != refused ||
			err != nil && !refused {
			t.Errorf("%q: %v, refused %t", command, err, refused)
		}
	}
}
