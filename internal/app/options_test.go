package app

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/chela"
	"github.com/chela-ai/chela/internal/queue"
	"github.com/chela-ai/chela/internal/tool/exec"
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
	if diff := cmp.Diff(usage.Budget{ToolCalls: 500}, o.budget()); diff != "" {
		t.Errorf("budget: %s", diff)
	}
	if got := o.concurrent(); got != 4*runtime.NumCPU() {
		t.Errorf("concurrent %d", got)
	}
	e, err := o.exec(Options{})
	if err != nil || e.Mode != exec.ModeAsk || !e.Interactive {
		t.Errorf("exec %+v %v", e, err)
	}
	if got := o.senders(); len(got) != 0 {
		t.Errorf("senders %v", got)
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
	if diff := cmp.Diff(usage.Budget{ToolCalls: 9, Tokens: 1000, NanoUSD: 500_000_000}, o.budget()); diff != "" {
		t.Errorf("budget: %s", diff)
	}
	if got := o.concurrent(); got != 3 {
		t.Errorf("concurrent %d", got)
	}
	e, err := o.exec(Options{})
	if err != nil || e.Mode != exec.ModeFull || e.MaxTimeout != time.Minute || e.MaxOutput != 500 {
		t.Errorf("exec %+v %v", e, err)
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
