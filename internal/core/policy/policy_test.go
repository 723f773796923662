package policy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chela-ai/chela/internal/core/tool"
)

// allTools is a set with a tool of each kind.
var allTools = []string{
	"read", "write", "edit", "apply_patch", "ls", "exec", "process", "web_search", "web_fetch", "memory_search",
	"sessions_list", "sessions_history", "sessions_send", "sessions_spawn", "subagents", "session_status",
	"browser", "canvas", "cron", "gateway", "message", "nodes", "image", "agents_list", "sessions_delete",
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
	o := catalog.Pipeline(config(t, global), config(t, agent), "agents.entries.main", c).Apply(named(allTools...))
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
			has: "read write edit apply_patch exec process web_search web_fetch sessions_list sessions_send memory_search cron",
			not: "browser message nodes",
		},
		{name: "TC-04 messaging", global: `{"profile":"messaging"}`, c: talk(), has: "message sessions_list sessions_send",
			not: "exec read write"},
		{name: "TC-05 a group allowed", global: `{"allow":["group:web"]}`, c: talk(),
			has: "web_search web_fetch", only: true},
		{name: "TC-06 who may write may patch", global: `{"allow":["write"]}`, c: talk(),
			has: "write apply_patch", only: true},
		{name: "TC-07 who may not write may patch", global: `{"deny":["write"]}`, c: talk(),
			has: "apply_patch read", not: "write"},
		{name: "TC-07 unless the group is denied", global: `{"deny":["group:fs"]}`, c: talk(), has: "exec",
			not: "write apply_patch"},
		{name: "TC-08 case and globs", global: `{"allow":["Exec","brow*"],"deny":["BROWS*"]}`, c: talk(),
			has: "exec", only: true},
		{name: "TC-12 bash is exec", global: `{"allow":["bash"]}`, c: talk(), has: "exec", only: true},
		{name: "TC-12 other names", global: `{"allow":["automations","view_image","list_dir"]}`, agent: `{"deny":["shell"]}`,
			c: talk(), has: "cron image ls", only: true},
		{name: "TC-06 apply_patch by its own name", global: `{"allow":["apply_patch"]}`, c: talk(),
			has: "apply_patch", only: true},
		{
			name: "all tools of ours except files and commands", global: `{"allow":["group:openclaw","ls"]}`,
			agent: `{"allow":["group:chela","read"]}`, c: talk(), only: true,
			has: "web_search web_fetch memory_search sessions_list sessions_history sessions_send sessions_spawn subagents session_status browser cron gateway message nodes image agents_list",
		},
		{name: "a profile with spaces around it", global: `{"profile":" Minimal "}`, c: talk(),
			has: "session_status", only: true},
		{name: "the same case goes before another",
			global: `{"byProvider":{"ANTHROPIC":{"deny":["exec"]},"anthropic":{"deny":["read"]}}}`, c: talk(),
			has: "exec", not: "read"},
		{name: "no sender: no rules of one",
			global: `{"toolsBySender":{"id:":{"deny":["exec"]},"":{"deny":["exec"]},"name:":{"deny":["exec"]}}}`,
			c:      talk(), has: "exec"},
		{name: "no provider: no rules of one", global: `{"byProvider":{"":{"deny":["exec"]}}}`,
			c: Conversation{}, has: "exec read"},
		{name: "TP-01 a provider's profile", global: `{"profile":"coding","byProvider":{"anthropic":{"profile":"minimal"}}}`,
			c: talk(), has: "session_status", only: true},
		{name: "TP-01 not for another provider",
			global: `{"profile":"coding","byProvider":{"anthropic":{"profile":"minimal"}}}`, c: openai,
			has: "read exec", not: "browser"},
		{name: "TP-01 the model goes before its provider",
			global: `{"byProvider":{"Anthropic":{"deny":["exec"]},"anthropic/opus":{"deny":["read"]}}}`, c: talk(),
			has: "exec", not: "read"},
		{name: "TP-02 two lists: what both allow", global: `{"allow":["read","exec"]}`, agent: `{"allow":["read","write"]}`,
			c: talk(), has: "read", only: true},
		{name: "TP-03 a denied tool stays denied", global: `{"deny":["exec"]}`, agent: `{"allow":["exec","read"]}`, c: talk(),
			has: "read", only: true},
		{name: "TP-04 a profile and more", global: `{"profile":"coding","alsoAllow":["browser"]}`, c: talk(),
			has: "browser read", not: "message"},
		{name: "TP-06 in a sandbox", c: boxed, has: "exec process read write",
			not: "browser canvas nodes cron gateway message"},
		{name: "TP-06 the sandbox's own list", global: `{"sandbox":{"tools":{"allow":["read"]}}}`, c: boxed,
			has: "read", only: true},
		{
			name:   "TP-06 the agent's sandbox lists go before the global ones",
			global: `{"sandbox":{"tools":{"allow":["read","exec"],"deny":["exec"]}}}`,
			agent:  `{"sandbox":{"tools":{"allow":["exec","image"],"deny":["image"]}}}`, c: boxed, has: "exec", only: true,
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
			name: "TP-06 they apply in a sandbox only", global: `{"sandbox":{"tools":{"deny":["exec"]}}}`,
			agent: `{"sandbox":{"tools":{"allow":["read"]}}}`,
			c:     talk(), has: strings.Join(allTools, " "), only: true,
		},
		{
			name: "alsoAllow of a sandbox: names of both sections", global: `{"sandbox":{"tools":{"alsoAllow":["browser"]}}}`,
			agent: `{"sandbox":{"tools":{"alsoAllow":["cron"]}}}`,
			c:     boxed, has: "browser cron exec", not: "canvas gateway",
		},
		{
			name:   "alsoAllow of a sandbox: an explicit deny list stays",
			global: `{"sandbox":{"tools":{"alsoAllow":["browser"]}}}`, agent: `{"sandbox":{"tools":{"deny":["browser"]}}}`,
			c: boxed, has: "exec read", not: "browser",
		},
		{
			name:   "alsoAllow of a sandbox: an explicit global deny list stays",
			global: `{"sandbox":{"tools":{"alsoAllow":["browser"],"deny":["browser"]}}}`,
			agent:  `{"sandbox":{"tools":{"alsoAllow":["browser","cron"]}}}`, c: boxed, has: "exec read cron", not: "browser",
		},
		{
			name:   "alsoAllow of a sandbox: a group and a pattern",
			global: `{"sandbox":{"tools":{"alsoAllow":["group:nodes","Brow*"]}}}`,
			c:      boxed, has: "browser nodes exec", not: "canvas",
		},
		{
			name:   "TP-06 the default deny list of a sandbox applies to any allow list",
			global: `{"sandbox":{"tools":{"allow":["*"]}}}`, c: boxed,
			has: "read exec web_fetch", not: "browser canvas nodes cron gateway message",
		},
		{name: "a group denied in a sandbox", global: `{"sandbox":{"tools":{"deny":["group:fs"]}}}`, c: boxed,
			has: "exec process", not: "read write edit apply_patch ls"},
		{name: "a profile and a group", global: `{"profile":"minimal","alsoAllow":["group:web"]}`, c: talk(),
			has: "session_status web_search web_fetch", only: true},
		{name: "the agent's profile goes before the global one", global: `{"profile":"coding"}`,
			agent: `{"profile":"minimal"}`, c: talk(), has: "session_status", only: true},
		{name: "and may be wider", global: `{"profile":"minimal"}`, agent: `{"profile":"full"}`, c: talk(),
			has: strings.Join(allTools, " "), only: true},
		{name: "the agent's alsoAllow goes before the global one", global: `{"profile":"minimal","alsoAllow":["browser"]}`,
			agent: `{"alsoAllow":["read"]}`, c: talk(), has: "session_status read", only: true},
		{
			name:   "a provider's profile of the agent goes before the global one",
			global: `{"byProvider":{"anthropic":{"profile":"coding"}}}`,
			agent:  `{"byProvider":{"anthropic":{"profile":"minimal"}}}`, c: talk(), has: "session_status", only: true,
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
			name: "TP-14 they apply to children only", global: `{"subagents":{"tools":{"deny":["exec"]}}}`,
			agent: `{"subagents":{"tools":{"allow":["read"]}}}`,
			c:     talk(), has: strings.Join(allTools, " "), only: true,
		},
		{name: "a sandbox's denied tool is allowed by its name", global: `{"sandbox":{"tools":{"alsoAllow":["browser"]}}}`,
			c: boxed, has: "browser exec", not: "canvas"},
		{
			name: "TP-08 a child without children", c: child(1, 1),
			has: "read exec subagents session_status",
			not: "sessions_spawn sessions_list sessions_history sessions_send sessions_delete agents_list message cron gateway",
		},
		{name: "TP-09 a child with children", c: child(1, 2), has: "sessions_spawn subagents sessions_list sessions_history",
			not: "sessions_send message"},
		{
			name:   "TP-10 a later step does not widen",
			global: `{"profile":"coding","subagents":{"tools":{"allow":["browser"]}}}`, c: child(1, 1),
			not: "browser",
		},
		{
			name:   "TP-14 lists of children",
			global: `{"subagents":{"tools":{"deny":["gateway","cron"],"allow":["read","exec"]}}}`, c: child(1, 1),
			has: "read exec", only: true,
		},
		{
			name:   "TP-14 and of the agent",
			global: `{"subagents":{"tools":{"deny":["gateway","cron"],"allow":["read","exec"]}}}`,
			agent:  `{"deny":["exec"]}`, c: child(1, 1),
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
	chat := ChatRules{Tools: &Rules{Deny: []string{"exec"}}, BySender: map[string]Rules{
		"id:7":           {AlsoAllow: []string{"exec"}},
		"username:ada":   {Allow: []string{"read"}},
		"name:bob":       {Deny: []string{"exec"}},
		"e164:+15550100": {Deny: []string{"exec"}},

		"channel:irc:7": {Deny: []string{"exec"}},
	}}
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
		{"TP-05 by name on the platform", Sender{ID: "8", Username: "@Ada"}, false,
			"chat channels.telegram.groups.-100.toolsBySender.username:ada"},
		{"by the name that is shown", Sender{ID: "8", Name: "Bob"}, false,
			"chat channels.telegram.groups.-100.toolsBySender.name:bob"},
		{"by phone number", Sender{ID: "8", Phone: "+15550100"}, false,
			"chat channels.telegram.groups.-100.toolsBySender.e164:+15550100"},
		{"the id takes precedence over the name", Sender{ID: "7", Username: "ada"}, true, ""},
		{"the id on the channel takes precedence over the id", Sender{Channel: "irc", ID: "7"}, false,
			"chat channels.telegram.groups.-100.toolsBySender.channel:irc:7"},
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
		{"1", `{"profile":"messaging"}`, "", full, "profile tools.profile",
			`{"profile":"messaging","alsoAllow":["exec"]}`, true},
		{"2", `{"byProvider":{"anthropic":{"profile":"minimal"}}}`, "", full,
			"provider profile tools.byProvider.anthropic.profile",
			`{"byProvider":{"anthropic":{"profile":"minimal","alsoAllow":["exec"]}}}`, true},
		{"3", `{"allow":["read"]}`, "", full, "global tools", "", false},
		{"4", `{"byProvider":{"anthropic":{"allow":["read"]}}}`, "", full, "global by provider tools.byProvider.anthropic",
			`{"byProvider":{"anthropic":{"deny":["exec"],"alsoAllow":["exec"]}}}`, false},
		{"5", "", `{"allow":["read"]}`, full, "agent agents.entries.main.tools", "", false},
		{"6", "", `{"byProvider":{"anthropic/opus":{"deny":["exec"]}}}`, full,
			"agent by provider agents.entries.main.tools.byProvider.anthropic/opus", "", false},
		{"8", "", "", group, "chat channels.telegram.groups.-100.tools", "", false},
		{"8 sender", `{"toolsBySender":{"id:7":{"deny":["exec"]}}}`, "", full, "sender tools.toolsBySender.id:7", "", false},
		{"9", `{"sandbox":{"tools":{"deny":["exec"]}}}`, "", full, "sandbox tools.sandbox.tools", "", false},
		{"10", `{"subagents":{"tools":{"deny":["exec"]}}}`, "", full, "subagent tools.subagents.tools", "", false},
		{"10 agent", "", `{"subagents":{"tools":{"allow":["read"]}}}`, full,
			"subagent agents.entries.main.tools.subagents.tools", "", false},
	} {
		t.Run("TP-13 layer "+tt.name, func(t *testing.T) {
			t.Parallel()
			got, by := remaining(t, tt.global, tt.agent, tt.c)
			if slices.Contains(got, "exec") || by["exec"] != tt.by {
				t.Errorf("exec removed by %q, want %q", by["exec"], tt.by)
			}
			e := catalog.Pipeline(config(t, tt.global), config(t, tt.agent), "agents.entries.main",
				tt.c).Explain("Exec", named(allTools...))
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

// Without a tool that a profile or a sandbox contains, nothing is allowed.
func TestNothingFits(t *testing.T) {
	t.Parallel()
	none, boxed := NewCatalog(tool.Set{}), talk()
	boxed.Sandboxed = true
	for name, p := range map[string]Pipeline{
		"profile": none.Pipeline(config(t, `{"profile":"minimal"}`), Config{}, "", talk()),
		"profile and a misspelled name": none.Pipeline(config(t, `{"profile":"minimal","alsoAllow":["raed"]}`),
			Config{}, "", talk()),
		"sandbox": none.Pipeline(Config{}, Config{}, "", boxed),
	} {
		if o := p.Apply(named("read", "exec")); len(o.Allowed) > 0 {
			t.Errorf("%s: available: %q", name, o.Allowed)
		}
	}
}

// A tool of another program may have any name.
func TestNamesIgnoreCase(t *testing.T) {
	t.Parallel()
	for label, p := range map[string]Pipeline{
		"denied": catalog.Pipeline(config(t, `{"deny":["files__Delete*"]}`), Config{}, "agents.entries.main", talk()),
		Owner:    {OwnerOnly("Files__Delete", "Files__DELETE_ALL")},
	} {
		o := p.Apply(named("Files__Read", "Files__Delete", "files__delete_all"))
		if !slices.Equal(o.Allowed, []string{"Files__Read"}) {
			t.Errorf("%s: available: %q", label, o.Allowed)
		}
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
	for _, rules := range []string{
		`{"sandbox":{"tools":{"allow":["read"],"alsoAllow":["exec"]}}}`,
		`{"subagents":{"tools":{"allow":["read"],"alsoAllow":["exec"]}}}`,
		`{"toolsBySender":{"*":{"allow":["read"],"alsoAllow":["exec"]}}}`, `{"byProvider":{"x":{"profile":"codeing"}}}`,
	} {
		if config(t, rules).Check("tools") == nil {
			t.Errorf("%s is accepted", rules)
		}
	}
	if err := config(t, `{"profile":"codeing"}`).Check("tools"); err == nil || !strings.Contains(err.Error(), "coding") {
		t.Error(err)
	}
	for _, rules := range []string{`{"profile":" Coding ","alsoAllow":["exec"]}`,
		`{"profile":"coding","allow":["exec"]}`} {
		if err := config(t, rules).Check("tools"); err != nil {
			t.Errorf("%s: %v", rules, err)
		}
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
		{`["group:nodes"]`, 1, ""},
		{`["group:reading"]`, 0, ""}, // a known group without tools
		{`["group:raeding"]`, len(allTools), "tools: no tool is named group:raeding; the list is left out"},
		{`["EXEC","canv*"]`, 2, ""},
	} {
		o := catalog.Pipeline(config(t, `{"allow":`+tt.allow+`}`), Config{}, "agents.entries.main",
			talk()).Apply(named(allTools...))
		if len(o.Allowed) != tt.left || strings.Join(o.Warnings, "|") != tt.warns {
			t.Errorf("%s: left %d, warns %q", tt.allow, len(o.Allowed), o.Warnings)
		}
	}
}

// What an outcome reports: only what was removed and is to be said.
func TestOutcome(t *testing.T) {
	t.Parallel()
	names := []string{"read", "exec", "files__get"}
	p := catalog.Pipeline(config(t, `{"profile":"full","allow":["read","files__*"],"deny":["browser"]}`),
		config(t, `{"deny":["process"]}`), "agents.entries.main", talk())
	want := Outcome{Allowed: []string{"read", "files__get"},
		Removed: []Removal{{Label: "global", Key: "tools", Names: []string{"exec"}}}}
	if diff := cmp.Diff(want, p.Apply(named(names...))); diff != "" {
		t.Error(diff)
	}
	e := p.Explain("BASH", named(names...))
	if e.Name != "exec" || e.By != "global" || e.Allowed {
		t.Errorf("%+v", e)
	}
	if e := (Pipeline{OwnerOnly("exec")}).Explain("exec", named(names...)); e.By != "owner" {
		t.Errorf("%+v", e)
	}
	child := talk()
	child.Depth = 1
	if e := catalog.Pipeline(Config{}, Config{}, "", child).Explain("cron", named("cron")); e.By != "every subagent" {
		t.Errorf("%+v", e)
	}
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	for rules, want := range map[string]string{
		``:                                     "full",
		`{"profile":"full"}`:                   "full",
		`{"deny":["read"]}`:                    "full",
		`{"profile":"Coding","deny":["read"]}`: "coding",
	} {
		if got := catalog.Pipeline(config(t, rules), Config{}, "", talk()).Profile(); got != want {
			t.Errorf("%s: profile %q, want %q", rules, got, want)
		}
	}
	for name, want := range map[string]string{
		"Bash":           "coding full",
		"session_status": "minimal coding messaging full",
		"browser":        "full",
	} {
		if got := strings.Join(catalog.ProfilesOf(&tool.Spec{Name: catalog.Name(name)}), " "); got != want {
			t.Errorf("%s: profiles %q, want %q", name, got, want)
		}
	}
	if !catalog.Match([]string{"group:fs"}, "List_Dir") || catalog.Match([]string{"group:fs"}, "exec") ||
		catalog.Match(nil, "exec") {
		t.Error("Match")
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
		p := catalog.Pipeline(g, a, "agents.list[0]", c)
		o := p.Apply(named(allTools...))
		if diff := cmp.Diff(o, p.Apply(named(allTools...))); diff != "" {
			t.Error(diff)
		}
		for i := range p {
			if fewer := p[:i].Apply(named(allTools...)); !contains(fewer.Allowed, o.Allowed) {
				t.Errorf("%d steps left %v, all left %v", i, fewer.Allowed, o.Allowed)
			}
		}
		for _, n := range allTools {
			if e := p.Explain(n, named(allTools...)); e.Allowed != slices.Contains(o.Allowed, n) {
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
	if err := json.Unmarshal([]byte(`{"profile":"coding","deny":["x*"],"byProvider":{"anthropic":{"deny":["browser"]}}}`),
		&g); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		catalog.Pipeline(g, Config{}, "agents.entries.main", talk()).Apply(named(allTools...))
	}
}

func TestPlugins(t *testing.T) {
	t.Parallel()
	tools := append(named("read", "exec"), tool.Spec{Name: "Weather_Now", Plugin: "weather"},
		tool.Spec{Name: "weather_week", Plugin: "weather", Optional: true},
		tool.Spec{Name: "docs__search", Plugin: MCP}, tool.Spec{Name: "docs__drop", Plugin: MCP})
	boxed := talk()
	boxed.Sandboxed = true
	for _, tt := range []struct {
		name, global, agent string
		c                   Conversation
		want                []string
		warnings            int
	}{
		{"an optional tool must be named", "", "", talk(),
			[]string{"read", "exec", "Weather_Now", "docs__search", "docs__drop"}, 0},
		{"by its name", `{"alsoAllow": ["weather_week"]}`, "", talk(),
			[]string{"read", "exec", "Weather_Now", "weather_week", "docs__search", "docs__drop"}, 0},
		{"by its plug-in, for an agent", "", `{"alsoAllow": ["weather"]}`, talk(),
			[]string{"read", "exec", "Weather_Now", "weather_week", "docs__search", "docs__drop"}, 0},
		{"in a list of all tools", `{"allow": ["read", "group:plugins"]}`, "", talk(),
			[]string{"read", "Weather_Now", "weather_week", "docs__search", "docs__drop"}, 0},
		{"a pattern does not name it", `{"allow": ["weather*"]}`, "", talk(), []string{"Weather_Now"}, 0},
		{"neither does what denies another", `{"deny": ["weather_now"]}`, "", talk(),
			[]string{"read", "exec", "docs__search", "docs__drop"}, 0},
		{"deny takes precedence", `{"alsoAllow": ["weather"], "deny": ["weather_week"]}`, "", talk(),
			[]string{"read", "exec", "Weather_Now", "docs__search", "docs__drop"}, 0},
		{"all plug-ins are denied", `{"deny": ["group:plugins"]}`, "", talk(), []string{"read", "exec"}, 0},
		{"one plug-in is denied", `{"deny": ["weather"]}`, "", talk(),
			[]string{"read", "exec", "docs__search", "docs__drop"}, 0},
		{"MCP-03 servers of the configuration are denied", `{"deny": ["bundle-mcp"]}`, "", talk(),
			[]string{"read", "exec", "Weather_Now"}, 0},
		{"the profile coding has tools of servers", `{"profile": "coding"}`, "", talk(),
			[]string{"read", "exec", "docs__search", "docs__drop"}, 0},
		{"the profile minimal has none", `{"profile": "minimal"}`, "", talk(), nil, 0},
		{"a profile and a plug-in", `{"profile": "minimal", "alsoAllow": ["weather"]}`, "", talk(),
			[]string{"Weather_Now", "weather_week"}, 0},
		{"TP-07 in a sandbox they are absent", "", "", boxed, []string{"read", "exec"}, 0},
		{"TP-07 until the sandbox's list names the servers", `{"sandbox": {"tools": {"alsoAllow": ["bundle-mcp"]}}}`, "",
			boxed, []string{"read", "exec", "docs__search", "docs__drop"}, 0},
		{"TP-07 or the plug-in", `{"sandbox": {"tools": {"alsoAllow": ["weather"]}}}`, "", boxed,
			[]string{"read", "exec", "Weather_Now", "weather_week"}, 0},
		{"TP-07 or group:plugins", `{"sandbox": {"tools": {"alsoAllow": ["group:plugins"]}}}`, "", boxed,
			[]string{"read", "exec", "Weather_Now", "weather_week", "docs__search", "docs__drop"}, 0},
		{"TP-07 or one server", `{"sandbox": {"tools": {"alsoAllow": ["docs__*"]}}}`, "", boxed,
			[]string{"read", "exec", "docs__search", "docs__drop"}, 0},
		{"a server that is not known yet keeps its list", `{"allow": ["notes__*"]}`, "", talk(), nil, 0},
	} {
		p := catalog.Pipeline(config(t, tt.global), config(t, tt.agent), "agents.entries.main", tt.c)
		o := p.Apply(tools)
		if !slices.Equal(o.Allowed, tt.want) || len(o.Warnings) != tt.warnings {
			t.Errorf("%s: %q, warnings %q; want %q", tt.name, o.Allowed, o.Warnings, tt.want)
		}
		for i := range tools {
			if e := p.Explain(tools[i].Name, tools); e.Allowed != slices.Contains(o.Allowed, tools[i].Name) {
				t.Errorf("%s: %s is explained as %+v", tt.name, tools[i].Name, e)
			}
		}
	}
	t.Run("a subagent's list does not name it", func(t *testing.T) {
		t.Parallel()
		p := append(catalog.Pipeline(Config{}, Config{}, "agents.entries.main", talk()),
			catalog.Limit("session", []string{"weather_week", "read"}, nil))
		if o := p.Apply(tools); !slices.Equal(o.Allowed, []string{"read"}) {
			t.Errorf("%q", o.Allowed)
		}
		if e := p.Explain("weather_week", tools); e.By != "optional" {
			t.Errorf("%+v", e)
		}
	})
}
