package offline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/heartbeat"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	corerun "github.com/chela-ai/chela/internal/core/run"
	"github.com/chela-ai/chela/internal/core/untrusted"
)

// talk is a conversation with the assistant, with simulated tools.
type talk struct {
	t        *testing.T
	p        *Provider
	tools    []string
	files    map[string]string
	exec     func(command string) (string, bool)
	jobs     string // result of listing the jobs; empty: jobs
	cron     string // error of other calls of cron
	messages []*llm.Message
	log      []string // the calls of the last turn
}

func newTalk(t *testing.T) *talk {
	return &talk{t: t, p: New(), tools: []string{"edit", "exec", "find", "grep", "ls", "read", "session_status", "write"},
		files: map[string]string{}}
}

// say sends a message and returns the reply.
func (k *talk) say(text string) string {
	k.t.Helper()
	k.messages = append(k.messages, llm.User(text))
	k.log = nil
	for range 10 {
		r := request(k.tools, k.messages...)
		if err := llmtest.Validate(r); err != nil {
			k.t.Fatalf("invalid request: %v", err)
		}
		m := collect(k.t, k.p, r)
		k.messages = append(k.messages, m)
		calls := m.Calls()
		if len(calls) == 0 {
			return m.PlainText()
		}
		for _, c := range calls {
			k.log = append(k.log, c.Name+" "+string(c.Args))
			out, ok := k.call(c)
			k.messages = append(k.messages, &llm.Message{
				Role:     llm.RoleTool,
				CallID:   c.ID,
				ToolName: c.Name,
				IsError:  !ok,
				Parts:    []llm.Part{llm.Text(out)},
			})
		}
	}
	k.t.Fatalf("%q does not end: %q", text, k.log)
	return ""
}

// call runs a simulated tool.
func (k *talk) call(c llm.ToolCall) (string, bool) {
	var a struct {
		Path, Pattern, OldText, NewText, Content, Command, Action string
		Query                                                     string
		Offset, Limit, From, Lines                                int
	}
	if err := json.Unmarshal(c.Args, &a); err != nil {
		k.t.Fatalf("%s: %v", c.Args, err)
	}
	text, there := k.files[a.Path]
	switch c.Name {
	case "read":
		if !there {
			// in the form of package invoke
			return `{"status":"error","tool":"read","error":"` + a.Path + ` does not exist"}`, false
		}
		return shown(a.Path, text, max(a.Offset, 1), a.Limit), true
	case "write":
		k.files[a.Path] = a.Content
		return fmt.Sprintf("Created %s (%d bytes).", a.Path, len(a.Content)), true
	case "edit":
		if strings.Contains(text, "\r\n") {
			a.OldText, a.NewText = strings.ReplaceAll(a.OldText, "\n", "\r\n"), strings.ReplaceAll(a.NewText, "\n", "\r\n")
		}
		if strings.Count(text, a.OldText) != 1 {
			return "oldText does not occur exactly once", false
		}
		k.files[a.Path] = strings.Replace(text, a.OldText, a.NewText, 1)
		return "Edited " + a.Path + ".", true
	case "memory_search":
		return k.search(a.Query), true
	case "memory_get":
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		part := strings.Join(lines[a.From-1:min(a.From-1+a.Lines, len(lines))], "\n")
		if strings.HasPrefix(a.Path, "memory/imports/") {
			part = untrusted.New().Wrap(a.Path, "imported, "+untrusted.Data, part)
		}
		return part, there
	case "ls":
		return "[folder] src\n[file] a.txt (3 bytes)\n[file] b.txt (3 bytes)", true
	case "grep":
		if there {
			return matches(a.Path, text, a.Pattern), true
		}
		if a.Path == memoryFile {
			return a.Path + " does not exist", false
		}
		return "a.txt:1: " + a.Pattern + "\nb.txt:7: " + a.Pattern, true
	case "find":
		return "x/one.go\nx/two.go", true
	case "cron":
		if a.Action == "list" {
			return cmp.Or(k.jobs, jobs), true
		}
		return cmp.Or(k.cron, "{}"), k.cron == ""
	case "session_status":
		return "Time: Wednesday, 4 March 2026, 12:00:00 +00:00 (UTC)\nModel: offline/assistant", true
	case "web_fetch":
		return "https://a.example (200 OK, text/html)\n<untrusted-content id=\"1\" source=\"web_fetch\">\nText from the web.\n---\nTitle: A\n\nHello.\n</untrusted-content id=\"1\">", true
	case "exec":
		if k.exec == nil {
			return "ok", true
		}
		return k.exec(a.Command)
	}
	return "no such tool", false
}

// search is memory_search with the words of a question.
func (k *talk) search(question string) string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(k.files)) {
		if found, text := false, k.files[path]; path == memoryFile || strings.HasPrefix(path, "memory/") {
			for _, w := range keys(question) {
				found = found || share(strings.ToLower(text), []string{w}) > 0
			}
			if found {
				fmt.Fprintf(&b, "%s:1-%d (score 0.80, changed 2026-11-20)\n%s\n\n", path, strings.Count(text, "\n"),
					strings.TrimSpace(text))
			}
		}
	}
	return cmp.Or(strings.TrimSpace(b.String()), "No note answers that.")
}

// matches returns the lines of a file that match a pattern.
func matches(path, text, pattern string) string {
	re, n := regexp.MustCompile("(?i)"+pattern), 0
	var b strings.Builder
	for line := range strings.Lines(text) {
		if n++; re.MatchString(line) {
			fmt.Fprintf(&b, "%s:%d: %s", path, n, line)
		}
	}
	return cmp.Or(strings.TrimSuffix(b.String(), "\n"), "No match.")
}

// shown returns a file like the read tool, 200 lines at a time.
func shown(path, text string, from, limit int) string {
	if text == "" {
		return path + " is empty."
	}
	plain := strings.ReplaceAll(text, "\r\n", "\n")
	lines := strings.Split(strings.TrimSuffix(plain, "\n"), "\n")
	var b strings.Builder
	for i := from; i <= len(lines); i++ {
		if i == from+cmp.Or(limit, 200) {
			fmt.Fprintf(&b, "\n[Lines %d-%d. More lines follow: use offset %d.]", from, i-1, i)
			break
		}
		fmt.Fprintf(&b, "%6d\t%s\n", i, lines[i-1])
	}
	if plain != text {
		b.WriteString("\n[Lines end with CR LF. The file is in ISO-8859-1, which write, edit and apply_patch keep.]")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// collect reads a stream and checks its events.
func collect(t *testing.T, p *Provider, r *llm.Request) *llm.Message {
	t.Helper()
	var text strings.Builder
	var m *llm.Message
	args := map[int]string{}
	for e, err := range p.stream(t.Context(), r, testNow) {
		if err != nil {
			t.Fatal(err)
		}
		if m != nil {
			t.Fatal("event after Done")
		}
		switch e.Kind {
		case llm.TextDelta:
			text.WriteString(e.Text)
			if n := len([]rune(e.Text)); n > deltaSize {
				t.Errorf("a delta of %d characters", n)
			}
		case llm.CallDelta:
			args[e.Index] += e.Text
		case llm.Done:
			m = e.Message
			if u := e.Usage; !u.Estimated || u.Input == 0 {
				t.Errorf("usage %+v, want an estimate", u)
			}
		}
	}
	if m == nil || m.PlainText() != text.String() || m.Provider != Name {
		t.Fatalf("deltas %q, message %+v", text.String(), m)
	}
	for i, c := range m.Calls() {
		if string(c.Args) != args[i] || m.Stop != llm.StopTools {
			t.Errorf("call %d: deltas %s, message %s, stop %s", i, args[i], c.Args, m.Stop)
		}
	}
	return m
}

// has checks that a reply contains the texts.
func has(t *testing.T, reply string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(reply, w) {
			t.Errorf("the reply lacks %q:\n%s", w, reply)
		}
	}
}

// calls checks the calls of the last turn.
func (k *talk) calls(want ...string) {
	k.t.Helper()
	if strings.Join(k.log, "\n") != strings.Join(want, "\n") {
		k.t.Errorf("the calls are\n%s\nwant\n%s", strings.Join(k.log, "\n"), strings.Join(want, "\n"))
	}
}

func TestTalk(t *testing.T) {
	t.Parallel()
	t.Run("it says first, and once, that it is not a language model", func(t *testing.T) {
		k := newTalk(t)
		if line, _, _ := strings.Cut(k.say("list files"), "\n"); !strings.Contains(line, "not a language model") {
			t.Errorf("the first line is %q", line)
		}
		if got := k.say("你好"); strings.Contains(got, "不是语言模型：") {
			t.Errorf("repeated disclosure: %s", got)
		}
		if line, _, _ := strings.Cut(newTalk(t).say("你好"), "\n"); !strings.Contains(line, "不是语言模型") {
			t.Errorf("the first line in Chinese is %q", line)
		}
	})
	t.Run("another model's messages do not count as its own", func(t *testing.T) {
		k := newTalk(t)
		k.messages = []*llm.Message{llm.User("hi"),
			{Role: llm.RoleAssistant, Provider: "openai", Parts: []llm.Part{llm.Text("Hello.")}}}
		has(t, k.say("help"), "not a language model")
	})
	t.Run("a page without the mark for models", func(t *testing.T) {
		k := newTalk(t)
		k.tools = append(k.tools[:7:7], "web_fetch", "write")
		got := k.say("fetch https://a.example")
		has(t, got, "(200 OK, text/html)\n\nTitle: A\n\nHello.\n```")
		if strings.Contains(got, "untrusted") {
			t.Error(got)
		}
	})
	t.Run("files in parallel", func(t *testing.T) {
		k := newTalk(t)
		k.files["a.txt"], k.files["b.txt"] = "alpha\n", "beta\n"
		has(t, k.say("read a.txt and b.txt"), "alpha", "beta")
		if len(k.messages) != 5 || len(k.messages[1].Calls()) != 2 {
			t.Errorf("the calls are not in one message: %q", k.log)
		}
	})
	t.Run("sequential steps, in which “it” is the file just created", func(t *testing.T) {
		k := newTalk(t)
		has(t, k.say("create hello.txt with 'hi' then show it"), "Created hello.txt", "hi")
		k.calls(`write {"content":"hi\n","path":"hello.txt"}`, `read {"path":"hello.txt"}`)
		has(t, k.say("现在再看看它"), "hello.txt")
		k.calls(`read {"path":"hello.txt"}`)
		k.say("create other.txt with 'ho'")
		has(t, k.say("show it"), "ho")
		k.calls(`read {"path":"other.txt"}`)
		k.say("create hello.sh with 'echo hi' then run it")
		k.calls(`write {"content":"echo hi\n","path":"hello.sh"}`, `exec {"command":"sh hello.sh"}`)
	})
	t.Run("a failure is reported and ends the request", func(t *testing.T) {
		k := newTalk(t)
		got := k.say("show gone.txt then list files")
		has(t, got, "failed", ": gone.txt does not exist", "I skipped the rest")
		k.calls(`read {"path":"gone.txt"}`)
		if got := k.say("show gone.txt"); strings.Contains(got, "rest") {
			t.Errorf("there is no rest: %s", got)
		}
		k.files["a.txt"] = "alpha\n"
		has(t, k.say("看看 a.txt 和 gone.txt"), "alpha", "没有成功")
	})
	t.Run("a command's exit code and empty output are reported", func(t *testing.T) {
		k := newTalk(t)
		k.exec = func(c string) (string, bool) {
			switch c {
			case "false":
				return "oh no\n\n[exit code 3]", true
			case "curl -s x":
				return "[exit code 7]", true
			}
			return "[succeeded, no output]", true
		}
		has(t, k.say("run false"), "exit code 3", "oh no")
		has(t, k.say("run true"), "`true` succeeded without output")
		has(t, k.say("run `curl -s x`"), "`curl -s x` failed (exit code 7) without output.")
	})
	t.Run("notes about a command are shown, without what only a model can use", func(t *testing.T) {
		k := newTalk(t)
		k.exec = func(c string) (string, bool) {
			switch c {
			case "quiet":
				return "[succeeded, no output; files in /tmp are those of this command only and gone with it: the sandbox has a /tmp of its own]", true
			case "server":
				return "[still running in the background as sessionId ab, pid 12; use process to poll, write to or end it]", true
			case "rm":
				return "no\n\n[exit code 1; Chela protects .env: passwords or keys may be in it; host gateway asks the person to run the command outside]", true
			}
			return "[a line in brackets]\nout\n\n[changed, and runs later: Makefile; for the whole output use process log with sessionId ab]", true
		}
		got := k.say("run make it")
		has(t, got, "```\n[a line in brackets]\nout\n```\n\nNote: changed, and runs later: Makefile.")
		if strings.Contains(got, "process log") {
			t.Error(got)
		}
		has(t, k.say("run `quiet`"), "succeeded without output", "Note: files in /tmp are")
		got = k.say("run `server`")
		has(t, got, "`server` has started", "Note: still running in the background as sessionId ab, pid 12.")
		if strings.Contains(got, "succeeded") || strings.Contains(got, "use process") {
			t.Error(got)
		}
		got = k.say("run `rm`")
		has(t, got, "failed (exit code 1)", "```\nno\n```\n\nNote: Chela protects .env: passwords or keys may be in it.")
		if strings.Contains(got, "host gateway") || strings.Count(got, "exit code") != 1 {
			t.Error(got)
		}
		has(t, k.say("运行 `make it`"), "注意：已修改，以后会被运行：Makefile。")
		has(t, k.say("运行 `rm`"), "注意：Chela 保护 .env：里面可能有密码或密钥")
	})
	t.Run("a call that waits for approval is not a success", func(t *testing.T) {
		k := newTalk(t)
		k.exec = func(string) (string, bool) { return llm.WaitingPrefix + "ab12", false }
		has(t, k.say("run rm a.txt then list files"), "is waiting for your approval (ab12)", "I skipped the rest")
	})
	t.Run("a denied or timed out call is reported and ends the request", func(t *testing.T) {
		k := newTalk(t)
		k.exec = func(string) (string, bool) {
			return `{"status":"error","error":"not run: denied by ann. Do not try it in another way"}`, false
		}
		got := k.say("run make clean then list files")
		has(t, got, "`make clean` failed: not run: denied by ann", "I skipped the rest")
		if strings.Contains(got, "another way") {
			t.Errorf("text for models in the reply: %s", got)
		}
		k.exec = func(string) (string, bool) { return "half\n\n[timed out after 1m0s; ended]", true }
		has(t, k.say("执行 make all，然后列出文件"), "half", "没有正常结束", "超过 1m0s 仍未结束", "没有执行")
	})
	t.Run("the second step in Chinese needs no name", func(t *testing.T) {
		k := newTalk(t)
		has(t, k.say("新建 todo.md，写上买牛奶，然后给我看看"), "买牛奶")
		k.calls(`write {"content":"买牛奶\n","path":"todo.md"}`, `read {"path":"todo.md"}`)
	})
	t.Run("another model's calls are ignored", func(t *testing.T) {
		r := request(allTools, llm.User("list files"),
			&llm.Message{Role: llm.RoleAssistant, Provider: "lab",
				Parts: []llm.Part{{Kind: llm.PartCall, Call: &llm.ToolCall{ID: "1", Name: "read", Args: json.RawMessage(`{}`)}}}},
			&llm.Message{Role: llm.RoleTool, CallID: "1", ToolName: "read", Parts: []llm.Part{llm.Text("x")}})
		if calls := collect(t, New(), r).Calls(); len(calls) != 1 || calls[0].Name != "ls" {
			t.Errorf("the calls are %v, want ls", calls)
		}
	})
	t.Run("notices of Chela are passed on", func(t *testing.T) {
		has(t, newTalk(t).say(llm.EventPrefix+"the command rm a.txt ended: ok"), "the command rm a.txt ended: ok")
	})
	t.Run("a heartbeat", func(t *testing.T) {
		if got := newTalk(t).say(heartbeat.DefaultPrompt); got != corerun.HeartbeatOK {
			t.Errorf("nothing happened: %q", got)
		}
		k := newTalk(t)
		k.messages = []*llm.Message{llm.User(llm.EventsHeading + "\n- the build is red")}
		text := heartbeat.Settings{}.Message(heartbeat.Wake{Reason: "wake"}, nil, true)
		if got := k.say(text); !strings.Contains(got, "the build is red") || strings.Contains(got, "not a language model") {
			t.Errorf("an event: %q", got)
		}
	})
	t.Run("a notice beside a request is passed on after the answer", func(t *testing.T) {
		k := newTalk(t)
		k.files["a.txt"] = "alpha\n"
		k.messages = []*llm.Message{llm.User(llm.EventPrefix + "the command x ended: ok")}
		has(t, k.say("show a.txt"), "alpha", "the command x ended: ok")
		if again := k.say("show a.txt"); strings.Contains(again, "the command x") {
			t.Errorf("the notice is repeated: %s", again)
		}
	})
	t.Run("a notice during a request does not end it", func(t *testing.T) {
		r := request(allTools, llm.User("run make all"),
			&llm.Message{Role: llm.RoleAssistant, Provider: Name,
				Parts: []llm.Part{{Kind: llm.PartCall, Call: &llm.ToolCall{ID: "1", Name: "exec",
					Args: json.RawMessage(`{"command":"make all"}`)}}}},
			&llm.Message{Role: llm.RoleTool, CallID: "1", ToolName: "exec", Parts: []llm.Part{llm.Text("made")}},
			llm.User(llm.EventPrefix+"the command x ended: ok"))
		has(t, collect(t, New(), r).PlainText(), "made", "the command x ended: ok")
	})
	t.Run("appending changes nothing else", func(t *testing.T) {
		k := newTalk(t)
		k.files["l.txt"] = "a\nb\na\n\na\n"
		k.say("append \"c\" to l.txt")
		if got, want := k.files["l.txt"], "a\nb\na\n\na\nc\n"; got != want {
			t.Errorf("the file is %q, want %q", got, want)
		}
		k.say("append 'new' to fresh.txt")
		if got := k.files["fresh.txt"]; got != "new\n" {
			t.Errorf("the new file is %q", got)
		}
		k.files["empty.txt"] = ""
		k.say("在 empty.txt 末尾追加“行”")
		if got := k.files["empty.txt"]; got != "行\n" {
			t.Errorf("the empty file is %q", got)
		}
	})
	t.Run("text of several lines", func(t *testing.T) {
		k := newTalk(t)
		k.say("create a.txt with the content:\nmilk and eggs\nthen bread")
		if got, want := k.files["a.txt"], "milk and eggs\nthen bread\n"; got != want {
			t.Errorf("the file is %q, want %q", got, want)
		}
		k.say("create b.txt with 'hello' and list the files")
		k.calls(`write {"content":"hello\n","path":"b.txt"}`, `ls {"path":"."}`)
	})
	t.Run("messages sent together are all answered", func(t *testing.T) {
		k := newTalk(t)
		k.files["a.txt"] = "alpha\n"
		k.messages = []*llm.Message{llm.User("show a.txt")}
		has(t, k.say("what time is it?"), "alpha", "12:00:00")
	})
	t.Run("remember and recall", func(t *testing.T) {
		k := newTalk(t)
		has(t, k.say("what do you remember about my car?"), "no notes")
		has(t, k.say("remember that my car is blue"), "my car is blue")
		k.say("remember: Ann likes tea")
		if got, want := k.files["MEMORY.md"], "- my car is blue\n- Ann likes tea\n"; got != want {
			t.Errorf("MEMORY.md is %q, want %q", got, want)
		}
		got := k.say("what do you remember about my car?")
		has(t, got, "my car is blue")
		if strings.Contains(got, "tea") {
			t.Errorf("the answer contains unrelated notes: %s", got)
		}
		has(t, k.say("what do you remember?"), "blue", "tea")
		k.say("记住我的狗叫旺财")
		has(t, k.say("我的狗叫什么名字？"), "旺财")
	})
	t.Run("a missing tool is named", func(t *testing.T) {
		k := newTalk(t)
		has(t, k.say("remind me in 5 minutes to stand up"), "I cannot do it here", "`cron`")
		has(t, k.say("启动一个子代理去检查链接"), "在这里做不到", "`sessions_spawn`")
		k.tools = []string{"exec"}
		k.say("fetch https://example.com/?a=1&b=2")
		k.calls(`exec {"command":"curl -sSL --max-time 20 -- 'https://example.com/?a=1&b=2'"}`)
		k.tools = nil
		has(t, k.say("create a.txt with 'x'"), "`write`")
	})
	t.Run("a part that is not understood is reported", func(t *testing.T) {
		k := newTalk(t)
		k.files["a.txt"] = "alpha\n"
		has(t, k.say("read a.txt then bake me a cake"), "I did nothing of the rest",
			"I did not understand this part", "bake me a cake")
		has(t, k.say("write me a sonnet"), "I did not understand", "show notes.txt")
	})
	t.Run("it ends a run without remaining calls", func(t *testing.T) {
		k := newTalk(t)
		r := request(nil, llm.User("list files then run date"),
			&llm.Message{Role: llm.RoleAssistant, Provider: Name,
				Parts: []llm.Part{{Kind: llm.PartCall, Call: &llm.ToolCall{ID: "1", Name: "ls", Args: json.RawMessage(`{}`)}}}},
			&llm.Message{Role: llm.RoleTool, CallID: "1", ToolName: "ls", Parts: []llm.Part{llm.Text("[file] a.txt (1 byte)")}},
			llm.User(llm.LimitText))
		has(t, collect(t, k.p, r).PlainText(), "a.txt", "`exec`")
	})
	t.Run("help shows every available example, and each example is understood", func(t *testing.T) {
		k := newTalk(t)
		k.tools = withNotes
		en, zh := k.say("help"), k.say("帮助")
		for _, r := range k.p.rows {
			if r.example.en == "" {
				continue
			}
			has(t, en, r.example.en)
			has(t, zh, r.example.zh)
			for _, say := range []string{r.example.en, r.example.zh} {
				if got := intentOf(k.p, say, withNotes); got != r.intent {
					t.Errorf("%q has the intent %s, want %s", say, got, r.intent)
				}
			}
		}
	})
	t.Run("help, greetings and questions omit intents without a tool", func(t *testing.T) {
		k := newTalk(t)
		for _, got := range []string{k.say("help"), k.say("帮助")} {
			for _, unable := range []string{"remind", "提醒", "subagent", "子代理"} {
				if strings.Contains(got, unable) {
					t.Errorf("help mentions %q:\n%s", unable, got)
				}
			}
		}
		for say, want := range map[string]string{"start a subagent": "I cannot do it here", "启动一个子代理": "在这里做不到"} {
			if got := k.say(say); !strings.Contains(got, want) || strings.Contains(got, "check the links") {
				t.Errorf("the reply to %q is %q", say, got)
			}
		}
		k.tools = []string{"exec"}
		for _, say := range []string{"help", "hi", "bake me a cake"} {
			got := k.say(say)
			has(t, got, "- run `git status`")
			if strings.Contains(got, "notes.txt") || strings.Contains(got, "remember") {
				t.Errorf("%q suggests an intent without a tool:\n%s", say, got)
			}
		}
		has(t, k.say("help"), "- fetch https://example.com") // exec replaces web_fetch
		k.tools = []string{"other"}
		for _, say := range []string{"help", "hi", "bake me a cake"} {
			has(t, k.say(say), "none of the tools that I know is available here")
		}
	})
	t.Run("an intent needs the tools that its example calls", func(t *testing.T) {
		p := New()
		for i := range p.rows {
			if r := &p.rows[i]; r.example.en != "" {
				_, calls, _ := p.answer(request(allTools, llm.User(r.example.en)), testNow)
				for _, c := range calls {
					if !strings.Contains(" "+r.needs+" ", " "+c.Name+" ") {
						t.Errorf("%s calls %s and needs %q", r.intent, c.Name, r.needs)
					}
				}
			}
		}
	})
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	var last error
	r := request(nil, llm.User("help"))
	for _, err := range New().Stream(ctx, r) {
		last = err
		if n++; n == 3 {
			cancel()
		}
	}
	if n != 4 || !errors.Is(last, context.Canceled) {
		t.Errorf("the stream ended after %d events with %v, want ctx's error at once", n, last)
	}
}

func TestDeterministic(t *testing.T) {
	t.Parallel()
	a, b := New(), New()
	for _, tc := range corpus[:40] {
		x, xs, _ := a.answer(request(allTools, llm.User(tc.say)), testNow)
		y, ys, _ := b.answer(request(allTools, llm.User(tc.say)), testNow)
		if x != y || fmt.Sprint(xs) != fmt.Sprint(ys) {
			t.Errorf("%q is in the corpus twice", tc.say)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	for _, tc := range corpus {
		f.Add(tc.say)
	}
	f.Add("read \"unclosed and `code\n\n；；，，")
	p := New()
	f.Fuzz(func(t *testing.T, say string) {
		text, calls, _ := p.answer(request(allTools, llm.User(say)), testNow)
		if text == "" && len(calls) == 0 {
			t.Fatalf("%q has no reply", say)
		}
		for _, c := range calls {
			if !json.Valid(c.Args) {
				t.Fatalf("%q: invalid JSON arguments %q", say, c.Args)
			}
		}
	})
}
