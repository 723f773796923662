package chelatest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/channel"
	"github.com/chela-ai/chela/internal/core/channel/channeltest"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/llm"
	"github.com/chela-ai/chela/internal/core/tool"
	"github.com/chela-ai/chela/internal/kit/waittest"
	"github.com/chela-ai/chela/wire"
)

// authorityConf restricts bob and the main agent. The agent ops may do everything.
var authorityConf = Config{
	"channels":        json.RawMessage(`{"talk": {"allowFrom": ["ann", "bob"]}}`),
	"tools":           json.RawMessage(`{"exec": {"mode": "full"}, "toolsBySender": {"channel:talk:bob": {"deny": ["exec", "process", "write", "edit", "apply_patch"]}}}`),
	"agents.list":     json.RawMessage(`[{"id": "main", "tools": {"deny": ["grep"]}}, {"id": "ops"}]`),
	"agents.defaults": json.RawMessage(`{"subagents": {"maxSpawnDepth": 3, "allowAgents": ["ops"]}}`),
	"messages":        json.RawMessage(`{"queue": {"mode": "followup"}}`),
}

// powers is a gateway on which ann and bob write over a channel. The model tries to do
// what its tools do not permit.
type powers struct {
	*tree
	fake *channeltest.Fake
	sent int
	made string // the file that commands of the model create
}

// act is what a subagent tries: a denied tool of the sender, one of the agent, one of
// the owner.
const act = `exec {"command":"touch made"}` + "\n" + `write {"path":"made","content":"x"}` + "\n" +
	`grep {"pattern":"x"}` + "\n" + `ownersOnly {}`

func newPowers(t *testing.T, o Options) *powers {
	t.Helper()
	p := &powers{fake: &channeltest.Fake{}}
	if o.Config == nil {
		o.Config = authorityConf
	}
	o.Channels, o.Tools = map[string]channel.Channel{"talk": p.fake}, []tool.Tool{ownersTool{}}
	p.tree = newTree(t, o)
	p.made = filepath.Join(p.Dir, "workspace", "made")
	return p
}

// ownersTool is a tool for the owner.
type ownersTool struct{}

func (ownersTool) Spec() tool.Spec {
	return tool.Spec{Name: "ownersOnly", Description: "Do something.", Schema: json.RawMessage(`{"type":"object"}`),
		OwnerOnly: true}
}

func (ownersTool) Run(context.Context, tool.Call) (tool.Result, error) {
	return tool.Text("it was done"), nil
}

// say sends a message of a person in a chat and waits for the answer.
func (p *powers) say(who string, peer chela.Peer, text string) string {
	p.t.Helper()
	p.sent++
	a := chela.Address{Channel: "talk", Account: "default", Peer: peer}
	before := len(p.fake.Texts(a))
	err := p.fake.Say(p.t.Context(), chela.Inbound{
		ID:        strconv.Itoa(p.sent),
		Address:   a,
		Sender:    chela.Sender{ID: who},
		Text:      text,
		Mentioned: true,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	var got []string
	waittest.Until(p.t, "an answer to "+text, func() bool { got = p.fake.Texts(a); return len(got) > before })
	return got[len(got)-1]
}

func direct(id string) chela.Peer { return chela.Peer{Kind: chela.Direct, ID: id} }

// request returns the newest request with the text in a user message, of a subagent or
// not.
func (p *powers) request(text string, child bool) (found *llm.Request) {
	p.t.Helper()
	waittest.Until(p.t, "a request with "+text, func() bool {
		for _, r := range slices.Backward(p.Requests()) {
			if strings.Contains(systemOf(r), "# Subagent Context") == child &&
				slices.ContainsFunc(r.Messages, func(m *llm.Message) bool {
					return m.Role == llm.RoleUser && m.PlainText() == text
				}) {
				found = r
				return true
			}
		}
		return false
	})
	return found
}

// within checks that the subagent with the task has only tools that the request of its
// requester has, that none of the forbidden calls was carried out, and that it tried.
func (p *powers) within(parent *llm.Request, label, task string) {
	p.t.Helper()
	p.waitEnded(label)
	p.settle()
	has := toolNames(parent)
	for _, name := range []string{"exec", "write", "grep", "ownersOnly"} {
		if slices.Contains(has, name) {
			p.t.Errorf("the requester has %s", name)
		}
	}
	for _, name := range toolNames(p.request(task, true)) {
		if !slices.Contains(has, name) {
			p.t.Errorf("%s has %s, which its requester does not have", label, name)
		}
	}
	got := p.results(task)
	if len(got) != 4 {
		p.t.Errorf("%s: results %q", label, got)
	}
	for _, r := range got {
		if !unavailable(r) {
			p.t.Errorf("%s: a call was answered with %q", label, r)
		}
	}
	p.untouched()
}

// unavailable reports whether a call has the result that the tool is not available.
func unavailable(result string) bool {
	return strings.Contains(result, "there is no tool") ||
		strings.Contains(result, "the configuration does not allow this tool here")
}

// untouched checks that nothing was created in a workspace.
func (p *powers) untouched() {
	p.t.Helper()
	for _, dir := range []string{"workspace", "workspace-ops"} {
		if _, err := os.Stat(filepath.Join(p.Dir, dir, "made")); !errors.Is(err, os.ErrNotExist) {
			p.t.Errorf("a file was created in %s: %v", dir, err)
		}
	}
}

func TestChildAuthority(t *testing.T) {
	const prefix = "E6 the rights of a subagent are among those of its requester: "
	t.Run(prefix+"types", func(t *testing.T) {
		t.Parallel()
		for _, kind := range []string{"", "general", "explore", "plan", "strong"} {
			p := newPowers(t, Options{})
			plant(t, filepath.Join(p.Dir, "workspace", "agents", "strong.md"), "---\nname: strong\ndescription: may do everything\ntools: exec, write, grep, read, ownersOnly, message\n---\nGo.\n")
			text := task(act, "label", "x", "agentType", kind)
			p.say("bob", direct("bob"), text)
			p.within(p.request(text, false), "x", act)
		}
	})
	t.Run(prefix+"another agent", func(t *testing.T) {
		t.Parallel()
		p := newPowers(t, Options{})
		text := task(act, "label", "x", "agentId", "ops")
		p.say("bob", direct("bob"), text)
		p.within(p.request(text, false), "x", act)
		// Ann has exec and write, the main agent has no grep.
		p.say("ann", direct("ann"), task("grep {\"pattern\":\"x\"}", "label", "y", "agentId", "ops"))
		p.waitEnded("y")
		p.settle()
		if got := p.results(`grep {"pattern":"x"}`); len(got) != 1 || !unavailable(got[0]) {
			t.Errorf("grep: %q", got)
		}
		deep := task(`grep {"pattern":"deep"}`, "label", "z")
		p.say("ann", direct("ann"), task(deep, "label", "middle", "agentId", "ops"))
		p.waitEnded("z")
		if got := p.results(`grep {"pattern":"deep"}`); len(got) != 1 || !unavailable(got[0]) {
			t.Errorf("grep of a grandchild: %q", got)
		}
	})
	t.Run(prefix+"a grandchild", func(t *testing.T) {
		t.Parallel()
		p := newPowers(t, Options{})
		middle := task(act, "label", "x", "agentId", "ops")
		text := task(middle, "label", "middle")
		p.say("bob", direct("bob"), text)
		p.within(p.request(text, false), "x", act)
	})
	t.Run(prefix+"a fork", func(t *testing.T) {
		t.Parallel()
		p := newPowers(t, Options{})
		p.say("bob", direct("bob"), task(act, "label", "x", "context", "fork"))
		p.waitEnded("x")
		count := 0
		for _, r := range p.Requests() {
			for _, m := range r.Messages {
				if m.Role == llm.RoleTool && m.PlainText() == "it was done" {
					t.Error("the tool of the owner was called")
				}
				if m.Role == llm.RoleTool && unavailable(m.PlainText()) {
					count++
				}
			}
		}
		if count != 4 {
			t.Errorf("%d calls were refused, want 4", count)
		}
		p.untouched()
	})
	t.Run(prefix+"resumed after a restart", func(t *testing.T) {
		t.Parallel()
		p := newPowers(t, Options{})
		text := task("hold a\n"+act, "label", "x")
		p.say("bob", direct("bob"), text)
		p.waitHeld(t, "a")
		parent := p.request(text, false)
		p.Client.Close()
		go p.release("a") // the stop waits for the model
		p.Stop()
		old := p.family
		next := newPowers(t, Options{Dir: p.Dir})
		c := next.child("x")
		if c.Open() {
			next.waitEnded("x")
		}
		next.untouched()
		for _, r := range append(old.Requests(), next.Requests()...) {
			if !strings.Contains(systemOf(r), "# Subagent Context") {
				continue
			}
			for _, name := range toolNames(r) {
				if !slices.Contains(toolNames(parent), name) {
					t.Errorf("it has %s", name)
				}
			}
		}
	})
	t.Run(prefix+"a message to it", func(t *testing.T) {
		t.Parallel()
		gate, started := make(chan struct{}), make(chan struct{})
		p := &powers{fake: &channeltest.Fake{}}
		p.tree = newTree(t, Options{Config: authorityConf, Channels: map[string]channel.Channel{"talk": p.fake},
			Tools: []tool.Tool{blocking("stall", started, gate)}})
		group := chela.Peer{Kind: chela.Group, ID: "g"}
		p.say("ann", group, task("stall {}\nthen say done", "label", "x"))
		<-started
		for _, text := range []string{`subagents {"action":"steer","target":"x","message":"` + "EVIL" + `"}`, "/steer x EVIL",
			"/subagents send x EVIL"} {
			if got := p.say("bob", group, text); !strings.Contains(got, "was started by somebody else") {
				t.Errorf("bob: %q: %q", text, got)
			}
		}
		if got := p.say("ann", group, "/steer x use metric units"); !strings.Contains(got, "Sent to the subagent") {
			t.Errorf("ann: %q", got)
		}
		if got := p.Ask("agent:main:talk:group:g",
			`subagents {"action":"steer","target":"x","message":"be quick"}`).Text; !strings.Contains(got, "accepted") {
			t.Errorf("the owner: %q", got)
		}
		close(gate)
		p.waitEnded("x")
		var heard strings.Builder
		for _, r := range p.Requests() {
			if strings.Contains(systemOf(r), "# Subagent Context") {
				heard.WriteString(requestText(r))
			}
		}
		if got := heard.String(); strings.Contains(got, "EVIL") || !strings.Contains(got, "use metric units") ||
			!strings.Contains(got, "be quick") {
			t.Errorf("the subagent heard %q", got)
		}
	})
	t.Run(prefix+"a message of a client with fewer scopes", func(t *testing.T) {
		t.Parallel()
		gate, started := make(chan struct{}), make(chan struct{})
		p := &powers{tree: newTree(t, Options{Tools: []tool.Tool{blocking("stall", started, gate)}})}
		p.Ask("main", task("see http://127.0.0.1/?token=open-sesame\nstall {}\nthen say done", "label", "x"))
		<-started
		c := p.with(string(chela.ScopeWrite), string(chela.ScopeRead))
		for _, text := range []string{`subagents {"action":"steer","target":"x","message":"EVIL"}`, "/steer x EVIL"} {
			if got := c.Ask("main", text).Text; !strings.Contains(got, "was started by somebody else") {
				t.Errorf("%q: %q", text, got)
			}
		}
		if got := p.Ask("main", "/steer x "+strings.Repeat("x", 16<<10+1)).Text; !strings.Contains(got,
			"at most 16384 are allowed") {
			t.Errorf("a message of more than 16 KiB: %q", got)
		}
		if got := p.Ask("main", "/steer x be quick").Text; !strings.Contains(got, "Sent to the subagent") {
			t.Errorf("the owner: %q", got)
		}
		var list json.RawMessage
		p.must(wire.MethodSessionsList, nil, &list)
		if !strings.Contains(string(list), "token=[redacted]") || strings.Contains(string(list), "open-sesame") {
			t.Errorf("the title of its session is not masked: %s", list)
		}
		close(gate)
		p.waitEnded("x")
		for _, r := range p.Requests() {
			if strings.Contains(systemOf(r), "# Subagent Context") && strings.Contains(requestText(r), "EVIL") {
				t.Error("the subagent heard it")
			}
		}
	})
	t.Run(prefix+"a command", func(t *testing.T) {
		t.Parallel()
		p := newPowers(t, Options{})
		p.say("bob", direct("bob"), "say hello")
		p.say("bob", direct("bob"), "/subagents spawn "+act)
		p.within(p.request("say hello", false), "Task 1", act)
	})
	t.Run(prefix+"a client with fewer scopes", func(t *testing.T) {
		t.Parallel()
		p := newPowers(t, Options{})
		c := p.with(string(chela.ScopeWrite), string(chela.ScopeRead))
		c.Ask("main", task("ownersOnly {}\nthen say tried", "label", "x"))
		p.waitEnded("x")
		p.settle()
		if got := p.results("ownersOnly {}\nthen say tried"); len(got) != 1 || strings.Contains(got[0], "it was done") {
			t.Errorf("the tool of the owner: %q", got)
		}
		p.Ask("main", task("ownersOnly {}\nthen say again", "label", "y"))
		p.waitEnded("y")
		if got := p.results("ownersOnly {}\nthen say again"); len(got) != 1 || got[0] != "it was done" {
			t.Errorf("a subagent of the owner: %q", got)
		}
	})
	t.Run(prefix+"a session in the sandbox", func(t *testing.T) {
		t.Parallel()
		tr := newTree(t, Options{Config: Config{
			"agents.list": json.RawMessage(
				`[{"id": "main", "sandbox": {"mode": "all"}}, {"id": "ops", "sandbox": {"mode": "off"}}]`),
			"agents.defaults": json.RawMessage(`{"subagents": {"allowAgents": ["ops"]}}`),
		}})
		if end := tr.Ask("main", task("say x", "agentId", "ops")); end.State != wire.StateFinal ||
			!strings.Contains(end.Text, `this session is sandboxed, and a subagent of \"ops\" would not be`) {
			t.Errorf("%s %q %s", end.State, end.Text, end.Error)
		}
		if end := tr.Ask("main", task("say x", "label", "x", "sandbox", "require")); !strings.Contains(end.Text, "accepted") {
			t.Errorf("in the sandbox: %q %s", end.Text, end.Error)
		}
		tr.waitEnded("x")
		off := newTree(t, Options{Config: Config{"agents.defaults": json.RawMessage(`{"sandbox": {"mode": "off"}}`)}})
		if end := off.Ask("main", task("say x", "sandbox", "require")); !strings.Contains(end.Text,
			"the subagent would not be sandboxed") {
			t.Errorf("required, but off: %q %s", end.Text, end.Error)
		}
	})
}
