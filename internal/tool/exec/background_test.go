//go:build unix

package exec_test

import (
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

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/sandbox"
	"github.com/chela-ai/chela/internal/sandbox/host"
	"github.com/chela-ai/chela/internal/tool"
	"github.com/chela-ai/chela/internal/tool/exec"
	"github.com/chela-ai/chela/internal/tool/tooltest"
)

// room is a workspace with both tools, and what was told of ends.
type room struct {
	*box
	process  tool.Tool
	commands *exec.Commands
	session  chela.SessionKey
	begun    string // what the command that was started last had written by then

	mu    sync.Mutex
	owed  []string
	told  []string
	owing func() error
}

func newRoom(t *testing.T, c exec.CommandOptions, o exec.Options) *room {
	t.Helper()
	r := &room{session: "agent:main:main"}
	if c.Owe == nil {
		c.Owe = r.owe
	}
	r.commands = exec.NewCommands(c)
	o.Commands = r.commands
	r.box = newBox(t, o)
	r.process = r.commands.Tool()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = r.commands.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return r
}

// owe is an exec.Owe.
func (r *room) owe(_ context.Context, _ tool.Call, text string) (func(context.Context, string) error, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.owing != nil {
		if err := r.owing(); err != nil {
			return nil, err
		}
	}
	r.owed = append(r.owed, text)
	return func(_ context.Context, text string) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.told = append(r.told, text)
		return nil
	}, nil
}

// await returns what was told once there is so much of it.
func (r *room) await(n int) []string {
	r.t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		told := append([]string(nil), r.told...)
		r.mu.Unlock()
		if len(told) >= n {
			return told
		}
		if time.Now().After(end) {
			r.t.Fatalf("%d of %d ends were told", len(told), n)
		}
	}
}

// call calls a tool of the session.
func (r *room) call(tl tool.Tool, args m) (string, m, error) {
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
func (r *room) start(args m) string {
	r.t.Helper()
	if args["pty"] == nil && args["yieldMs"] == nil {
		args["background"] = true
	}
	text, d, err := r.call(r.tool, args)
	if err != nil || d["status"] != "running" || !strings.Contains(text, fmt.Sprint("sessionId ", d["sessionId"])) {
		r.t.Fatalf("%v: %q %v, %v", args, text, d, err)
	}
	r.begun = d["tail"].(string)
	return d["sessionId"].(string)
}

// do calls process and must succeed.
func (r *room) do(args m) (string, m) {
	r.t.Helper()
	text, d, err := r.call(r.process, args)
	if err != nil {
		r.t.Fatalf("%v: %v", args, err)
	}
	return text, d
}

func (r *room) poll(id string, timeout int) (string, m) {
	r.t.Helper()
	return r.do(m{"action": "poll", "sessionId": id, "timeout": timeout})
}

// see polls until the output of the command that was started last has a piece.
func (r *room) see(id, piece string) string {
	r.t.Helper()
	all := r.begun
	r.begun = ""
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		text, _ := r.poll(id, 0)
		if !strings.Contains(text, "(no new output)") {
			all += text
		}
		if strings.Contains(all, piece) {
			return all
		}
		if time.Now().After(end) {
			r.t.Fatalf("%q does not come: %q", piece, all)
		}
	}
}

// fails calls process and must not succeed.
func (r *room) fails(args m, says string) {
	r.t.Helper()
	if text, _, err := r.call(r.process, args); err == nil || !strings.Contains(err.Error(), says) {
		r.t.Errorf("%v: %q, %v; want %q", args, text, err, says)
	}
}

func lives(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(b), ") Z ") || err != nil && syscall.Kill(pid, 0) == nil
}

func TestBackground(t *testing.T) {
	t.Parallel()
	t.Run("EX-05 without the tool process a command is ended in time", func(t *testing.T) {
		r := newRoom(t, exec.CommandOptions{}, exec.Options{Timeout: 300 * time.Millisecond, Yield: 50 * time.Millisecond})
		raw, _ := json.Marshal(m{"command": "echo partial; sleep 60", "background": true, "pty": true})
		res, err := r.tool.Run(t.Context(), tool.Call{
			Args: raw, Dir: r.dir, Session: r.session, Update: func(string) {}, Offered: func(name string) bool { return name != "process" },
		})
		if err != nil || !strings.Contains(res.Content[0].Text, "partial") || !strings.Contains(res.Content[0].Text, "timed out after 300ms") ||
			!strings.Contains(res.Content[0].Text, "in the foreground") {
			t.Errorf("%+v, %v", res, err)
		}
		if text, _ := r.do(m{"action": "list"}); !strings.Contains(text, "no background commands") {
			t.Errorf("list: %q", text)
		}
	})
	t.Run("EX-06 a command that takes long goes to the background", func(t *testing.T) {
		r := newRoom(t, exec.CommandOptions{}, exec.Options{})
		began := time.Now()
		text, d, err := r.call(r.tool, m{"command": "echo up; sleep 15", "yieldMs": 300})
		if took := time.Since(began); err != nil || took < 300*time.Millisecond || took > 3*time.Second || d["status"] != "running" || d["tail"] != "up" || !strings.HasPrefix(text, "up\n\n[still running") {
			t.Errorf("after %v: %q %v, %v", took, text, d, err)
		}
		if pid := int(d["pid"].(float64)); !lives(pid) {
			t.Error("it does not run")
		}
		if text, _ := r.poll(d["sessionId"].(string), 0); text != "(no new output)\n\n[running]" {
			t.Errorf("poll: %q", text)
		}
	})
	t.Run("EX-06 of much output it gives the ends, and the next poll what is new", func(t *testing.T) {
		r := newRoom(t, exec.CommandOptions{}, exec.Options{})
		text, d, err := r.call(r.tool, m{"command": "seq 20000; sleep 0.6; echo later", "yieldMs": 400})
		if err != nil || len(text) > 10_300 || !strings.HasPrefix(text, "1\n2\n") || !strings.Contains(text, "20000\n\n[still running") {
			t.Fatalf("%d bytes, %v", len(text), err)
		}
		if text, _ := r.poll(d["sessionId"].(string), 20_000); !strings.HasPrefix(text, "later\n\n[exit code 0") {
			t.Errorf("poll: %q", text)
		}
	})
	t.Run("EX-07 background returns at once", func(t *testing.T) {
		r := newRoom(t, exec.CommandOptions{}, exec.Options{})
		began := time.Now()
		r.start(m{"command": "sleep 15"})
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
		p, _, err := r.plan(m{"command": "sleep 15", "background": true, "timeoutSeconds": 0})
		if err != nil || p.Effect != tool.Acts || !strings.Contains(p.Text, "without a time limit, in the background") {
			t.Errorf("plan: %+v, %v", p, err)
		}
	})
	t.Run("EX-08 the time limit holds in the background", func(t *testing.T) {
		r := newRoom(t, exec.CommandOptions{}, exec.Options{})
		id := r.start(m{"command": "(while :; do echo x >> beat; sleep 0.05; done) & wait", "timeoutSeconds": 0.5})
		if told := r.await(1); !strings.Contains(told[0], id+" has ended: timed out after") {
			t.Errorf("told %q", told)
		}
		still(t, filepath.Join(r.dir, "beat"))
	})
	t.Run("EX-15 the end is told, a quiet success is not", func(t *testing.T) {
		r := newRoom(t, exec.CommandOptions{}, exec.Options{})
		id := r.start(m{"command": "sleep 0.1; echo done $((1+1)); exit 4"})
		want := "The background command " + id + " has ended: exit code 4 after "
		if told := r.await(1); !strings.HasPrefix(told[0], want) || !strings.HasSuffix(told[0], "done 2") {
			t.Errorf("told %q", told)
		}
		if !strings.Contains(r.owed[0], id) || !strings.Contains(r.owed[0], "its output is lost") {
			t.Errorf("owed %q", r.owed)
		}
		r.start(m{"command": "true"})
		if told := r.await(2); told[1] != "" {
			t.Errorf("a quiet success: told %q", told[1])
		}
		loud := newRoom(t, exec.CommandOptions{TellQuiet: true}, exec.Options{})
		loud.start(m{"command": "true"})
		if told := loud.await(1); !strings.Contains(told[0], "exit code 0") {
			t.Errorf("told %q", told[0])
		}
	})
	t.Run("EX-15 who waited for the end is not told twice", func(t *testing.T) {
		r := newRoom(t, exec.CommandOptions{}, exec.Options{})
		id := r.start(m{"command": "sleep 0.2; echo x; exit 1"})
		if text, _ := r.poll(id, 20_000); !strings.HasPrefix(text, "x\n\n[exit code 1 after") {
			t.Errorf("poll: %q", text)
		}
		if told := r.await(1); told[0] != "" {
			t.Errorf("told %q", told[0])
		}
	})
	t.Run("EX-16 3 MB: all of it can be had", func(t *testing.T) {
		dir := t.TempDir()
		r := newRoom(t, exec.CommandOptions{Dir: dir}, exec.Options{})
		text, d, err := r.call(r.tool, m{"command": "seq 400000"})
		id, _ := d["sessionId"].(string)
		if err != nil || id == "" || !strings.HasPrefix(text, "1\n2\n") || !strings.Contains(text, "399999\n400000\n\n[all of the output: process log, sessionId "+id) {
			t.Fatalf("%q %v, %v", text[len(text)-200:], d, err)
		}
		text, _ = r.do(m{"action": "log", "sessionId": id, "offset": 200_000, "limit": 2})
		if !strings.HasPrefix(text, "200001\n200002\n\n[2 lines from 200000 of 400000") {
			t.Errorf("log: %q", text)
		}
		if names, _ := os.ReadDir(dir); len(names) > 0 {
			t.Errorf("files with a name: %v", names)
		}
	})
	t.Run("what cannot be promised does not run", func(t *testing.T) {
		r := newRoom(t, exec.CommandOptions{}, exec.Options{})
		r.owing = func() error { return os.ErrClosed }
		if _, _, err := r.call(r.tool, m{"command": "echo $$ > pid; sleep 60", "background": true}); err == nil || !strings.Contains(err.Error(), "was ended") {
			t.Errorf("error %v", err)
		}
		if text, _ := r.do(m{"action": "list"}); !strings.Contains(text, "no background") {
			t.Errorf("list: %q", text)
		}
	})
	t.Run("only so many run", func(t *testing.T) {
		r := newRoom(t, exec.CommandOptions{MaxRunning: 2}, exec.Options{})
		r.start(m{"command": "sleep 60"})
		id := r.start(m{"command": "sleep 60"})
		if _, _, err := r.call(r.tool, m{"command": "sleep 60", "background": true}); err == nil || !strings.Contains(err.Error(), "too many") {
			t.Errorf("error %v", err)
		}
		if text, _, err := r.call(r.tool, m{"command": "sleep 0.3; echo here", "yieldMs": 50}); err != nil || text != "here" {
			t.Errorf("one that cannot yield: %q, %v", text, err)
		}
		r.do(m{"action": "kill", "sessionId": id})
		r.start(m{"command": "sleep 60"})
	})
	t.Run("commands end with their owner, and what is owed stands", func(t *testing.T) {
		r := newRoom(t, exec.CommandOptions{}, exec.Options{})
		c := exec.NewCommands(exec.CommandOptions{Owe: r.owe})
		r.box = newBox(t, exec.Options{Commands: c})
		r.process = c.Tool()
		id := r.start(m{"command": "trap '' TERM; echo $$ > pid; (setsid sh -c 'while :; do echo x >> beat; sleep 0.05; done' &); sleep 60"})
		file(t, filepath.Join(r.dir, "beat"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
		still(t, filepath.Join(r.dir, "beat"))
		if len(r.told) > 0 || len(r.owed) != 1 || !strings.Contains(r.owed[0], id) {
			t.Errorf("told %q, owed %q", r.told, r.owed)
		}
		if _, _, err := r.call(r.tool, m{"command": "sleep 60", "background": true}); err == nil {
			t.Error("a command was begun afterwards")
		}
	})
	t.Run("commands end with their session", func(t *testing.T) {
		r := newRoom(t, exec.CommandOptions{}, exec.Options{})
		id := r.start(m{"command": "echo $$ > pid; exec sleep 60"})
		pid, _ := strconv.Atoi(file(t, filepath.Join(r.dir, "pid")))
		r.session = "agent:main:other"
		other := r.start(m{"command": "sleep 60"})
		r.commands.Forget("agent:main:main")
		if told := r.await(1); told[0] != "" || lives(pid) {
			t.Errorf("told %q; it lives: %v", told, lives(pid))
		}
		r.poll(other, 0)
		r.session = "agent:main:main"
		r.fails(m{"action": "poll", "sessionId": id}, "there is no command")
	})
	t.Run("the end of the run that began it does not end it", func(t *testing.T) {
		r := newRoom(t, exec.CommandOptions{}, exec.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		raw, _ := json.Marshal(m{"command": "sleep 0.3; echo x > f", "background": true})
		if _, err := r.tool.Run(ctx, tool.Call{Args: raw, Dir: r.dir, Session: r.session, Update: func(string) {}}); err != nil {
			t.Fatal(err)
		}
		cancel()
		file(t, filepath.Join(r.dir, "f"))
	})
}

// file waits for a file with something in it, and returns that.
func file(t *testing.T, path string) string {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if b, _ := os.ReadFile(path); len(b) > 0 {
			return strings.TrimSpace(string(b))
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not come", path)
		}
	}
}

func TestProcess(t *testing.T) {
	t.Parallel()
	t.Run("PR-01 a poll gives what is new", func(t *testing.T) {
		r := newRoom(t, exec.CommandOptions{}, exec.Options{})
		id := r.start(m{"command": "for i in 1 2 3; do echo $i; sleep 0.4; done"})
		one := r.see(id, "1")
		two, d := r.poll(id, 20_000)
		if strings.Contains(one, "2") || strings.Contains(two, "1\n") || !strings.HasPrefix(two, "2\n3\n\n[exit code 0 after ") || d["exitCode"] != 0.0 || d["status"] != "completed" {
			t.Errorf("%q, then %q %v", one, two, d)
		}
		if three, d := r.poll(id, 0); !strings.HasPrefix(three, "(no new output)\n\n[exit code 0") || d["exitCode"] != 0.0 {
			t.Errorf("once more: %q %v", three, d)
		}
	})
	t.Run("PR-02 the log has lines", func(t *testing.T) {
		r := newRoom(t, exec.CommandOptions{}, exec.Options{})
		id := r.start(m{"command": "seq 500"})
		r.poll(id, 20_000)
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
		r.poll(long, 20_000)
		if text, _ := r.do(m{"action": "log", "sessionId": long}); len(text) > 60_000 || !strings.Contains(text, "9\n\n[") {
			t.Errorf("%d bytes, without the end", len(text))
		}
	})
	t.Run("PR-03 write and end of input", func(t *testing.T) {
		r := newRoom(t, exec.CommandOptions{}, exec.Options{})
		id := r.start(m{"command": "cat"})
		r.do(m{"action": "write", "sessionId": id, "data": "hi\n"})
		r.see(id, "hi")
		r.do(m{"action": "write", "sessionId": id, "data": "bye\n", "eof": true})
		if text, d := r.poll(id, 20_000); !strings.HasPrefix(text, "bye\n\n[exit code 0") || d["exitCode"] != 0.0 {
			t.Errorf("%q %v", text, d)
		}
		if text, _ := r.do(m{"action": "log", "sessionId": id}); !strings.HasPrefix(text, "hi\nbye\n") {
			t.Errorf("log: %q", text)
		}
		r.fails(m{"action": "write", "sessionId": id, "data": "x"}, "has ended")
		open := r.start(m{"command": "cat >/dev/null; sleep 60"})
		r.do(m{"action": "write", "sessionId": open, "eof": true})
		r.fails(m{"action": "write", "sessionId": open, "data": "x"}, "is closed")
		r.fails(m{"action": "send-keys", "sessionId": open, "keys": []string{"Enter"}}, "no terminal")
		yielded := r.start(m{"command": "sleep 60", "yieldMs": 20})
		r.fails(m{"action": "submit", "sessionId": yielded}, "is closed")
	})
	t.Run("PR-04 keys and a carriage return reach a program in a terminal", func(t *testing.T) {
		r := newRoom(t, exec.CommandOptions{}, exec.Options{})
		id := r.start(m{"command": "PS1='ready> ' exec bash --norc --noprofile --noediting -i", "pty": true, "background": true})
		r.see(id, "ready>")
		r.do(m{"action": "write", "sessionId": id, "data": "tty && echo $TERM; stty size"})
		r.do(m{"action": "submit", "sessionId": id})
		if text := r.see(id, "30 120"); !strings.Contains(text, "/dev/") || !strings.Contains(text, "xterm-256color") {
			t.Errorf("got %q", text)
		}
		r.do(m{"action": "send-keys", "sessionId": id, "literal": "sleep 60 && echo no", "keys": []string{}})
		r.do(m{"action": "send-keys", "sessionId": id, "keys": []string{"Enter"}})
		time.Sleep(200 * time.Millisecond)
		r.do(m{"action": "send-keys", "sessionId": id, "keys": []string{"C-c"}})
		r.see(id, "^C")
		r.do(m{"action": "paste", "sessionId": id, "text": "printf '<%s>\\n' $((6*7))\r"})
		r.see(id, "<42>")
		r.do(m{"action": "write", "sessionId": id, "eof": true})
		if text, _ := r.poll(id, 20_000); !strings.Contains(text, "[exit code") {
			t.Errorf("after the end of input: %q", text)
		}
	})
	t.Run("a program that asks where the cursor is gets an answer", func(t *testing.T) {
		r := newRoom(t, exec.CommandOptions{}, exec.Options{})
		id := r.start(m{"command": `stty -echo; sleep 0.5; for i in 1 2; do printf '\033[6n'; read -rsd R x; echo "<${x#*[}>"; done`, "pty": true, "background": true})
		if text, _ := r.poll(id, 20_000); !strings.HasPrefix(text, "<1;1>\n<1;1>\n\n[exit code 0") {
			t.Errorf("got %q", text)
		}
	})
	t.Run("PR-05 another session's command is not found", func(t *testing.T) {
		r := newRoom(t, exec.CommandOptions{}, exec.Options{})
		id := r.start(m{"command": "sleep 60"})
		r.session = "agent:other:main"
		for _, a := range []string{"poll", "log", "write", "send-keys", "submit", "paste", "kill", "clear", "remove"} {
			r.fails(m{"action": a, "sessionId": id, "data": "x", "text": "x", "keys": []string{"x"}}, "there is no command")
		}
		if text, d := r.do(m{"action": "list"}); !strings.Contains(text, "no background") || len(d["sessions"].([]any)) > 0 {
			t.Errorf("list: %q %v", text, d)
		}
		r.session = "agent:main:main"
		if _, d := r.poll(id, 0); d["status"] != "running" {
			t.Errorf("it is %v", d["status"])
		}
	})
	t.Run("PR-05 in a group each has their own commands, and the owner all", func(t *testing.T) {
		r := newRoom(t, exec.CommandOptions{}, exec.Options{})
		ann := chela.Principal{ID: "telegram:bot:ann", Scopes: []chela.Scope{chela.ScopeWrite}}
		call := func(who chela.Principal, tl tool.Tool, args string) (string, error) {
			res, err := tl.Run(chela.WithPrincipal(t.Context(), who), tool.Call{Args: json.RawMessage(args), Dir: r.dir, Session: r.session, Update: func(string) {}})
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
			t.Errorf("another types into the owner's command: %q", text)
		}
		if text, _ := call(ann, r.process, `{"action":"list"}`); strings.Contains(text, id) {
			t.Errorf("another sees %q", text)
		}
		if text, err := call(chela.Owner("device:1"), r.process, `{"action":"poll","sessionId":"`+id+`"}`); err != nil || !strings.Contains(text, "[running]") {
			t.Errorf("the owner: %q, %v", text, err)
		}
		if _, err := call(ann, r.tool, `{"command":"sleep 60","background":true}`); err != nil {
			t.Fatal(err)
		}
		if text, _ := call(chela.Owner("socket"), r.process, `{"action":"list"}`); strings.Count(text, "\n") != 1 {
			t.Errorf("the owner sees %q", text)
		}
	})
	t.Run("PR-06 what ended 31 minutes ago is gone", func(t *testing.T) {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			r := newRoom(t, exec.CommandOptions{}, exec.Options{})
			r.dir = dir
			id := r.start(m{"command": "echo x"})
			r.poll(id, 20_000)
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
	t.Run("PR-07 fifty that ended are kept", func(t *testing.T) {
		r := newRoom(t, exec.CommandOptions{}, exec.Options{})
		var ids []string
		for i := range 51 {
			id := r.start(m{"command": fmt.Sprintf("echo %d", i)})
			r.poll(id, 20_000)
			ids = append(ids, id)
		}
		r.await(51)
		text, d := r.do(m{"action": "list"})
		if n := len(d["sessions"].([]any)); n != 50 || strings.Contains(text, ids[0]) || !strings.Contains(text, ids[50]) {
			t.Errorf("%d are listed:\n%s", n, text)
		}
	})
	t.Run("PR-08 kill leaves no child", func(t *testing.T) {
		r := newRoom(t, exec.CommandOptions{}, exec.Options{})
		id := r.start(m{"command": "(setsid sh -c 'trap \"\" TERM; while :; do echo x >> beat; sleep 0.05; done' &) ; sleep 60 & wait"})
		file(t, filepath.Join(r.dir, "beat"))
		if text, _ := r.do(m{"action": "kill", "sessionId": id}); !strings.HasPrefix(text, "Ended "+id+": ended by SIG") {
			t.Errorf("kill: %q", text)
		}
		still(t, filepath.Join(r.dir, "beat"))
		if told := r.await(1); told[0] != "" {
			t.Errorf("told %q of what it did itself", told)
		}
		if text, _ := r.do(m{"action": "kill", "sessionId": id}); !strings.Contains(text, "had ended before") {
			t.Errorf("kill again: %q", text)
		}
	})
	t.Run("PR-09 an open input and silence is waiting", func(t *testing.T) {
		r := newRoom(t, exec.CommandOptions{Idle: 300 * time.Millisecond}, exec.Options{})
		id := r.start(m{"command": "sleep 60"})
		r.start(m{"command": "sleep 60", "yieldMs": 1}) // without an input
		waits := func() string {
			_, d := r.do(m{"action": "list"})
			var s []string
			for _, x := range d["sessions"].([]any) {
				s = append(s, fmt.Sprint(x.(m)["waitingForInput"]))
			}
			return strings.Join(s, " ")
		}
		if got := waits(); got != "false false" {
			t.Errorf("at once: %s", got)
		}
		time.Sleep(320 * time.Millisecond)
		if got := waits(); got != "false true" {
			t.Errorf("after a while: %s", got)
		}
		r.do(m{"action": "write", "sessionId": id, "data": "x\n"})
		if got := waits(); got != "false false" {
			t.Errorf("after an input: %s", got)
		}
	})
	t.Run("PR-10 clear is for those that ended, remove for all", func(t *testing.T) {
		r := newRoom(t, exec.CommandOptions{}, exec.Options{})
		id := r.start(m{"command": "echo $$ > pid; exec sleep 60"})
		pid, _ := strconv.Atoi(file(t, filepath.Join(r.dir, "pid")))
		r.fails(m{"action": "clear", "sessionId": id}, "still runs")
		if !lives(pid) {
			t.Fatal("clear ended it")
		}
		r.do(m{"action": "remove", "sessionId": id})
		if lives(pid) {
			t.Error("remove did not end it")
		}
		r.fails(m{"action": "poll", "sessionId": id}, "there is no command")
		id = r.start(m{"command": "true"})
		r.poll(id, 20_000)
		r.do(m{"action": "clear", "sessionId": id})
		r.fails(m{"action": "log", "sessionId": id}, "there is no command")
	})
	t.Run("PR-11 the newest of much output, the streams apart", func(t *testing.T) {
		r := newRoom(t, exec.CommandOptions{}, exec.Options{})
		id := r.start(m{"command": "sleep 0.5; head -c 69999 /dev/zero | tr '\\0' a; echo; echo bad >&2; sleep 0.1; head -c 29995 /dev/zero | tr '\\0' z; printf 你"})
		r.await(1)
		text, d := r.poll(id, 0)
		first, rest, _ := strings.Cut(text, "\n")
		body, _, _ := strings.Cut(rest, "\n\n[")
		if first != "[70000 characters before this were left out; see log]" || len([]rune(body)) != 30_000 || !strings.HasSuffix(body, "z你") || d["dropped"] != 70_000.0 {
			t.Errorf("%q, %d characters, %v", first, len([]rune(body)), d["dropped"])
		}
		if text, _ := r.do(m{"action": "log", "sessionId": id, "stream": "stderr"}); !strings.HasPrefix(text, "bad\n\n[") {
			t.Errorf("stderr: %q", text)
		}
		if text, _ := r.do(m{"action": "log", "sessionId": id, "stream": "stdout"}); strings.Contains(text, "bad") || !strings.HasPrefix(text, "aaa") {
			t.Errorf("stdout: %q…", text[:20])
		}
		for _, k := range []string{"command", "pid", "startedAt", "endedAt", "cwd", "exitCode"} {
			if d[k] == nil {
				t.Errorf("the record lacks %s: %v", k, d)
			}
		}
	})
	t.Run("a call that is aborted in a poll", func(t *testing.T) {
		r := newRoom(t, exec.CommandOptions{}, exec.Options{})
		id := r.start(m{"command": "sleep 60"})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		raw, _ := json.Marshal(m{"action": "poll", "sessionId": id, "timeout": 30_000})
		if _, err := r.process.Run(ctx, tool.Call{Args: raw, Session: r.session}); err == nil {
			t.Error("no error")
		}
	})
	t.Run("a broker without terminals gives pipes, and says so", func(t *testing.T) {
		r := newRoom(t, exec.CommandOptions{}, exec.Options{Broker: plainBroker{}})
		text, _, err := r.call(r.tool, m{"command": "[ -t 1 ] || echo piped", "pty": true})
		if err != nil || !strings.HasPrefix(text, "piped\n\n[there are no terminals here") {
			t.Errorf("%q, %v", text, err)
		}
	})
}

// plainBroker is the host without terminals.
type plainBroker struct{ host.Broker }

func (b plainBroker) Start(ctx context.Context, p sandbox.Plan, out io.Writer) (sandbox.Process, error) {
	if p.Terminal != nil {
		return nil, sandbox.ErrNoTerminal
	}
	return b.Broker.Start(ctx, p, out)
}

// Not parallel: the suite looks at what goes on when a call has ended.
func TestProcessConformance(t *testing.T) {
	r := newRoom(t, exec.CommandOptions{}, exec.Options{})
	tooltest.Run(t, r.process, tooltest.Options{Args: []string{`{"action":"list"}`}})
	for _, a := range []string{`{"action":"poll"}`, `{"action":"log","sessionId":"none"}`} {
		if _, err := r.process.Run(t.Context(), tool.Call{Args: json.RawMessage(a)}); err == nil {
			t.Errorf("%s: no error", a)
		}
	}
}

// What may be typed into is more than what may not: it is allowed anew.
func TestInputIsAllowedAnew(t *testing.T) {
	t.Parallel()
	r := newRoom(t, exec.CommandOptions{}, exec.Options{Rules: mode("ask"), Interactive: true})
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
