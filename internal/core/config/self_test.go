package config

import (
	"slices"
	"strings"
	"testing"
)

// TestClosed checks the table of the keys that an assistant may change.
func TestClosed(t *testing.T) {
	t.Parallel()
	open := 0
	for _, k := range Keys() {
		path := strings.ReplaceAll(strings.ReplaceAll(k.Path, "[]", "[0]"), ".*", ".x")
		closed := Closed(path) != ""
		if !closed {
			open++
		}
		top, _, _ := strings.Cut(path, ".")
		secure := k.Kind == Secret || k.Guards != "" ||
			slices.Contains([]string{"approvals", "bindings", "budget", "commands", "compat", "env", "hooks", "mcp", "models",
				"plugins", "secrets", "security"}, top)
		if secure && !closed {
			t.Errorf("%s is open", k.Path)
		}
	}
	if open < 50 {
		t.Errorf("%d keys are open", open)
	}
	for path, want := range map[string]bool{
		"agents.defaults.model":         false,
		"agents.defaults.model.primary": false,
		"agents.list[3].identity.name":  false,
		"channels.tg.heartbeat.showOk":  false,
		"tools.web.search.maxResults":   false,
		"tools.updatePlan":              false,
		"agents":                        true,
		"agents.list":                   true,
		"agents.list[0]":                true,
		"agents.list[0].id":             true,
		"agents.list.name":              true,

		"agents.defaults":  true,
		"tools":            true,
		"tools.web.search": true,
		"tools.new":        true,
		"new":              true,
		"":                 true,
		"messages":         true,

		"messages.queue.$include":           true,
		"[":                                 true,
		"channels.tg":                       true,
		"channels.tg.allowFrom":             true,
		"agents.defaults.modelPolicy.allow": true,
	} {
		if got := Closed(path) != ""; got != want {
			t.Errorf("%q is closed: %v, want %v", path, got, want)
		}
	}
}

// TestDraftClosed checks what a change touches.
func TestDraftClosed(t *testing.T) {
	t.Parallel()
	tree, err := load(t, `{
		agents: {list: [{id: "a", tools: {profile: "minimal"}, name: "A"}, {id: "b", workspace: "/b"}]},
		tools: {exec: {mode: "ask"}, deny: ["exec"]},
		messages: {queue: {mode: "steer"}},
	}`)
	if err != nil {
		t.Fatal(err)
	}
	for patch, want := range map[string]string{
		`{agents: {list: [{id: "a", name: "B"}]}}`:                  "",
		`{agents: {list: [{id: "b", model: "x/y"}]}}`:               "",
		`{messages: {queue: null}}`:                                 "",
		`{agents: {list: [{id: "a", tools: {profile: "full"}}]}}`:   "agents.list[0].tools.profile",
		`{agents: {list: [{id: "a", tools: null}]}}`:                "agents.list[0].tools.profile",
		`{agents: {list: [{id: "c"}]}}`:                             "agents.list[2].id",
		`{tools: {deny: ["exec", "write"]}}`:                        "tools.deny[1]",
		`{tools: null}`:                                             "tools.deny[0] tools.exec.mode",
		`{compat: "openclaw", messages: {responseUsage: "full"}}`:   "compat",
		`{messages: {responsePrefix: "${SECRET}"}}`:                 "messages.responsePrefix",
		`{agents: {defaults: {heartbeat: {every: "1h", to: "x"}}}}`: "agents.defaults.heartbeat.to",
		`{hooks: {}}`: "hooks",
	} {
		d, err := tree.Merge([]byte(patch), []string{"tools.deny"})
		if err != nil {
			t.Errorf("%s: %v", patch, err)
			continue
		}
		var got []string
		for _, p := range d.Closed() {
			got = append(got, p.Path)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%s touches %q, want %q", patch, got, want)
		}
	}
	for text, want := range map[string]bool{
		`{a: {$include: "x"}}`:     true,
		`{a: [{"$include": "x"}]}`: true,
		`{$schema: "x"}`:           true,
		`{a: "$include"}`:          false,
		`{`:                        false,
	} {
		if got := RefuseIncludes([]byte(text)) != nil; got != want {
			t.Errorf("%s is refused: %v, want %v", text, got, want)
		}
	}
}
