//go:build unix

package exec_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/core/tool/tooltest"
	"github.com/chela-ai/chela/internal/kit/humanize"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/sandbox/host"
	"github.com/chela-ai/chela/internal/plugin/tool/exec"
)

// backgroundFixture is a workspace with both tools, and the deferred results.
type backgroundFixture struct {
	*fixture
	process     tool.Tool
	commands    *exec.Commands
	session     chela.SessionKey
	firstOutput string // output in the result of the last start

	mu       sync.Mutex
	deferred []string
	resolved []string
	deferErr func() error
}

func newBackgroundFixture(t *testing.T, c exec.CommandOptions, o exec.Options) *backgroundFixture {
	t.Helper()
	r := &backgroundFixture{session: "agent:main:main"}
	o.Yield = cmp.Or(o.Yield, time.Hour) // on a busy machine a command could go to the background by default
	if c.Defer == nil {
		c.Defer = r.deferResult
	}
	r.commands = exec.NewCommands(c)
	o.Commands = r.commands
	r.fixture = newFixture(t, o)
	r.process = r.commands.Tool()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = r.commands.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return r
}

// deferResult implements exec.Defer.
func (r *backgroundFixture) deferResult(_ context.Context, _ tool.Call,
	text string) (func(context.Context, string, queue.Result) error, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.deferErr != nil {
		if err := r.deferErr(); err != nil {
			return nil, err
		}
	}
	r.deferred = append(r.deferred, text)
	return func(_ context.Context, text string, _ queue.Result) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.resolved = append(r.resolved, text)
		return nil
	}, nil
}

// await returns the resolved results once there are n of them.
func (r *backgroundFixture) await(n int) []string {
	r.t.Helper()
	var results []string
	waittest.Until(r.t, fmt.Sprintf("%d resolved results", n), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		results = append([]string(nil), r.resolved...)
		return len(results) >= n
	})
	return results
}

// call calls a tool of the session.
func (r *backgroundFixture) call(tl tool.Tool, args m) (string, m, error) {
	r.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		r.t.Fatal(err)
	}
	c := tool.Call{ID: "1", Args: raw, Dir: r.dir, Session: r.session, Update: func(string) {}}
	res, err := tl.Run(r.t.Context(), c)
	var d m
	if res.Details != nil {
		if err := json.Unmarshal(res.Details, &d); err != nil {
			r.t.Fatal(err)
		}
	}
	text := ""
	for _, p := range res.Content {
		text += p.Text
	}
	return text, d, err
}

// start starts a command in the background and returns its id.
func (r *backgroundFixture) start(args m) string {
	r.t.Helper()
	if args["pty"] == nil && args["yieldMs"] == nil {
		args["background"] = true
	}
	text, d, err := r.call(r.tool, args)
	if err != nil || d["status"] != "running" || !strings.Contains(text, fmt.Sprint("sessionId ", d["sessionId"])) {
		r.t.Fatalf("%v: %q %v, %v", args, text, d, err)
	}
	r.firstOutput = d["tail"].(string)
	return d["sessionId"].(string)
}

// do calls process, which must succeed.
func (r *backgroundFixture) do(args m) (string, m) {
	r.t.Helper()
	text, d, err := r.call(r.process, args)
	if err != nil {
		r.t.Fatalf("%v: %v", args, err)
	}
	return text, d
}

func (r *backgroundFixture) poll(id string, timeout int) (string, m) {
	r.t.Helper()
	return r.do(m{"action": "poll", "sessionId": id, "timeout": timeout})
}

// end polls until a command has ended, and returns its new output. A poll waits for half
// a minute at most, which a busy machine can exceed.
func (r *backgroundFixture) end(id string) (string, m) {
	r.t.Helper()
	before := ""
	for deadline := time.Now().Add(waittest.Limit); ; {
		text, d := r.poll(id, 30_000)
		if d["status"] == "running" {
			if time.Now().After(deadline) {
				r.t.Fatalf("%s did not end: %q", id, before+text)
			}
			if output, _, _ := strings.Cut(text, "\n\n[running]"); output != "(no new output)" {
				before += output + "\n"
			}
			continue
		}
		if rest, ok := strings.CutPrefix(text, "(no new output)"); ok && before != "" {
			return strings.TrimSuffix(before, "\n") + rest, d
		}
		return before + text, d
	}
}

// see polls until the output of the last started command contains a string.
func (r *backgroundFixture) see(id, piece string) string {
	r.t.Helper()
	all := r.firstOutput
	r.firstOutput = ""
	defer func() {
		if r.t.Failed() {
			r.t.Logf("the output is %q", all)
		}
	}()
	waittest.Until(r.t, fmt.Sprintf("output with %q", piece), func() bool {
		text, _ := r.poll(id, 0)
		if !strings.Contains(text, "(no new output)") {
			all += text
		}
		return strings.Contains(all, piece)
	})
	return all
}

// fails calls process, which must fail.
func (r *backgroundFixture) fails(args m, says string) {
	r.t.Helper()
	if text, _, err := r.call(r.process, args); err == nil || !strings.Contains(err.Error(), says) {
		r.t.Errorf("%v: %q, %v; want %q", args, text, err, says)
	}
}

func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(b), ") Z ") || err != nil && syscall.Kill(pid, 0) == nil
}

func TestBackground(t *testing.T) {
	t.Parallel()
	t.Run("EX-05 without the process tool a command ends at its time limit", func(t *testing.T) {
		t.Parallel()
		limited(300*time.Millisecond, func(limit time.Duration) bool {
			r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{Timeout: limit, Yield: 50 * time.Millisecond})
			raw, _ := json.Marshal(m{"command": "echo partial; sleep 9999", "background": true, "pty": true})
			res, err := r.tool.Run(t.Context(), tool.Call{
				Args:    raw,
				Dir:     r.dir,
				Session: r.session,
				Update:  func(string) {},
				HasTool: func(name string) bool { return name != "process" },
			})
			if err != nil || !strings.Contains(res.Content[0].Text, "timed out after "+humanize.Span(limit)) ||
				!strings.Contains(res.Content[0].Text, "in the foreground") {
				t.Errorf("%+v, %v", res, err)
			}
			if text, _ := r.do(m{"action": "list"}); !strings.Contains(text, "no background commands") {
				t.Errorf("list: %q", text)
			}
			printed := strings.Contains(res.Content[0].Text, "partial")
			if !printed && limit == maxLimit {
				t.Errorf("the output is lost: %+v", res)
			}
			return printed
		})
	})
	t.Run("EX-06 a command of a run whose end somebody waits for does not go to the background by itself",
		func(t *testing.T) {
			t.Parallel()
			r := newBackgroundFixture(t, exec.CommandOptions{},
				exec.Options{Yield: time.Millisecond, MaxTimeout: 2 * time.Second})
			call := func(args m) tool.Result {
				t.Helper()
				raw, _ := json.Marshal(args)
				res, err := r.tool.Run(t.Context(), tool.Call{
					Args:    raw,
					Dir:     r.dir,
					Session: r.session,
					Update:  func(string) {},
					Awaited: true,
				})
				if err != nil || len(res.Content) != 1 {
					t.Fatalf("%v: %+v, %v", args, res, err)
				}
				return res
			}
			for _, args := range []m{{}, {"yieldMs": 1}, {"timeoutSeconds": 0}} {
				args["command"] = "echo begun; sleep 0.5; echo done"
				if text := call(args).Content[0].Text; text != "begun\ndone\n" && text != "begun\ndone" {
					t.Errorf("%v: %q", args, text)
				}
			}
			if text := call(m{"command": "sleep 9999", "timeoutSeconds": 0}).Content[0].Text; !strings.Contains(text,
				"timed out after 2s") {
				t.Errorf("without a limit: %q", text)
			}
			if text := call(m{"command": "sleep 9999", "background": true}).Content[0].Text; !strings.Contains(text,
				"still running in the background") {
				t.Errorf("in the background: %q", text)
			}
		})
	t.Run("EX-07 a command that the shell would leave running goes to the background at once", func(t *testing.T) {
		t.Parallel()
		r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{})
		for _, command := range []string{"echo up; sleep 9999 &", "cd . && sleep 9999 & # a server",
			"sleep 9998 & sleep 9999 &"} {
			text, d, err := r.call(r.tool, m{"command": command})
			if err != nil || d["status"] != "running" || !strings.Contains(text, "still running in the background") {
				t.Fatalf("%s: %q %v, %v", command, text, d, err)
			}
			id := d["sessionId"].(string)
			if text, _ := r.do(m{"action": "poll", "sessionId": id}); !strings.Contains(text, "running") {
				t.Errorf("%s: %q", command, text)
			}
			if text, _ := r.do(m{"action": "kill", "sessionId": id}); !strings.Contains(text, "Ended") {
				t.Errorf("%s: %q", command, text)
			}
		}
		if text, d, err := r.call(r.tool, m{"command": "sleep 9999 & echo done"}); err != nil || d["exitCode"] != 0.0 ||
			!strings.Contains(text, "done") {
			t.Errorf("one that goes on after it: %q %v, %v", text, d, err)
		}
		raw, _ := json.Marshal(m{"command": "sleep 9999 &"})
		res, err := r.tool.Run(t.Context(), tool.Call{
			Args:    raw,
			Dir:     r.dir,
			Session: r.session,
			Update:  func(string) {},
			HasTool: func(string) bool { return false },
		})
		if err != nil || strings.Contains(res.Content[0].Text, "still running in the background") {
			t.Errorf("without the process tool: %+v, %v", res, err)
		}
	})
	t.Run("EX-06 a long command goes to the background", func(t *testing.T) {
		t.Parallel()
		r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{})
		var d m
		limited(300*time.Millisecond, func(yield time.Duration) bool {
			began := time.Now()
			text, details, err := r.call(r.tool, m{"command": "echo up; sleep 9999", "yieldMs": yield.Milliseconds()})
			if took := time.Since(began); err != nil || took < yield || details["status"] != "running" ||
				!strings.Contains(text, "[still running") {
				t.Errorf("after %v: %q %v, %v", took, text, details, err)
			}
			printed := details["tail"] == "up" && strings.HasPrefix(text, "up\n\n[still running")
			if !printed && yield == maxLimit {
				t.Errorf("%q %v", text, details)
			}
			d = details
			return printed
		})
		if pid := int(d["pid"].(float64)); !alive(pid) {
			t.Error("the command is not running")
		}
		if text, _ := r.poll(d["sessionId"].(string), 0); text != "(no new output)\n\n[running]" {
			t.Errorf("poll: %q", text)
		}
	})
	t.Run("EX-06 long output is cut, and the next poll returns new output", func(t *testing.T) {
		t.Parallel()
		r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{})
		text, d, err := "", m(nil), error(nil)
		limited(200*time.Millisecond, func(yield time.Duration) bool {
			text, d, err = r.call(r.tool, m{"command": "seq 20000; until test -e go; do sleep 0.05; done; echo later",
				"yieldMs": yield.Milliseconds()})
			return err != nil || strings.Contains(text, "20000\n\n[")
		})
		if err != nil || len(text) > 10_300 || !strings.HasPrefix(text, "1\n2\n") ||
			!strings.Contains(text, "20000\n\n[still running") {
			t.Fatalf("%v: %d bytes, which end with %q", err, len(text), text[max(0, len(text)-200):])
		}
		if err := os.WriteFile(filepath.Join(r.dir, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if text, _ := r.end(d["sessionId"].(string)); !strings.HasPrefix(text, "later\n\n[exit code 0") {
			t.Errorf("poll: %q", text)
		}
	})
	t.Run("EX-07 background returns immediately", func(t *testing.T) {
		t.Parallel()
		r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{})
		r.start(m{"command": "sleep 9999"}) // without "background" this would wait for an hour
		p, _, err := r.plan(m{"command": "sleep 15", "background": true, "timeoutSeconds": 0})
		if err != nil || p.Effect != tool.Acts || !strings.Contains(p.Text, "without a time limit, in the background") {
			t.Errorf("plan: %+v, %v", p, err)
		}
	})
	t.Run("EX-08 time limit in the background", func(t *testing.T) {
		t.Parallel()
		r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{})
		ended := 0
		limited(500*time.Millisecond, func(limit time.Duration) bool {
			id := r.start(m{"command": "(while :; do echo x >> beat; sleep 0.05; done) & wait",
				"timeoutSeconds": limit.Seconds()})
			ended++
			if results := r.await(ended); !strings.Contains(results[ended-1], id+" has ended: timed out after") {
				t.Errorf("resolved %q", results)
			}
			_, err := os.Stat(filepath.Join(r.dir, "beat"))
			return err == nil
		})
		r.ended(t)
	})
	t.Run("EX-15 notification of the end, except after a silent success", func(t *testing.T) {
		t.Parallel()
		r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{})
		id := r.start(m{"command": "sleep 0.1; echo done $((1+1)); exit 4"})
		want := "The background command " + id + " has ended: exit code 4 after "
		if results := r.await(1); !strings.HasPrefix(results[0], want) || !strings.HasSuffix(results[0], "done 2") {
			t.Errorf("resolved %q", results)
		}
		if !strings.Contains(r.deferred[0], id) || !strings.Contains(r.deferred[0], "its output is lost") {
			t.Errorf("deferred %q", r.deferred)
		}
		r.start(m{"command": "true"})
		if results := r.await(2); results[1] != "" {
			t.Errorf("silent success: resolved %q", results[1])
		}
		loud := newBackgroundFixture(t, exec.CommandOptions{NotifySilent: true}, exec.Options{})
		loud.start(m{"command": "true"})
		if results := loud.await(1); !strings.Contains(results[0], "exit code 0") {
			t.Errorf("resolved %q", results[0])
		}
	})
	t.Run("EX-15 no notification after a poll that waited for the end", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			broker := &silentBroker{t: t}
			r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{Broker: broker})
			r.dir = dir
			id := r.start(m{"command": "a"})
			go func() {
				time.Sleep(time.Second) // the poll waits
				if _, err := broker.out.Write([]byte("x\n")); err != nil {
					t.Error(err)
				}
				broker.kill()
			}()
			if text, _ := r.end(id); !strings.HasPrefix(text, "x\n\n[exit code -1 after") {
				t.Errorf("poll: %q", text)
			}
			if results := r.await(1); results[0] != "" {
				t.Errorf("resolved %q", results[0])
			}
		})
	})
	t.Run("EX-16 all of 3 MB of output is readable", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		r := newBackgroundFixture(t, exec.CommandOptions{Dir: dir}, exec.Options{})
		text, d, err := r.call(r.tool, m{"command": "seq 400000"})
		id, _ := d["sessionId"].(string)
		if err != nil || id == "" || !strings.HasPrefix(text, "1\n2\n") ||
			!strings.Contains(text, "399999\n400000\n\n[for the whole output use process log with sessionId "+id) {
			t.Fatalf("%q %v, %v", text[len(text)-200:], d, err)
		}
		text, _ = r.do(m{"action": "log", "sessionId": id, "offset": 200_000, "limit": 2})
		if !strings.HasPrefix(text, "200001\n200002\n\n[2 lines from 200000 of 400000") {
			t.Errorf("log: %q", text)
		}
		if names, _ := os.ReadDir(dir); len(names) > 0 {
			t.Errorf("named files: %v", names)
		}
	})
	t.Run("no deferred result, no background command", func(t *testing.T) {
		t.Parallel()
		r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{})
		r.deferErr = func() error { return os.ErrClosed }
		if _, _, err := r.call(r.tool, m{"command": "echo $$ > pid; sleep 9999", "background": true}); err == nil ||
			!strings.Contains(err.Error(), "was ended") {
			t.Errorf("error %v", err)
		}
		if text, _ := r.do(m{"action": "list"}); !strings.Contains(text, "no background") {
			t.Errorf("list: %q", text)
		}
	})
	t.Run("limit of running commands", func(t *testing.T) {
		t.Parallel()
		r := newBackgroundFixture(t, exec.CommandOptions{MaxRunning: 2}, exec.Options{})
		r.start(m{"command": "sleep 9999"})
		id := r.start(m{"command": "sleep 9999"})
		if _, _, err := r.call(r.tool, m{"command": "sleep 9999", "background": true}); err == nil ||
			!strings.Contains(err.Error(), "too many") {
			t.Errorf("error %v", err)
		}
		if text, _, err := r.call(r.tool, m{"command": "sleep 0.3; echo here", "yieldMs": 50}); err != nil || text != "here" {
			t.Errorf("command that cannot go to the background: %q, %v", text, err)
		}
		r.do(m{"action": "kill", "sessionId": id})
		r.start(m{"command": "sleep 9999"})
	})
	t.Run("commands end with Run, and their results stay deferred", func(t *testing.T) {
		t.Parallel()
		r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{})
		c := exec.NewCommands(exec.CommandOptions{Defer: r.deferResult})
		r.fixture = newFixture(t, exec.Options{Commands: c})
		r.process = c.Tool()
		id := r.start(
			m{"command": "trap '' TERM; echo $$ > pid; (setsid sh -c 'while :; do echo x >> beat; sleep 0.05; done' &); sleep 9999"})
		file(t, filepath.Join(r.dir, "beat"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
		r.ended(t)
		if len(r.resolved) > 0 || len(r.deferred) != 1 || !strings.Contains(r.deferred[0], id) {
			t.Errorf("resolved %q, deferred %q", r.resolved, r.deferred)
		}
		if _, _, err := r.call(r.tool, m{"command": "sleep 9999", "background": true}); err == nil {
			t.Error("a command was started after Run")
		}
	})
	t.Run("commands end with their session", func(t *testing.T) {
		t.Parallel()
		r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{})
		id := r.start(m{"command": "echo $$ > pid; exec sleep 9999"})
		pid, _ := strconv.Atoi(file(t, filepath.Join(r.dir, "pid")))
		r.session = "agent:main:other"
		other := r.start(m{"command": "sleep 9999"})
		r.commands.Forget("agent:main:main")
		if results := r.await(1); results[0] != "" || alive(pid) {
			t.Errorf("resolved %q; alive: %v", results, alive(pid))
		}
		r.poll(other, 0)
		r.session = "agent:main:main"
		r.fails(m{"action": "poll", "sessionId": id}, "there is no command")
	})
	t.Run("a command survives the run that started it", func(t *testing.T) {
		t.Parallel()
		r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		raw, _ := json.Marshal(m{"command": "sleep 0.3; echo x > f", "background": true})
		if _, err := r.tool.Run(ctx, tool.Call{Args: raw, Dir: r.dir, Session: r.session, Update: func(string) {}}); err !=
			nil {
			t.Fatal(err)
		}
		cancel()
		file(t, filepath.Join(r.dir, "f"))
	})
}

// file waits until a file has content, and returns the content.
func file(t *testing.T, path string) string {
	t.Helper()
	var b []byte
	waittest.Until(t, "content of "+path, func() bool {
		b, _ = os.ReadFile(path)
		return len(b) > 0
	})
	return strings.TrimSpace(string(b))
}

func TestProcess(t *testing.T) {
	t.Parallel()
	t.Run("PR-01 poll returns new output", func(t *testing.T) {
		t.Parallel()
		r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{})
		id := r.start(m{"command": "for i in 1 2 3; do echo $i; until [ -e go ]; do sleep 0.01; done; done"})
		one := r.see(id, "1")
		if err := os.WriteFile(filepath.Join(r.dir, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		two, d := r.end(id)
		if strings.Contains(one, "2") || strings.Contains(two, "1\n") ||
			!strings.HasPrefix(two, "2\n3\n\n[exit code 0 after ") || d["exitCode"] != 0.0 || d["status"] != "completed" {
			t.Errorf("%q, then %q %v", one, two, d)
		}
		if three, d := r.poll(id, 0); !strings.HasPrefix(three, "(no new output)\n\n[exit code 0") || d["exitCode"] != 0.0 {
			t.Errorf("third poll: %q %v", three, d)
		}
	})
	t.Run("PR-02 log returns lines", func(t *testing.T) {
		t.Parallel()
		r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{})
		id := r.start(m{"command": "seq 500"})
		r.end(id)
		lines := func(from, to int) string {
			var b strings.Builder
			for i := from; i <= to; i++ {
				b.WriteString(strconv.Itoa(i) + "\n")
			}
			return b.String()
		}
		for _, c := range []struct {
			args m
			want string
		}{
			{m{}, lines(301, 500) + "\n[200 lines from 300 of 500; use offset and limit"},
			{m{"offset": 0, "limit": 10}, lines(1, 10) + "\n[10 lines from 0 of 500"},
			{m{"offset": 490}, lines(491, 500) + "\n[10 lines from 490"},
			{m{"limit": 3}, lines(498, 500) + "\n[3 lines from 497"},
			{m{"offset": 900}, "(no output)\n\n[0 lines from 500 of 500"},
			{m{"offset": 0}, lines(1, 500) + "\n[exit code 0"},
		} {
			c.args["action"], c.args["sessionId"] = "log", id
			if text, d := r.do(c.args); !strings.HasPrefix(text, c.want) || d["totalLines"] != 500.0 {
				t.Errorf("%v: %q %v", c.args, text, d)
			}
		}
		long := r.start(m{"command": "for i in 1 2 3 4 5 6 7 8 9; do head -c 20000 /dev/zero | tr '\\0' $i; echo; done"})
		r.end(long)
		if text, _ := r.do(m{"action": "log", "sessionId": long}); len(text) > 60_000 || !strings.Contains(text, "9\n\n[") {
			t.Errorf("%d bytes, without the end", len(text))
		}
		many := r.start(m{"command": "for i in $(seq 100); do printf '%03d%0996d\\n' $i 0; done"})
		r.end(many)
		for _, c := range []struct {
			args        m
			first, note string
		}{
			{m{}, "051", "[50 lines from 50 of 100;"}, // the last ones that fit
			{m{"offset": 20}, "021", "[50 lines from 20 of 100;"},
		} {
			c.args["action"], c.args["sessionId"] = "log", many
			if text, _ := r.do(c.args); !strings.HasPrefix(text, c.first) || !strings.Contains(text, c.note) {
				t.Errorf("%v: %.10s … %q", c.args, text, text[max(0, len(text)-100):])
			}
		}
	})
	t.Run("PR-03 write and end of input", func(t *testing.T) {
		t.Parallel()
		r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{})
		id := r.start(m{"command": "cat"})
		r.do(m{"action": "write", "sessionId": id, "data": "hi\n"})
		r.see(id, "hi")
		r.do(m{"action": "write", "sessionId": id, "data": "bye\n", "eof": true})
		if text, d := r.end(id); !strings.HasPrefix(text, "bye\n\n[exit code 0") || d["exitCode"] != 0.0 {
			t.Errorf("%q %v", text, d)
		}
		if text, _ := r.do(m{"action": "log", "sessionId": id}); !strings.HasPrefix(text, "hi\nbye\n") {
			t.Errorf("log: %q", text)
		}
		r.fails(m{"action": "write", "sessionId": id, "data": "x"}, "has ended")
		open := r.start(m{"command": "cat >/dev/null; sleep 9999"})
		r.do(m{"action": "write", "sessionId": open, "eof": true})
		r.fails(m{"action": "write", "sessionId": open, "data": "x"}, "is closed")
		r.fails(m{"action": "send-keys", "sessionId": open, "keys": []string{"Enter"}}, "no terminal")
		yielded := r.start(m{"command": "sleep 9999", "yieldMs": 20})
		r.fails(m{"action": "submit", "sessionId": yielded}, "is closed")
	})
	t.Run("PR-04 keys and submit in a terminal", func(t *testing.T) {
		t.Parallel()
		r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{})
		id := r.start(m{"command": "PS1='ready> ' exec bash --norc --noprofile --noediting -i", "pty": true,
			"background": true})
		r.see(id, "ready>")
		r.do(m{"action": "write", "sessionId": id, "data": "tty && echo $TERM; stty size"})
		r.do(m{"action": "submit", "sessionId": id})
		if text := r.see(id, "30 120"); !strings.Contains(text, "/dev/") || !strings.Contains(text, "xterm-256color") {
			t.Errorf("got %q", text)
		}
		r.do(m{"action": "send-keys", "sessionId": id, "literal": "sh -c 'echo on$((6*8)); exec sleep 9999' && echo no",
			"keys": []string{}})
		r.do(m{"action": "send-keys", "sessionId": id, "keys": []string{"Enter"}})
		r.see(id, "on48")
		r.do(m{"action": "send-keys", "sessionId": id, "keys": []string{"C-c"}})
		r.see(id, "^C")
		r.fails(m{"action": "paste", "sessionId": id}, "text is missing")
		r.do(m{"action": "paste", "sessionId": id, "text": "printf '<%s>\\n' $((6*7))\r"})
		r.see(id, "<42>")
		r.do(m{"action": "write", "sessionId": id, "eof": true})
		if text, _ := r.end(id); !strings.Contains(text, "[exit code") {
			t.Errorf("after the end of input: %q", text)
		}
	})
	t.Run("cursor position query", func(t *testing.T) {
		t.Parallel()
		r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{})
		id := r.start(
			m{"command": `stty -echo; sleep 0.5; for i in 1 2; do printf '\033[6n'; read -rsd R x; echo "<${x#*[}>"; done`,
				"pty": true, "background": true})
		if text, _ := r.end(id); !strings.HasPrefix(text, "<1;1>\n<1;1>\n\n[exit code 0") {
			t.Errorf("got %q", text)
		}
	})
	t.Run("PR-05 another session's command is not found", func(t *testing.T) {
		t.Parallel()
		r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{})
		id := r.start(m{"command": "sleep 9999"})
		r.session = "agent:other:main"
		for _, a := range []string{"poll", "log", "write", "send-keys", "submit", "paste", "kill", "clear", "remove"} {
			r.fails(m{"action": a, "sessionId": id, "data": "x", "text": "x", "keys": []string{"x"}}, "there is no command")
		}
		if text, d := r.do(m{"action": "list"}); !strings.Contains(text, "no background") || len(d["sessions"].([]any)) > 0 {
			t.Errorf("list: %q %v", text, d)
		}
		r.session = "agent:main:main"
		if _, d := r.poll(id, 0); d["status"] != "running" {
			t.Errorf("status %v, want running", d["status"])
		}
	})
	t.Run("PR-05 in a group members access their own commands, owners all", func(t *testing.T) {
		t.Parallel()
		r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{})
		ann := chela.Principal{ID: "telegram:bot:ann", Scopes: []chela.Scope{chela.ScopeWrite}}
		call := func(principal chela.Principal, tl tool.Tool, args string) (string, error) {
			res, err := tl.Run(chela.WithPrincipal(t.Context(), principal),
				tool.Call{Args: json.RawMessage(args), Dir: r.dir, Session: r.session, Update: func(string) {}})
			if err != nil {
				return "", err
			}
			return res.Content[0].Text, nil
		}
		text, err := call(chela.Owner("socket"), r.tool, `{"command":"cat","background":true}`)
		if err != nil {
			t.Fatal(err)
		}
		_, id, _ := strings.Cut(text, "sessionId ")
		id = id[:6]
		if text, err := call(ann, r.process, `{"action":"write","data":"x\n","sessionId":"`+id+`"}`); err == nil {
			t.Errorf("another member writes to the owner's command: %q", text)
		}
		if text, _ := call(ann, r.process, `{"action":"list"}`); strings.Contains(text, id) {
			t.Errorf("another member sees %q", text)
		}
		if text, err := call(chela.Owner("device:1"), r.process, `{"action":"poll","sessionId":"`+id+`"}`); err != nil ||
			!strings.Contains(text, "[running]") {
			t.Errorf("the owner: %q, %v", text, err)
		}
		if _, err := call(ann, r.tool, `{"command":"sleep 9999","background":true}`); err != nil {
			t.Fatal(err)
		}
		if text, _ := call(chela.Owner("socket"), r.process, `{"action":"list"}`); strings.Count(text, "\n") != 1 {
			t.Errorf("the owner sees %q", text)
		}
	})
	t.Run("PR-06 a command is removed 31 minutes after its end", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{})
			r.dir = dir
			id := r.start(m{"command": "echo x"})
			r.end(id)
			time.Sleep(29 * time.Minute)
			if text, _ := r.do(m{"action": "list"}); !strings.Contains(text, id) {
				t.Errorf("after 29 minutes: %q", text)
			}
			time.Sleep(2 * time.Minute)
			if text, _ := r.do(m{"action": "list"}); strings.Contains(text, id) {
				t.Errorf("after 31 minutes: %q", text)
			}
		})
	})
	t.Run("PR-07 fifty ended commands are retained", func(t *testing.T) {
		t.Parallel()
		r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{})
		var ids []string
		for i := range 51 {
			id := r.start(m{"command": fmt.Sprintf("echo %d", i)})
			r.end(id)
			ids = append(ids, id)
		}
		r.await(51)
		text, d := r.do(m{"action": "list"})
		if n := len(d["sessions"].([]any)); n != 50 || strings.Contains(text, ids[0]) || !strings.Contains(text, ids[50]) {
			t.Errorf("%d commands are listed:\n%s", n, text)
		}
	})
	t.Run("PR-08 kill ends all descendants", func(t *testing.T) {
		t.Parallel()
		r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{})
		id := r.start(
			m{"command": "(setsid sh -c 'trap \"\" TERM; while :; do echo x >> beat; sleep 0.05; done' &) ; sleep 9999 & wait"})
		file(t, filepath.Join(r.dir, "beat"))
		if text, _ := r.do(m{"action": "kill", "sessionId": id}); !strings.HasPrefix(text, "Ended "+id+": ended by SIG") {
			t.Errorf("kill: %q", text)
		}
		r.ended(t)
		if results := r.await(1); results[0] != "" {
			t.Errorf("resolved %q after a kill", results)
		}
		if text, _ := r.do(m{"action": "kill", "sessionId": id}); !strings.Contains(text, "had already ended") {
			t.Errorf("kill again: %q", text)
		}
	})
	t.Run("PR-09 waiting for input", func(t *testing.T) {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			broker := &silentBroker{t: t}
			r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{Broker: broker})
			r.dir = dir
			r.start(m{"command": "a", "yieldMs": 1}) // its input is closed
			r.start(m{"command": "b"})
			id := r.start(m{"command": "c"})
			listed := func(when, want string) {
				t.Helper()
				text, d := r.do(m{"action": "list"})
				waits := map[string]string{}
				for _, x := range d["sessions"].([]any) {
					waits[x.(m)["command"].(string)] = fmt.Sprint(x.(m)["waitingForInput"])
				}
				if got := waits["a"] + " " + waits["b"] + " " + waits["c"]; got != want {
					t.Errorf("%s: %s, want %s", when, got, want)
				}
				if n := strings.Count(text, "(waits for input)"); n != strings.Count(want, "true") {
					t.Errorf("%s: %q, want %s", when, text, want)
				}
			}
			write := func() {
				if _, err := broker.out.Write([]byte("name? ")); err != nil { // of c
					t.Error(err)
				}
			}
			listed("immediately", "false false false")
			time.Sleep(10 * time.Second)
			write()
			time.Sleep(15*time.Second - 1)
			listed("just before 15 s without activity", "false true false")
			time.Sleep(time.Nanosecond)
			listed("after 15 s without activity", "false true true")
			r.do(m{"action": "write", "sessionId": id, "data": "x\n"})
			listed("after a write", "false true false")
			time.Sleep(15 * time.Second)
			listed("15 s after the write", "false true true")
			write()
			listed("after output", "false true false")
			r.do(m{"action": "write", "sessionId": id, "data": "x\n", "eof": true})
			time.Sleep(time.Minute)
			listed("after its input was closed", "false true false")
		})
	})
	t.Run("PR-10 clear is for ended commands, remove for all", func(t *testing.T) {
		t.Parallel()
		r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{})
		id := r.start(m{"command": "echo $$ > pid; exec sleep 9999"})
		pid, _ := strconv.Atoi(file(t, filepath.Join(r.dir, "pid")))
		r.fails(m{"action": "clear", "sessionId": id}, "still running")
		if !alive(pid) {
			t.Fatal("clear ended the command")
		}
		r.do(m{"action": "remove", "sessionId": id})
		if alive(pid) {
			t.Error("remove did not end the command")
		}
		r.fails(m{"action": "poll", "sessionId": id}, "there is no command")
		id = r.start(m{"command": "true"})
		r.end(id)
		r.do(m{"action": "clear", "sessionId": id})
		r.fails(m{"action": "log", "sessionId": id}, "there is no command")
	})
	t.Run("PR-11 most recent part of long output, and separate streams", func(t *testing.T) {
		t.Parallel()
		r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{})
		id := r.start(m{"command": "read x; head -c 69999 /dev/zero | tr '\\0' a; echo; echo bad >&2; read x; head -c 29995 /dev/zero | tr '\\0' z; printf 你"})
		stream := func(name string) string {
			text, _ := r.do(m{"action": "log", "sessionId": id, "stream": name})
			return text
		}
		r.do(m{"action": "submit", "sessionId": id})
		waittest.Until(t, "the first half", func() bool { return strings.HasPrefix(stream("stderr"), "bad\n") })
		r.do(m{"action": "submit", "sessionId": id})
		r.await(1)
		text, d := r.poll(id, 0)
		first, rest, _ := strings.Cut(text, "\n")
		body, _, _ := strings.Cut(rest, "\n\n[")
		if first != "[70000 earlier characters were omitted; see log]" || len([]rune(body)) != 30_000 ||
			!strings.HasSuffix(body, "z你") || d["dropped"] != 70_000.0 {
			t.Errorf("%q, %d characters, %v", first, len([]rune(body)), d["dropped"])
		}
		if text := stream("stderr"); !strings.HasPrefix(text, "bad\n\n[") {
			t.Errorf("stderr: %q", text)
		}
		if text := stream("stdout"); strings.Contains(text, "bad") || !strings.HasPrefix(text, "aaa") {
			t.Errorf("stdout: %q…", text[:20])
		}
		for _, k := range []string{"command", "pid", "startedAt", "endedAt", "cwd", "exitCode"} {
			if d[k] == nil {
				t.Errorf("the details lack %s: %v", k, d)
			}
		}
	})
	t.Run("canceled poll", func(t *testing.T) {
		t.Parallel()
		r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{})
		id := r.start(m{"command": "sleep 9999"})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		raw, _ := json.Marshal(m{"action": "poll", "sessionId": id, "timeout": 30_000})
		if _, err := r.process.Run(ctx, tool.Call{Args: raw, Session: r.session}); err == nil {
			t.Error("no error")
		}
	})
	t.Run("pipes if the broker has no terminals", func(t *testing.T) {
		t.Parallel()
		r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{Broker: plainBroker{}})
		text, _, err := r.call(r.tool, m{"command": "[ -t 1 ] || echo piped", "pty": true})
		if err != nil || !strings.HasPrefix(text, "piped\n\n[terminals are not supported here") {
			t.Errorf("%q, %v", text, err)
		}
	})
}

// silentBroker starts programs that do nothing until they are killed.
type silentBroker struct {
	t    *testing.T
	out  io.Writer // of the last program
	kill func()    // ends the last program
}

func (*silentBroker) Name() string { return "silent" }

func (b *silentBroker) Start(ctx context.Context, p sandbox.Plan, out io.Writer) (sandbox.Process, error) {
	b.out = out
	if f, ok := p.Stdin.(*os.File); ok { // as a program has it, after the caller closed it
		fd, err := syscall.Dup(int(f.Fd()))
		if err != nil {
			return nil, err
		}
		b.t.Cleanup(func() { syscall.Close(fd) })
	}
	ctx, b.kill = context.WithCancel(ctx)
	return silentProcess{ctx, b.kill}, nil
}

type silentProcess struct {
	ctx  context.Context
	kill func()
}

func (p silentProcess) Wait() (sandbox.Exit, error) {
	<-p.ctx.Done()
	return sandbox.Exit{Code: -1}, nil
}
func (p silentProcess) Kill()  { p.kill() }
func (silentProcess) PID() int { return 1 }

// plainBroker is the host broker without terminals.
type plainBroker struct{ host.Broker }

func (b plainBroker) Start(ctx context.Context, p sandbox.Plan, out io.Writer) (sandbox.Process, error) {
	if p.Terminal != nil {
		return nil, sandbox.ErrNoTerminal
	}
	return b.Broker.Start(ctx, p, out)
}

// Not parallel: the suite checks for activity after a call has ended.
func TestProcessConformance(t *testing.T) {
	r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{})
	tooltest.Run(t, r.process, tooltest.Options{Args: []string{`{"action":"list"}`}})
	for _, a := range []string{`{"action":"poll"}`, `{"action":"log","sessionId":"none"}`} {
		if _, err := r.process.Run(t.Context(), tool.Call{Args: json.RawMessage(a)}); err == nil {
			t.Errorf("%s: no error", a)
		}
	}
}

// An approval of a command without input does not cover the same command with input.
func TestInputNeedsApproval(t *testing.T) {
	t.Parallel()
	r := newBackgroundFixture(t, exec.CommandOptions{}, exec.Options{Rules: mode("ask"), Interactive: true})
	hashes := map[string]bool{}
	for _, args := range []m{{}, {"background": true}, {"yieldMs": 500}, {"timeoutSeconds": 5}} {
		args["command"] = "bash"
		p, _, err := r.plan(args)
		if err != nil || !p.Ask {
			t.Fatalf("%v: %+v, %v", args, p, err)
		}
		hashes[p.Hash] = true
		if typed := strings.Contains(p.Text, "while it runs"); typed != (args["background"] == true) {
			t.Errorf("%v: the text is %q", args, p.Text)
		}
	}
	if len(hashes) != 2 {
		t.Errorf("%d hashes, want one for the foreground and one for the background", len(hashes))
	}
}
