package settings

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/core/allowlist"
	"github.com/chela-ai/chela/internal/core/chela"
	"github.com/chela-ai/chela/internal/core/policy"
	"github.com/chela-ai/chela/internal/core/tool"
)

// nested returns an object with the value below a path of keys; without a value, it
// is empty.
func nested(path, value string) string {
	if value == "" {
		return "{}"
	}
	for _, k := range slices.Backward(strings.Split(path, ".")) {
		value = fmt.Sprintf("{%q: %s}", k, value)
	}
	return value
}

// commands returns the rules about an agent's commands without a file of rules.
func commands(t *testing.T, o *Settings) *allowlist.Rules {
	t.Helper()
	r, err := o.CommandRules(allowlist.NewFile(filepath.Join(t.TempDir(), allowlist.FileName)), "").Rules("ops")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// inside is the name of a tool that works in a sandbox.
type inside string

func (n inside) Spec() tool.Spec {
	return tool.Spec{Name: string(n), Sandboxed: tool.Inside}
}

func (inside) Run(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }

// calls returns which of some tools the agent may call.
func calls(t *testing.T, o *Settings) string {
	t.Helper()
	a, at := o.Of("ops")
	c := policy.Conversation{
		Provider:  "p",
		Model:     "m",
		Sender:    policy.Sender{Channel: "telegram", ID: "5"},
		Sandboxed: true,
		Depth:     1,
		MaxDepth:  2,
	}
	set := tool.NewSet(inside("exec"), inside("read"), inside("write"))
	names := policy.NewCatalog(set).Pipeline(o.Tools.Config, a.Tools.Config, at, c).Apply(set.Specs()).Allowed
	return strings.Join(names, " ")
}

// TestLevels sets every key that exists for all agents and for one agent: for all,
// for the agent, for both, and for both the other way round. A second agent always
// has a value of its own.
func TestLevels(t *testing.T) {
	mode := func(t *testing.T, o *Settings) string {
		p := commands(t, o).Policy
		return string(p.Security) + " " + string(p.Ask)
	}
	const noExec, noRead = `["exec"]`, `["read"]`
	for _, tt := range []struct {
		path string // below tools, or a key of agents.defaults
		x, y string
		get  func(*testing.T, *Settings) string
		want [6]string // all x, own x, all y, own y, all x own y, all y own x
	}{
		{"exec.mode", `"deny"`, `"full"`, mode,
			[6]string{"deny off", "deny off", "full off", "full off", "full off", "deny off"}},
		{"exec.security", `"deny"`, `"full"`, mode, [6]string{"deny on-miss", "deny on-miss", "full on-miss", "full on-miss",
			"full on-miss", "deny on-miss"}},
		{"exec.ask", `"off"`, `"always"`, mode, [6]string{"allowlist off", "allowlist off", "allowlist always",
			"allowlist always", "allowlist always", "allowlist off"}},
		{
			"exec.strictInlineEval", `true`, `false`,
			func(t *testing.T, o *Settings) string { return fmt.Sprint(commands(t, o).StrictInline) },
			[6]string{"true", "true", "false", "false", "false", "true"},
		},
		{
			"exec.safeBins", `["cat"]`, `[]`,
			func(t *testing.T, o *Settings) string { return fmt.Sprintf("%q", commands(t, o).Bins.Names) },
			[6]string{`["cat"]`, `["cat"]`, `[]`, `[]`, `[]`, `["cat"]`},
		},
		{
			"exec.safeBinTrustedDirs", `["/x"]`, `["/y"]`,
			func(t *testing.T, o *Settings) string { return fmt.Sprint(commands(t, o).Bins.Dirs) },
			[6]string{"[/x]", "[/x]", "[/y]", "[/y]", "[/x /y]", "[/y /x]"},
		},
		{
			"exec.safeBinProfiles", `{"b": {"maxPositional": 1}}`, `{"b": {"maxPositional": 2}}`,
			func(t *testing.T, o *Settings) string { return fmt.Sprint(commands(t, o).Bins.Profiles["b"].Max) },
			[6]string{"1", "1", "2", "2", "2", "1"},
		},
		{
			"fs.workspaceOnly", `true`, `false`,
			func(_ *testing.T, o *Settings) string { return fmt.Sprint(!o.Paths("ops", nil).Outside) },
			[6]string{"true", "true", "false", "false", "false", "true"},
		},
		{"profile", `"minimal"`, `"full"`, calls,
			[6]string{"", "", "exec read write", "exec read write", "exec read write", ""}},
		{"deny", noExec, noRead, calls, [6]string{"read write", "read write", "exec write", "exec write", "write", "write"}},
		{"allow", noExec, `["exec", "read"]`, calls, [6]string{"exec", "exec", "exec read", "exec read", "exec", "exec"}},
		{"byProvider.p.deny", noExec, noRead, calls,
			[6]string{"read write", "read write", "exec write", "exec write", "write", "write"}},
		{"byProvider.p.profile", `"minimal"`, `"full"`, calls,
			[6]string{"", "", "exec read write", "exec read write", "exec read write", ""}},
		{"toolsBySender.5.deny", noExec, noRead, calls,
			[6]string{"read write", "read write", "exec write", "exec write", "exec write", "read write"}},
		{"sandbox.tools.deny", noExec, noRead, calls,
			[6]string{"read write", "read write", "exec write", "exec write", "exec write", "read write"}},
		{"subagents.tools.deny", noExec, noRead, calls,
			[6]string{"read write", "read write", "exec write", "exec write", "write", "write"}},
	} {
		t.Run(tt.path, func(t *testing.T) {
			for i, level := range [6][2]string{{tt.x, ""}, {"", tt.x}, {tt.y, ""}, {"", tt.y}, {tt.x, tt.y}, {tt.y, tt.x}} {
				all, own := nested(tt.path, level[0]), nested(tt.path, level[1])
				for name, agents := range map[string]string{
					"list": fmt.Sprintf(
						`{"list": [{"id": "a", "tools": %[1]s}, {"id": "ops", "tools": %s}, {"id": "z", "tools": %[1]s}]}`,
						nested(tt.path, tt.y), own),
					"entries": fmt.Sprintf(`{"entries": {"a": {"tools": %[1]s}, "Ops": {"tools": %s}, "z": {"tools": %[1]s}}}`,
						nested(tt.path, tt.y), own),
				} {
					if got := tt.get(t, read(t, conf{"tools": all, "agents": agents})); got != tt.want[i] {
						t.Errorf("all %q, own %q (agents.%s): %s, want %s", level[0], level[1], name, got, tt.want[i])
					}
				}
			}
		})
	}
	for _, tt := range []struct {
		key  string
		id   chela.AgentID
		x, y string
		get  func(*Settings, Agent) string
	}{
		{"thinkingDefault", "ops", "low", "high", func(o *Settings, _ Agent) string { return string(o.Think("ops", "")) }},
		{"fastModeDefault", "ops", "on", "auto", func(o *Settings, _ Agent) string { return string(o.Fast("ops", "")) }},
		{"verboseDefault", "ops", "on", "full", func(_ *Settings, a Agent) string { return a.Verbose }},
		{"model", chela.DefaultAgent, "p/x", "p/y",
			func(o *Settings, _ Agent) string { return o.ModelOptions("", nil).Model.Primary }},
	} {
		t.Run(tt.key, func(t *testing.T) {
			for _, level := range [4][3]string{{tt.x, "", tt.x}, {"", tt.x, tt.x}, {tt.x, tt.y, tt.y}, {tt.y, tt.x, tt.x}} {
				o := read(t, conf{
					"agents.defaults": fmt.Sprintf(`{%q: %q}`, tt.key, level[0]),
					"agents": fmt.Sprintf(`{"list": [{"id": "a", %[1]q: %[2]q}, {"id": %[3]q, %[1]q: %[4]q}]}`, tt.key,
						tt.y, tt.id, level[1]),
				})
				a, _ := o.Of(tt.id)
				if got := tt.get(o, a); got != level[2] {
					t.Errorf("all %q, own %q: %s, want %s", level[0], level[1], got, level[2])
				}
			}
		})
	}
}

// TestElevated asks for several senders whether they may leave the sandbox. A sender
// must be allowed for all agents, and for the agent if it has its own list.
func TestElevated(t *testing.T) {
	all := `{"elevated": {"allowFrom": {"telegram": ["5", "id:6", "from:7", "name:8"], "slack": ["9"], "open": ["*"]}}}`
	for _, tt := range []struct {
		tools, own string
		want       string // the senders that may
		why        string // the reason for those who may not; "": not checked
	}{
		{"{}", "{}", "", "the sender is not in tools.elevated.allowFrom."},
		{all, "{}", "telegram:5 telegram:6 telegram:7 slack:9 open:1", "the sender is not in tools.elevated.allowFrom."},
		{all, `{"elevated": {"allowFrom": {"telegram": ["5", "99"]}}}`, "telegram:5", ""},
		{all, `{"elevated": {"allowFrom": {"slack": ["*"]}}}`, "slack:9", ""},
		{`{"elevated": {"allowFrom": {"telegram": ["*"], "slack": ["*"], "open": ["*"], "other": ["*"]}}}`,
			`{"elevated": {"allowFrom": {}}}`, "", ".tools.elevated.allowFrom."},
		{"{}", all, "", "the sender is not in tools.elevated.allowFrom."},
		{strings.Replace(all, `{"a`, `{"enabled": true, "a`, 1), `{"elevated": {"enabled": true}}`,
			"telegram:5 telegram:6 telegram:7 slack:9 open:1", ""},
		{strings.Replace(all, `{"a`, `{"enabled": false, "a`, 1), `{"elevated": {"enabled": true}}`, "",
			"tools.elevated.enabled is false"},
		{all, `{"elevated": {"enabled": false}}`, "", ".tools.elevated.enabled is false"},
	} {
		for agents, at := range map[string]string{
			fmt.Sprintf(`{"list": [{"id": "a", "tools": %s}, {"id": "ops", "tools": %s}]}`, all, tt.own): "agents.list[1]",
			fmt.Sprintf(`{"entries": {"a": {"tools": %s}, "Ops": {"tools": %s}}}`, all, tt.own):          "agents.entries.Ops",
		} {
			o := read(t, conf{"tools": tt.tools, "agents": agents})
			var may []string
			for _, who := range []chela.ChannelSender{
				{Channel: "telegram", ID: "5"}, {Channel: "telegram", ID: "6"}, {Channel: "telegram", ID: "7"},
				{Channel: "telegram", ID: "8"},
				{Channel: "telegram", ID: "9"}, {Channel: "slack", ID: "9"}, {Channel: "open", ID: "1"},
				{Channel: "other", ID: "5"},
			} {
				e := o.ElevatedFor("ops", chela.Principal{ID: who.String(), Scopes: []chela.Scope{chela.ScopeWrite}}, "full")
				switch {
				case e.Level != "full":
					t.Errorf("level %q", e.Level)
				case e.Reason == "":
					may = append(may, who.Channel+":"+who.ID)
				case !strings.Contains(e.Reason, tt.why):
					t.Errorf("%s, own %s: %v: %q, want %q", tt.tools, tt.own, who, e.Reason, tt.why)
				case strings.HasPrefix(tt.why, ".") && !strings.Contains(e.Reason, at+tt.why):
					t.Errorf("own %s: %q does not name %s", tt.own, e.Reason, at)
				}
			}
			if got := strings.Join(may, " "); got != tt.want {
				t.Errorf("%s, own %s: %q may, want %q", tt.tools, tt.own, got, tt.want)
			}
			// A principal with all rights needs no list.
			enabled := !strings.Contains(tt.tools+tt.own, `"enabled": false`)
			if e := o.ElevatedFor("ops", chela.Owner("process"), ""); (e.Reason == "") != enabled || e.Level != "off" {
				t.Errorf("%s, own %s: the owner: %+v", tt.tools, tt.own, e)
			}
			if e := o.ElevatedFor("ops", chela.Principal{ID: "device:5", Scopes: []chela.Scope{chela.ScopeWrite}},
				""); e.Reason == "" {
				t.Errorf("%s, own %s: a device without all rights may", tt.tools, tt.own)
			}
			var keys []string
			gates := map[string]any{}
			for _, g := range o.ElevatedGates("ops") {
				gates[g.Key] = g.Value
				if rest, ok := strings.CutPrefix(g.Key, at+".tools.elevated."); ok {
					keys = append(keys, rest)
				}
			}
			from, err := json.Marshal(gates["tools.elevated.allowFrom"])
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(tt.tools, "allowFrom") != strings.Contains(string(from), "telegram") || string(from) == "null" ||
				gates["tools.elevated.enabled"] == strings.Contains(tt.tools, `"enabled": false`) ||
				gates["agents.defaults.elevatedDefault"] != "off" {
				t.Errorf("%s: the gates of all agents are %v", tt.tools, gates)
			}
			if got, want := slices.Contains(keys, "allowFrom"), strings.Contains(tt.own, "allowFrom"); got != want {
				t.Errorf("own %s: the gates of the agent are %v", tt.own, keys)
			}
			if got, want := slices.Contains(keys, "enabled"), strings.Contains(tt.own, "enabled"); got != want {
				t.Errorf("own %s: the gates of the agent are %v", tt.own, keys)
			}
		}
	}
}
