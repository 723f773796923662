package settings

import (
	"encoding/json"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/pathpolicy"
	"github.com/chela-ai/chela/internal/core/queue"
	"github.com/chela-ai/chela/internal/core/usage"
)

// conf is a configuration by sections.
type conf map[string]string

func (c conf) Section(path string) json.RawMessage {
	if s, ok := c[path]; ok {
		return json.RawMessage(s)
	}
	return nil
}

// read returns the settings of a valid configuration.
func read(t *testing.T, c conf) *Settings {
	t.Helper()
	o, err := Read(c)
	if err != nil {
		t.Fatal(err)
	}
	return &o
}

func TestBadOptions(t *testing.T) {
	tests := []struct{ section, json, want string }{
		{"agents.defaults", `{"maxToolRounds": "ten"}`, "maxToolRounds"},
		{"agents", `{"list": [{"tools": {"fs": {"workspaceOnly": "no"}}}]}`, "workspaceOnly"},
		{"agents.defaults", `{"model": 5}`, "model"},
		{"session", `[]`, ""},
		{"messages", `{"queue": "steer"}`, "queue"},
		{"models", `{"providers": {"p": {"timeoutSeconds": "1m"}}}`, "timeoutSeconds"},
		{"models", `{"providers": {"p": {"apiKey": {"source": "vault", "id": "x"}}}}`, "vault"},
		{"channels", `{"telegram": {"allowFrom": "me"}}`, "allowFrom"},
		{"channels", `{"telegram": {"allowFrom": [{"id": 5}]}}`, "allowFrom"},
	}
	for _, tt := range tests {
		t.Run(tt.section+" "+tt.json, func(t *testing.T) {
			_, err := Read(conf{tt.section: tt.json})
			if err == nil || !strings.HasPrefix(err.Error(), "configuration, "+tt.section+": ") ||
				!strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v", err)
			}
		})
	}
	t.Run("the error does not contain an invalid key", func(t *testing.T) {
		_, err := Read(conf{"models": `{"providers": {"p": {"apiKey": ["sk-canary"]}}}`})
		if err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("error %v", err)
		}
	})
}

func TestDefaults(t *testing.T) {
	o := read(t, nil)
	if diff := cmp.Diff(queue.Policy{Debounce: time.Second}, o.Queueing("")); diff != "" {
		t.Errorf("policy: %s", diff)
	}
	if got := o.Timeout(); got != 48*time.Hour {
		t.Errorf("timeout %s", got)
	}
	if diff := cmp.Diff(usage.Budget{
		ToolCalls: 500,
		Failures:  20,
		Identical: 100,
		Time:      4 * time.Hour,
		Tokens:    20_000_000,
	}, o.RunBudget("main")); diff != "" {
		t.Errorf("budget: %s", diff)
	}
	if got := o.Concurrent(); got != 4*runtime.NumCPU() {
		t.Errorf("concurrent %d", got)
	}
	if got := policyOf(t, o, "main"); got != allowlist.Default() {
		t.Errorf("commands %+v", got)
	}
	if got := o.Senders(); len(got) != 0 {
		t.Errorf("senders %v", got)
	}
}

// policyOf returns the policy about an agent's commands without a file of rules.
func policyOf(t *testing.T, o *Settings, id chela.AgentID) allowlist.Policy {
	t.Helper()
	r, err := o.CommandRules(allowlist.NewFile(filepath.Join(t.TempDir(), allowlist.FileName)), "").Rules(id)
	if err != nil {
		t.Fatal(err)
	}
	return r.Policy
}

func TestCommandRules(t *testing.T) {
	fresh := allowlist.Default()
	asking := fresh
	asking.Work = false
	with := func(s allowlist.Security, a allowlist.Ask, reads bool) allowlist.Policy {
		return allowlist.Policy{Security: s, Ask: a, Fallback: allowlist.Deny, Reads: reads}
	}
	for _, tt := range []struct {
		name  string
		conf  conf
		agent chela.AgentID
		want  allowlist.Policy
	}{
		{"nothing is set", nil, "main", fresh},
		{"EX-24 mode off", conf{"tools": `{"exec": {"mode": "full"}}`}, "main", allowlist.Permissive()},
		{"EX-24 security off", conf{"tools": `{"exec": {"security": "off"}}`}, "main", with("full", "off", true)},
		{"EX-24 security ask", conf{"tools": `{"exec": {"security": "ask"}}`}, "main", asking},
		{"EX-24 security review", conf{"tools": `{"exec": {"security": "review"}}`}, "main", asking},
		{"EX-24 security sudo", conf{"tools": `{"exec": {"security": "sudo"}}`}, "main", asking},
		{"EX-24 ask true", conf{"tools": `{"exec": {"ask": true}}`}, "main", with("allowlist", "always", true)},
		{"EX-24 ask false has no effect", conf{"tools": `{"exec": {"ask": false}}`}, "main", fresh},
		{"only the allowlist", conf{"tools": `{"exec": {"security": "allowlist", "ask": "off"}}`}, "main",
			with("allowlist", "off", false)},
		{"the stricter of a mode and a pair", conf{"tools": `{"exec": {"mode": "full", "ask": "always"}}`}, "main",
			with("full", "always", true)},
		{"configured for the agent", conf{"tools": `{"exec": {"mode": "full"}}`,
			"agents": `{"list": [{"id": "ops", "tools": {"exec": {"mode": "deny"}}}]}`}, "ops", with("deny", "off", true)},
		{"configured for another agent", conf{"tools": `{"exec": {"mode": "full"}}`,
			"agents": `{"list": [{"id": "ops", "tools": {"exec": {"mode": "deny"}}}]}`}, "main", allowlist.Permissive()},
		{"an agent's ask overrides the pair of all agents", conf{"tools": `{"exec": {"security": "full", "ask": "off"}}`,
			"agents": `{"entries": {"ops": {"tools": {"exec": {"ask": "always"}}}}}`}, "ops", with("full", "always", true)},
		{"compat openclaw", conf{"compat": `"openclaw"`}, "main", allowlist.Permissive()},
		{"compat openclaw with ask always", conf{"compat": `"openclaw"`, "tools": `{"exec": {"ask": "always"}}`}, "main",
			with("full", "always", true)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := policyOf(t, read(t, tt.conf), tt.agent); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestSet(t *testing.T) {
	o := read(t, conf{
		"agents.defaults": `{"timeoutSeconds": 0, "maxConcurrent": 3, "budget": {"toolCalls": 9, "tokens": 1000, "usd": 0.5}}`,
		"messages":        `{"queue": {"mode": "followup", "debounceMs": 0, "cap": 7, "drop": "old"}, "inbound": {"debounceMs": 250}}`,
		"tools":           `{"exec": {"mode": "full", "timeoutSeconds": 60, "maxOutputChars": 500}}`,
		"channels":        `{"telegram": {"allowFrom": ["*"]}, "signal": {"allowFrom": ["+49", 12345678901]}, "irc": {"channels": ["#family"], "allowFrom": ["ann"]}}`,
	})
	want := queue.Policy{Mode: queue.Followup, Drop: queue.DropOld, Cap: 7, Inbound: 250 * time.Millisecond}
	if diff := cmp.Diff(want, o.Queueing("")); diff != "" {
		t.Errorf("policy: %s", diff)
	}
	if got := o.Timeout(); got != 0 {
		t.Errorf("timeout %s", got)
	}
	if diff := cmp.Diff(usage.Budget{
		ToolCalls: 9,
		Failures:  20,
		Identical: 100,
		Time:      4 * time.Hour,
		Tokens:    1000,
	}, o.RunBudget("main")); diff != "" {
		t.Errorf("budget: %s", diff)
	}
	if got := o.Concurrent(); got != 3 {
		t.Errorf("concurrent %d", got)
	}
	if got := policyOf(t, o, "main"); got.Security != allowlist.Full || got.Ask != allowlist.Off {
		t.Errorf("commands %+v", got)
	}
	if diff := cmp.Diff(map[string][]string{"telegram": {"*"}, "signal": {"+49", "12345678901"}, "irc": {"ann"}},
		map[string][]string(o.Senders())); diff != "" {
		t.Errorf("senders: %s", diff)
	}
}

func TestWorkspace(t *testing.T) {
	abs := filepath.Join(t.TempDir(), "ws")
	for _, tt := range []struct {
		set, own string
		agent    chela.AgentID
		want     string
	}{
		{"", "", chela.DefaultAgent, "/state/workspace"},
		{"home", "", chela.DefaultAgent, "/state/home"},
		{abs, "", chela.DefaultAgent, abs},
		{"~", "", chela.DefaultAgent, "/home/p"},
		{"~/ws", "", chela.DefaultAgent, "/home/p/ws"},
		{"~other", "", chela.DefaultAgent, "/state/~other"},
		{abs, "", "work", "/state/workspace-work"},
		{"", "desk", "work", "/state/desk"},
		{"", "~/desk", "work", "/home/p/desk"},
		{"home", "own", chela.DefaultAgent, "/state/own"},
	} {
		o := &Settings{Agent: Defaults{Workspace: tt.set},
			Agents: Agents{List: []Agent{{ID: string(tt.agent), Workspace: tt.own}}}}
		if got := o.Workspace(tt.agent, "/state", "/home/p"); got != filepath.FromSlash(tt.want) {
			t.Errorf("%q, %q of %s: %s, want %s", tt.set, tt.own, tt.agent, got, tt.want)
		}
	}
}

func TestRoster(t *testing.T) {
	o := read(t, conf{
		"agents.defaults": `{"thinkingDefault": "low", "verboseDefault": "on"}`,
		"agents":          `{"list": [{"agentId": "Ops Team", "thinkingDefault": "high"}, {"id": "main", "name": "Crab"}, {"name": "nobody"}], "entries": {"zoe": {"model": "mock/m1"}, "Ada": {"name": "Ada L."}}}`,
	})
	if diff := cmp.Diff([]chela.AgentID{"main", "ops-team", "ada", "zoe"}, o.Roster()); diff != "" {
		t.Error(diff)
	}
	for _, tt := range []struct {
		id                        chela.AgentID
		at, name, model, think, v string
	}{
		{"main", "agents.list[1]", "Crab", "", "low", "on"},
		{"ops-team", "agents.list[0]", "", "", "high", "on"},
		{"ada", "agents.entries.Ada", "Ada L.", "", "low", "on"},
		{"zoe", "agents.entries.zoe", "", "mock/m1", "low", "on"},
		{"gone", "agents.entries.gone", "", "", "low", "on"},
	} {
		a, at := o.Of(tt.id)
		if at != tt.at || a.Name != tt.name || a.Model.Primary != tt.model || string(o.Think(tt.id, "")) != tt.think ||
			a.Verbose != tt.v {
			t.Errorf("%s: %s %+v", tt.id, at, a)
		}
	}
	if o.Has("gone") || !o.Has("zoe") || !read(t, nil).Has("main") {
		t.Error("Has is wrong")
	}
}

func TestAt(t *testing.T) {
	for _, tt := range []struct {
		agents, id, want string
		listed           bool
	}{
		{`{}`, "ops", "agents.entries.ops", false},
		{`{"entries": {"Ops": {}}}`, "ops", "agents.entries.Ops", false},
		{`{"entries": {"my.ops": {}}}`, "my-ops", `agents.entries["my.ops"]`, false},
		{`{"list": [{"id": "a"}, {"id": "ops"}]}`, "ops", "agents.list[1]", true},
		{`{"list": [{"id": "a"}]}`, "ops", "agents.list[1]", true},
		{`{"list": [{"id": "a"}], "entries": {"ops": {}}}`, "ops", "agents.entries.ops", false},
	} {
		if got, listed := read(t, conf{"agents": tt.agents}).At(chela.AgentID(tt.id)); got != tt.want || listed != tt.listed {
			t.Errorf("%s in %s: %s %v, want %s", tt.id, tt.agents, got, listed, tt.want)
		}
	}
}

func TestPaths(t *testing.T) {
	const in, out = `{"fs": {"workspaceOnly": true}}`, `{"fs": {"workspaceOnly": false}}`
	for _, tt := range []struct {
		compat, all, own string
		want             bool // whether tools may leave the workspace
	}{
		{"", `{}`, `{}`, false},
		{"", out, `{}`, true},
		{"", out, in, false},
		{"", in, out, true},
		{"", out, `{"fs": {}}`, true},
		{"openclaw", `{}`, `{}`, true},
		{"openclaw", in, `{}`, false},
		{"openclaw", `{}`, in, false},
	} {
		o := read(t, conf{"compat": `"` + tt.compat + `"`, "tools": tt.all, "agents": `{"list": [{"id": "other", "tools": ` +
			tt.all + `}, {"id": "ops", "tools": ` + tt.own + `}]}`})
		if diff := cmp.Diff(pathpolicy.Rule{Outside: tt.want}, o.Paths("ops", nil)); diff != "" {
			t.Errorf("%+v: %s", tt, diff)
		}
	}
}
