package chelatest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/llm/llmtest"
	"github.com/chela-ai/chela/wire"
)

// routed is a gateway with several agents and two channels, in a synctest bubble. Each
// agent but main has a model with its name, and the models answer with their names.
type routed struct {
	*Gateway
	*Client
	t     *testing.T
	model *llmtest.Script
	fakes map[string]*channeltest.Fake
	sent  int
	calls [][2]string // name and arguments of the call that the model makes for the text "call N"
}

// routedConf is the configuration besides the agents and the bindings.
const routedConf = `channels: {talk: {dmPolicy: "allowlist", allowFrom: ["ann", "bob"], accounts: {home: {}, default: {}}}, mail: {allowFrom: ["ann@x"]}}`

// newRouted starts a gateway with the members of a configuration file.
func newRouted(t *testing.T, conf string) *routed {
	t.Helper()
	r := &routed{t: t, fakes: map[string]*channeltest.Fake{"talk": {}, "mail": {}}}
	r.model = llmtest.ScriptFunc(func(_ int, q *llm.Request) llmtest.Step {
		if text, ok := strings.CutPrefix(q.Messages[len(q.Messages)-1].PlainText(), "call "); ok {
			if n, err := strconv.Atoi(text); err == nil {
				return llmtest.Call("call_"+text, r.calls[n][0], r.calls[n][1])
			}
		}
		if strings.HasSuffix(q.Messages[len(q.Messages)-1].PlainText(), "slowly") {
			return llmtest.Step{Parts: []llm.Part{llm.Text(q.Model)}, Delay: 30 * time.Second}
		}
		return llmtest.Say(q.Model)
	})
	dir := t.TempDir()
	r.write(dir, conf)
	r.Gateway = Start(t, r.options(dir))
	r.Client = r.Gateway.Client()
	return r
}

func (r *routed) options(dir string) Options {
	return Options{
		Dir: dir, Model: r.model, Channels: map[string]channel.Channel{"talk": r.fakes["talk"], "mail": r.fakes["mail"]},
		Config: section("models", `{"providers": {"mock": {"models": [{"id": "m"}, {"id": "home"}, {"id": "work"}]}}}`),
	}
}

// write writes the configuration file.
func (r *routed) write(dir, conf string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "chela.json"), []byte("{"+routedConf+", "+conf+"}"), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// stop stops the gateway, so that the bubble can end.
func (r *routed) stop() {
	r.Client.Close()
	r.Gateway.Stop()
}

// from returns a message of ann in a direct conversation on talk, changed by f.
func from(f func(*chela.Inbound)) chela.Inbound {
	in := chela.Inbound{
		Address: chela.Address{Channel: "talk", Account: "default", Peer: chela.Peer{Kind: chela.Direct, ID: "ann"}},
		Sender:  chela.Sender{ID: "ann"}, Text: "hello", Mentioned: true,
	}
	if f != nil {
		f(&in)
	}
	return in
}

// inGroup returns a message of ann in a group, changed by f.
func inGroup(group string, f func(*chela.Inbound)) chela.Inbound {
	return from(func(in *chela.Inbound) {
		in.Address.Peer = chela.Peer{Kind: chela.Group, ID: group}
		if f != nil {
			f(in)
		}
	})
}

// say sends a message and returns what its conversation shows 10 s later.
func (r *routed) say(in chela.Inbound) string {
	r.t.Helper()
	fake := r.fakes[in.Address.Channel]
	before := len(fake.Texts(in.Address))
	if in.ID == "" {
		r.sent++
		in.ID = strconv.Itoa(r.sent)
	}
	if err := fake.Say(r.t.Context(), in); err != nil {
		r.t.Fatal(err)
	}
	time.Sleep(10 * time.Second)
	return strings.Join(fake.Texts(in.Address)[before:], "|")
}

// want sends a message and compares the answer.
func (r *routed) want(in chela.Inbound, answer string) {
	r.t.Helper()
	if got := r.say(in); got != answer {
		r.t.Errorf("%+v: %q answers, want %q", in.Address, got, answer)
	}
}

// keys returns the keys of all sessions.
func (r *routed) keys() (keys []string) {
	r.t.Helper()
	var list wire.SessionList
	r.must(wire.MethodSessionsList, struct{}{}, &list)
	for _, s := range list.Sessions {
		keys = append(keys, s.Key)
	}
	slices.Sort(keys)
	return keys
}

// agentsConf has the agents main, home and work.
const agentsConf = `agents: {list: [{id: "main"}, {id: "home", model: "mock/home"}, {id: "work", model: "mock/work"}]}`

func TestRouting(t *testing.T) {
	for name, f := range map[string]func(*testing.T){
		"ROUTE-13 RT-15 an edit of the bindings counts for the next message":                editedBindings,
		"RT-01 RT-09 RT-10 what a platform knows reaches the resolver":                      platformFacts,
		"RT-11 agents.list[].default answers what no binding matches":                       markedDefault,
		"RT-12 a binding to an unknown agent is refused at the start and while running":     unknownAgent,
		"RT-13 SESS-02 senders with sessions of their own do not see each other's messages": ownSessions,
		"RT-14 SESS-03 linked addresses of a person share a session":                        linkedPerson,
		"RT-17 /focus sends the messages of a thread to a subagent, and /unfocus ends it":   focusedThread,
		"SUB-26 a result goes to the bound thread, and without one to the requester's chat": boundResult,
		"sessions_spawn binds the thread in which it is called":                             spawnInThread,
		"an answer leaves through the account that received the message":                    receivingAccount,
		"a binding grants no access":                                                        noAccess,
		"without a default agent, a message is refused with one notice":                     noDefaultAgent,
		"the messages of a deleted agent go to the next tier, and its sessions stay":        deletedAgent,
		"ROUTE-12 the turn of an agent does not see files, keys or sessions of another one": separateAgents,
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
	}
}

func editedBindings(t *testing.T) {
	r := newRouted(t, agentsConf)
	r.want(from(nil), "m")
	r.write(r.Dir, agentsConf+`, bindings: [{agentId: "work", match: {channel: "talk"}}]`)
	time.Sleep(10 * time.Second)
	r.want(from(nil), "work")
	r.patch(`{"bindings": [{"agentId": "home", "match": {"channel": "talk", "peer": {"kind": "direct", "id": "ann"}}}]}`)
	r.want(from(nil), "home")
	r.write(r.Dir, agentsConf)
	time.Sleep(10 * time.Second)
	r.want(from(nil), "m")
	if got, want := r.keys(), []string{"agent:home:main", "agent:main:main", "agent:work:main"}; !slices.Equal(got, want) {
		t.Errorf("sessions %q, want %q", got, want)
	}
	r.stop()
}

func platformFacts(t *testing.T) {
	r := newRouted(t, agentsConf+`, bindings: [
		{agentId: "home", match: {channel: "talk", guildId: "g"}}, {agentId: "work", match: {channel: "talk", guildId: "g", roles: ["admin"]}},
		{agentId: "home", match: {channel: "talk", teamId: "t"}}, {agentId: "work", match: {channel: "talk", peer: {kind: "group", id: "parent"}}}]`)
	r.want(inGroup("1", nil), "m")
	r.want(inGroup("1", func(in *chela.Inbound) { in.Guild = "g" }), "home")
	r.want(inGroup("1", func(in *chela.Inbound) { in.Guild, in.Roles = "g", []string{"x", "admin"} }), "work")
	r.want(inGroup("2", func(in *chela.Inbound) { in.Team = "t" }), "home")
	r.want(inGroup("parent", func(in *chela.Inbound) { in.Address.Thread = "7" }), "work")
	r.want(inGroup("3", func(in *chela.Inbound) { in.Guild, in.Roles = "g", make([]string, 501) }), "")
	r.want(inGroup("3", func(in *chela.Inbound) { in.Guild = "g\n" }), "")
	r.stop()
}

func markedDefault(t *testing.T) {
	r := newRouted(t, `agents: {list: [{id: "home", model: "mock/home"}, {id: "work", model: "mock/work", default: true}]}, bindings: [{agentId: "home", match: {channel: "mail"}}]`)
	r.want(from(nil), "work")
	r.want(from(func(in *chela.Inbound) { in.Address.Channel, in.Sender.ID = "mail", "ann@x" }), "home")
	r.stop()
}

func unknownAgent(t *testing.T) {
	const unknown = agentsConf + `, bindings: [{agentId: "nobody", match: {channel: "talk"}}]`
	r := newRouted(t, agentsConf+`, bindings: [{agentId: "work", match: {channel: "talk"}}]`)
	r.write(r.Dir, unknown)
	time.Sleep(10 * time.Second)
	r.want(from(nil), "work") // the previous configuration stays in force
	r.stop()
	_, err := TryStart(t, r.options(r.Dir))
	if err == nil || !strings.Contains(err.Error(), `bindings[0].agentId: unknown agent "nobody"`) ||
		chela.HintOf(err) != "chela agents list" {
		t.Errorf("start: %v, hint %q", err, chela.HintOf(err))
	}
}

func ownSessions(t *testing.T) {
	r := newRouted(t, agentsConf+`, session: {dmScope: "per-channel-peer"}, bindings: [{agentId: "work", match: {channel: "mail"}, session: {dmScope: "main"}}]`)
	bob := func(in *chela.Inbound) { in.Address.Peer.ID, in.Sender.ID = "bob", "bob" }
	r.say(from(func(in *chela.Inbound) { in.Text = "secret of ann" }))
	r.say(from(bob))
	rs := r.model.Requests()
	if b, err := json.Marshal(rs[len(rs)-1]); err != nil || strings.Contains(string(b), "secret of ann") {
		t.Errorf("bob's turn has ann's message: %s", b)
	}
	r.say(from(func(in *chela.Inbound) { in.Address.Channel, in.Sender.ID = "mail", "ann@x" }))
	if got, want := r.keys(),
		[]string{"agent:main:talk:direct:ann", "agent:main:talk:direct:bob", "agent:work:main"}; !slices.Equal(got, want) {
		t.Errorf("sessions %q, want %q", got, want)
	}
	r.stop()
}

func linkedPerson(t *testing.T) {
	r := newRouted(t, agentsConf+`, session: {dmScope: "per-peer", identityLinks: {ann: ["talk:ann", "mail:ann@x"]}}`)
	r.say(from(nil))
	r.say(from(func(in *chela.Inbound) {
		in.Address.Channel, in.Address.Peer.ID, in.Sender.ID = "mail", "ann@x", "ann@x"
	}))
	r.say(from(func(in *chela.Inbound) { in.Address.Peer.ID, in.Sender.ID = "bob", "bob" }))
	if got, want := r.keys(), []string{"agent:main:direct:ann", "agent:main:direct:bob"}; !slices.Equal(got, want) {
		t.Errorf("sessions %q, want %q", got, want)
	}
	r.stop()
}

// inThread returns a message of ann in a thread of her conversation.
func inThread(thread, text string) chela.Inbound {
	return from(func(in *chela.Inbound) { in.Address.Thread, in.Text = thread, text })
}

// typed returns a message of ann.
func typed(text string) chela.Inbound { return from(func(in *chela.Inbound) { in.Text = text }) }

func focusedThread(t *testing.T) {
	r := newRouted(t, agentsConf+`, session: {threadBindings: {idleHours: 2, maxAgeHours: 5}}`)
	r.say(typed("/subagents spawn --model mock/work look"))
	r.want(inThread("1", "hello"), "m")
	r.want(inThread("1", "/focus nobody"), `there is no child "nobody": 1 (Task 1)`)
	r.want(inThread("1", "/focus"),
		"/focus <target> sends the messages of this chat to a subagent. /subagents lists them.")
	r.want(inThread("1", "/focus 1"), `Messages in this chat go to the subagent "Task 1" now. /unfocus ends that.`)
	again := inThread("1", "hello")
	again.ID = "again"
	r.want(again, "work")
	const state = `Messages in this chat go to the subagent "Task 1" until `
	r.want(inThread("1", "/focus"), state+"there is none for 2h, at most until 5h after /focus. /unfocus ends that.")
	r.want(inThread("2", "hello"), "m")
	r.want(typed("hello"), "m")
	if got := r.say(inThread("1", "/status")); !strings.Contains(got, "mock/work") {
		t.Errorf("/status is not about the subagent: %q", got)
	}
	r.stop()
	r.Gateway = Start(t, r.options(r.Dir))
	r.Client = r.Gateway.Client()
	r.want(inThread("1", "hello"), "work")
	r.want(inThread("1", "/unfocus"), "Messages in this chat go to its own session again.")
	r.want(again, "") // the platform delivers it again
	r.want(inThread("1", "hello"), "m")
	r.want(inThread("1", "/unfocus"), "This chat is not focused on a subagent.")
	r.say(inThread("1", "/focus 1"))
	for range 4 {
		time.Sleep(time.Hour)
		r.want(inThread("1", "hello"), "work")
	}
	time.Sleep(70 * time.Minute) // over 5 hours after /focus
	r.want(inThread("1", "hello"), "m")
	r.say(typed("/subagents spawn --model mock/work look")) // the other one is archived
	r.say(inThread("1", "/focus 1"))
	time.Sleep(125 * time.Minute)
	r.want(inThread("1", "hello"), "m")
	r.say(typed("/subagents spawn --model mock/work look"))
	r.say(inThread("1", "/focus 1"))
	r.want(inThread("1", "/session idle 3 days"), `"3 days" is no duration. Examples: 90m, 12h, 2d, off.`)
	r.want(inThread("1", "/session age 3d"),
		"/session idle <duration> and /session max-age <duration> set when /focus ends here.")
	r.want(inThread("1", "/session max-age off"), state+"there is none for 2h. /unfocus ends that.")
	r.want(inThread("1", "/session idle 1d"), state+"there is none for 24h. /unfocus ends that.")
	r.want(inThread("1", "/session idle"), state+"there is none for 24h. /unfocus ends that.")
	r.want(inThread("1", "/session max-age 20h"),
		state+"there is none for 24h, at most until 20h after /focus. /unfocus ends that.")
	r.want(inThread("2", "/session idle 1d"), "This chat is not focused on a subagent. /focus <target> does that.")
	r.want(inThread("1", "/session IDLE off"), state+"20h after /focus. /unfocus ends that.")
	time.Sleep(19 * time.Hour)
	r.want(inThread("1", "/session"), state+"20h after /focus. /unfocus ends that.")
	time.Sleep(time.Hour)
	r.want(inThread("1", "hello"), "m")
	r.want(inThread("1", "/session"), "This chat is not focused on a subagent. /focus <target> does that.")
	r.want(inThread("1", "/focus"),
		"/focus <target> sends the messages of this chat to a subagent. /subagents lists them.")
	r.say(typed("/subagents spawn --model mock/work look"))
	r.say(inThread("1", "/focus 1"))
	r.want(inThread("1", "/session max-age default"),
		state+"there is none for 2h, at most until 5h after /focus. /unfocus ends that.")
	r.want(inThread("1", "hello"), "work")
	r.patch(`{"session": {"threadBindings": {"enabled": false}}}`)
	r.want(inThread("1", "hello"), "m")
	r.want(inThread("1", "/focus 1"), "Chats cannot be focused here: session.threadBindings.enabled is false.")
	r.patch(`{"session": {"threadBindings": {"enabled": true}}}`)
	window := r.Gateway.Client()
	if got := window.Ask("main", "/session idle 3d").Text; got !=
		"This window shows one session, and is not focused on a subagent." {
		t.Errorf("a local client: %q", got)
	}
	if got := window.Ask("main", "/focus 1").Text; !strings.Contains(got, "chela chat --session agent:main:subagent:") {
		t.Errorf("a local client: %q", got)
	}
	window.Close()
	r.stop()
}

func boundResult(t *testing.T) {
	r := newRouted(t, agentsConf)
	home := func(text string) chela.Inbound { // another chat of the same session
		in := typed(text)
		in.Address.Account = "home"
		return in
	}
	for _, focus := range []bool{false, true} {
		r.say(typed("/subagents spawn --model mock/work slowly"))
		if focus {
			r.say(home("/focus 1"))
		}
		here, there := len(r.fakes["talk"].Texts(typed("").Address)), len(r.fakes["talk"].Texts(home("").Address))
		time.Sleep(time.Minute)
		here, there = len(r.fakes["talk"].Texts(typed("").Address))-here, len(r.fakes["talk"].Texts(home("").Address))-there
		if want := map[bool][2]int{false: {1, 0}, true: {0, 1}}[focus]; want != [2]int{here, there} {
			t.Errorf("focused %v: %d and %d answers, want %v", focus, here, there, want)
		}
	}
	r.stop()
}

func spawnInThread(t *testing.T) {
	r := newRouted(t, agentsConf+`, session: {threadBindings: {spawnSessions: false}}`)
	r.calls = [][2]string{
		{"sessions_spawn", `{"task":"look","model":"mock/work","thread":true,"mode":"session"}`},
		{"sessions_spawn", `{"task":"look","mode":"session"}`},
	}
	r.say(inThread("1", "call 0"))
	r.want(inThread("1", "hello"), "work")
	r.want(inThread("1", "/unfocus"), "Messages in this chat go to its own session again.")
	r.want(inThread("1", "hello"), "m")
	for _, call := range []string{"call 0", "call 1"} { // not in a thread, and without thread
		if got := r.say(typed(call)); got != "m" {
			t.Errorf("%s: %q", call, got)
		}
		r.want(typed("hello"), "m")
	}
	var texts []string
	for _, q := range r.model.Requests() {
		if last := q.Messages[len(q.Messages)-1]; last.Role == llm.RoleTool {
			texts = append(texts, last.PlainText())
		}
	}
	for i, want := range []string{`"status":"accepted"`, "this chat is not a thread", "mode session needs thread"} {
		if i >= len(texts) || !strings.Contains(texts[i], want) {
			t.Errorf("results %q, want %q in number %d", texts, want, i)
		}
	}
	r.stop()
}

func receivingAccount(t *testing.T) {
	r := newRouted(t, agentsConf+`, bindings: [{agentId: "home", match: {channel: "talk", accountId: "home"}}, {agentId: "work", match: {channel: "talk"}}]`)
	r.want(from(func(in *chela.Inbound) { in.Address.Account = "home" }), "home")
	r.want(from(nil), "work")
	for _, m := range r.fakes["talk"].Messages(from(nil).Address) {
		if m.Text != "work" {
			t.Errorf("the account default sent %q", m.Text)
		}
	}
	r.stop()
}

func noAccess(t *testing.T) {
	r := newRouted(t, agentsConf+
		`, bindings: [{agentId: "work", match: {channel: "talk", peer: {kind: "direct", id: "eve"}}}]`)
	r.want(from(func(in *chela.Inbound) { in.Address.Peer.ID, in.Sender.ID = "eve", "eve" }), "")
	if n := len(r.model.Requests()); n != 0 {
		t.Errorf("the model was called %d times", n)
	}
	r.stop()
}

func noDefaultAgent(t *testing.T) {
	const conf = `agents: {list: [{id: "home", model: "mock/home"}, {id: "work", model: "mock/work"}]}`
	r := newRouted(t, conf+`, bindings: [{agentId: "home", match: {channel: "talk", peer: {kind: "group", id: "1"}}}]`)
	r.want(inGroup("1", nil), "home")
	const notice = "No agent is configured for this chat. The owner of the assistant can select one with: chela agents bind"
	again := from(func(in *chela.Inbound) { in.ID = "again" })
	r.want(again, notice)
	r.want(again, "") // delivered again by the platform
	r.want(inGroup("2", func(in *chela.Inbound) { in.Mentioned = false }), "")
	r.want(from(func(in *chela.Inbound) { in.Address.Peer.ID, in.Sender.ID = "eve", "eve" }), "")
	if end := r.Ask("main", "hello"); end.Text != "m" {
		t.Errorf("a client got %q", end.Text)
	}
	r.patch(`{"agents": {"list": [{"id": "home", "model": "mock/home"}, {"id": "work", "model": "mock/work", "default": true}]}}`)
	r.want(from(nil), "work")
	r.stop()
}

func deletedAgent(t *testing.T) {
	r := newRouted(t, agentsConf+`, bindings: [{agentId: "home", match: {channel: "talk"}}, {agentId: "work", match: {channel: "talk", peer: {kind: "direct", id: "ann"}}}]`)
	r.want(from(nil), "work")
	var out wire.AgentDeleted
	r.must(wire.MethodAgentsDelete, wire.AgentDelete{AgentID: "work"}, &out)
	if out.Bindings != 1 {
		t.Errorf("%d bindings were removed, want 1", out.Bindings)
	}
	r.want(from(nil), "home")
	var history wire.History
	r.must(wire.MethodChatHistory, wire.ChatHistory{SessionKey: "agent:work:main"}, &history)
	if len(history.Messages) != 2 {
		t.Errorf("the session has %d messages, want 2", len(history.Messages))
	}
	r.stop()
}

// separateAgents has an agent try to get at what another one has.
func separateAgents(t *testing.T) {
	r := newRouted(t, agentsConf+`, bindings: [{agentId: "home", match: {channel: "talk", accountId: "home"}}, {agentId: "work", match: {channel: "talk"}}],
		models: {providers: {mock: {apiKey: "CANARY-KEY"}}}`)
	home := r.Dir + "/workspace-home/"
	for _, name := range []string{"SOUL.md", "notes.md"} {
		if err := os.WriteFile(home+name, []byte("CANARY-FILE in "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(r.Dir+"/credentials", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.Dir+"/credentials/mock", []byte("CANARY-KEY"), 0o600); err != nil {
		t.Fatal(err)
	}
	atHome := func(text string) chela.Inbound {
		return from(func(in *chela.Inbound) { in.Address.Account, in.Text = "home", text })
	}
	r.calls = [][2]string{
		{"read", `{"path": "` + home + `notes.md"}`}, {"read", `{"path": "../workspace-home/notes.md"}`},
		{"read", `{"path": "` + r.Dir + `/chela.json"}`},
		{"read", `{"path": "` + r.Dir + `/credentials/mock"}`}, {"read", `{"path": "` + r.Dir + `/chela.db"}`},
		{"ls", `{"path": "` + home + `"}`},
		{"grep", `{"pattern": "CANARY", "path": "` + r.Dir + `"}`}, {"find", `{"pattern": "*.md", "path": "` + r.Dir + `"}`},
		{"sessions_history", `{"sessionKey": "agent:home:main"}`}, {"sessions_list", `{}`},
		{"sessions_search", `{"query": "CANARY"}`},
		{"sessions_spawn", `{"task": "x", "agentId": "home"}`}, {"subagents", `{"action": "list"}`},
	}
	r.want(atHome("CANARY-SESSION"), "home")
	r.want(atHome("call 0"), "home")
	own := r.seen(0)
	for _, canary := range []string{"CANARY-FILE in SOUL.md", "CANARY-FILE in notes.md", "CANARY-SESSION"} {
		if !strings.Contains(own, canary) {
			t.Fatalf("the turns of home do not have %q: %s", canary, own)
		}
	}
	before := len(r.model.Requests())
	for i := range r.calls {
		r.want(from(func(in *chela.Inbound) { in.Text = "call " + strconv.Itoa(i) }), "work")
	}
	if n := len(r.model.Requests()) - before; n != 2*len(r.calls) {
		t.Errorf("the model was called %d times, want %d", n, 2*len(r.calls))
	}
	for _, canary := range []string{"CANARY-FILE", "CANARY-KEY", "CANARY-SESSION"} {
		if all := r.seen(before); strings.Contains(all, canary) {
			t.Errorf("the turns of work have %s: %s", canary, all)
		}
	}
	r.stop()
}

// seen returns what the model got, from a request on.
func (r *routed) seen(from int) string {
	r.t.Helper()
	var b strings.Builder
	for _, q := range r.model.Requests()[from:] {
		for _, s := range q.System {
			b.WriteString(s.Text + "\n")
		}
		for _, m := range q.Messages {
			b.WriteString(m.PlainText() + "\n")
		}
	}
	return b.String()
}
