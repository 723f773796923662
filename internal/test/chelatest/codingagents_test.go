//go:build unix

package chelatest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/chela-ai/chela/client"
	"github.com/chela-ai/chela/internal/core/approval"
	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/internal/core/store"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/internal/plugin/tool/acp/acptest"
	"github.com/chela-ai/chela/wire"
)

// coding is a gateway with the coding agent fake, and a chat app.
type coding struct {
	*Gateway
	*Client
	t    *testing.T
	fake *channeltest.Fake
	dir  string // of the agent's records
	o    Options
	st   store.Store
	sent int
}

// view reads the store.
func (k *coding) view(f func(store.Reader) error) {
	k.t.Helper()
	if err := k.st.View(k.t.Context(), f); err != nil {
		k.t.Fatal(err)
	}
}

// codingConf is the section acp with the agent fake.
func codingConf(dir, more string, flags ...string) json.RawMessage {
	self, _ := os.Executable()
	env, _ := json.Marshal(acptest.Env(dir, flags...))
	return json.RawMessage(`{"enabled": true, "agents": {"fake": {"command": ` + strconv.Quote(self) + `, "env": ` +
		string(env) + `}}` + more + `}`)
}

// newCoding starts a gateway. more are further members of the section acp.
func newCoding(t *testing.T, more string, flags ...string) *coding {
	t.Helper()
	t.Parallel()
	k := &coding{t: t, fake: &channeltest.Fake{}, dir: t.TempDir()}
	k.o = Options{
		Dir: t.TempDir(), Model: llmtest.ScriptFunc(func(_ int, r *llm.Request) llmtest.Step {
			last := r.Messages[len(r.Messages)-1].PlainText()
			if task, ok := strings.CutPrefix(last, "hand over "); ok {
				args, _ := json.Marshal(map[string]any{"task": task, "runtime": "acp", "agentId": "fake"})
				return llmtest.Call("spawn1", "sessions_spawn", string(args))
			}
			return llmtest.Say("model: " + last)
		}),
		Channels: map[string]channel.Channel{"talk": k.fake}, Wrap: func(s store.Store) store.Store { k.st = s; return s },
		Config: Config{
			"acp": codingConf(k.dir, more, flags...),
			"channels": json.RawMessage(
				`{"talk": {"allowFrom": ["boss", "ada"], "groupAllowFrom": ["boss", "ada"], "groupPolicy": "allowlist"}}`),
			"commands": json.RawMessage(`{"ownerAllowFrom": ["talk:boss"]}`),
		},
	}
	k.start()
	t.Cleanup(func() {
		for _, v := range acptest.Lines(k.dir, "violation") {
			t.Errorf("the agent complains: %s", v)
		}
	})
	return k
}

func (k *coding) start() {
	k.t.Helper()
	k.Gateway = Start(k.t, k.o)
	k.Client = k.Gateway.Client()
}

func (k *coding) restart() {
	k.t.Helper()
	k.Gateway.Stop()
	k.start()
}

// ownerChat is the direct chat of the owner, and otherChat that of somebody else.
var (
	ownerChat = chela.Address{Channel: "talk", Peer: direct("boss")}
	otherChat = chela.Address{Channel: "talk", Peer: direct("ada")}
)

// write sends a message of a person without waiting.
func (k *coding) write(a chela.Address, text string) {
	k.t.Helper()
	k.sent++
	in := chela.Inbound{ID: strconv.Itoa(k.sent), Address: a, Sender: chela.Sender{ID: a.Peer.ID}, Text: text}
	if err := k.fake.Say(k.t.Context(), in); err != nil {
		k.t.Fatal(err)
	}
}

// says sends a message and waits for a message in the chat that contains an answer.
func (k *coding) says(a chela.Address, text, answer string) {
	k.t.Helper()
	n := len(k.fake.Texts(a))
	k.write(a, text)
	k.gets(a, n, answer)
}

// gets waits for a message in the chat, after the first n, that contains a text.
func (k *coding) gets(a chela.Address, n int, answer string) {
	k.t.Helper()
	defer func() {
		if k.t.Failed() {
			k.t.Logf("messages: %q", k.fake.Texts(a)[n:])
		}
	}()
	waittest.Until(k.t, "a message with "+answer, func() bool {
		return slices.ContainsFunc(k.fake.Texts(a)[n:], func(s string) bool { return strings.Contains(s, answer) })
	})
}

// logged waits until the agent has recorded a line.
func (k *coding) logged(word, text string) {
	k.t.Helper()
	waittest.Until(k.t, "the agent to record "+word+" "+text,
		func() bool { return slices.Contains(acptest.Lines(k.dir, word), text) })
}

// key returns the session of the only coding agent.
func (k *coding) key() string {
	k.t.Helper()
	var list wire.SessionList
	k.must(wire.MethodSessionsList, struct{}{}, &list)
	for _, s := range list.Sessions {
		if strings.Contains(s.Key, ":acp:") {
			return s.Key
		}
	}
	k.t.Fatal("there is no session of a coding agent")
	return ""
}

// ended waits until all programs of the agent have ended.
func (k *coding) ended() {
	k.t.Helper()
	for _, pid := range acptest.Lines(k.dir, "start") {
		n, _ := strconv.Atoi(pid)
		waittest.Until(k.t, "the end of the agent "+pid, func() bool { return gone(n) })
	}
}

// gone reports whether a process has ended.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(b), ") Z ")
}

func TestCodingAgents(t *testing.T) {
	t.Parallel()
	t.Run("ACP-03 after /acp spawn the messages of the chat go to the agent, and commands stay", func(t *testing.T) {
		k, dir := newCoding(t, ""), t.TempDir()
		k.says(ownerChat, "hello", "model: hello")
		k.says(ownerChat, "/acp spawn fake --bind here --cwd "+dir,
			"Messages in this chat go to fake now, which works in "+dir)
		k.says(ownerChat, "tool first", "There are two files. first")
		k.says(ownerChat, "second count", "second This is prompt 2.")
		k.says(ownerChat, "/status", "acp/fake")
		k.says(ownerChat, "/acp status", "fake: idle")
		k.says(otherChat, "hello", "model: hello")
		if got := acptest.Lines(k.dir, "prompt"); !slices.Equal(got, []string{"tool first", "second count"}) {
			t.Errorf("the agent got %q", got)
		}
		if got := acptest.Lines(k.dir, "new"); !slices.Equal(got, []string{dir}) {
			t.Errorf("it works in %q", got)
		}
		k.says(ownerChat, "/acp close", "Closed fake: ")
		k.ended()
		k.says(ownerChat, "hello again", "model: hello again")
	})
	t.Run("what the agent does itself is in the transcript, with its output", func(t *testing.T) {
		k := newCoding(t, "")
		k.says(ownerChat, "/acp spawn", "go to fake")
		k.says(ownerChat, "tool", "There are two files.")
		key := chela.SessionKey(k.key())
		k.view(func(r store.Reader) error {
			m, err := r.Sessions().Get(key)
			if err != nil {
				return err
			}
			last, err := r.Sessions().Last(m.ID, 10)
			var got []string
			for _, e := range last {
				if e.Message == nil {
					continue
				}
				text := string(e.Message.Role) + ": " + e.Message.PlainText()
				for _, c := range e.Message.Calls() {
					text += c.Label()
				}
				got = append(got, text)
			}
			want := []string{"user: tool", "assistant: coding_agent List the folder", "toolResult: a.txt b.txt",
				"assistant: There are two files. "}
			if !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
			return err
		})
	})
	t.Run("ACP-04 an agent that is not in allowedAgents is refused", func(t *testing.T) {
		k := newCoding(t, `, "allowedAgents": ["claude"]`)
		k.says(ownerChat, "/acp spawn fake", `the coding agent "fake" is not in acp.allowedAgents (claude)`)
		k.says(ownerChat, "hello", "model: hello")
		if end := k.Ask("main", "hand over count"); !strings.Contains(end.Text, "runtime") {
			t.Errorf("the model could hand over a task: %q", end.Text)
		}
		if got := acptest.Lines(k.dir, "start"); len(got) > 0 {
			t.Errorf("a program was started: %q", got)
		}
	})
	t.Run("agents are off by default, and an unknown or a missing one is refused", func(t *testing.T) {
		k := newCoding(t, `, "enabled": false`)
		k.says(ownerChat, "/acp spawn fake", "chela config set acp.enabled true")
		k.Gateway.Stop()
		k.o.Config["acp"] = codingConf(k.dir, "")
		k.o.Environ = []string{"PATH=" + t.TempDir()}
		k.start()
		k.says(ownerChat, "/acp spawn nobody", `there is no coding agent "nobody"`)
		k.says(ownerChat, "/acp spawn codex", "npm install -g @agentclientprotocol/codex-acp")
		k.says(ownerChat, "/acp spawn fake --cwd /does/not/exist", "the folder /does/not/exist does not exist")
		k.says(ownerChat, "/acp doctor", "fake (")
	})
	t.Run("others than the owner can neither start an agent nor write to one", func(t *testing.T) {
		k := newCoding(t, "")
		group := chela.Address{Channel: "talk", Peer: chela.Peer{Kind: chela.Group, ID: "g"}}
		in := func(who, text string) chela.Inbound {
			k.sent++
			return chela.Inbound{
				ID:        strconv.Itoa(k.sent),
				Address:   group,
				Sender:    chela.Sender{ID: who},
				Text:      text,
				Mentioned: true,
			}
		}
		k.write(otherChat, "/acp spawn fake")
		k.says(otherChat, "hello", "model: hello")
		for _, m := range []chela.Inbound{in("ada", "hello"), in("boss", "/acp spawn fake"), in("boss", "count")} {
			n := len(k.fake.Texts(group))
			if err := k.fake.Say(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			waittest.Until(t, "an answer in the group", func() bool { return len(k.fake.Texts(group)) > n })
		}
		if err := k.fake.Say(t.Context(), in("ada", "count")); err != nil {
			t.Fatal(err)
		}
		key := chela.SessionKey(k.key())
		waittest.Until(t, "the refusal", func() (refused bool) { // groups get no errors
			k.view(func(r store.Reader) error {
				m, err := r.Sessions().Get(key)
				if err != nil {
					return err
				}
				last, err := r.Sessions().Last(m.ID, 1)
				refused = len(last) == 1 && strings.Contains(last[0].Text, "answers here only to the person who started it")
				return err
			})
			return refused
		})
		if got := acptest.Lines(k.dir, "prompt"); len(got) != 1 {
			t.Errorf("the agent got %q", got)
		}
	})
	t.Run("ACP-05 a task that is handed over is announced exactly once", func(t *testing.T) {
		k := newCoding(t, "")
		end := k.Ask("main", "hand over tool ready")
		if end.State != wire.StateFinal {
			t.Fatalf("%+v", end)
		}
		if text := k.answer("model: "); !strings.Contains(text, "There are two files. ready") {
			t.Errorf("announced %q", text)
		}
		k.ended()
		k.restart()
		k.says(ownerChat, "hello", "model: hello")
		var n int
		k.view(func(r store.Reader) error {
			m, err := r.Sessions().Get("agent:main:main")
			if err != nil {
				return err
			}
			entries, err := r.Sessions().Entries(m.ID, 0, 0)
			for _, e := range entries {
				if e.Message != nil && e.Message.Role == llm.RoleUser &&
					strings.Contains(e.Message.PlainText(), "There are two files. ready") {
					n++
				}
			}
			return err
		})
		if got := acptest.Lines(k.dir, "prompt"); n != 1 || !slices.Equal(got, []string{"tool ready"}) {
			t.Errorf("announced %d times, the agent got %q", n, got)
		}
	})
	t.Run("a client with fewer scopes, and a session in the sandbox, hand nothing over", func(t *testing.T) {
		k := newCoding(t, "")
		if end := k.with(wire.ScopeRead, wire.ScopeWrite).Ask("main", "hand over count"); !strings.Contains(end.Text,
			"only the owner may hand a task over") {
			t.Errorf("a client with fewer scopes: %+v", end)
		}
		k.Client.Close()
		k.Gateway.Stop()
		k.o.Config["agents.defaults"] = json.RawMessage(`{"sandbox": {"mode": "all"}}`)
		k.start()
		if end := k.Ask("main", "hand over count"); !strings.Contains(end.Text, "this session is confined") {
			t.Errorf("a session in the sandbox: %+v", end)
		}
		if got := acptest.Lines(k.dir, "prompt"); len(got) != 0 {
			t.Errorf("the agent got %q", got)
		}
	})
	t.Run("a question for permission is asked in the chat, and the answer goes to the agent", func(t *testing.T) {
		for word, decision := range map[string]string{"ask": "allow-once", "askunannounced": "deny"} {
			k := &coding{}
			t.Run(word+" "+decision, func(t *testing.T) {
				k = newCoding(t, "")
				k.says(ownerChat, "/acp spawn fake", "go to fake")
				k.says(ownerChat, word, "Delete a.txt")
				k.says(ownerChat, "/acp status", "waits for a decision")
				answer, logged := "It is deleted.", "yes"
				if decision == "deny" {
					answer, logged = "It was not deleted.", "no"
				}
				k.says(ownerChat, "/approve "+decision, answer)
				k.logged("decision", logged)
				k.logged("done", "end_turn")
			})
		}
	})
	t.Run("what was allowed for the session is not asked again", func(t *testing.T) {
		k := newCoding(t, "")
		k.says(ownerChat, "/acp spawn fake", "go to fake")
		k.says(ownerChat, "ask", "Delete a.txt")
		k.says(ownerChat, "/approve allow-session", "It is deleted.")
		k.says(ownerChat, "ask again", "It is deleted. again")
	})
	t.Run("a message while a question is open ends it, and is the next prompt", func(t *testing.T) {
		k := newCoding(t, "")
		k.says(ownerChat, "/acp spawn fake", "go to fake")
		k.says(ownerChat, "ask", "Delete a.txt")
		k.says(ownerChat, "rather count", "rather This is prompt 2.")
		k.logged("decision", "cancelled")
		n := len(acptest.Lines(k.dir, "prompt"))
		k.write(ownerChat, "/approve allow-once") // too late
		k.says(ownerChat, "third", "third")
		if got := acptest.Lines(k.dir, "decision"); !slices.Equal(got, []string{"cancelled"}) {
			t.Errorf("decisions %q", got)
		}
		if got := acptest.Lines(k.dir, "prompt"); len(got) != n+1 || got[n] != "third" {
			t.Errorf("the agent got %q", got)
		}
	})
	t.Run("after a restart, a decision about a question of before allows nothing", func(t *testing.T) {
		k := newCoding(t, "")
		k.says(ownerChat, "/acp spawn fake", "go to fake")
		k.says(ownerChat, "ask", "Delete a.txt")
		k.restart()
		k.ended()
		k.says(ownerChat, "/approve allow-once", "was interrupted by a restart")
		if got := acptest.Lines(k.dir, "prompt"); !slices.Equal(got, []string{"ask"}) {
			t.Errorf("the agent got %q", got)
		}
		if got := acptest.Lines(k.dir, "decision"); slices.Contains(got, "yes") {
			t.Errorf("decisions %q", got)
		}
		var open []approval.Request
		k.view(func(r store.Reader) (err error) { open, err = r.Approvals().Pending(""); return err })
		if len(open) > 0 {
			t.Errorf("open questions: %+v", open)
		}
	})
	t.Run("/stop while a question is open ends it", func(t *testing.T) {
		k := newCoding(t, "")
		k.says(ownerChat, "/acp spawn fake", "go to fake")
		k.says(ownerChat, "ask", "Delete a.txt")
		k.says(ownerChat, "/stop", "Stopped")
		k.logged("decision", "cancelled")
		k.logged("done", "cancelled")
		k.says(ownerChat, "count", "This is prompt 2.")
	})
	t.Run("/stop and /acp cancel stop the answer, and the agent stays", func(t *testing.T) {
		k := newCoding(t, "")
		k.says(ownerChat, "/acp spawn fake", "go to fake")
		for _, stop := range []string{"/stop", "/acp cancel"} {
			n := len(acptest.Lines(k.dir, "cancel"))
			k.write(ownerChat, "hang")
			waittest.Until(t, "the prompt", func() bool { return len(acptest.Lines(k.dir, "prompt")) == n+1 })
			k.says(ownerChat, stop, "Stopped")
			waittest.Until(t, "session/cancel", func() bool { return len(acptest.Lines(k.dir, "cancel")) == n+1 })
		}
		k.says(ownerChat, "count", "This is prompt 3.")
		if got := acptest.Lines(k.dir, "start"); len(got) != 1 {
			t.Errorf("programs %q", got)
		}
	})
	t.Run("/acp steer replaces what the agent does, and other messages wait", func(t *testing.T) {
		k := newCoding(t, "")
		k.says(ownerChat, "/acp spawn fake", "go to fake")
		k.write(ownerChat, "hang")
		k.logged("prompt", "hang")
		k.write(ownerChat, "later")
		k.says(ownerChat, "/acp steer rather this", "gets the message")
		k.gets(ownerChat, 0, "later")
		k.gets(ownerChat, 0, "rather this")
		if got := acptest.Lines(k.dir, "prompt"); got[0] != "hang" || len(got) > 3 {
			t.Errorf("the agent got %q", got)
		}
	})
	t.Run("a message that is to steer waits for the end of the answer", func(t *testing.T) {
		k := newCoding(t, "")
		k.says(ownerChat, "/acp spawn fake", "go to fake")
		k.says(ownerChat, "first", "first")
		k.says(ownerChat, "/queue steer debounce:0s", "steer")
		k.write(ownerChat, "ask")
		k.gets(ownerChat, 0, "Delete a.txt")
		k.says(ownerChat, "/approve deny", "It was not deleted.")
		k.write(ownerChat, "tool wait tool")
		k.logged("prompt", "tool wait tool")
		k.write(ownerChat, "later")
		if err := os.WriteFile(filepath.Join(k.dir, acptest.Go), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		k.logged("prompt", "later")
	})
	t.Run("an agent that dies is explained, its message is not sent again, and the next one starts it",
		func(t *testing.T) {
			k := newCoding(t, "", "load")
			k.says(ownerChat, "/acp spawn fake", "go to fake")
			k.says(ownerChat, "first", "first")
			k.says(ownerChat, "die", "the program ended with exit status 3. It printed last: \"out of cheese\"")
			k.says(ownerChat, "next", "next")
			if got := acptest.Lines(k.dir, "prompt"); !slices.Equal(got, []string{"first", "die", "next"}) {
				t.Errorf("the agent got %q", got)
			}
			if got := acptest.Lines(k.dir, "load"); len(got) != 1 {
				t.Errorf("conversations that were loaded: %q", got)
			}
			for _, text := range k.fake.Texts(ownerChat) {
				if strings.Contains(text, "replayed") || strings.Contains(text, "does not remember") {
					t.Errorf("the chat got %q", text)
				}
			}
		})
	t.Run("an agent that cannot load its conversation says so once", func(t *testing.T) {
		k := newCoding(t, "")
		k.says(ownerChat, "/acp spawn fake", "go to fake")
		k.says(ownerChat, "first", "first")
		k.restart()
		k.ended()
		k.says(ownerChat, "second", "does not remember the earlier conversation")
		n := len(k.fake.Texts(ownerChat))
		k.says(ownerChat, "third", "third")
		for _, text := range k.fake.Texts(ownerChat)[n:] {
			if strings.Contains(text, "does not remember") {
				t.Errorf("the chat got %q", text)
			}
		}
	})
	t.Run("an agent that floods, prints garbage or fails", func(t *testing.T) {
		k := newCoding(t, "")
		k.says(ownerChat, "/acp spawn fake", "go to fake")
		key := k.key()
		if end := k.Ask(key, "flood end"); !strings.HasSuffix(strings.TrimSpace(end.Text), "4998 4999 end") {
			t.Errorf("flooded with %d bytes", len(end.Text))
		}
		k.says(ownerChat, "garbage", "Clean.")
		k.says(ownerChat, "noise after", "after")
		k.says(ownerChat, "silent", "(fake has finished, without a message.)")
		k.says(ownerChat, "files", "Reading: true.")
		k.says(ownerChat, "fail", "the service is overloaded")
		k.says(ownerChat, "huge", "it sent a message of more than 9")
		k.says(ownerChat, "count", "This is prompt 8.")
	})
	t.Run("an agent without an account says how to get one", func(t *testing.T) {
		k := newCoding(t, "", "login")
		k.says(ownerChat, "/acp spawn fake", "go to fake")
		k.says(ownerChat, "hello",
			"it is not logged in (Authentication required); its ways to log in: Sign in (run acptest login)")
		k.ended()
	})
	t.Run("an agent of another version of the protocol is refused", func(t *testing.T) {
		k := newCoding(t, "", "old")
		k.says(ownerChat, "/acp spawn fake", "go to fake")
		k.says(ownerChat, "hello", "it speaks version 99 of the protocol, not 1")
		k.ended()
	})
	t.Run("two messages at once are answered one after the other", func(t *testing.T) {
		k := newCoding(t, "")
		k.says(ownerChat, "/acp spawn fake", "go to fake")
		key := k.key()
		var runs []string
		for _, text := range []string{"one", "two", "three"} {
			runs = append(runs, k.Send(key, text))
		}
		for _, id := range runs[:1] {
			if end := k.Await(id); !strings.Contains(end.Text, "one") {
				t.Errorf("%+v", end)
			}
		}
		waittest.Until(t, "all prompts", func() bool {
			text := strings.Join(acptest.Lines(k.dir, "prompt"), " ")
			return strings.Contains(text, "two") && strings.Contains(text, "three")
		})
	})
	t.Run("the program of an agent that does not stop is ended", func(t *testing.T) {
		k := newCoding(t, "", "load")
		k.says(ownerChat, "/acp spawn fake", "go to fake")
		k.write(ownerChat, "deaf")
		k.logged("prompt", "deaf")
		k.says(ownerChat, "/stop", "Stopped")
		k.ended()
		k.says(ownerChat, "next", "next")
	})
	t.Run("the program ends with the deletion of its session", func(t *testing.T) {
		k := newCoding(t, "")
		k.says(ownerChat, "/acp spawn fake", "go to fake")
		k.says(ownerChat, "first", "first")
		k.must(wire.MethodSessionsDelete, map[string]any{"key": k.key()}, nil)
		k.ended()
		k.says(ownerChat, "hello", "model: hello")
	})
	t.Run("a mode that the agent offers is set, also when its program starts again", func(t *testing.T) {
		k := newCoding(t, "")
		k.says(ownerChat, "/acp spawn fake", "go to fake")
		k.says(ownerChat, "/acp set-mode code", "it is started by the next message")
		k.says(ownerChat, "first", "first")
		k.says(ownerChat, "/acp set-mode none", `has no mode "none"; it has: ask, code`)
		k.says(ownerChat, "/acp set-mode code", "The mode of fake is code now.")
		k.says(ownerChat, "/acp status", "Mode: code (of ask, code")
		k.restart()
		k.says(ownerChat, "second", "second")
		if got := acptest.Lines(k.dir, "mode"); !slices.Equal(got, []string{"code", "code"}) {
			t.Errorf("modes %q", got)
		}
	})
	t.Run("/acp spawn in a new thread leaves the chat to the model", func(t *testing.T) {
		k := newCoding(t, "")
		k.says(ownerChat, "/acp spawn fake --thread auto --label shop", "Messages in the new thread go to fake now")
		k.says(ownerChat, "hello", "model: hello")
		thread := ownerChat
		thread.Thread = "t-shop"
		k.says(thread, "count", "This is prompt 1.")
		k.says(thread, "/acp close", "Closed shop.")
		k.says(thread, "hello", "model: hello")
	})
	t.Run("the plan of the agent is the session's", func(t *testing.T) {
		k := newCoding(t, "")
		k.says(ownerChat, "/acp spawn fake", "go to fake")
		k.says(ownerChat, "plan made", "made")
		key := chela.SessionKey(k.key())
		k.view(func(r store.Reader) error {
			m, err := r.Sessions().Get(key)
			if s := m.Plan.Steps; len(s) != 2 || s[1].Title != "Change it" || s[1].State != "in_progress" {
				t.Errorf("the plan is %+v", s)
			}
			return err
		})
	})
	t.Run("an idle agent makes room for another one, and comes back", func(t *testing.T) {
		k := newCoding(t, `, "maxConcurrentSessions": 1`, "load")
		k.says(ownerChat, "/acp spawn fake --label one", "go to fake")
		k.says(ownerChat, "first", "first")
		one := k.key()
		k.says(ownerChat, "/acp spawn fake --label two", "go to fake")
		k.says(ownerChat, "second", "second")
		if end := k.Ask(one, "third"); strings.TrimSpace(end.Text) != "third" {
			t.Errorf("%+v", end)
		}
		k.write(ownerChat, "hang")
		k.logged("prompt", "hang")
		if end := k.Ask(one, "fourth"); !strings.Contains(end.Error+end.Text, "all are busy") {
			t.Errorf("%+v", end)
		}
		k.says(ownerChat, "/acp close all", "Closed")
		k.ended()
	})
	t.Run("a new conversation in the chat is one of the agent", func(t *testing.T) {
		k := newCoding(t, "", "load")
		k.says(ownerChat, "/acp spawn fake", "go to fake")
		k.says(ownerChat, "first", "first")
		n := len(k.fake.Texts(ownerChat))
		k.write(ownerChat, "/new")
		waittest.Until(t, "an answer to /new", func() bool { return len(k.fake.Texts(ownerChat)) > n })
		k.says(ownerChat, "second", "second")
		if got := acptest.Lines(k.dir, "new"); len(got) != 2 {
			t.Errorf("conversations %q", got)
		}
	})
	t.Run("an answer that a kill interrupts is not begun again", func(t *testing.T) {
		t.Parallel()
		k := &coding{t: t, dir: t.TempDir()}
		dir := t.TempDir()
		writeConfig(t, dir, Config{"acp": codingConf(k.dir, "")})
		attached := func() *Client {
			cl, err := client.Dial(t.Context(), client.Options{Dial: dial(dir), Once: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cl.Close() })
			return &Client{Client: cl, t: t}
		}
		p := spawn(t, dir, "")
		c := attached()
		c.Ask("main", "/acp spawn fake")
		k.Client = c
		key := k.key()
		c.Send(key, "hang")
		k.logged("prompt", "hang")
		p.kill()
		p = spawn(t, dir, "")
		defer p.stop(t)
		k.ended()
		c = attached()
		waittest.Until(t, "word of the interruption", func() bool {
			var h json.RawMessage
			c.must(wire.MethodChatHistory, wire.ChatHistory{SessionKey: key}, &h)
			return strings.Contains(string(h), "was interrupted by a restart")
		})
		if end := c.Ask(key, "go on"); strings.TrimSpace(strings.TrimSuffix(end.Text, "\n")) == "" {
			t.Errorf("%+v", end)
		}
		if got := acptest.Lines(k.dir, "prompt"); !slices.Equal(got, []string{"hang", "go on"}) {
			t.Errorf("the agent got %q", got)
		}
	})
}
