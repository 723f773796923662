package policy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// allTools is a set with a tool of each kind.
var allTools = []string{
	"read", "write", "edit", "apply_patch", "ls", "exec", "process", "web_search", "web_fetch", "memory_search",
	"sessions_list", "sessions_history", "sessions_send", "sessions_spawn", "subagents", "session_status",
	"browser", "canvas", "cron", "gateway", "message", "nodes", "image",
}

func config(t *testing.T, text string) Config {
	t.Helper()
	var c Config
	if text == "" {
		return c
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// remaining returns the tools that a pipeline leaves of allTools, and the step
// and key that removed each other tool.
func remaining(t *testing.T, global, agent string, c Conversation) ([]string, map[string]string) {
	t.Helper()
	o := New(config(t, global), config(t, agent), "agents.entries.main", c).Apply(allTools)
	by := map[string]string{}
	for _, r := range o.Removed {
		for _, n := range r.Names {
			by[n] = r.Label + " " + r.Key
		}
	}
	return o.Allowed, by
}

func talk() Conversation { return Conversation{Provider: "anthropic", Model: "opus"} }

func TestOffered(t *testing.T) {
	t.Parallel()
	child := func(depth, most int) Conversation {
		c := talk()
		c.Depth, c.MaxDepth = depth, most
		return c
	}
	boxed := talk()
	boxed.Sandboxed = true
	openai := talk()
	openai.Provider = "openai"
	for _, tt := range []struct {
		name          string
		global, agent string
		c             Conversation
		has           string // available tools
		not           string // removed tools
		only          bool   // has lists all available tools
	}{
		{name: "no configuration: nothing is removed", c: talk(), has: strings.Join(allTools, " "), only: true},
		{name: "minimal", global: `{"profile":"minimal"}`, c: talk(), has: "session_status", only: true},
		{
			name: "TC-03 coding", global: `{"profile":"coding"}`, c: talk(),
			has: "read write edit apply_patch exec process web_search web_fetch sessions_list sessions_send memory_search cron", not: "browser message nodes",
		},
		{name: "TC-04 messaging", global: `{"profile":"messaging"}`, c: talk(), has: "message sessions_list sessions_send", not: "exec read write"},
		{name: "TC-05 a group allowed", global: `{"allow":["group:web"]}`, c: talk(), has: "web_search web_fetch", only: true},
		{name: "TC-06 who may write may patch", global: `{"allow":["write"]}`, c: talk(), has: "write apply_patch", only: true},
		{name: "TC-07 who may not write may patch", global: `{"deny":["write"]}`, c: talk(), has: "apply_patch read", not: "write"},
		{name: "TC-07 unless the group is denied", global: `{"deny":["group:fs"]}`, c: talk(), has: "exec", not: "write apply_patch"},
		{name: "TC-08 case and globs", global: `{"allow":["Exec","brow*"],"deny":["BROWS*"]}`, c: talk(), has: "exec", only: true},
		{name: "TC-12 bash is exec", global: `{"allow":["bash"]}`, c: talk(), has: "exec", only: true},
		{name: "TP-01 a provider's profile", global: `{"profile":"coding","byProvider":{"anthropic":{"profile":"minimal"}}}`, c: talk(), has: "session_status", only: true},
		{name: "TP-01 not for another provider", global: `{"profile":"coding","byProvider":{"anthropic":{"profile":"minimal"}}}`, c: openai, has: "read exec", not: "browser"},
		{name: "TP-01 the model goes before its provider", global: `{"byProvider":{"Anthropic":{"deny":["exec"]},"anthropic/opus":{"deny":["read"]}}}`, c: talk(), has: "exec", not: "read"},
		{name: "TP-02 two lists: what both allow", global: `{"allow":["read","exec"]}`, agent: `{"allow":["read","write"]}`, c: talk(), has: "read", only: true},
		{name: "TP-03 a denied tool stays denied", global: `{"deny":["exec"]}`, agent: `{"allow":["exec","read"]}`, c: talk(), has: "read", only: true},
		{name: "TP-04 a profile and more", global: `{"profile":"coding","alsoAllow":["browser"]}`, c: talk(), has: "browser read", not: "message"},
		{name: "TP-06 in a sandbox", c: boxed, has: "exec process read write", not: "browser canvas nodes cron gateway"},
		{name: "TP-06 the sandbox's own list", global: `{"sandbox":{"tools":{"allow":["read"]}}}`, c: boxed, has: "read", only: true},
		{
			name: "TP-06 the agent's sandbox lists go before the global ones", global: `{"sandbox":{"tools":{"allow":["read","exec"],"deny":["exec"]}}}`,
			agent: `{"sandbox":{"tools":{"allow":["exec","image"],"deny":["image"]}}}`, c: boxed, has: "exec", only: true,
		},
		{
			name: "TP-06 each list for itself", global: `{"sandbox":{"tools":{"allow":["read","exec"],"deny":["exec"]}}}`,
			agent: `{"sandbox":{"tools":{"allow":["exec","image"]}}}`, c: boxed, has: "image", only: true,
		},
		{
			name: "TP-06 only the agent denies", global: `{"sandbox":{"tools":{"allow":["read","exec"]}}}`,
			agent: `{"sandbox":{"tools":{"deny":["exec"]}}}`, c: boxed, has: "read", only: true,
		},
		{
			name: "TP-06 they apply in a sandbox only", global: `{"sandbox":{"tools":{"deny":["exec"]}}}`, agent: `{"sandbox":{"tools":{"allow":["read"]}}}`,
			c: talk(), has: strings.Join(allTools, " "), only: true,
		},
		{
			name: "alsoAllow of a sandbox: names of both sections", global: `{"sandbox":{"tools":{"alsoAllow":["browser"]}}}`, agent: `{"sandbox":{"tools":{"alsoAllow":["cron"]}}}`,
			c: boxed, has: "browser cron exec", not: "canvas gateway",
		},
		{
			name: "alsoAllow of a sandbox: an explicit deny list stays", global: `{"sandbox":{"tools":{"alsoAllow":["browser"]}}}`, agent: `{"sandbox":{"tools":{"deny":["browser"]}}}`,
			c: boxed, has: "exec read", not: "browser",
		},
		{name: "the agent's profile goes before the global one", global: `{"profile":"coding"}`, agent: `{"profile":"minimal"}`, c: talk(), has: "session_status", only: true},
		{name: "and may be wider", global: `{"profile":"minimal"}`, agent: `{"profile":"full"}`, c: talk(), has: strings.Join(allTools, " "), only: true},
		{name: "the agent's alsoAllow goes before the global one", global: `{"profile":"minimal","alsoAllow":["browser"]}`, agent: `{"alsoAllow":["read"]}`, c: talk(), has: "session_status read", only: true},
		{
			name: "a provider's profile of the agent goes before the global one", global: `{"byProvider":{"anthropic":{"profile":"coding"}}}`,
			agent: `{"byProvider":{"anthropic":{"profile":"minimal"}}}`, c: talk(), has: "session_status", only: true,
		},
		{
			name: "a provider's lists of both sections", global: `{"byProvider":{"anthropic":{"allow":["read","exec"]}}}`,
			agent: `{"byProvider":{"anthropic":{"allow":["exec","write"]}}}`, c: talk(), has: "exec", only: true,
		},
		{
			name: "TP-14 lists of children of both sections", global: `{"subagents":{"tools":{"allow":["read","exec"]}}}`,
			agent: `{"subagents":{"tools":{"allow":["exec","write"]}}}`, c: child(1, 1), has: "exec", only: true,
		},
		{
			name: "TP-14 they apply to children only", global: `{"subagents":{"tools":{"deny":["exec"]}}}`, agent: `{"subagents":{"tools":{"allow":["read"]}}}`,
			c: talk(), has: strings.Join(allTools, " "), only: true,
		},
		{name: "a sandbox's denied tool is allowed by its name", global: `{"sandbox":{"tools":{"alsoAllow":["browser"]}}}`, c: boxed, has: "browser exec", not: "canvas"},
		{
			name: "TP-08 a child without children", c: child(1, 1),
			has: "read exec subagents session_status", not: "sessions_spawn sessions_list sessions_history sessions_send message cron gateway",
		},
		{name: "TP-09 a child with children", c: child(1, 2), has: "sessions_spawn subagents sessions_list sessions_history", not: "sessions_send message"},
		{
			name: "TP-10 a later step does not widen", global: `{"profile":"coding","subagents":{"tools":{"allow":["browser"]}}}`, c: child(1, 1),
			not: "browser",
		},
		{
			name: "TP-14 lists of children", global: `{"subagents":{"tools":{"deny":["gateway","cron"],"allow":["read","exec"]}}}`, c: child(1, 1),
			has: "read exec", only: true,
		},
		{
			name: "TP-14 and of the agent", global: `{"subagents":{"tools":{"deny":["gateway","cron"],"allow":["read","exec"]}}}`, agent: `{"deny":["exec"]}`, c: child(1, 1),
			has: "read", only: true,
		},
		{
			name: "TP-15 the list of a child at the greatest depth", c: child(1, 1), only: true,
			has: "read write edit apply_patch ls exec process web_search web_fetch memory_search subagents session_status browser canvas nodes image",
		},
		{
			name: "TP-15 the list of a child that may have children", c: child(1, 2), only: true,
			has: "read write edit apply_patch ls exec process web_search web_fetch memory_search subagents session_status browser canvas nodes image sessions_spawn sessions_list sessions_history",
		},
		{
			name: "TP-15 the list of its child", c: child(2, 2), only: true,
			has: "read write edit apply_patch ls exec process web_search web_fetch memory_search subagents session_status browser canvas nodes image",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, _ := remaining(t, tt.global, tt.agent, tt.c)
			for _, n := range strings.Fields(tt.has) {
				if !slices.Contains(got, n) {
					t.Errorf("%s was removed", n)
				}
			}
			for _, n := range strings.Fields(tt.not) {
				if slices.Contains(got, n) {
					t.Errorf("%s is available", n)
				}
			}
			if tt.only && len(got) != len(strings.Fields(tt.has)) {
				t.Errorf("available: %v", got)
			}
		})
	}
}

func TestChatsAndSenders(t *testing.T) {
	t.Parallel()
	chat := ChatRules{Tools: &Rules{Deny: []string{"exec"}}, BySender: map[string]Rules{"id:7": {AlsoAllow: []string{"exec"}}, "username:ada": {Allow: []string{"read"}}}}
	in := func(s Sender) Conversation {
		c := talk()
		c.Chat, c.ChatKey, c.Sender = chat, "channels.telegram.groups.-100", s
		return c
	}
	for _, tt := range []struct {
		name   string
		sender Sender
		exec   bool
		by     string
	}{
		{"TP-05 the sender with rules of its own", Sender{Channel: "telegram", ID: "7"}, true, ""},
		{"TP-05 another sender", Sender{Channel: "telegram", ID: "8"}, false, "chat channels.telegram.groups.-100.tools"},
		{"TP-05 by name on the platform", Sender{ID: "8", Username: "@Ada"}, false, "chat channels.telegram.groups.-100.toolsBySender.username:ada"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, by := remaining(t, "", "", in(tt.sender))
			if slices.Contains(got, "exec") != tt.exec || by["exec"] != tt.by {
				t.Errorf("exec: available %v, removed by %q", slices.Contains(got, "exec"), by["exec"])
			}
		})
	}
	t.Run("a sender as channel and id, without a prefix", func(t *testing.T) {
		t.Parallel()
		c := talk()
		c.Sender = Sender{Channel: "irc", ID: "9"}
		for entry, want := range map[string]bool{"irc:9": false, "IRC:9": false, "xmpp:9": true, "irc:8": true} {
			got, _ := remaining(t, `{"toolsBySender":{"`+entry+`":{"deny":["exec"]}}}`, "", c)
			if slices.Contains(got, "exec") != want {
				t.Errorf("%s: exec is available: %v", entry, !want)
			}
		}
	})
	t.Run("an agent's rules for a sender take precedence over global ones", func(t *testing.T) {
		t.Parallel()
		c := talk()
		c.Sender = Sender{Channel: "irc", ID: "9"}
		got, _ := remaining(t, `{"toolsBySender":{"*":{"deny":["exec"]}}}`, `{"toolsBySender":{"channel:irc:9":{}}}`, c)
		if !slices.Contains(got, "exec") {
			t.Error("exec was removed")
		}
	})
}

// Each section of the configuration can remove exec, and Explain reports it.
func TestSections(t *testing.T) {
	t.Parallel()
	full := talk()
	full.Sandboxed, full.Depth, full.MaxDepth, full.Sender = true, 1, 1, Sender{ID: "7"}
	full.ChatKey = "channels.telegram.groups.-100"
	group := full
	group.Chat = ChatRules{Tools: &Rules{Deny: []string{"exec"}}}
	for _, tt := range []struct {
		name          string
		global, agent string
		c             Conversation
		by            string
		also          string // the same with alsoAllow
		back          bool   // alsoAllow restores exec
	}{
		{"1", `{"profile":"messaging"}`, "", full, "profile tools.profile", `{"profile":"messaging","alsoAllow":["exec"]}`, true},
		{"2", `{"byProvider":{"anthropic":{"profile":"minimal"}}}`, "", full, "provider profile tools.byProvider.anthropic.profile", `{"byProvider":{"anthropic":{"profile":"minimal","alsoAllow":["exec"]}}}`, true},
		{"3", `{"allow":["read"]}`, "", full, "global tools", "", false},
		{"4", `{"byProvider":{"anthropic":{"allow":["read"]}}}`, "", full, "global by provider tools.byProvider.anthropic", `{"byProvider":{"anthropic":{"deny":["exec"],"alsoAllow":["exec"]}}}`, false},
		{"5", "", `{"allow":["read"]}`, full, "agent agents.entries.main.tools", "", false},
		{"6", "", `{"byProvider":{"anthropic/opus":{"deny":["exec"]}}}`, full, "agent by provider agents.entries.main.tools.byProvider.anthropic/opus", "", false},
		{"8", "", "", group, "chat channels.telegram.groups.-100.tools", "", false},
		{"8 sender", `{"toolsBySender":{"id:7":{"deny":["exec"]}}}`, "", full, "sender tools.toolsBySender.id:7", "", false},
		{"9", `{"sandbox":{"tools":{"deny":["exec"]}}}`, "", full, "sandbox tools.sandbox.tools", "", false},
		{"10", `{"subagents":{"tools":{"deny":["exec"]}}}`, "", full, "subagent tools.subagents.tools", "", false},
		{"10 agent", "", `{"subagents":{"tools":{"allow":["read"]}}}`, full, "subagent agents.entries.main.tools.subagents.tools", "", false},
	} {
		t.Run("TP-13 layer "+tt.name, func(t *testing.T) {
			t.Parallel()
			got, by := remaining(t, tt.global, tt.agent, tt.c)
			if slices.Contains(got, "exec") || by["exec"] != tt.by {
				t.Errorf("exec removed by %q, want %q", by["exec"], tt.by)
			}
			e := New(config(t, tt.global), config(t, tt.agent), "agents.entries.main", tt.c).Explain("Exec", allTools)
			if last := e.Steps[len(e.Steps)-1]; e.Allowed || last.Label+" "+last.Key != tt.by || e.By != last.Label {
				t.Errorf("explained by %+v", e)
			}
			if tt.also == "" {
				return
			}
			if got, _ := remaining(t, tt.also, tt.agent, tt.c); slices.Contains(got, "exec") != tt.back {
				t.Errorf("with alsoAllow: available %v", got)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	t.Run("TC-09 allow and alsoAllow in one section", func(t *testing.T) {
		t.Parallel()
		err := config(t, `{"byProvider":{"x":{"allow":["read"],"alsoAllow":["exec"]}}}`).Check("tools")
		if err == nil || !strings.Contains(err.Error(), "tools.byProvider.x.allow and tools.byProvider.x.alsoAllow") {
			t.Error(err)
		}
	})
	if err := config(t, `{"profile":"codeing"}`).Check("tools"); err == nil || !strings.Contains(err.Error(), "coding") {
		t.Error(err)
	}
	if err := config(t, `{"profile":"Coding","alsoAllow":["exec"]}`).Check("tools"); err != nil {
		t.Error(err)
	}
}

func TestUnknownNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		allow string
		left  int
		warns string
	}{
		{`["raed"]`, len(allTools), "tools: no tool is named raed; the list is left out"},
		{`["raed","exec"]`, 1, "tools: no tool is named raed"},
		{`["x_search"]`, 0, ""}, // a known tool that this machine does not have
	} {
		o := New(config(t, `{"allow":`+tt.allow+`}`), Config{}, "agents.entries.main", talk()).Apply(allTools)
		if len(o.Allowed) != tt.left || strings.Join(o.Warnings, "|") != tt.warns {
			t.Errorf("%s: left %d, warns %q", tt.allow, len(o.Allowed), o.Warnings)
		}
	}
}

// For any rules: no step adds tools, explanations agree with the result, and
// the same rules give the same result.
func FuzzPipeline(f *testing.F) {
	f.Add(`{"profile":"coding","deny":["group:fs"]}`, `{"allow":["*"]}`, uint8(3))
	f.Add(`{"byProvider":{"anthropic":{"allow":["read["]}}}`, `{"toolsBySender":{"*":{"deny":["e*"]}}}`, uint8(0))
	f.Fuzz(func(t *testing.T, global, agent string, bits uint8) {
		var g, a Config
		if json.Unmarshal([]byte(global), &g) != nil || json.Unmarshal([]byte(agent), &a) != nil {
			t.Skip()
		}
		c := talk()
		c.Sandboxed, c.Depth, c.MaxDepth, c.Sender.ID = bits&1 != 0, int(bits>>1&1), 1, "7"
		p := New(g, a, "agents.list[0]", c)
		o := p.Apply(allTools)
		if diff := cmp.Diff(o, p.Apply(allTools)); diff != "" {
			t.Error(diff)
		}
		for i := range p {
			if fewer := p[:i].Apply(allTools); !contains(fewer.Allowed, o.Allowed) {
				t.Errorf("%d steps left %v, all left %v", i, fewer.Allowed, o.Allowed)
			}
		}
		for _, n := range allTools {
			if e := p.Explain(n, allTools); e.Allowed != slices.Contains(o.Allowed, n) {
				t.Errorf("%s: explained %+v, left %v", n, e, o.Allowed)
			}
		}
	})
}

func contains(all, some []string) bool {
	return !slices.ContainsFunc(some, func(n string) bool { return !slices.Contains(all, n) })
}

func BenchmarkApply(b *testing.B) {
	var g Config
	if err := json.Unmarshal([]byte(`{"profile":"coding","deny":["x*"],"byProvider":{"anthropic":{"deny":["browser"]}}}`), &g); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		New(g, Config{}, "agents.entries.main", talk()).Apply(allTools)
	}
}
