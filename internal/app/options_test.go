package app

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/allowlist"
	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/usage"
)

func TestBadOptions(t *testing.T) {
	tests := []struct{ section, json, want string }{
		{"agents.defaults", `{"maxToolRounds": "ten"}`, "maxToolRounds"},
		{"agents.defaults", `{"model": 5}`, "model"},
		{"session", `[]`, ""},
		{"messages", `{"queue": "steer"}`, "queue"},
		{"models", `{"providers": {"p": {"timeoutSeconds": "1m"}}}`, "timeoutSeconds"},
		{"models", `{"providers": {"p": {"apiKey": {"source": "vault", "id": "x"}}}}`, "vault"},
		{"tools", `{"exec": {"dangerousPatterns": "rm"}}`, "dangerousPatterns"},
		{"channels", `{"telegram": {"allowFrom": "me"}}`, "allowFrom"},
		{"channels", `{"telegram": {"allowFrom": [{"id": 5}]}}`, "allowFrom"},
	}
	for _, tt := range tests {
		t.Run(tt.section+" "+tt.json, func(t *testing.T) {
			_, err := readOptions(conf{tt.section: tt.json})
			if err == nil || !strings.HasPrefix(err.Error(), "configuration, "+tt.section+": ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v", err)
			}
		})
	}
	t.Run("a bad key in plain sight is not in the error", func(t *testing.T) {
		_, err := readOptions(conf{"models": `{"providers": {"p": {"apiKey": ["sk-canary"]}}}`})
		if err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("error %v", err)
		}
	})
	started := func(c conf) error {
		o := on(t, nil, nil)
		o.Config, o.NoProbe, o.NoSocket = c, true, true
		e, err := New(t.Context(), o)
		if err == nil {
			e.Close(t.Context())
		}
		return err
	}
	for _, tt := range []struct{ section, json, want string }{
		{"agents.defaults", `{"userTimezone": "Mars/Base"}`, "agents.defaults.userTimezone"},
		{"tools", `{"exec": {"mode": "maybe"}}`, "tools.exec.mode"},
		{"tools", `{"exec": {"security": "yolo"}}`, "tools.exec.security"},
		{"tools", `{"exec": {"safeBinProfiles": {"x": {"minPositional": 2}}}}`, "tools.exec.safeBinProfiles.x"},
		{"agents", `{"list": [{"id": "a", "tools": {"exec": {"ask": "never"}}}]}`, "agents.list[0].tools.exec.ask"},
		{"tools", `{"exec": {"dangerousPatterns": ["("]}}`, "dangerous pattern"},
		{"tools", `{"loopDetection": {"enabled": true, "warningThreshold": 30, "criticalThreshold": 20}}`, "tools.loopDetection"},
	} {
		t.Run("no start with "+tt.json, func(t *testing.T) {
			if err := started(conf{tt.section: tt.json}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one about %s", err, tt.want)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	o := read(t, nil)
	if diff := cmp.Diff(queue.Policy{Debounce: time.Second}, o.policy()); diff != "" {
		t.Errorf("policy: %s", diff)
	}
	if got := o.timeout(); got != 48*time.Hour {
		t.Errorf("timeout %s", got)
	}
	if diff := cmp.Diff(usage.Budget{ToolCalls: 500, Failures: 20, Identical: 100, Time: 4 * time.Hour, Tokens: 20_000_000}, o.budget()); diff != "" {
		t.Errorf("budget: %s", diff)
	}
	if got := o.concurrent(); got != 4*runtime.NumCPU() {
		t.Errorf("concurrent %d", got)
	}
	if e := o.exec(Options{}); !e.Interactive {
		t.Errorf("exec %+v", e)
	}
	if got := policyOf(t, o, "main"); got != allowlist.Default() {
		t.Errorf("commands %+v", got)
	}
	if got := o.senders(); len(got) != 0 {
		t.Errorf("senders %v", got)
	}
}

// policyOf is the policy about an agent's commands, without a document.
func policyOf(t *testing.T, o *options, id chela.AgentID) allowlist.Policy {
	t.Helper()
	r, err := o.commandRules(t.TempDir(), "").Rules(id)
	if err != nil {
		t.Fatal(err)
	}
	return r.Policy
}

func TestCommandRules(t *testing.T) {
	fresh := allowlist.Default()
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
		{"EX-24 mode off", conf{"tools": `{"exec": {"mode": "full"}}`}, "main", allowlist.Open()},
		{"EX-24 security off", conf{"tools": `{"exec": {"security": "off"}}`}, "main", with("full", "off", true)},
		{"EX-24 security ask", conf{"tools": `{"exec": {"security": "ask"}}`}, "main", fresh},
		{"EX-24 security review", conf{"tools": `{"exec": {"security": "review"}}`}, "main", fresh},
		{"EX-24 security sudo", conf{"tools": `{"exec": {"security": "sudo"}}`}, "main", fresh},
		{"EX-24 ask true", conf{"tools": `{"exec": {"ask": true}}`}, "main", with("allowlist", "always", true)},
		{"EX-24 ask false is no wish", conf{"tools": `{"exec": {"ask": false}}`}, "main", fresh},
		{"the list alone", conf{"tools": `{"exec": {"security": "allowlist", "ask": "off"}}`}, "main", with("allowlist", "off", false)},
		{"of a mode and a pair the stricter", conf{"tools": `{"exec": {"mode": "full", "ask": "always"}}`}, "main", with("full", "always", true)},
		{"of an agent", conf{"tools": `{"exec": {"mode": "full"}}`, "agents": `{"list": [{"id": "ops", "tools": {"exec": {"mode": "deny"}}}]}`}, "ops", with("deny", "off", true)},
		{"of another agent", conf{"tools": `{"exec": {"mode": "full"}}`, "agents": `{"list": [{"id": "ops", "tools": {"exec": {"mode": "deny"}}}]}`}, "main", allowlist.Open()},
		{"an agent's ask over the pair of all", conf{"tools": `{"exec": {"security": "full", "ask": "off"}}`, "agents": `{"entries": {"ops": {"tools": {"exec": {"ask": "always"}}}}}`}, "ops", with("full", "always", true)},
		{"compat openclaw", conf{"compat": `"openclaw"`}, "main", allowlist.Open()},
		{"compat openclaw with a wish", conf{"compat": `"openclaw"`, "tools": `{"exec": {"ask": "always"}}`}, "main", with("full", "always", true)},
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
		"channels":        `{"telegram": {"allowFrom": ["*"]}, "signal": {"allowFrom": ["+49", 12345678901]}}`,
	})
	want := queue.Policy{Mode: queue.Followup, Drop: queue.DropOld, Cap: 7, Inbound: 250 * time.Millisecond}
	if diff := cmp.Diff(want, o.policy()); diff != "" {
		t.Errorf("policy: %s", diff)
	}
	if got := o.timeout(); got != 0 {
		t.Errorf("timeout %s", got)
	}
	if diff := cmp.Diff(usage.Budget{ToolCalls: 9, Failures: 20, Identical: 100, Time: 4 * time.Hour, Tokens: 1000, NanoUSD: 500_000_000}, o.budget()); diff != "" {
		t.Errorf("budget: %s", diff)
	}
	if got := o.concurrent(); got != 3 {
		t.Errorf("concurrent %d", got)
	}
	if e := o.exec(Options{}); e.MaxTimeout != time.Minute || e.MaxOutput != 500 {
		t.Errorf("exec %+v", e)
	}
	if got := policyOf(t, o, "main"); got.Security != allowlist.Full || got.Ask != allowlist.Off {
		t.Errorf("commands %+v", got)
	}
	if diff := cmp.Diff(map[string][]string{"telegram": {"*"}, "signal": {"+49", "12345678901"}}, map[string][]string(o.senders())); diff != "" {
		t.Errorf("senders: %s", diff)
	}
}

func TestWorkspace(t *testing.T) {
	abs := filepath.Join(t.TempDir(), "ws")
	tests := []struct {
		set   string
		agent chela.AgentID
		want  string
	}{
		{"", chela.DefaultAgent, "/state/workspace"},
		{"home", chela.DefaultAgent, "/state/home"},
		{abs, chela.DefaultAgent, abs},
		{"~", chela.DefaultAgent, "/home/p"},
		{"~/ws", chela.DefaultAgent, "/home/p/ws"},
		{"~other", chela.DefaultAgent, "/state/~other"},
		{abs, "work", "/state/workspace-work"},
	}
	for _, tt := range tests {
		o := &options{Agent: agentOptions{Workspace: tt.set}}
		p := profiles{opts: o, state: "/state", home: "/home/p"}
		if got := p.workspace(tt.agent); got != filepath.FromSlash(tt.want) {
			t.Errorf("%q of %s: %s, want %s", tt.set, tt.agent, got, tt.want)
		}
	}
}
