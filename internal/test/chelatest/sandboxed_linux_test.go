package chelatest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/app/standard"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/sandbox"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/needtest"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// caller is a model that makes the tool call in the message, "NAME JSON", and
// answers with its result. It answers other messages with "re: ".
func caller() *llmtest.Script {
	return llmtest.ScriptFunc(func(n int, r *llm.Request) llmtest.Step {
		last := r.Messages[len(r.Messages)-1]
		name, args, ok := strings.Cut(last.PlainText(), " {")
		switch {
		case last.Role == llm.RoleTool:
			return llmtest.Say("got: " + last.PlainText())
		case ok:
			return llmtest.Call(fmt.Sprint("call_", n), name, "{"+args)
		}
		return llmtest.Say("re: " + last.PlainText())
	})
}

// exec returns the message that makes caller run a command. more is further
// arguments.
func execCall(command, more string) string {
	b, err := json.Marshal(command)
	if err != nil {
		panic(err)
	}
	return `exec {"command": ` + string(b) + more + `}`
}

// seer is a tool that tells the sandbox of the session that calls it.
type seer chan *sandbox.Session

func (seer) Spec() tool.Spec {
	return tool.Spec{Name: "seer", Description: "seer", Schema: json.RawMessage(`{"type": "object"}`)}
}

func (s seer) Run(_ context.Context, c tool.Call) (tool.Result, error) {
	s <- c.Sandbox
	return tool.Text("seen"), nil
}

// boxed is a gateway with a channel on which everybody may write, and boss, who is
// listed.
type boxed struct {
	*Gateway
	*Client
	t     *testing.T
	model *llmtest.Script
	fake  *channeltest.Fake
	sent  int
}

// newBoxed starts a gateway that can confine commands. conf is JSON of the sections
// agents and tools.
func newBoxed(t *testing.T, agents, tools string, o Options) *boxed {
	t.Helper()
	s := &boxed{t: t, model: caller(), fake: &channeltest.Fake{}}
	o.Model, o.Channels = s.model, map[string]channel.Channel{"open": s.fake}
	o.Register = func(r *standard.Registry) { r.Launches = true }
	o.Config = Config{"channels": json.RawMessage(`{"open": {"allowFrom": ["boss", "mate", "*"]}}`),
		"tools": json.RawMessage(tools)}
	var sections map[string]json.RawMessage
	if err := json.Unmarshal([]byte(agents), &sections); err != nil {
		t.Fatal(err)
	}
	for name, raw := range sections {
		o.Config["agents."+name] = raw
	}
	s.Gateway = Start(t, o)
	s.Client = s.Gateway.Client()
	return s
}

// say has a sender write in a chat and returns the next text that the chat shows.
func (s *boxed) say(p chela.Peer, sender, text string) string {
	s.t.Helper()
	a := chela.Address{Channel: "open", Account: "bot", Peer: p}
	before := len(s.fake.Texts(a))
	s.sent++
	err := s.fake.Say(s.t.Context(), chela.Inbound{
		ID:        fmt.Sprint(s.sent),
		Address:   a,
		Sender:    chela.Sender{ID: sender},
		Text:      text,
		Mentioned: true,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	var texts []string
	waittest.Until(s.t, "an answer to "+text, func() bool { texts = s.fake.Texts(a); return len(texts) > before })
	return texts[before]
}

// needsCage skips the test if this host cannot confine commands.
func (s *boxed) needsCage() {
	s.t.Helper()
	var st wire.SandboxStatus
	s.must(wire.MethodSandboxStatus, wire.SandboxGet{}, &st)
	if !st.Backends[0].Complete {
		s.t.Log(st.Backends[0].Reason)
		needtest.Missing(s.t, "user namespaces")
	}
}

// offered returns the tools that the model got last.
func (s *boxed) offered() []string {
	rs := s.model.Requests()
	var names []string
	for _, x := range rs[len(rs)-1].Tools {
		names = append(names, x.Name)
	}
	return names
}

func TestSandboxedSessions(t *testing.T) {
	const nonMain = `{"defaults": {"sandbox": {"mode": "non-main"}}}`
	outside := func(s *boxed) string { // a file of the host that no sandbox shows
		path := filepath.Join(s.Dir, "workspace", "mine.txt")
		if err := os.WriteFile(path, []byte("of the person\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Run("SB-14 in mode non-main the tools of a group work in the native sandbox", func(t *testing.T) {
		s := newBoxed(t, nonMain, `{"exec": {"mode": "full"}}`, Options{})
		s.needsCage()
		path := outside(s)
		if end := s.Ask("main", execCall("cat "+path+" && pwd", "")); !strings.Contains(end.Text, "of the person") ||
			!strings.Contains(end.Text, filepath.Join(s.Dir, "workspace")) {
			t.Errorf("the main session got %q", end.Text)
		}
		got := s.say(groupOf("g1"), "boss", execCall("cat "+path+"; pwd; echo hi > here.txt; cat here.txt", ""))
		if strings.Contains(got, "of the person") || !strings.Contains(got, filepath.Join(s.Dir, "sandboxes")) ||
			!strings.Contains(got, "hi") {
			t.Errorf("the group got %q", got)
		}
		if got := s.say(groupOf("g1"), "boss", `read {"path": "here.txt"}`); !strings.Contains(got, "hi") {
			t.Errorf("read in the same folder: %q", got)
		}
		for _, call := range []string{`read {"path": "` + path + `"}`, `write {"path": "` +
			filepath.Join(s.Dir, "workspace", "new.txt") + `", "content": "x"}`} {
			if got := s.say(groupOf("g1"), "boss", call); strings.Contains(got, "of the person") ||
				!strings.Contains(got, "outside the workspace") {
				t.Errorf("%s: %q", call, got)
			}
		}
		if _, err := os.Stat(filepath.Join(s.Dir, "workspace", "new.txt")); err == nil {
			t.Error("a file of the workspace was written")
		}
		// tools.fs.workspaceOnly and approvals do not open the sandbox either.
	})
	t.Run("SB-14 files outside stay closed where tools.fs opens them for other sessions", func(t *testing.T) {
		s := newBoxed(t, nonMain, `{"fs": {"workspaceOnly": false}, "exec": {"applyPatch": {"workspaceOnly": false}}}`,
			Options{})
		path := filepath.Join(t.TempDir(), "other.txt")
		if err := os.WriteFile(path, []byte("elsewhere\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if end := s.Ask("main", `read {"path": "`+path+`"}`); !strings.Contains(end.Text, "elsewhere") {
			t.Errorf("the main session got %q", end.Text)
		}
		patch := `apply_patch {"input": "*** Begin Patch\n*** Update File: ` + path +
			`\n@@\n-elsewhere\n+changed\n*** End Patch"}`
		for _, call := range []string{`read {"path": "` + path + `"}`, `grep {"path": "` + filepath.Dir(path) +
			`", "pattern": "else"}`, patch} {
			if got := s.say(groupOf("g1"), "boss", call); strings.Contains(got, "elsewhere\n") ||
				!strings.Contains(got, "outside the workspace") {
				t.Errorf("%s: %q", call, got)
			}
		}
	})
	t.Run("EX-13 a call cannot choose the host in a sandboxed session", func(t *testing.T) {
		s := newBoxed(t, nonMain, `{"exec": {"mode": "full"}}`, Options{})
		s.needsCage()
		for _, more := range []string{`, "host": "gateway"`, `, "host": "local"`, `, "elevated": true`} {
			got := s.say(groupOf("g1"), "boss", execCall("pwd", more))
			if !strings.Contains(got, "may not leave the sandbox: the sender is not in tools.elevated.allowFrom.open") {
				t.Errorf("%s: %q", more, got)
			}
		}
		if end := s.Ask("main", execCall("pwd", `, "host": "gateway"`)); !strings.Contains(end.Text,
			filepath.Join(s.Dir, "workspace")) {
			t.Errorf("the main session got %q", end.Text)
		}
	})
	t.Run("an approved command of a sandboxed session runs in the sandbox", func(t *testing.T) {
		s := newBoxed(t, `{"defaults": {"sandbox": {"mode": "all", "workspaceAccess": "rw"}}}`,
			`{"exec": {"mode": "always"}}`, Options{})
		s.needsCage()
		secret := filepath.Join(s.Dir, "chela.db")
		run := s.Send("main", execCall("test -e "+secret+" && echo seen || echo hidden; echo 1 > made.txt", ""))
		q := s.question()
		s.decide(q.ID, wire.AllowOnce)
		if end := s.Await(run); !strings.Contains(end.Text, "hidden") {
			t.Errorf("got %q", end.Text)
		}
		if _, err := os.Stat(filepath.Join(s.Dir, "workspace", "made.txt")); err != nil {
			t.Error("with access rw, the workspace is not the agent's:", err)
		}
	})
	t.Run("a right that a sandboxed session asked for holds there, and no other right does", func(t *testing.T) {
		s := newBoxed(t, nonMain, `{}`, Options{Dial: site(t)})
		s.needsCage()
		curl := func(host string) string { return execCall("curl -sSf http://"+host+"/", "") }
		allow := func(session, call, decision string) {
			run, q := s.prompts(session, call)
			s.decide(q.ID, decision)
			if end := s.Await(run); !strings.Contains(end.Text, "got: hello") {
				t.Errorf("%s in %s: %q", call, session, end.Text)
			}
		}
		const boxed, other = "agent:main:boxed", "agent:main:other"
		allow("main", curl("example.org"), wire.AllowAlways)
		allow(boxed, curl("example.org"), wire.AllowSession) // main's right does not open it
		allow(boxed, curl("example.com"), wire.AllowAlways)
		for _, host := range []string{"example.org", "example.com"} {
			if got := s.runs(boxed, execCall("curl -sSf http://"+host+"/again", "")); !strings.Contains(got, "got: hello") {
				t.Errorf("%s in the session that asked: %q", host, got)
			}
			run, q := s.prompts(other, execCall("curl -sSf http://"+host+"/again", ""))
			s.decide(q.ID, wire.Deny)
			s.Await(run)
		}
	})
	t.Run("TP-06 in a sandboxed session, tools that act outside are absent", func(t *testing.T) {
		s := newBoxed(t, nonMain, `{}`, Options{})
		s.Ask("main", "hello")
		if got := s.offered(); !slices.Contains(got, "web_fetch") || !slices.Contains(got, "message") {
			t.Errorf("the main session has %q", got)
		}
		s.say(groupOf("g1"), "boss", "hello")
		want := []string{"apply_patch", "edit", "exec", "find", "grep", "image", "ls", "plan", "process", "read",
			"session_status", "sessions_history", "sessions_list", "sessions_search", "sessions_send", "sessions_spawn",
			"sessions_yield", "subagents", "write"}
		if got := s.offered(); !slices.Equal(got, want) {
			t.Errorf("the group has %q, want %q", got, want)
		}
	})
	t.Run("FS-10 with read-only access there are no tools that write, and commands cannot", func(t *testing.T) {
		s := newBoxed(t, `{"defaults": {"sandbox": {"mode": "all", "workspaceAccess": "ro"}}}`,
			`{"exec": {"mode": "full"}}`, Options{})
		s.needsCage()
		outside(s)
		got := s.Ask("main", execCall("cat mine.txt; echo x > mine.txt; echo $?", "")).Text
		if !strings.Contains(got, "of the person") || strings.Contains(got, "\n0") {
			t.Errorf("the command got %q", got)
		}
		for _, name := range s.offered() {
			if slices.Contains([]string{"write", "edit", "apply_patch"}, name) {
				t.Errorf("%s is offered", name)
			}
		}
		if !slices.Contains(s.offered(), "read") {
			t.Error("read is not offered")
		}
		if got := s.Ask("main", `write {"path": "a.txt", "content": "x"}`).Text; !strings.Contains(got, "write") {
			t.Errorf("write: %q", got)
		}
		if _, err := os.Stat(filepath.Join(s.Dir, "workspace", "a.txt")); err == nil {
			t.Error("write wrote")
		}
	})
	t.Run("AP-14 elevated rights: on the host, after approval, for allowed senders", func(t *testing.T) {
		s := newBoxed(t, nonMain, `{"elevated": {"allowFrom": {"open": ["id:boss"]}}, "exec": {"mode": "full"}}`, Options{})
		s.needsCage()
		if got := s.say(groupOf("g1"), "mate", "/elevated on"); !strings.Contains(got, "not available") {
			t.Errorf("a sender who is not listed: %q", got)
		}
		if got := s.say(groupOf("g1"), "boss", execCall("pwd", "")); !strings.Contains(got, "sandboxes") {
			t.Errorf("before: %q", got)
		}
		if got := s.say(groupOf("g1"), "boss", "/elevated on"); got != "Elevated: on." {
			t.Errorf("/elevated on: %q", got)
		}
		a := chela.Address{Channel: "open", Account: "bot", Peer: groupOf("g1")}
		before := len(s.fake.Texts(a))
		s.sent++
		if err := s.fake.Say(t.Context(), chela.Inbound{
			ID:        fmt.Sprint(s.sent),
			Address:   a,
			Sender:    chela.Sender{ID: "boss"},
			Text:      execCall("pwd", ""),
			Mentioned: true,
		}); err != nil {
			t.Fatal(err)
		}
		q := s.question() // although tools.exec.mode is full
		s.decide(q.ID, wire.AllowOnce)
		var got string
		waittest.Until(t, "the result", func() bool {
			got = strings.Join(s.fake.Texts(a)[before:], "\n")
			return strings.Contains(got, "got:")
		})
		if !strings.Contains(got, filepath.Join(s.Dir, "workspace")) || strings.Contains(got, "sandboxes") {
			t.Errorf("elevated: %q", got)
		}
		if got := s.say(groupOf("g1"), "mate", execCall("pwd", "")); !strings.Contains(got, "sandboxes") {
			t.Errorf("another sender in the same session: %q", got)
		}
		if got := s.say(groupOf("g2"), "boss", execCall("pwd", "")); !strings.Contains(got, "sandboxes") {
			t.Errorf("another session: %q", got)
		}
		if got := s.say(groupOf("g1"), "boss", "/elevated full"); got != "Elevated: full." {
			t.Errorf("/elevated full: %q", got)
		}
		if got := s.say(groupOf("g1"), "boss", execCall("pwd", "")); strings.Contains(got, "sandboxes") ||
			!strings.Contains(got, "workspace") {
			t.Errorf("full, with mode full: %q", got)
		}
	})
	t.Run("TP /exec host=sandbox keeps the commands of a session in the sandbox, and host=gateway needs elevated rights",
		func(t *testing.T) {
			s := newBoxed(t, nonMain, `{"elevated": {"allowFrom": {"open": ["id:boss"]}}, "exec": {"mode": "full"}}`, Options{})
			s.needsCage()
			path := filepath.Join(t.TempDir(), "other.txt")
			if err := os.WriteFile(path, []byte("elsewhere\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			read := execCall("cat "+path+"; echo hi > here.txt; cat here.txt", "")
			if got := s.Ask("main", read).Text; !strings.Contains(got, "elsewhere") || !strings.Contains(got, "hi") {
				t.Errorf("before: %q", got)
			}
			if got := s.Ask("main", "/exec host=sandbox "+read).Text; strings.Contains(got, "elsewhere") ||
				!strings.Contains(got, "hi") {
				t.Errorf("for one message: %q", got)
			}
			if got := s.Ask("main", "/exec host=sandbox").Text; !strings.HasPrefix(got,
				"Commands: host sandbox, security full (default)") {
				t.Errorf("/exec host=sandbox: %q", got)
			}
			if got := s.Ask("main", read).Text; strings.Contains(got, "elsewhere") || !strings.Contains(got, "hi") {
				t.Errorf("in the sandbox: %q", got)
			}
			for _, more := range []string{`, "host": "gateway"`, `, "elevated": true`} {
				if got := s.Ask("main", execCall("cat "+path, more)).Text; !strings.Contains(got,
					"may not leave the sandbox: /exec host=sandbox is set") {
					t.Errorf("%s: %q", more, got)
				}
			}
			if got := s.say(groupOf("g1"), "mate", "/exec host=gateway"); !strings.Contains(got,
				"Commands may not run outside of the sandbox: the sender is not in tools.elevated.allowFrom.open") {
				t.Errorf("a sender who is not listed: %q", got)
			}
			if got := s.say(groupOf("g1"), "mate", "/exec host=gateway "+execCall("pwd", "")); !strings.Contains(got,
				"may not leave the sandbox") {
				t.Errorf("in the message of a sender who is not listed: %q", got)
			}
			s.say(groupOf("g1"), "boss", "/elevated full")
			if got := s.say(groupOf("g1"), "boss", execCall("pwd", "")); strings.Contains(got, "sandboxes") {
				t.Errorf("elevated: %q", got)
			}
			s.say(groupOf("g1"), "boss", "/exec host=sandbox")
			if got := s.say(groupOf("g1"), "boss", execCall("pwd", "")); !strings.Contains(got, "sandboxes") {
				t.Errorf("elevated, with host=sandbox: %q", got)
			}
			if got := s.say(groupOf("g1"), "boss", "/exec host=gateway"); !strings.HasPrefix(got, "Commands: host gateway,") {
				t.Errorf("a listed sender: %q", got)
			}
			s.say(groupOf("g1"), "boss", "/elevated off")
			if got := s.say(groupOf("g1"), "mate", execCall("pwd", "")); !strings.Contains(got, "may not leave the sandbox") {
				t.Errorf("the stored host, for a sender who is not listed: %q", got)
			}
		})
	t.Run("E2 a sandbox that is missing or does not work does not open the host", func(t *testing.T) {
		for backend, want := range map[string]string{
			"ssh":    "backend ssh is not available",
			"docker": "the sandbox does not work here: docker is not installed. The person can try: docker version",
			"podman": "podman version",
		} {
			s := newBoxed(t, `{"defaults": {"sandbox": {"mode": "all", "workspaceAccess": "rw", "backend": "`+backend+`"}}}`,
				`{"exec": {"mode": "full"}}`, Options{Env: map[string]string{"PATH": t.TempDir()}})
			for _, more := range []string{"", `, "background": true`, `, "sandbox": true`} {
				if got := s.Ask("main", execCall("echo ran > made.txt", more)).Text; !strings.Contains(got, want) {
					t.Errorf("%s: %s: %q", backend, more, got)
				}
			}
			if _, err := os.Stat(filepath.Join(s.Dir, "workspace", "made.txt")); err == nil {
				t.Errorf("%s: the command ran", backend)
			}
		}
	})
	t.Run("SB-13 tools learn of the sandbox of their session, and of none outside", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(fakeDocker), 0o755); err != nil {
			t.Fatal(err)
		}
		seen := make(seer, 1)
		s := newBoxed(t, `{"defaults": {"sandbox": {"mode": "non-main", "backend": "docker", "scope": "session", "workspaceAccess": "ro", "docker": {"image": "mine:1"}}}}`,
			`{"sandbox": {"tools": {"alsoAllow": ["seer"], "deny": ["web_fetch"]}}}`,
			Options{Tools: []tool.Tool{seen}, Env: map[string]string{"PATH": dir + ":/usr/bin:/bin"}})
		s.Ask("main", "seer {}")
		if box := <-seen; box != nil {
			t.Errorf("the main session has %+v", box)
		}
		s.say(groupOf("g1"), "boss", "seer {}")
		box := <-seen
		if box == nil {
			t.Fatal("the group has no sandbox")
		}
		workspace := filepath.Join(s.Dir, "workspace")
		if box.Backend != "docker" || !strings.HasPrefix(box.Container, "chela-sbx-agent-main") || box.Workdir != "/agent" ||
			box.Scratch != "/workspace" || box.Workspace != workspace || box.AgentWorkspace != workspace ||
			filepath.Dir(box.Private) != filepath.Join(s.Dir, "sandboxes") || box.Access != sandbox.ReadOnly ||
			!strings.Contains(box.Key, "group:g1") ||
			!strings.Contains(string(box.Settings), "mine:1") || !slices.Contains(box.Allow, "seer") ||
			!slices.Contains(box.Deny, "web_fetch") {
			t.Errorf("%+v, settings %s", box, box.Settings)
		}
		// the bridge of file tools
		if got, ok := box.HostPath("/agent/a/b.txt"); !ok || got != filepath.Join(workspace, "a/b.txt") {
			t.Errorf("file in the container: %q %v", got, ok)
		}
	})
	t.Run("SB-10 explain shows mode, scope, tools with their source, and the gates", func(t *testing.T) {
		s := newBoxed(t, `{"defaults": {"sandbox": {"mode": "non-main", "scope": "session"}}, "list": [{"id": "main", "tools": {"sandbox": {"tools": {"deny": ["process"]}}}}]}`,
			`{"sandbox": {"tools": {"allow": ["exec", "read", "process"]}}, "elevated": {"allowFrom": {"open": ["boss"]}}}`,
			Options{})
		var e wire.SandboxExplained
		s.must(wire.MethodSandboxExplain, wire.SandboxGet{SessionKey: "agent:main:open:group:g1"}, &e)
		if !e.Sandboxed || e.Mode != "non-main" || e.Scope != "session" || e.Access != "none" || e.Backend != "native" ||
			!strings.Contains(e.Workspace, "sandboxes") {
			t.Errorf("group: %+v", e)
		}
		if !slices.Equal(e.Tools.Allow, []string{"exec", "read", "process"}) ||
			!slices.Equal(e.Tools.Deny, []string{"process"}) ||
			e.Tools.Sources.Allow != "tools.sandbox.tools.allow" ||
			e.Tools.Sources.Deny != "agents.list[0].tools.sandbox.tools.deny" {
			t.Errorf("tools: %+v", e.Tools)
		}
		gates, _ := json.Marshal(e.Elevated.Gates)
		if !e.Elevated.Allowed || e.Elevated.Level != "off" ||
			!strings.Contains(string(gates), `{"key":"tools.elevated.enabled","value":true}`) ||
			!strings.Contains(string(gates), `{"key":"tools.elevated.allowFrom","value":{"open":["boss"]}}`) {
			t.Errorf("elevated: %+v", e.Elevated)
		}
		reader, err := client.Dial(t.Context(), client.Options{Dial: s.Dial, Once: true, Scopes: []string{wire.ScopeRead}})
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		var less wire.SandboxExplained
		if err := reader.Call(t.Context(), wire.MethodSandboxExplain, wire.SandboxGet{SessionKey: "agent:main:open:group:g1"},
			&less); err != nil || less.Elevated.Allowed || !less.Sandboxed {
			t.Errorf("for a client that only reads: %+v, %v", less.Elevated, err)
		}
		e = wire.SandboxExplained{}
		s.must(wire.MethodSandboxExplain, wire.SandboxGet{SessionKey: "main"}, &e)
		if e.Sandboxed || e.Workspace != "" {
			t.Errorf("main: %+v", e)
		}
		s.say(groupOf("g1"), "boss", "hello")
		if got := s.offered(); !slices.Equal(got, []string{"exec", "read"}) {
			t.Errorf("the group has %q", got)
		}
	})
	t.Run("the sandbox is tried out again on request", func(t *testing.T) {
		s := newBoxed(t, nonMain, `{}`, Options{})
		s.needsCage()
		var r wire.SandboxTest
		s.must(wire.MethodSandboxTest, wire.SandboxGet{}, &r)
		if !r.Complete || len(r.Effects) < 9 {
			t.Errorf("%+v", r)
		}
		for _, e := range r.Effects {
			if !e.Held {
				t.Errorf("a program could %s", e.Name)
			}
		}
	})
}
